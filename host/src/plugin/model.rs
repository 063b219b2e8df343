//! What goes in and out of the plugin host: places and limits, what a component says, how a call ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::builtin;
use crate::capability::{Reached, Services};
use crate::config::{Config, Level, Limit, Limits};
use crate::journal::Journal;
use crate::record::{PartitionKey, Partitioning, Portion};
use crate::registry::{Pull, Reference};
use crate::state::BatchId;
use crate::trust::TrustedKeys;

/// Limits and places of the plugin host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Where compiled components are kept; none compiles anew each time.
    pub cache_dir: Option<PathBuf>,
    /// What plugins may take whose output says nothing else.
    pub limits: Limits,
    /// Linear memory that any store may have, bytes: the places of the pool have room for so much.
    pub most_memory: u64,
    /// Elements of the tables of any store, the same.
    pub most_table_elements: u64,
    /// Workers that will exist at the same time, for the pool.
    pub workers: u32,
}

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PluginSource {
    /// Embedded in the binary.
    BuiltIn(String),
    /// A file.
    File(PathBuf),
    /// In a registry.
    Registry(Reference),
    /// `<name>.wasm` in the first of these folders that has it.
    Named {
        /// The name, no built-in's.
        name: String,
        /// Where to look.
        dirs: Vec<PathBuf>,
    },
}

impl HostOptions {
    /// With these limits for every plugin.
    #[must_use]
    pub fn new(cache_dir: Option<PathBuf>, limits: Limits, workers: u32) -> Self {
        let (most_memory, most_table_elements) = (limits.of(Limit::Memory), limits.of(Limit::TableElements));
        Self { cache_dir, limits, most_memory, most_table_elements, workers }
    }

    /// For all outputs of a configuration.
    #[must_use]
    pub fn of(config: &Config, cache_dir: Option<PathBuf>, workers: u32) -> Self {
        let most = |limit: Limit| {
            let all = config.outputs.iter().map(|output| output.limits.of(limit));
            all.chain([config.plugins.limits.of(limit)]).max().unwrap_or(0)
        };
        Self {
            most_memory: most(Limit::Memory),
            most_table_elements: most(Limit::TableElements),
            ..Self::new(cache_dir, config.plugins.limits.clone(), workers)
        }
    }

    /// The same with another limit.
    #[must_use]
    pub fn with(self, limit: Limit, amount: u64) -> Self {
        Self::new(self.cache_dir, self.limits.with(limit, amount, Level::Plugins), self.workers)
    }
}

impl PluginSource {
    /// From what a person writes: a built-in's name, a path (what has a `/`, or ends with `.wasm` or `.wat`), or the name of a component in one
    /// of the folders `dirs`. A relative path begins at `folder`. A built-in's name always means the built-in. What begins with `oci://` is
    /// in a registry; one that is no good reference is taken for a path, which leads nowhere: see [`Reference::parse`].
    #[must_use]
    pub fn of(written: &str, folder: &Path, dirs: &[PathBuf]) -> Self {
        if let Ok(reference) = Reference::parse(written) {
            Self::Registry(reference)
        } else if written.contains('/') || written.ends_with(".wasm") || written.ends_with(".wat") {
            Self::File(folder.join(written))
        } else if builtin::names().contains(&written) {
            Self::BuiltIn(written.to_owned())
        } else {
            Self::Named { name: written.to_owned(), dirs: dirs.to_owned() }
        }
    }
}

/// SHA-256 that a component must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

impl Pin {
    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        hex::decode_to_slice(text, &mut digest).ok()?;
        Some(Self(digest))
    }

    /// Whether this is that digest.
    #[must_use]
    pub fn is(&self, digest: &[u8; 32]) -> bool {
        self.0 == *digest
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// What must be true of a component before anything in it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Requirements<'a> {
    /// The digest that it must have.
    pub pin: Option<&'a Pin>,
    /// Keys of which one must have signed it, unless it is built in; none: it need not be signed.
    pub keys: Option<&'a TrustedKeys>,
    /// Where its signature is; none: beside it, as `NAME.wasm.sig`, or in its registry.
    pub signature: Option<&'a Path>,
    /// When a registry is asked.
    pub pull: Pull,
}

/// What a component says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Name.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// JSON schema of its configuration.
    pub config_schema: serde_json::Value,
}

/// What a component needs of the host, from `configure`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Records that differ in one of these never share a batch.
    pub partition_by: Vec<PartitionKey>,
    /// Batches of one partition are delivered one after the other.
    pub in_order: bool,
    /// Bytes that encoding adds to each record.
    pub record_overhead: u32,
    /// The output's own default.
    pub max_bytes: Option<u64>,
    /// The output's own default.
    pub max_records: Option<u64>,
    /// The output's own default.
    pub max_age: Option<Duration>,
    /// What it will touch in S3.
    pub s3: Vec<crate::config::S3Grant>,
    /// Log groups that it will touch; one that ends in `*` is a beginning.
    pub log_groups: Vec<String>,
    /// Where it will send HTTP requests, as it writes it: scheme, host and perhaps port.
    pub http: Vec<String>,
    /// Credentials that its requests will name.
    pub credentials: Vec<String>,
}

/// One thing wrong in a plugin's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// JSON Pointer into `config`.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// What a worker is made for.
#[derive(Debug, Clone)]
pub struct WorkerContext {
    /// The output.
    pub output: Arc<str>,
    /// This worker's number, from 0.
    pub worker: u32,
    /// This machine.
    pub hostname: Arc<str>,
    /// The plugin's configuration as JSON.
    pub config: Arc<str>,
    /// What the host does for it.
    pub services: Arc<Services>,
}

/// A batch as a worker gets it.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The batch.
    pub id: BatchId,
    /// From 1.
    pub attempt: u32,
    /// What it is made of, in order.
    pub portions: Arc<[Portion]>,
    /// What its records have in common.
    pub partitioning: Arc<Partitioning>,
    /// Where their chunks are.
    pub journal: Journal,
}

/// How a call of `deliver` ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every record is delivered but these, checked: ascending, each once, inside the batch.
    Delivered {
        /// Record numbers and reasons.
        rejected: Vec<(u32, Arc<str>)>,
    },
    /// Not delivered, as the component says.
    Failed(Failure),
    /// The store is gone.
    Died(Death),
}

/// WIT's `types.failure`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind.
    pub kind: FailureKind,
    /// For a person.
    pub message: String,
    /// What the service asked for.
    pub retry_after: Option<Duration>,
}

/// WIT's `types.failure-kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the WIT file documents them")]
pub enum FailureKind {
    Throttled,
    Transient,
    Auth,
    Misconfigured,
    Rejected,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Throttled, Self::Transient, Self::Auth, Self::Misconfigured, Self::Rejected];

    /// As metrics and messages have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Transient => "transient",
            Self::Auth => "auth",
            Self::Misconfigured => "misconfigured",
            Self::Rejected => "rejected",
        }
    }
}

/// Class of a call that ended with a failure of the component's own, as metrics have it.
pub const GUEST_ERROR: &str = "guest_error";
/// The same where something was asked for that had not been granted.
pub const REFUSED: &str = "refused";

/// Every class of failure, as metrics have them: how a store ended, or what a component said.
#[must_use]
pub fn failure_classes() -> Vec<&'static str> {
    DeathCause::ALL.into_iter().map(DeathCause::as_str).chain([REFUSED, GUEST_ERROR]).collect()
}

/// Why a store is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// What ended it.
    pub cause: DeathCause,
    /// Trap, frames, limits: for a person.
    pub message: String,
    /// The same in one line, without frames: for what each record of a batch carries.
    pub in_short: String,
    /// The limit that was reached, where that is what ended it.
    pub limit: Option<Box<Reached>>,
    /// The last lines that it logged.
    pub last_log: Vec<String>,
}

/// What ended a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeathCause {
    /// `unreachable`, out of bounds, stack overflow, …
    Trap,
    /// CPU limit of the call.
    CpuLimit,
    /// Wall time of the call.
    Timeout,
    /// Memory limit.
    OutOfMemory,
    /// A host limit: handles, what a call hands over, lists.
    HostLimit,
    /// The report names records that are not there, or twice.
    InvalidReport,
    /// The host itself failed.
    Host,
}

impl DeathCause {
    /// Every cause.
    pub const ALL: [Self; 7] = [
        Self::Trap,
        Self::CpuLimit,
        Self::Timeout,
        Self::OutOfMemory,
        Self::HostLimit,
        Self::InvalidReport,
        Self::Host,
    ];

    /// Whether it may be the batch's fault: what the plugin did with it, not how long others took or what the host could not do.
    #[must_use]
    pub fn blames_the_batch(self) -> bool {
        !matches!(self, Self::Timeout | Self::Host)
    }

    /// As metrics and messages have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::CpuLimit => "cpu_limit",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out_of_memory",
            Self::HostLimit => "host_limit",
            Self::InvalidReport => "invalid_report",
            Self::Host => "host",
        }
    }
}
