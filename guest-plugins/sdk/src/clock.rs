//! The time, as the host knows it; in native tests, as the machine does.

use std::time::{Duration, SystemTime};

use crate::bindings::wharf::output::clock as wit;

/// Nanoseconds since 1970 UTC. May step.
#[must_use]
pub fn now() -> i64 {
    if cfg!(target_family = "wasm") {
        return wit::now();
    }
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Time since some moment of the host's process. Never steps back.
#[must_use]
pub fn monotonic() -> Duration {
    if cfg!(target_family = "wasm") {
        return Duration::from_nanos(wit::monotonic());
    }
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
