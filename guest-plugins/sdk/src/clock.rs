//! The time, as the host knows it.

use std::time::Duration;

use crate::bindings::wharf::output::clock as wit;

/// Nanoseconds since 1970 UTC. May step.
#[must_use]
pub fn now() -> i64 {
    wit::now()
}

/// Time since some moment of the host's process. Never steps back.
#[must_use]
pub fn monotonic() -> Duration {
    Duration::from_nanos(wit::monotonic())
}
