//! What the host does for one output.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::aws::{Connection, check_environment};
use super::bindings::types::HostError;
use super::bucket::Bucket;
use super::http::{Credentials, Network, WayOut, Wire, check_settings};
use super::share::{HttpShare, TenantShare};
use super::watch::Watch;
use super::{Reached, cloudwatch_logs, s3};
use crate::config::{Config, GrantsConfig, HttpConfig, Limit, Limits, OutputConfig};
use crate::state::State;
use crate::telemetry::Metrics;

/// What the host does for one output's workers. Everything here is per output; nothing in it is guest memory.
#[derive(Debug)]
pub struct Services {
    output: Arc<str>,
    work: Option<Work>,
    watch: OnceLock<Arc<dyn Watch>>,
    grants: RwLock<Arc<GrantsConfig>>,
    /// Said by the output, or else by the plugin host that makes its first store.
    limits: OnceLock<Arc<Limits>>,
    tenant: OnceLock<Option<Arc<TenantShare>>>,
    /// One bucket an output and not a store: a component that dies and comes back does not get a full bucket each time.
    pub(super) log_bucket: Mutex<Bucket>,
}

/// What an output at work has, and one that is only configured has not.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) state: State,
    pub(crate) metrics: Metrics,
    pub(crate) aws: Arc<Connection>,
    pub(crate) http: WayOut,
}

impl Services {
    /// For an output at work. Credentials are looked up when the first call needs them.
    ///
    /// # Errors
    /// Where the environment has AWS settings that make no sense (a key with a line break in it), or `http.ca_file` cannot be read.
    #[expect(clippy::unused_async, reason = "the door is async, so that settings may be looked up later")]
    pub async fn new(
        settings: &OutputConfig,
        config: &Config,
        state: State,
        metrics: Metrics,
    ) -> Result<Arc<Self>, String> {
        check_environment()?;
        check_settings(&config.http)?;
        let aws = Connection::for_settings(&settings.aws);
        let credentials = Credentials::new(config.credentials_of(settings).to_vec(), Arc::clone(&aws));
        let limits = Arc::new(settings.limits.clone());
        let wire = Network::new(config.http.clone(), credentials);
        let http = Self::way_out(wire, &config.http, &limits, &metrics, &settings.name);
        let work = Work { state, metrics, aws, http };
        let services = Self::with(settings.name.clone(), Some(work));
        services.limited_by(&limits);
        Ok(services)
    }

    /// For `configure` alone, with the limits that the output has.
    pub fn detached_for(settings: &OutputConfig) -> Arc<Self> {
        let services = Self::detached(settings.name.clone());
        services.limited_by(&Arc::new(settings.limits.clone()));
        services
    }

    /// For `configure` alone: every call but `log` and `clock` is refused. `wharf validate` needs no disk and no network.
    pub fn detached(output: Arc<str>) -> Arc<Self> {
        Self::with(output, None)
    }

    /// For an output at work over a given connection to AWS.
    #[cfg(test)]
    pub(crate) fn over(output: Arc<str>, aws: Arc<Connection>, state: State, metrics: Metrics) -> Arc<Self> {
        let wire = Network::new(HttpConfig::default(), Credentials::new(vec![], Arc::clone(&aws)));
        Self::over_wire(output, aws, wire, state, metrics)
    }

    /// The same, with limits of its own and its tenant's.
    #[cfg(test)]
    pub(crate) fn over_within(
        output: Arc<str>,
        limits: Limits,
        aws: Arc<Connection>,
        wire: Arc<dyn Wire>,
        state: State,
        metrics: Metrics,
    ) -> Arc<Self> {
        let limits = Arc::new(limits);
        let http = Self::way_out(wire, &HttpConfig::default(), &limits, &metrics, &output);
        let services = Self::with(output, Some(Work { state, metrics, aws, http }));
        services.limited_by(&limits);
        services
    }

    /// For an output at work whose HTTP requests leave by `wire`.
    pub(crate) fn over_wire(
        output: Arc<str>,
        aws: Arc<Connection>,
        wire: Arc<dyn Wire>,
        state: State,
        metrics: Metrics,
    ) -> Arc<Self> {
        let http = WayOut::new(wire, &HttpConfig::default());
        Self::with(output, Some(Work { state, metrics, aws, http }))
    }

    /// A way out within what the output and its tenant may have.
    fn way_out(
        wire: Arc<dyn Wire>,
        settings: &HttpConfig,
        limits: &Limits,
        metrics: &Metrics,
        output: &Arc<str>,
    ) -> WayOut {
        let own = Arc::new(HttpShare::of_output(limits, output));
        WayOut::new(wire, settings).within(own, TenantShare::of(limits, output), metrics.clone(), Arc::clone(output))
    }

    fn with(output: Arc<str>, work: Option<Work>) -> Arc<Self> {
        Arc::new(Self {
            output,
            work,
            watch: OnceLock::new(),
            grants: RwLock::default(),
            limits: OnceLock::new(),
            tenant: OnceLock::new(),
            log_bucket: Mutex::default(),
        })
    }

    /// What the output's plugin may take, unless that was said before.
    pub(crate) fn limited_by(&self, limits: &Arc<Limits>) {
        self.limits.get_or_init(|| Arc::clone(limits));
    }

    /// What the output's plugin may take.
    pub(crate) fn limits(&self) -> &Arc<Limits> {
        self.limits.get_or_init(Arc::default)
    }

    /// What it has together with the other outputs of its tenant; none of the operator's own.
    pub(crate) fn tenant(&self) -> Option<&Arc<TenantShare>> {
        self.tenant.get_or_init(|| TenantShare::of(self.limits(), &self.output)).as_ref()
    }

    /// A limit of the output was reached: how it is told. It is counted.
    pub(crate) fn reached(&self, limit: Limit, current: u64, requested: u64) -> Reached {
        self.count_reached(limit);
        let limits = self.limits();
        Reached {
            name: limits.place(limit, &self.output),
            limit: limits.of(limit),
            current,
            requested,
            unit: limit.about().unit,
        }
    }

    /// Counts a limit that was reached.
    pub(crate) fn count_reached(&self, limit: Limit) {
        if let Some(work) = &self.work {
            work.metrics.limit_reached(&self.output, limit.key());
        }
    }

    /// From now on somebody looks on. Only the first one does.
    pub(crate) fn watched_by(&self, watch: Arc<dyn Watch>) {
        let _ = self.watch.set(watch);
    }

    /// Whoever looks on while the output works.
    pub(crate) fn watch(&self) -> Option<&dyn Watch> {
        self.watch.get().map(AsRef::as_ref)
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

    /// What was granted.
    pub(super) fn grants(&self) -> Arc<GrantsConfig> {
        Arc::clone(&self.grants.read().unwrap_or_else(PoisonError::into_inner))
    }
}
