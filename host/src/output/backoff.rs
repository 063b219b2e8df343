//! Exponential back-off with jitter.

use std::time::Duration;

use crate::config::RetryConfig;

/// The wait after the `failures`th failure in a row (from 1): `initial` doubled each time up to `max`, of which the
/// upper half is random, so that workers which failed together do not come back together.
pub(crate) fn wait(retry: &RetryConfig, failures: u32, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let full = retry.initial.saturating_mul(1 << doublings).min(retry.max);
    full.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry() -> RetryConfig {
        RetryConfig {
            max_age: Duration::from_secs(86_400),
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
        }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let full: Vec<u64> = (1..=8).map(|n| wait(&retry(), n, 1.0).as_secs()).collect();
        assert_eq!(full, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn jitter_takes_away_at_most_half() {
        assert_eq!(wait(&retry(), 3, 0.0), Duration::from_secs(2));
        assert_eq!(wait(&retry(), 3, 0.5), Duration::from_secs(3));
    }

    #[test]
    fn a_very_long_outage_does_not_overflow() {
        assert_eq!(wait(&retry(), u32::MAX, 1.0), Duration::from_secs(60));
    }
}
