//! Why a batch was not delivered.

use std::fmt;

use crate::bindings::wharf::output::types as wit;

/// What kind of failure this was. The plugin classifies, the host schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The service asked for less.
    Throttled,
    /// It may work next time.
    Transient,
    /// The service refused who we are. Never final.
    Auth,
    /// The destination or the configuration is wrong. Kept and retried slowly, shown loudly.
    Misconfigured,
    /// The destination will never take this batch. Final: the whole batch becomes dead letters.
    Rejected,
}

/// Why a batch was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// For a person: what was tried, on what, what came back.
    pub message: String,
    /// What the service asked us to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after_ms: None }
    }
    /// It may work next time.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Transient, message)
    }
    /// The destination or the configuration is wrong.
    pub fn misconfigured(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Misconfigured, message)
    }
    /// The destination will never take this batch.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Rejected, message)
    }
    /// Puts what was being done before the message.
    #[must_use]
    pub fn doing(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for wit::Failure {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Throttled => wit::FailureKind::Throttled,
            FailureKind::Transient => wit::FailureKind::Transient,
            FailureKind::Auth => wit::FailureKind::Auth,
            FailureKind::Misconfigured => wit::FailureKind::Misconfigured,
            FailureKind::Rejected => wit::FailureKind::Rejected,
        };
        Self { kind, message: failure.message, retry_after_ms: failure.retry_after_ms }
    }
}

/// A host call on the host's own state that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostError {
    /// The output was not granted this.
    Denied(String),
    /// A limit would be passed.
    Limit(String),
    /// An argument is wrong.
    Invalid(String),
    /// The host's own trouble. Trying again later may work.
    Unavailable(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(text) => write!(f, "not granted: {text}"),
            Self::Limit(text) => write!(f, "limit: {text}"),
            Self::Invalid(text) => write!(f, "the host refused the call: {text}"),
            Self::Unavailable(text) => write!(f, "the host cannot do this now: {text}"),
        }
    }
}

impl std::error::Error for HostError {}

impl From<wit::HostError> for HostError {
    fn from(error: wit::HostError) -> Self {
        match error {
            wit::HostError::Denied(text) => Self::Denied(text),
            wit::HostError::Limit(text) => Self::Limit(text),
            wit::HostError::Invalid(text) => Self::Invalid(text),
            wit::HostError::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

/// Nothing that the host says about itself makes a batch undeliverable: what is denied or invalid waits for a person.
impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let kind = match error {
            HostError::Denied(_) | HostError::Invalid(_) => FailureKind::Misconfigured,
            HostError::Limit(_) | HostError::Unavailable(_) => FailureKind::Transient,
        };
        Self::new(kind, error.to_string())
    }
}
