//! What the host does for one output.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::bindings::types::HostError;
use super::bucket::Bucket;
use super::s3::grant;
use super::s3::{Connection, check_settings};
use crate::config::{AwsConfig, S3Grant};
use crate::state::State;
use crate::telemetry::Metrics;

/// What the host does for one output's workers. Everything here is per output; nothing in it is guest memory.
#[derive(Debug)]
pub struct Services {
    output: Arc<str>,
    work: Option<Work>,
    s3_grants: RwLock<Arc<[S3Grant]>>,
    /// One bucket an output and not a store: a component that dies and comes back does not get a full bucket each time.
    pub(super) log_bucket: Mutex<Bucket>,
}

/// What an output at work has, and one that is only configured has not.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) state: State,
    pub(crate) metrics: Metrics,
    pub(crate) s3: Arc<Connection>,
}

impl Services {
    /// For an output at work. Credentials are looked up when the first call needs them.
    ///
    /// # Errors
    /// Where the AWS settings make no sense (an endpoint that is no URL).
    #[expect(clippy::unused_async, reason = "the door is async, so that settings may be looked up later")]
    pub async fn new(output: Arc<str>, aws: &AwsConfig, state: State, metrics: Metrics) -> Result<Arc<Self>, String> {
        check_settings(aws)?;
        let work = Work { state, metrics, s3: Connection::for_settings(aws) };
        Ok(Self::with(output, Some(work)))
    }

    /// For `configure` alone: every call but `log` and `clock` is refused. `wharf validate` needs no disk and no network.
    pub fn detached(output: Arc<str>) -> Arc<Self> {
        Self::with(output, None)
    }

    fn with(output: Arc<str>, work: Option<Work>) -> Arc<Self> {
        Arc::new(Self {
            output,
            work,
            s3_grants: RwLock::new(Arc::from([])),
            log_bucket: Mutex::new(Bucket::full(std::time::Instant::now())),
        })
    }

    /// What the output may touch in S3 from now on. Nothing before this is called.
    pub fn grant_s3(&self, grants: Vec<S3Grant>) {
        *self.s3_grants.write().unwrap_or_else(PoisonError::into_inner) = grants.into();
    }

    /// The output's name.
    pub fn output(&self) -> &Arc<str> {
        &self.output
    }

    /// Where there is an output at work behind this.
    pub(crate) fn work(&self) -> Option<&Work> {
        self.work.as_ref()
    }

    /// Whether the output may write this key.
    pub(crate) fn may_touch_key(&self, bucket: &str, key: &str) -> Result<(), HostError> {
        grant::check_key(&self.output, &self.s3_grants(), bucket, key)
    }

    /// Whether the output may see keys that begin so.
    pub(crate) fn may_list(&self, bucket: &str, prefix: &str) -> Result<(), HostError> {
        grant::check_prefix(&self.output, &self.s3_grants(), bucket, prefix)
    }

    fn s3_grants(&self) -> Arc<[S3Grant]> {
        Arc::clone(&self.s3_grants.read().unwrap_or_else(PoisonError::into_inner))
    }
}
