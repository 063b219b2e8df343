//! Every metric that Wharf has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabel as _, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::plugin_series::PluginSeries;
use crate::fair::{WaitFor, Waited};

/// What [`Metrics::render`] gives, as HTTP names it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The words that an output's counters may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputWords {
    /// Reasons of `rejected`.
    pub rejected: Vec<&'static str>,
    /// Reasons of `dropped`.
    pub dropped: Vec<&'static str>,
    /// Kinds of `retries`.
    pub retries: Vec<&'static str>,
    /// Reasons of `worker_restarts`.
    pub restarts: Vec<&'static str>,
}

/// What the journal says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalFigures {
    /// Group commits since start.
    pub commits: u64,
    /// Records set aside since start, and at it.
    pub quarantined_records: u64,
    /// Bytes of segment files.
    pub disk_bytes: u64,
    /// Bytes of chunks that some output still needs.
    pub live_bytes: u64,
    /// Whether it takes records.
    pub writable: bool,
}

/// How an HTTP request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpExchange {
    /// One of [`RESULTS`](Self::RESULTS).
    pub result: &'static str,
    /// Bytes of its body.
    pub sent_bytes: u64,
    /// Bytes of the answer's body.
    pub received_bytes: u64,
    /// From the call to its end; none where nothing was tried.
    pub took: Option<Duration>,
}

impl HttpExchange {
    /// What comes of requests: the class of a status, or why there was no answer.
    pub const RESULTS: [&'static str; 7] = ["2xx", "3xx", "4xx", "5xx", "no_answer", "no_credential", "refused"];
}

/// All metrics of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

/// The labels `source` and, where it is a tenant's, `tenant`: `acme/web` is web of acme.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SourceName(Named);
/// The labels `output` and `tenant`, likewise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OutputName(Named);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Named {
    tenant: Option<String>,
    name: String,
}

impl Named {
    fn encode(&self, key: &str, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        (key, self.name.as_str()).encode(encoder.encode_label())?;
        match &self.tenant {
            Some(tenant) => ("tenant", tenant.as_str()).encode(encoder.encode_label()),
            None => Ok(()),
        }
    }
}

impl From<&str> for Named {
    fn from(name: &str) -> Self {
        match name.split_once('/') {
            None => Self { tenant: None, name: name.to_owned() },
            Some((tenant, name)) => Self { tenant: Some(tenant.to_owned()), name: name.to_owned() },
        }
    }
}
impl From<&str> for SourceName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}
impl From<&str> for OutputName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}
impl EncodeLabelSet for SourceName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode("source", encoder)
    }
}
impl EncodeLabelSet for OutputName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode("output", encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTenant {
    tenant: String,
}
/// A tenant, or the operator, whose series have no such label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TenantName(Option<String>);
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnyTenant {
    #[prometheus(flatten)]
    tenant: TenantName,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTenantWait {
    #[prometheus(flatten)]
    tenant: TenantName,
    r#for: &'static str,
}
impl From<Option<&str>> for TenantName {
    fn from(name: Option<&str>) -> Self {
        Self(name.map(str::to_owned))
    }
}
impl EncodeLabelSet for TenantName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        match &self.0 {
            Some(tenant) => ("tenant", tenant.as_str()).encode(encoder.encode_label()),
            None => Ok(()),
        }
    }
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTenantLimit {
    tenant: String,
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BySource {
    #[prometheus(flatten)]
    source: SourceName,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BySourceReason {
    #[prometheus(flatten)]
    source: SourceName,
    reason: String,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutput {
    #[prometheus(flatten)]
    output: OutputName,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputReason {
    #[prometheus(flatten)]
    output: OutputName,
    reason: String,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputKind {
    #[prometheus(flatten)]
    output: OutputName,
    kind: String,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWorker {
    #[prometheus(flatten)]
    output: OutputName,
    worker: String,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWorkerState {
    #[prometheus(flatten)]
    output: OutputName,
    worker: String,
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputClass {
    #[prometheus(flatten)]
    output: OutputName,
    class: &'static str,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputEnd {
    #[prometheus(flatten)]
    output: OutputName,
    by: &'static str,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputCapability {
    #[prometheus(flatten)]
    output: OutputName,
    capability: &'static str,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputLimit {
    #[prometheus(flatten)]
    output: OutputName,
    limit: &'static str,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputPlugin {
    #[prometheus(flatten)]
    output: OutputName,
    plugin: String,
    version: String,
    digest: String,
}
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutputResult {
    #[prometheus(flatten)]
    output: OutputName,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: String,
}

/// How reloads end.
pub const RELOADS: [&str; 4] = ["applied", "unchanged", "refused", "failed"];

/// How a quarantine ends, as [`crate::output`] has it.
const QUARANTINE_ENDS: [&str; 2] = ["hand", "delivery"];

/// Every state of a worker, as [`crate::output::WorkerState`] has it.
const WORKER_STATES: [&str; 6] = ["starting", "idle", "waiting_for_retry", "paused", "busy", "stopped"];

type Count<L> = Family<L, Counter>;
type Level<L> = Family<L, Gauge<i64, AtomicI64>>;
type Real<L> = Family<L, Gauge<f64, AtomicU64>>;
/// Seconds, by output.
#[derive(Debug, Clone)]
struct Timing(Family<ByOutput, Histogram, fn() -> Histogram>);

impl Default for Timing {
    fn default() -> Self {
        // From an answer out of the same room to one that comes at the last moment.
        let bounds = || Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);
        Self(Family::new_with_constructor(bounds))
    }
}

#[derive(Debug, Default)]
struct Inner {
    registry: Registry,
    accepted_records: Count<BySource>,
    accepted_bytes: Count<BySource>,
    discarded: Count<BySourceReason>,
    unparsed: Count<BySourceReason>,
    refused: Count<BySourceReason>,
    connections: Level<BySource>,
    tenant_accepted_records: Count<ByTenant>,
    tenant_accepted_bytes: Count<ByTenant>,
    tenant_refused: Count<ByTenantLimit>,
    tenant_queue_bytes: Level<ByTenant>,
    tenant_cpu: Family<ByAnyTenant, Counter<f64, AtomicU64>>,
    tenant_lane_bytes: Level<ByAnyTenant>,
    tenant_waits: Count<ByTenantWait>,
    tenant_waited: Family<ByTenantWait, Counter<f64, AtomicU64>>,
    tenant_waiting: Level<ByTenantWait>,
    durable_records: Count<ByOutput>,
    durable_bytes: Count<ByOutput>,
    delivered_records: Count<ByOutput>,
    delivered_bytes: Count<ByOutput>,
    delivered_batches: Count<ByOutput>,
    rejected: Count<ByOutputReason>,
    dropped: Count<ByOutputReason>,
    retries: Count<ByOutputKind>,
    worker_restarts: Count<ByOutputReason>,
    guest_cpu: Family<ByWorker, Counter<f64, AtomicU64>>,
    worker_state: Level<ByWorkerState>,
    reloads: Count<ByResult>,
    configured_at: Gauge<f64, AtomicU64>,
    queue_bytes: Level<ByOutput>,
    queue_records: Level<ByOutput>,
    oldest_age: Real<ByOutput>,
    quarantined: Counter,
    journal_commits: Counter,
    journal_disk_bytes: Gauge,
    journal_live_bytes: Gauge,
    journal_writable: Gauge,
    http_requests: Count<ByOutputResult>,
    http_request_bytes: Count<ByOutput>,
    http_response_bytes: Count<ByOutput>,
    http_seconds: Timing,
    plugin_failures: Count<ByOutputClass>,
    plugin_refused: Count<ByOutputCapability>,
    limits_reached: Count<ByOutputLimit>,
    log_lines_left_out: Count<ByOutput>,
    log_bytes_left_out: Count<ByOutput>,
    plugin: Level<ByOutputPlugin>,
    /// What each output runs now.
    running: Mutex<HashMap<String, ByOutputPlugin>>,
    plugin_quarantined: Level<ByOutput>,
    plugin_quarantines_ended: Count<ByOutputEnd>,
    plugin_series: PluginSeries,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A fresh set, all registered.
    #[must_use]
    pub fn new() -> Self {
        let mut inner = Inner::default();
        let mut registry = Registry::with_prefix("wharf");
        let r = &mut registry;
        // The encoder appends `_total` to counters.
        r.register("source_accepted_records", "Records taken from a source", inner.accepted_records.clone());
        r.register("source_accepted_bytes", "Bytes of bodies taken from a source", inner.accepted_bytes.clone());
        r.register(
            "source_discarded_records",
            "Records that a source could not take whole, by reason",
            inner.discarded.clone(),
        );
        r.register(
            "source_unparsed_records",
            "Records that could not be parsed and went on as they are, by reason",
            inner.unparsed.clone(),
        );
        r.register(
            "source_refused_requests",
            "Requests of which a source took nothing, by reason",
            inner.refused.clone(),
        );
        r.register("source_connections", "Connections that are open to a source", inner.connections.clone());
        r.register(
            "tenant_accepted_records",
            "Records of a tenant that were taken, from whichever source",
            inner.tenant_accepted_records.clone(),
        );
        r.register(
            "tenant_accepted_bytes",
            "Bytes of bodies of a tenant that were taken",
            inner.tenant_accepted_bytes.clone(),
        );
        r.register(
            "tenant_refused",
            "Times that records of a tenant were refused or had to wait, by the tenant's limit",
            inner.tenant_refused.clone(),
        );
        r.register(
            "tenant_queue_bytes",
            "Bytes of chunks that are not settled, of all outputs of a tenant",
            inner.tenant_queue_bytes.clone(),
        );
        r.register(
            "tenant_cpu_seconds",
            "CPU time of a tenant's turns: its components, what the host does for them, its connections",
            inner.tenant_cpu.clone(),
        );
        r.register(
            "tenant_lane_bytes",
            "Bytes of a tenant's chunks that wait to be written to the journal",
            inner.tenant_lane_bytes.clone(),
        );
        r.register(
            "tenant_waits",
            "Waits of a tenant that are over, by what it waited for",
            inner.tenant_waits.clone(),
        );
        r.register("tenant_waited_seconds", "How long those took together", inner.tenant_waited.clone());
        r.register("tenant_waiting", "Waits of a tenant that are not over", inner.tenant_waiting.clone());
        r.register("durable_records", "Records on disk for an output", inner.durable_records.clone());
        r.register("durable_bytes", "Bytes of bodies on disk for an output", inner.durable_bytes.clone());
        r.register("delivered_records", "Records confirmed by the destination", inner.delivered_records.clone());
        r.register("delivered_bytes", "Bytes of bodies confirmed by the destination", inner.delivered_bytes.clone());
        r.register("delivered_batches", "Batches confirmed by the destination", inner.delivered_batches.clone());
        r.register("rejected_records", "Records that became dead letters, by reason", inner.rejected.clone());
        r.register("dropped_records", "Records dropped by policy, by reason", inner.dropped.clone());
        r.register("retries", "Deliveries that failed and are tried again, by kind of failure", inner.retries.clone());
        r.register(
            "worker_restarts",
            "Stores that were dropped and built anew, by reason",
            inner.worker_restarts.clone(),
        );
        r.register(
            "worker_cpu_seconds",
            "CPU time inside component calls, host functions included",
            inner.guest_cpu.clone(),
        );
        r.register("worker_state", "1 for the state that a worker is in", inner.worker_state.clone());
        r.register("reloads", "Reloads of the configuration, by how they ended", inner.reloads.clone());
        r.register(
            "configured_timestamp_seconds",
            "When the configuration that is at work was read, at start or by a reload",
            inner.configured_at.clone(),
        );
        r.register("queue_bytes", "Bytes of chunks that are not settled", inner.queue_bytes.clone());
        r.register("queue_records", "Records that are not settled", inner.queue_records.clone());
        r.register(
            "oldest_undelivered_age_seconds",
            "Age of the oldest undelivered record, from its arrival; 0 where there is none",
            inner.oldest_age.clone(),
        );
        r.register(
            "journal_quarantined_records",
            "Records set aside because their chunk was damaged on disk",
            inner.quarantined.clone(),
        );
        r.register("journal_commits", "Group commits (fdatasync) since start", inner.journal_commits.clone());
        r.register("journal_disk_bytes", "Bytes of segment files", inner.journal_disk_bytes.clone());
        r.register(
            "journal_live_bytes",
            "Bytes of chunks that some output still needs",
            inner.journal_live_bytes.clone(),
        );
        r.register(
            "journal_writable",
            "1 where the journal takes records, 0 where the disk or a limit is full",
            inner.journal_writable.clone(),
        );
        r.register(
            "http_requests",
            "HTTP requests of an output, by the class of the answer's status or why there was none",
            inner.http_requests.clone(),
        );
        r.register("http_request_bytes", "Bytes of bodies sent by HTTP", inner.http_request_bytes.clone());
        r.register("http_response_bytes", "Bytes of answers' bodies read by HTTP", inner.http_response_bytes.clone());
        r.register("http_request_seconds", "Time of HTTP exchanges that were tried", inner.http_seconds.0.clone());
        r.register(
            "output_plugin_failures",
            "Calls of a component that ended badly, by class: how its store ended, refused (by a grant), or guest_error",
            inner.plugin_failures.clone(),
        );
        r.register(
            "output_plugin_refused",
            "What a component asked for and was not granted, by interface",
            inner.plugin_refused.clone(),
        );
        r.register(
            "output_limits_reached",
            "How often a component reached a limit, by its key in the configuration",
            inner.limits_reached.clone(),
        );
        r.register(
            "output_log_left_out_lines",
            "Lines of a component that are not in the log",
            inner.log_lines_left_out.clone(),
        );
        r.register("output_log_left_out_bytes", "Bytes of those lines", inner.log_bytes_left_out.clone());
        r.register("output_plugin", "1 for the component that an output runs", inner.plugin.clone());
        r.register(
            "output_plugin_quarantined",
            "1 where an output's batches are not tried because its component ended too many stores",
            inner.plugin_quarantined.clone(),
        );
        r.register(
            "output_plugin_quarantines_ended",
            "Quarantines of an output's component that are over, by what ended them",
            inner.plugin_quarantines_ended.clone(),
        );
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        r.register("build", "The version of Wharf that runs", build);
        registry.register_collector(Box::new(inner.plugin_series.clone()));
        inner.registry = registry;
        Self { inner: Arc::new(inner) }
    }

    /// The Prometheus text (OpenMetrics) of everything.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.inner.registry);
        text
    }

    /// The series that plugins name themselves.
    #[must_use]
    pub fn plugin_series(&self) -> &PluginSeries {
        &self.inner.plugin_series
    }

    /// A source is there: its counters begin at 0, so that the first event is a rise that can be seen.
    pub fn source_begins(&self, source: &str, discarded: &[&str], refused: &[&str]) {
        self.accepted(source, 0, 0);
        for reason in discarded {
            self.discarded(source, reason, 0);
        }
        for reason in refused {
            let by = BySourceReason { source: source.into(), reason: (*reason).into() };
            self.inner.refused.get_or_create(&by).inc_by(0);
        }
    }
    /// An output is there, the same.
    pub fn output_begins(&self, output: &str, workers: u32, words: &OutputWords) {
        self.durable(output, 0, 0);
        let by = ByOutput { output: output.into() };
        self.inner.delivered_records.get_or_create(&by).inc_by(0);
        self.inner.delivered_bytes.get_or_create(&by).inc_by(0);
        self.inner.delivered_batches.get_or_create(&by).inc_by(0);
        for reason in &words.rejected {
            self.rejected(output, reason, 0);
        }
        for reason in &words.dropped {
            self.dropped(output, reason, 0);
        }
        for kind in &words.retries {
            let by = ByOutputKind { output: output.into(), kind: (*kind).into() };
            self.inner.retries.get_or_create(&by).inc_by(0);
        }
        for reason in &words.restarts {
            let by = ByOutputReason { output: output.into(), reason: (*reason).into() };
            self.inner.worker_restarts.get_or_create(&by).inc_by(0);
        }
        for worker in 0..workers {
            self.worker_cpu(output, worker, 0.0);
        }
    }
    /// An output that may send HTTP requests is there, the same.
    pub fn http_begins(&self, output: &str) {
        for result in HttpExchange::RESULTS {
            let by = ByOutputResult { output: output.into(), result };
            self.inner.http_requests.get_or_create(&by).inc_by(0);
        }
        let by = ByOutput { output: output.into() };
        self.inner.http_request_bytes.get_or_create(&by).inc_by(0);
        self.inner.http_response_bytes.get_or_create(&by).inc_by(0);
        drop(self.inner.http_seconds.0.get_or_create(&by));
    }
    /// An output runs this component, which is not quarantined.
    pub fn plugin_begins(&self, output: &str, plugin: &str, version: &str, digest: &str, classes: &[&'static str]) {
        let by = ByOutputPlugin {
            output: output.into(),
            plugin: plugin.into(),
            version: version.into(),
            digest: digest.into(),
        };
        let mut running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Another component is another series: the one before it goes.
        if let Some(before) = running.insert(output.to_owned(), by.clone()).filter(|before| *before != by) {
            self.inner.plugin.remove(&before);
        }
        self.inner.plugin.get_or_create(&by).set(1);
        drop(running);
        self.plugin_quarantined(output, false);
        for by in QUARANTINE_ENDS {
            drop(self.inner.plugin_quarantines_ended.get_or_create(&ByOutputEnd { output: output.into(), by }));
        }
        for class in classes {
            let by = ByOutputClass { output: output.into(), class };
            self.inner.plugin_failures.get_or_create(&by).inc_by(0);
        }
        let by = ByOutput { output: output.into() };
        self.inner.log_lines_left_out.get_or_create(&by).inc_by(0);
        self.inner.log_bytes_left_out.get_or_create(&by).inc_by(0);
    }
    /// A call of a component ended badly. `class` is one of a few fixed words.
    pub fn plugin_failed(&self, output: &str, class: &'static str) {
        self.inner.plugin_failures.get_or_create(&ByOutputClass { output: output.into(), class }).inc();
    }
    /// A component was refused what it had no grant for.
    pub fn plugin_refused(&self, output: &str, capability: &'static str) {
        self.inner.plugin_refused.get_or_create(&ByOutputCapability { output: output.into(), capability }).inc();
    }
    /// A component reached a limit, which is named as the configuration has it.
    pub fn limit_reached(&self, output: &str, limit: &'static str) {
        self.inner.limits_reached.get_or_create(&ByOutputLimit { output: output.into(), limit }).inc();
    }
    /// A line of a component is not in the log.
    pub fn log_left_out(&self, output: &str, bytes: u64) {
        let by = ByOutput { output: output.into() };
        self.inner.log_lines_left_out.get_or_create(&by).inc();
        self.inner.log_bytes_left_out.get_or_create(&by).inc_by(bytes);
    }
    /// Whether an output's batches are held because its component ended too many stores.
    pub fn plugin_quarantined(&self, output: &str, is: bool) {
        self.inner.plugin_quarantined.get_or_create(&ByOutput { output: output.into() }).set(i64::from(is));
    }
    /// A quarantine of an output's component is over. `by` is one of a few fixed words.
    pub fn plugin_quarantine_ended(&self, output: &str, by: &'static str) {
        self.inner.plugin_quarantines_ended.get_or_create(&ByOutputEnd { output: output.into(), by }).inc();
    }
    /// An HTTP request came to its end.
    pub fn http(&self, output: &str, exchange: &HttpExchange) {
        let by = ByOutputResult { output: output.into(), result: exchange.result };
        self.inner.http_requests.get_or_create(&by).inc();
        let Some(took) = exchange.took else { return };
        let by = ByOutput { output: output.into() };
        self.inner.http_request_bytes.get_or_create(&by).inc_by(exchange.sent_bytes);
        self.inner.http_response_bytes.get_or_create(&by).inc_by(exchange.received_bytes);
        self.inner.http_seconds.0.get_or_create(&by).observe(took.as_secs_f64());
    }
    /// A source handed records in and they were taken.
    pub fn accepted(&self, source: &str, records: u64, bytes: u64) {
        let by = BySource { source: source.into() };
        self.inner.accepted_records.get_or_create(&by).inc_by(records);
        self.inner.accepted_bytes.get_or_create(&by).inc_by(bytes);
    }
    /// A tenant is there: its counters begin at 0. `limits` are those that can keep its records out.
    pub fn tenant_begins(&self, tenant: &str, limits: &[&'static str]) {
        self.tenant_accepted(tenant, 0, 0);
        for limit in limits {
            drop(self.inner.tenant_refused.get_or_create(&ByTenantLimit { tenant: tenant.into(), limit }));
        }
    }
    /// Records of a tenant were taken.
    pub fn tenant_accepted(&self, tenant: &str, records: u64, bytes: u64) {
        let by = ByTenant { tenant: tenant.into() };
        self.inner.tenant_accepted_records.get_or_create(&by).inc_by(records);
        self.inner.tenant_accepted_bytes.get_or_create(&by).inc_by(bytes);
    }
    /// A limit of a tenant kept records out. `limit` is one of a few fixed words.
    pub fn tenant_refused(&self, tenant: &str, limit: &'static str) {
        self.inner.tenant_refused.get_or_create(&ByTenantLimit { tenant: tenant.into(), limit }).inc();
    }
    /// What the queues of all outputs of a tenant hold now.
    pub fn tenant_queue(&self, tenant: &str, bytes: u64) {
        let by = ByTenant { tenant: tenant.into() };
        self.inner.tenant_queue_bytes.get_or_create(&by).set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
    /// What a tenant's lane into the journal holds now, and CPU that the tenant had so far; none is the operator.
    pub fn tenant_share(&self, tenant: Option<&str>, lane_bytes: u64, cpu: Duration) {
        let by = ByAnyTenant { tenant: tenant.into() };
        self.inner.tenant_lane_bytes.get_or_create(&by).set(i64::try_from(lane_bytes).unwrap_or(i64::MAX));
        // Counted elsewhere; here is only what was counted.
        self.inner.tenant_cpu.get_or_create(&by).inner().store(cpu.as_secs_f64().to_bits(), Ordering::Relaxed);
    }
    /// How much a tenant waited so far for one of a few things; none is the operator.
    pub fn tenant_waits(&self, tenant: Option<&str>, what: &'static str, waited: Waited) {
        let by = ByTenantWait { tenant: tenant.into(), r#for: what };
        self.inner.tenant_waits.get_or_create(&by).inner().store(waited.times, Ordering::Relaxed);
        let took = waited.took.as_secs_f64().to_bits();
        self.inner.tenant_waited.get_or_create(&by).inner().store(took, Ordering::Relaxed);
        self.inner.tenant_waiting.get_or_create(&by).set(i64::try_from(waited.now).unwrap_or(i64::MAX));
    }
    /// A source could not take records whole.
    pub fn discarded(&self, source: &str, reason: &str, records: u64) {
        let by = BySourceReason { source: source.into(), reason: reason.into() };
        self.inner.discarded.get_or_create(&by).inc_by(records);
    }
    /// A source could not parse records, which went on as they are.
    pub fn unparsed(&self, source: &str, reason: &str, records: u64) {
        let by = BySourceReason { source: source.into(), reason: reason.into() };
        self.inner.unparsed.get_or_create(&by).inc_by(records);
    }
    /// A source took nothing of a request.
    pub fn refused(&self, source: &str, reason: &str) {
        let by = BySourceReason { source: source.into(), reason: reason.into() };
        self.inner.refused.get_or_create(&by).inc();
    }
    /// Connections to a source were opened, or (with a minus) ended.
    pub fn connections(&self, source: &str, change: i64) {
        self.inner.connections.get_or_create(&BySource { source: source.into() }).inc_by(change);
    }
    /// Records are on disk for an output.
    pub fn durable(&self, output: &str, records: u64, bytes: u64) {
        let by = ByOutput { output: output.into() };
        self.inner.durable_records.get_or_create(&by).inc_by(records);
        self.inner.durable_bytes.get_or_create(&by).inc_by(bytes);
    }
    /// A batch was confirmed.
    pub fn delivered(&self, output: &str, records: u64, bytes: u64) {
        let by = ByOutput { output: output.into() };
        self.inner.delivered_records.get_or_create(&by).inc_by(records);
        self.inner.delivered_bytes.get_or_create(&by).inc_by(bytes);
        self.inner.delivered_batches.get_or_create(&by).inc();
    }
    /// Records became dead letters. `reason` is one of a few fixed words.
    pub fn rejected(&self, output: &str, reason: &str, records: u64) {
        let by = ByOutputReason { output: output.into(), reason: reason.into() };
        self.inner.rejected.get_or_create(&by).inc_by(records);
    }
    /// Records were dropped by policy. `reason` is one of a few fixed words.
    pub fn dropped(&self, output: &str, reason: &str, records: u64) {
        let by = ByOutputReason { output: output.into(), reason: reason.into() };
        self.inner.dropped.get_or_create(&by).inc_by(records);
    }
    /// A delivery failed and is tried again.
    pub fn retry(&self, output: &str, kind: &str) {
        let by = ByOutputKind { output: output.into(), kind: kind.into() };
        self.inner.retries.get_or_create(&by).inc();
    }
    /// A worker's store was dropped and is built anew.
    pub fn worker_restart(&self, output: &str, reason: &str) {
        let by = ByOutputReason { output: output.into(), reason: reason.into() };
        self.inner.worker_restarts.get_or_create(&by).inc();
    }
    /// CPU time spent inside a component's calls.
    pub fn worker_cpu(&self, output: &str, worker: u32, seconds: f64) {
        let by = ByWorker { output: output.into(), worker: worker.to_string() };
        self.inner.guest_cpu.get_or_create(&by).inc_by(seconds);
    }
    /// A worker went from one state to another.
    pub fn worker_state(&self, output: &str, worker: u32, state: &str, on: bool) {
        let by = ByWorkerState { output: output.into(), worker: worker.to_string(), state: state.into() };
        self.inner.worker_state.get_or_create(&by).set(i64::from(on));
    }
    /// A worker is no more: its states go, what it counted stays.
    pub fn worker_is_gone(&self, output: &str, worker: u32) {
        for state in WORKER_STATES {
            let by = ByWorkerState { output: output.into(), worker: worker.to_string(), state: state.into() };
            self.inner.worker_state.remove(&by);
        }
    }
    /// An output is no more: what it has goes, what it counted stays.
    pub fn output_is_gone(&self, output: &str, workers: u32) {
        let by = ByOutput { output: output.into() };
        self.inner.queue_bytes.remove(&by);
        self.inner.queue_records.remove(&by);
        self.inner.oldest_age.remove(&by);
        for worker in 0..workers {
            self.worker_is_gone(output, worker);
        }
        let mut running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = running.remove(output) {
            self.inner.plugin.remove(&before);
        }
    }
    /// A tenant is no more: what it has and waits for goes, what was counted of it stays.
    pub fn tenant_is_gone(&self, tenant: &str) {
        self.inner.tenant_queue_bytes.remove(&ByTenant { tenant: tenant.into() });
        self.inner.tenant_lane_bytes.remove(&ByAnyTenant { tenant: Some(tenant).into() });
        for what in WaitFor::ALL {
            self.inner.tenant_waiting.remove(&ByTenantWait { tenant: Some(tenant).into(), r#for: what.as_str() });
        }
    }
    /// A reload came to its end, with one of [`RELOADS`].
    pub fn reloaded(&self, result: &str) {
        let by = ByResult { result: result.into() };
        self.inner.reloads.get_or_create(&by).inc();
    }
    /// The configuration that is in the file is the one at work, at this time (seconds since 1970 UTC).
    pub fn configured_at(&self, seconds: f64) {
        for result in RELOADS {
            self.inner.reloads.get_or_create(&ByResult { result: result.into() }).inc_by(0);
        }
        self.inner.configured_at.set(seconds);
    }
    /// What an output's queue holds now.
    pub fn queue(&self, output: &str, bytes: u64, records: u64, oldest_age_seconds: f64) {
        let by = ByOutput { output: output.into() };
        self.inner.queue_bytes.get_or_create(&by).set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.inner.queue_records.get_or_create(&by).set(i64::try_from(records).unwrap_or(i64::MAX));
        self.inner.oldest_age.get_or_create(&by).set(oldest_age_seconds);
    }
    /// What the journal holds now.
    pub fn journal(&self, now: JournalFigures) {
        let clamp = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        // The journal counts by itself; here is only what it counted.
        self.inner.journal_commits.inner().store(now.commits, Ordering::Relaxed);
        self.inner.quarantined.inner().store(now.quarantined_records, Ordering::Relaxed);
        self.inner.journal_disk_bytes.set(clamp(now.disk_bytes));
        self.inner.journal_live_bytes.set(clamp(now.live_bytes));
        self.inner.journal_writable.set(i64::from(now.writable));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_is_there_at_0_and_beginning_again_changes_nothing() {
        let metrics = Metrics::new();
        metrics.retry("archive", "auth");
        let words = OutputWords {
            rejected: vec!["retry_expired"],
            dropped: vec!["damaged"],
            retries: vec!["auth", "throttled"],
            restarts: vec!["trap"],
        };
        metrics.output_begins("archive", 1, &words);
        metrics.source_begins("web", &["invalid"], &["queue_full"]);
        let text = metrics.render();
        for line in [
            "wharf_source_accepted_records_total{source=\"web\"} 0",
            "wharf_source_discarded_records_total{source=\"web\",reason=\"invalid\"} 0",
            "wharf_source_refused_requests_total{source=\"web\",reason=\"queue_full\"} 0",
            "wharf_durable_records_total{output=\"archive\"} 0",
            "wharf_delivered_batches_total{output=\"archive\"} 0",
            "wharf_rejected_records_total{output=\"archive\",reason=\"retry_expired\"} 0",
            "wharf_dropped_records_total{output=\"archive\",reason=\"damaged\"} 0",
            "wharf_retries_total{output=\"archive\",kind=\"throttled\"} 0",
            "wharf_retries_total{output=\"archive\",kind=\"auth\"} 1",
            "wharf_worker_restarts_total{output=\"archive\",reason=\"trap\"} 0",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn series_of_a_tenant_have_its_name_and_the_short_one_and_those_of_the_operator_are_as_ever() {
        let metrics = Metrics::new();
        for output in ["archive", "acme/archive"] {
            metrics.rejected(output, "rejected", 1);
            metrics.worker_state(output, 0, "idle", true);
            metrics.queue(output, 1, 2, 0.0);
        }
        metrics.refused("acme/web", "busy");
        metrics.tenant_begins("acme", &["journal"]);
        metrics.tenant_refused("acme", "journal");
        metrics.tenant_queue("acme", 7);
        let text = metrics.render();
        for line in [
            "wharf_rejected_records_total{output=\"archive\",reason=\"rejected\"} 1",
            "wharf_rejected_records_total{output=\"archive\",tenant=\"acme\",reason=\"rejected\"} 1",
            "wharf_worker_state{output=\"archive\",tenant=\"acme\",worker=\"0\",state=\"idle\"} 1",
            "wharf_queue_bytes{output=\"archive\",tenant=\"acme\"} 1",
            "wharf_source_refused_requests_total{source=\"web\",tenant=\"acme\",reason=\"busy\"} 1",
            "wharf_tenant_accepted_records_total{tenant=\"acme\"} 0",
            "wharf_tenant_refused_total{tenant=\"acme\",limit=\"journal\"} 1",
            "wharf_tenant_queue_bytes{tenant=\"acme\"} 7",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn what_a_tenant_waits_for_is_told_by_its_name_and_the_operators_by_none() {
        let metrics = Metrics::new();
        let waited = |times, millis, now| Waited { times, took: Duration::from_millis(millis), now };
        metrics.tenant_waits(Some("acme"), "cpu", waited(2, 1500, 1));
        metrics.tenant_waits(Some("acme"), "cpu", waited(3, 2500, 0));
        metrics.tenant_waits(None, "journal", waited(7, 250, 4));
        metrics.tenant_share(Some("acme"), 4096, Duration::from_millis(1250));
        metrics.tenant_share(None, 0, Duration::ZERO);
        let text = metrics.render();
        for line in [
            "wharf_tenant_waits_total{tenant=\"acme\",for=\"cpu\"} 3",
            "wharf_tenant_waited_seconds_total{tenant=\"acme\",for=\"cpu\"} 2.5",
            "wharf_tenant_waiting{tenant=\"acme\",for=\"cpu\"} 0",
            "wharf_tenant_waits_total{for=\"journal\"} 7",
            "wharf_tenant_waited_seconds_total{for=\"journal\"} 0.25",
            "wharf_tenant_waiting{for=\"journal\"} 4",
            "wharf_tenant_lane_bytes{tenant=\"acme\"} 4096",
            "wharf_tenant_cpu_seconds_total{tenant=\"acme\"} 1.25",
            "wharf_tenant_lane_bytes 0",
            "wharf_tenant_cpu_seconds_total 0.0",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn of_a_tenant_that_is_gone_only_what_was_counted_stays() {
        let metrics = Metrics::new();
        for tenant in ["acme", "globex"] {
            metrics.tenant_begins(tenant, &["ingest_bytes"]);
            metrics.tenant_queue(tenant, 6164);
            metrics.tenant_share(Some(tenant), 1, Duration::ZERO);
            for what in WaitFor::ALL {
                metrics.tenant_waits(Some(tenant), what.as_str(), Waited { times: 1, took: Duration::ZERO, now: 1 });
            }
        }
        metrics.tenant_is_gone("acme");
        let text = metrics.render();
        let of = |tenant: &str| {
            let label = format!("tenant=\"{tenant}\"");
            let names = text.lines().filter(|line| line.contains(&label)).map(|line| line.split('{').next().unwrap());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let is_now = |name: &&&str| !name.ends_with("_total");
        assert_eq!(of("acme").iter().filter(is_now).count(), 0, "{text}");
        assert_eq!(of("globex").iter().filter(is_now).count(), 3, "{text}");
        assert!(of("acme").contains("wharf_tenant_accepted_records_total"));
    }

    #[test]
    fn http_requests_are_counted_by_how_they_ended_and_what_was_not_tried_takes_no_time() {
        let metrics = Metrics::new();
        metrics.http_begins("live");
        let took = Some(Duration::from_millis(20));
        metrics.http("live", &HttpExchange { result: "2xx", sent_bytes: 100, received_bytes: 7, took });
        metrics.http("live", &HttpExchange { result: "refused", sent_bytes: 0, received_bytes: 0, took: None });
        let text = metrics.render();
        for line in [
            "wharf_http_requests_total{output=\"live\",result=\"2xx\"} 1",
            "wharf_http_requests_total{output=\"live\",result=\"refused\"} 1",
            "wharf_http_requests_total{output=\"live\",result=\"no_answer\"} 0",
            "wharf_http_request_bytes_total{output=\"live\"} 100",
            "wharf_http_response_bytes_total{output=\"live\"} 7",
            "wharf_http_request_seconds_count{output=\"live\"} 1",
            "wharf_http_request_seconds_bucket{le=\"0.01\",output=\"live\"} 0",
            "wharf_http_request_seconds_bucket{le=\"0.025\",output=\"live\"} 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in {text}");
        }
    }

    /// The form that the OpenMetrics specification gives for counters, gauges and the end of the text.
    #[test]
    fn metrics_are_written_as_open_metrics() {
        let metrics = Metrics::new();
        metrics.accepted("app", 3, 120);
        metrics.rejected("archive", "too_long", 2);
        metrics.queue("archive", 4096, 7, 1.5);
        metrics.journal(JournalFigures {
            commits: 12,
            disk_bytes: 1024,
            live_bytes: 512,
            writable: true,
            ..Default::default()
        });
        let text = metrics.render();
        for line in [
            "# TYPE wharf_source_accepted_records counter",
            "wharf_source_accepted_records_total{source=\"app\"} 3",
            "wharf_source_accepted_bytes_total{source=\"app\"} 120",
            "wharf_rejected_records_total{output=\"archive\",reason=\"too_long\"} 2",
            "# TYPE wharf_queue_bytes gauge",
            "wharf_queue_bytes{output=\"archive\"} 4096",
            "wharf_oldest_undelivered_age_seconds{output=\"archive\"} 1.5",
            "wharf_journal_commits_total 12",
            "wharf_journal_writable 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(text.lines().any(|l| l.starts_with("wharf_build_info{version=")), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_count_that_the_journal_keeps_is_shown_as_it_is() {
        let metrics = Metrics::new();
        metrics.journal(JournalFigures { commits: 12, quarantined_records: 3, writable: true, ..Default::default() });
        metrics.journal(JournalFigures { commits: 15, quarantined_records: 3, ..Default::default() });
        assert!(metrics.render().contains("wharf_journal_commits_total 15\n"));
        assert!(metrics.render().contains("wharf_journal_quarantined_records_total 3\n"));
        assert!(metrics.render().contains("wharf_journal_writable 0\n"));
    }
}
