//! Whoever looks on while an output works: a test of a plugin. An output in service has nobody, and pays nothing for it.

use std::fmt;
use std::time::Duration;

/// Hears what an output asks of the host beyond what goes over the wire, and says what time it is.
pub(crate) trait Watch: fmt::Debug + Send + Sync {
    /// What the clock shows, nanoseconds since 1970 UTC.
    fn now_ns(&self) -> i64;
    /// A counter gave a batch a number.
    fn numbered(&self, function: &'static str, counter: &str, number: u64);
    /// The component wrote a line to its log.
    fn logged(&self, level: &'static str, line: &str, fields: &str);
    /// A call with a batch has ended.
    fn used(&self, usage: Usage);
}

/// What one call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time.
    pub(crate) cpu: Duration,
    /// Bytes of linear memory that its store has come to.
    pub(crate) memory: u64,
    /// Functions of the host that it called.
    pub(crate) calls: u64,
}
