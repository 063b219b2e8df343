//! What comes after an attempt that did not deliver: another one after a wait, or the batch's end. Decided in one place, and without a
//! clock of its own, so that a test of a plugin gets the same decisions as an output in service.

use std::time::Duration;

use crate::config::RetryConfig;
use crate::plugin::{Death, Failure, FailureKind};

use super::backoff;
use super::ending::{REJECTED, RETRY_EXPIRED};
use super::poison::Verdict;

/// A batch whose delivery is misconfigured is not tried more often than this: it takes a person to mend it.
const MISCONFIGURED_WAIT: Duration = Duration::from_secs(10);

/// What has been tried so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    /// Attempts, this one included.
    pub(crate) attempts: u32,
    /// Attempts of this process that failed, this one included: what the back-off goes by.
    pub(crate) failures: u32,
    /// Stores that had done nothing else before and that the batch ended.
    pub(crate) fresh_deaths: u32,
    /// Since the batch closed.
    pub(crate) age: Duration,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another attempt, after this wait.
    Again(Duration),
    /// Every record becomes a dead letter.
    Dead {
        /// One of a few fixed words.
        failure: &'static str,
        /// For a person.
        reason: String,
        /// Whether the component is to undo what it left half done.
        abandon: bool,
    },
}

/// After the component said that it could not deliver. `random` is the batch's share of chance, 0 to 1.
pub(crate) fn after_failure(failure: &Failure, tried: Tried, retry: &RetryConfig, random: f64) -> Next {
    if failure.kind == FailureKind::Rejected {
        return Next::Dead { failure: REJECTED, reason: failure.message.clone(), abandon: false };
    }
    if is_too_old(tried, retry) {
        return expired(tried, &failure.message);
    }
    let mut wait = backoff::wait(retry, tried.failures, random);
    if failure.kind == FailureKind::Misconfigured {
        wait = wait.max(MISCONFIGURED_WAIT.min(retry.max));
    }
    if let Some(asked) = failure.retry_after {
        wait = wait.max(asked.min(retry.max));
    }
    Next::Again(wait)
}

/// After the batch ended its store. `verdict` is there where the death may be the batch's fault.
pub(crate) fn after_death(
    death: &Death,
    verdict: Option<Verdict>,
    tried: Tried,
    retry: &RetryConfig,
    random: f64,
) -> Next {
    match verdict {
        // Each record carries the reason, and frames would be most of the file.
        Some(Verdict::DeadLetter) => Next::Dead {
            failure: death.cause.as_str(),
            reason: format!("ended {} fresh stores of the plugin: {}", tried.fresh_deaths, death.in_short),
            abandon: true,
        },
        // However old the batch is: that the plugin dies of it says nothing about the destination, and it is soon known whether it is
        // the batch or the plugin.
        Some(Verdict::Again | Verdict::Hold) => Next::Again(backoff::wait(retry, tried.failures, random)),
        None if is_too_old(tried, retry) => expired(tried, &death.in_short),
        None => Next::Again(backoff::wait(retry, tried.failures, random)),
    }
}

/// Whether the batch's time is over. It is asked after an attempt, not while the batch waits: a last try at the end of an outage, or after a
/// start, is worth more than a dead letter on the minute.
fn is_too_old(tried: Tried, retry: &RetryConfig) -> bool {
    tried.age >= retry.max_age
}

fn expired(tried: Tried, message: &str) -> Next {
    let reason = format!("given up after {} tries in {} s: {message}", tried.attempts, tried.age.as_secs());
    Next::Dead { failure: RETRY_EXPIRED, reason, abandon: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::DeathCause;

    const FIRST: Tried = Tried { attempts: 1, failures: 1, fresh_deaths: 0, age: Duration::ZERO };

    fn failure(kind: FailureKind, retry_after: Option<u64>) -> Failure {
        Failure { kind, message: "so it is".into(), retry_after: retry_after.map(Duration::from_secs) }
    }

    /// Waits of the default settings: 1 s doubled up to 1 min, given up after 24 h.
    #[test]
    fn a_failure_is_followed_by_a_wait_or_by_the_batchs_end() {
        let old = Tried { age: Duration::from_secs(24 * 3600), attempts: 7, ..FIRST };
        let dead = |failure, reason: &str, abandon| Next::Dead { failure, reason: reason.into(), abandon };
        let seconds = |seconds| Next::Again(Duration::from_secs(seconds));
        for (kind, retry_after, tried, next) in [
            (FailureKind::Transient, None, FIRST, seconds(1)),
            (FailureKind::Transient, None, Tried { failures: 4, ..FIRST }, seconds(8)),
            (FailureKind::Throttled, Some(5), FIRST, seconds(5)),
            (FailureKind::Throttled, Some(3600), FIRST, seconds(60)),
            (FailureKind::Misconfigured, None, FIRST, seconds(10)),
            (FailureKind::Rejected, None, FIRST, dead("rejected", "so it is", false)),
            (FailureKind::Auth, None, old, dead("retry_expired", "given up after 7 tries in 86400 s: so it is", true)),
        ] {
            let failure = failure(kind, retry_after);
            assert_eq!(after_failure(&failure, tried, &RetryConfig::default(), 1.0), next, "{kind:?}");
        }
    }

    #[test]
    fn a_death_ends_the_batch_where_that_is_the_verdict_or_its_time_is_over() {
        let retry = RetryConfig::default();
        let death =
            |cause| Death { cause, message: "long".into(), in_short: "short".into(), limit: None, last_log: vec![] };
        let tried = Tried { fresh_deaths: 2, ..FIRST };
        let poison = after_death(&death(DeathCause::Trap), Some(Verdict::DeadLetter), tried, &retry, 1.0);
        let reason = "ended 2 fresh stores of the plugin: short".to_owned();
        assert_eq!(poison, Next::Dead { failure: "trap", reason, abandon: true });
        let old = Tried { age: retry.max_age, ..FIRST };
        let again = Next::Again(Duration::from_secs(1));
        assert_eq!(after_death(&death(DeathCause::Trap), Some(Verdict::Again), old, &retry, 1.0), again);
        assert_eq!(after_death(&death(DeathCause::Timeout), None, FIRST, &retry, 1.0), again);
        let expired = after_death(&death(DeathCause::Timeout), None, old, &retry, 1.0);
        assert!(matches!(expired, Next::Dead { failure: "retry_expired", .. }), "{expired:?}");
    }
}
