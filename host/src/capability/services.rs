//! What the host does for one output.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::aws::{Connection, check_environment};
use super::bindings::types::HostError;
use super::bucket::Bucket;
use super::watch::Watch;
use super::{cloudwatch_logs, s3};
use crate::config::{AwsConfig, GrantsConfig};
use crate::state::State;
use crate::telemetry::Metrics;

/// What the host does for one output's workers. Everything here is per output; nothing in it is guest memory.
#[derive(Debug)]
pub struct Services {
    output: Arc<str>,
    work: Option<Work>,
    watch: Option<Arc<dyn Watch>>,
    grants: RwLock<Arc<GrantsConfig>>,
    /// One bucket an output and not a store: a component that dies and comes back does not get a full bucket each time.
    pub(super) log_bucket: Mutex<Bucket>,
}

/// What an output at work has, and one that is only configured has not.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) state: State,
    pub(crate) metrics: Metrics,
    pub(crate) aws: Arc<Connection>,
}

impl Services {
    /// For an output at work. Credentials are looked up when the first call needs them.
    ///
    /// # Errors
    /// Where the environment has AWS settings that make no sense (a key with a line break in it).
    #[expect(clippy::unused_async, reason = "the door is async, so that settings may be looked up later")]
    pub async fn new(output: Arc<str>, aws: &AwsConfig, state: State, metrics: Metrics) -> Result<Arc<Self>, String> {
        check_environment()?;
        let work = Work { state, metrics, aws: Connection::for_settings(aws) };
        Ok(Self::with(output, Some(work)))
    }

    /// For `configure` alone: every call but `log` and `clock` is refused. `wharf validate` needs no disk and no network.
    pub fn detached(output: Arc<str>) -> Arc<Self> {
        Self::with(output, None)
    }

    /// For an output at work over a given connection.
    #[cfg(test)]
    pub(crate) fn over(output: Arc<str>, aws: Arc<Connection>, state: State, metrics: Metrics) -> Arc<Self> {
        Self::with(output, Some(Work { state, metrics, aws }))
    }

    /// For an output at work under the eyes of a test.
    pub(crate) fn watched(output: Arc<str>, work: Work, watch: Arc<dyn Watch>) -> Arc<Self> {
        Arc::new(Self { watch: Some(watch), ..Self::new_with(output, Some(work)) })
    }

    fn with(output: Arc<str>, work: Option<Work>) -> Arc<Self> {
        Arc::new(Self::new_with(output, work))
    }

    fn new_with(output: Arc<str>, work: Option<Work>) -> Self {
        Self {
            output,
            work,
            watch: None,
            grants: RwLock::default(),
            log_bucket: Mutex::new(Bucket::full(std::time::Instant::now())),
        }
    }

    /// Whoever looks on while the output works.
    pub(crate) fn watch(&self) -> Option<&dyn Watch> {
        self.watch.as_deref()
    }

    /// What the output may touch from now on. Nothing before this is called.
    pub fn grant(&self, grants: GrantsConfig) {
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = grants.into();
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
        s3::grant::check_key(&self.output, &self.grants().s3, bucket, key)
    }

    /// Whether the output may see keys that begin so.
    pub(crate) fn may_list(&self, bucket: &str, prefix: &str) -> Result<(), HostError> {
        s3::grant::check_prefix(&self.output, &self.grants().s3, bucket, prefix)
    }

    /// Whether the output may write to this log group, create it, and set how long it keeps events.
    pub(crate) fn may_touch_log_group(&self, name: &str) -> Result<(), HostError> {
        cloudwatch_logs::grant::check_group(&self.output, &self.grants().cloudwatch_logs, name)
    }

    fn grants(&self) -> Arc<GrantsConfig> {
        Arc::clone(&self.grants.read().unwrap_or_else(PoisonError::into_inner))
    }
}
