//! What `/health` says, as JSON.

use serde::{Deserialize, Serialize, Serializer};

/// How everything is.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// What the process is doing.
    pub phase: Phase,
    /// Since its start.
    pub uptime_seconds: f64,
    /// What is wrong, one sentence each: a quarantined component, a full disk. Empty where all is well.
    pub problems: Vec<String>,
    /// The journal.
    pub journal: JournalHealth,
    /// Every tenant.
    pub tenants: Vec<TenantHealth>,
    /// Every output.
    pub outputs: Vec<OutputHealth>,
    /// Undelivered records of outputs that are not configured.
    pub kept: Vec<KeptHealth>,
    /// The last reload; none where there was none.
    pub last_reload: Option<LastReload>,
}

/// What is kept for an output that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptHealth {
    /// Its name.
    pub output: String,
    /// Records.
    pub records: u64,
    /// Their bytes in the journal.
    pub bytes: u64,
}

/// How the last reload ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastReload {
    /// `applied`, `unchanged`, `refused`, `failed`.
    pub result: &'static str,
    /// `api`, `SIGHUP` or `watch`.
    pub trigger: String,
    /// How long ago.
    pub seconds_ago: f64,
    /// Why it was refused or failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// What has changed and takes effect at the next start only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Recovery; no source runs yet.
    Starting,
    /// At work.
    Running,
    /// Delivering what is open, taking nothing in.
    Stopping,
}

/// How the journal is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct JournalHealth {
    /// Whether it takes records.
    pub writable: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes of its files.
    pub disk_bytes: u64,
}

/// How a tenant is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TenantHealth {
    /// Its name.
    pub name: String,
    /// How many outputs it has.
    pub outputs: usize,
    /// Bytes that are not settled, of all of them.
    pub queue_bytes: u64,
    /// What those may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_limit_bytes: Option<u64>,
    /// Age of its oldest undelivered record from its arrival; none where everything is delivered.
    pub oldest_undelivered_seconds: Option<f64>,
}

/// How an output is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OutputHealth {
    /// Its name, `acme/archive` of a tenant's.
    pub name: String,
    /// The tenant, where it is a tenant's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its component.
    pub plugin: String,
    /// Age of the oldest undelivered record from its arrival; none where everything is delivered.
    pub oldest_undelivered_seconds: Option<f64>,
    /// Bytes that are not settled.
    pub queue_bytes: u64,
    /// Records that are not settled.
    pub queue_records: u64,
    /// Its workers.
    pub workers: Vec<WorkerHealth>,
    /// Its batches are held, because its component dies of whatever it is given; none where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<QuarantineHealth>,
    /// Batches that failed and wait for another try; none where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<RetriesHealth>,
    /// How the last delivery that failed ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// What a worker is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHealth {
    /// Its number, from 0.
    pub worker: u32,
    /// Its state, as the metric `wharf_worker_state` has it.
    pub state: String,
}

/// A quarantine of an output's component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantineHealth {
    /// In how many seconds a batch of the output may be tried.
    pub next_try_in_seconds: f64,
    /// Other outputs in which the component dies of whatever it is given, where it is held for that.
    pub with: Vec<String>,
}

/// Batches that wait for another try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetriesHealth {
    /// How many.
    pub batches: usize,
    /// In how many seconds the first of them is tried.
    pub next_in_seconds: f64,
    /// How its last attempt ended.
    pub reason: String,
}

/// A delivery that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastFailure {
    /// `throttled`, `transient`, `auth`, `misconfigured`, `rejected`, `trap`, …
    pub kind: String,
    /// For a person.
    pub message: String,
    /// How long ago.
    pub seconds_ago: f64,
}

impl Serialize for Health {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            status: &'static str,
            state: Phase,
            version: &'static str,
            uptime_seconds: f64,
            problems: &'a [String],
            journal: &'a JournalHealth,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            tenants: &'a [TenantHealth],
            outputs: &'a [OutputHealth],
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            kept: &'a [KeptHealth],
            #[serde(skip_serializing_if = "Option::is_none")]
            last_reload: Option<&'a LastReload>,
        }
        Shown {
            status: if self.problems.is_empty() { "ok" } else { "degraded" },
            state: self.phase,
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.uptime_seconds,
            problems: &self.problems,
            journal: &self.journal,
            tenants: &self.tenants,
            outputs: &self.outputs,
            kept: &self.kept,
            last_reload: self.last_reload.as_ref(),
        }
        .serialize(serializer)
    }
}
