//! The host side of each WIT interface, one file an interface.
//!
//! What a guest asks is checked here against what its output was granted. Ordinary refusals are WIT results; a Rust `Err` ends the guest.

use std::sync::Arc;

use crate::config::{AwsConfig, S3Grant};
use crate::state::State;
use crate::telemetry::Metrics;

/// What the host does for one output's workers. Everything here is per output; nothing in it is guest memory.
#[derive(Debug)]
pub struct Services {
    _todo: (),
}

impl Services {
    /// For an output at work. Credentials are looked up when the first call needs them.
    ///
    /// # Errors
    /// Where the AWS settings make no sense (an endpoint that is no URL).
    pub async fn new(
        _output: Arc<str>,
        _aws: &AwsConfig,
        _state: State,
        _metrics: Metrics,
    ) -> Result<Arc<Self>, String> {
        todo!()
    }
    /// For `configure` alone: every call but `log` and `clock` is refused. `wharf validate` needs no disk and no network.
    pub fn detached(_output: Arc<str>) -> Arc<Self> {
        todo!()
    }
    /// What the output may touch in S3 from now on. Nothing before this is called.
    pub fn grant_s3(&self, _grants: Vec<S3Grant>) {
        todo!()
    }
}
