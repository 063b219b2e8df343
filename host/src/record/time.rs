//! Record times: nanoseconds since 1970 UTC, and how they are written.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, nanoseconds since 1970 UTC.
#[must_use]
pub fn now_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

/// How a record's time is written in an encoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateFormat {
    /// `2026-11-30T16:32:17.123456Z`
    Iso8601,
    /// `2026-11-30T16:32:17.123456789Z`
    Iso8601Nanos,
    /// Seconds as a JSON number with a fraction.
    Double,
    /// Whole seconds as a JSON number.
    Epoch,
    /// Whole milliseconds as a JSON number.
    EpochMs,
    /// `2026-11-30 16:32:17.123456`
    JavaSqlTimestamp,
}
