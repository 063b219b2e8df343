//! Plugins: loading components, and workers that run them.
//!
//! One wasmtime engine for the process; a component is compiled once (and cached by digest), linked once, and each worker has its
//! own store. A worker that trapped, ran out of time or memory, or whose call was dropped cannot be called again: calling
//! consumes the worker and gives it back only on success.

pub mod builtin;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::capability::Services;
use crate::journal::Journal;
use crate::record::{ChunkId, ChunkMeta};
use crate::state::BatchId;

/// Limits and places of the plugin host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Where compiled components are kept; none compiles anew each time.
    pub cache_dir: Option<PathBuf>,
    /// Linear memory of a store, bytes.
    pub max_memory_bytes: u64,
    /// CPU for a call; `deliver` gets 1 s more for each 16 MiB of its batch.
    pub cpu_per_call: Duration,
    /// Wall time for `deliver`.
    pub deliver_timeout: Duration,
    /// Workers that will exist at the same time, for the pool.
    pub workers: u32,
}

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSource {
    /// Embedded in the binary.
    BuiltIn(String),
    /// A file.
    File(PathBuf),
}

/// The engine and everything that is made once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PluginHost {
    _todo: Arc<()>,
}

/// A loaded component. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plugin {
    _todo: Arc<()>,
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
    /// Records of different tags never share a batch.
    pub partition_by_tag: bool,
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

/// A worker: one store, ready for a call.
#[derive(Debug)]
pub struct Worker {
    _todo: (),
}

/// A batch as a worker gets it.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The batch.
    pub id: BatchId,
    /// From 1.
    pub attempt: u32,
    /// Its chunks in order.
    pub chunks: Arc<[(ChunkId, Arc<ChunkMeta>)]>,
    /// Where they are.
    pub journal: Journal,
}

/// How a call of `deliver` ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every record is delivered but these, checked: ascending, each once, inside the batch.
    Delivered {
        /// Record numbers and reasons.
        rejected: Vec<(u32, String)>,
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

/// Why a store is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// What ended it.
    pub cause: DeathCause,
    /// Trap, frames, limits: for a person.
    pub message: String,
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
    /// A host limit: handles, lifting, table.
    HostLimit,
    /// The report names records that are not there, or twice.
    InvalidReport,
    /// The host itself failed.
    Host,
}

impl DeathCause {
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

/// Why a component cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Could not be read.
    #[error("plugin {name}: {cause}")]
    Read {
        /// File or name.
        name: String,
        /// Cause.
        cause: std::io::Error,
    },
    /// Not a component, another WIT version, an import that is not there, …
    #[error("plugin {name}: {what}")]
    Unusable {
        /// File or name.
        name: String,
        /// Found, expected, and the remedy.
        what: String,
    },
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error("the configuration of output {output} is wrong: {}", .faults.iter().map(|f| format!("{}: {}", f.path, f.message)).collect::<Vec<_>>().join("; "))]
    Config {
        /// The output.
        output: Arc<str>,
        /// All faults.
        faults: Vec<ConfigFault>,
    },
    /// The component died in `configure`.
    #[error("the plugin of output {output} died while it was configured: {}", .death.message)]
    Died {
        /// The output.
        output: Arc<str>,
        /// How.
        death: Death,
    },
}

impl PluginHost {
    /// Makes the engine, the linker and the epoch thread. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// Where wasmtime cannot be set up on this machine.
    pub fn new(_options: HostOptions) -> Result<Self, LoadError> {
        todo!()
    }
    /// Loads, compiles (or takes from the cache), checks and links a component, and asks it to describe itself.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn load(&self, _source: &PluginSource) -> Result<Plugin, LoadError> {
        todo!()
    }
}

impl Plugin {
    /// SHA-256 of the component, hexadecimal.
    pub fn digest(&self) -> &str {
        todo!()
    }
    /// What it says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        todo!()
    }
    /// A fresh store, instantiated and configured.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, _context: WorkerContext) -> Result<(Worker, Plan), StartError> {
        todo!()
    }
}

impl Worker {
    /// Delivers a batch. The worker comes back unless its store is gone.
    pub async fn deliver(self, _delivery: Delivery) -> (Outcome, Option<Worker>) {
        todo!()
    }
    /// Tells the component that the host gives this batch up.
    pub async fn abandon(self, _delivery: Delivery) -> Option<Worker> {
        todo!()
    }
    /// Lets the component close, and drops the store.
    pub async fn close(self) {
        todo!()
    }
}
