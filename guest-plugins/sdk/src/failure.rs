//! Why a batch was not delivered.

use std::fmt;
use std::time::Duration;

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

/// Why a batch was not delivered. Errors of the host and of services become one by `?`, each of its kind; other errors by
/// [`OrFailure`].
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
    /// The service asked for less.
    pub fn throttled(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Throttled, message)
    }
    /// It may work next time.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Transient, message)
    }
    /// The service refused who we are.
    pub fn auth(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Auth, message)
    }
    /// The destination or the configuration is wrong.
    pub fn misconfigured(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Misconfigured, message)
    }
    /// The destination will never take this batch.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Rejected, message)
    }
    /// The service asked to wait so long.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
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

/// What is no JSON here is what came from outside, most often an answer that was cut off: worth another attempt. A record that is no JSON
/// is another matter: see [`Record::json`](crate::Record::json).
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::transient(format!("JSON that cannot be read: {error}"))
    }
}

/// Errors as [`Failure`]s, with what was being done before their text.
///
/// ```
/// use wharf_plugin::{Failure, OrFailure, storage};
///
/// fn last_page(answer: &str) -> Result<u32, Failure> {
///     answer.parse().or_transient("reading the page's number")
/// }
/// fn remembered() -> Result<Option<Vec<u8>>, Failure> {
///     storage::get("page").doing("looking up the last page")
/// }
/// # assert_eq!(last_page("x").unwrap_err().message, "reading the page's number: invalid digit found in string");
/// ```
pub trait OrFailure<T, E> {
    /// What has a kind of its own keeps it.
    ///
    /// # Errors
    /// The error as a failure.
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure>
    where
        E: Into<Failure>;
    /// Any error: it may work next time.
    ///
    /// # Errors
    /// The error as a failure.
    fn or_transient(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display;
    /// Any error: the destination or the configuration is wrong.
    ///
    /// # Errors
    /// The error as a failure.
    fn or_misconfigured(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display;
    /// Any error: the destination will never take this batch. Final: all of its records become dead letters.
    ///
    /// # Errors
    /// The error as a failure.
    fn or_rejected(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display;
}

impl<T, E> OrFailure<T, E> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failure>
    where
        E: Into<Failure>,
    {
        self.map_err(|error| error.into().doing(what))
    }
    fn or_transient(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display,
    {
        self.map_err(|error| Failure::transient(error.to_string()).doing(doing))
    }
    fn or_misconfigured(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display,
    {
        self.map_err(|error| Failure::misconfigured(error.to_string()).doing(doing))
    }
    fn or_rejected(self, doing: impl fmt::Display) -> Result<T, Failure>
    where
        E: fmt::Display,
    {
        self.map_err(|error| Failure::rejected(error.to_string()).doing(doing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_says_of_itself_is_never_final() {
        let kind = |error: HostError| Failure::from(error).kind;
        assert_eq!(kind(HostError::Denied("s3".into())), FailureKind::Misconfigured);
        assert_eq!(kind(HostError::Invalid("key".into())), FailureKind::Misconfigured);
        assert_eq!(kind(HostError::Limit("bodies".into())), FailureKind::Transient);
        assert_eq!(kind(HostError::Unavailable("disk".into())), FailureKind::Transient);
    }

    #[test]
    fn a_failure_says_first_what_was_being_done() {
        let failed: Result<(), _> = Err(HostError::Unavailable("its disk is full".into()));
        let failure = failed.doing("noting the upload").unwrap_err();
        assert_eq!(failure.to_string(), "noting the upload: the host cannot do this now: its disk is full");
        assert_eq!(failure.kind, FailureKind::Transient);
        let failure = Failure::throttled("busy").retry_after(Duration::from_millis(1500)).doing("posting");
        assert_eq!((failure.message.as_str(), failure.retry_after_ms), ("posting: busy", Some(1500)));
    }
}
