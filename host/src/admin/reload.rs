//! What is asked of a reload, and what it answers: the same for `POST /reload`, `wharf reload`, SIGHUP and a watched file.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// Who loads the configuration anew.
pub trait Reload: Send + Sync + 'static {
    /// Loads it, dropping what is kept for these outputs where they are not configured any more. Done when it is at work, or refused.
    ///
    /// # Errors
    /// Where another one is under way, or Wharf is not running.
    fn reload(&self, asked: ReloadAsked) -> Pin<Box<dyn Future<Output = Result<Reloaded, NotNow>> + Send + '_>>;
}

/// The body of `POST /reload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadAsked {
    /// Outputs whose undelivered records are dropped, where the configuration has them no more; `acme/` is all of a tenant's.
    #[serde(default)]
    pub discard: Vec<String>,
}

/// No reload can begin now, for this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotNow(pub String);

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadResult {
    /// The new configuration is at work.
    Applied,
    /// It is the one that is at work.
    Unchanged,
    /// It was not taken: nothing has changed.
    Refused,
    /// It could not be put to work: the old one is at work again, but for what `faults` says.
    Failed,
}

impl ReloadResult {
    /// As metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What came of a reload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// How it ended.
    pub result: ReloadResult,
    /// The file.
    pub file: String,
    /// `api`, `SIGHUP` or `watch`.
    pub trigger: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Why it was refused or failed: every fault, as `wharf validate` shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Outputs that would go with records that are not delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered: Vec<Undelivered>,
    /// What has become of the outputs.
    #[serde(default)]
    pub outputs: Parts,
    /// What has become of the sources.
    #[serde(default)]
    pub sources: Parts,
    /// What was dropped because it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Undelivered>,
    /// Keys that have changed and take effect at the next start only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// Outputs or sources by what has become of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Those that were not there before.
    pub added: Vec<String>,
    /// Those that are there with other settings.
    pub changed: Vec<Changed>,
    /// Those that are there no more.
    pub removed: Vec<String>,
    /// Those that were not touched.
    pub unchanged: Vec<String>,
}

impl Parts {
    /// Whether nothing is another than before.
    #[must_use]
    pub fn are_unchanged(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// An output or a source that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// The keys that have.
    pub what: Vec<String>,
}

/// Records of an output that are not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    /// The output.
    pub output: String,
    /// How many.
    pub records: u64,
    /// Their bytes in the journal.
    pub bytes: u64,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output {}: {} records, {} bytes", self.output, self.records, self.bytes)
    }
}
