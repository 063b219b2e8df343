//! Waiting for a condition, with a deadline: nothing in these tests sleeps to be right.

use std::time::{Duration, Instant};

/// A deadline from now, stretched by `WHARF_DEADLINE_FACTOR` on slow machines.
#[must_use]
pub fn deadline(seconds: u64) -> Instant {
    let factor = std::env::var("WHARF_DEADLINE_FACTOR").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1.0_f64);
    Instant::now() + Duration::from_secs(seconds).mul_f64(factor.max(0.1))
}

/// Polls until `condition` holds.
///
/// # Panics
/// Where it does not in `seconds`.
pub fn wait_until(what: &str, seconds: u64, mut condition: impl FnMut() -> bool) {
    let end = deadline(seconds);
    while !condition() {
        assert!(Instant::now() < end, "{what}: not after {seconds} s");
        std::thread::sleep(Duration::from_millis(20));
    }
}
