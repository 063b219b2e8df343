//! Telling a batch that kills stores from a plugin that dies of anything.
//!
//! A batch that ends two fresh stores is poison: it becomes dead letters. But when that happens to several batches in a row, with none
//! delivered in between, it is the plugin: it is quarantined, its batches are held however old they grow, and one is tried now and then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Fresh stores that a batch may end before it is taken to be poison.
pub(crate) const FRESH_DEATHS: u32 = 2;
/// Poisonous batches in a row that make the plugin the suspect.
const POISON_IN_A_ROW: u32 = 3;
/// How often a quarantined plugin is tried.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(crate) struct PluginHealth {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    poison_in_a_row: u32,
    /// In quarantine: when the next batch may be tried.
    next_probe: Option<Instant>,
}

/// What to do with a batch that ended its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Try it again, on a fresh store.
    Again,
    /// It is poison.
    DeadLetter,
    /// It is the plugin: hold the batch.
    Hold,
}

impl PluginHealth {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch got through. Whether that ended a quarantine.
    pub(crate) fn delivered(&self) -> bool {
        let mut inner = self.lock();
        inner.poison_in_a_row = 0;
        inner.next_probe.take().is_some()
    }

    pub(crate) fn quarantined(&self) -> bool {
        self.lock().next_probe.is_some()
    }

    /// In quarantine, when the next batch may be tried; none where one may be tried now.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        self.lock().next_probe.filter(|next| now < *next)
    }

    /// Leave to try a batch now. In quarantine that is the one probe, and the next is far off.
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        match inner.next_probe {
            Some(next) if now < next => return false,
            Some(_) => inner.next_probe = Some(now + PROBE_EVERY),
            None => {}
        }
        true
    }

    /// A batch ended its store; with this one, so many fresh ones.
    pub(crate) fn died(&self, fresh_deaths: u32, now: Instant) -> Verdict {
        let mut inner = self.lock();
        if inner.next_probe.is_some() {
            return Verdict::Hold;
        }
        if fresh_deaths < FRESH_DEATHS {
            return Verdict::Again;
        }
        inner.poison_in_a_row = inner.poison_in_a_row.saturating_add(1);
        if inner.poison_in_a_row < POISON_IN_A_ROW {
            return Verdict::DeadLetter;
        }
        inner.next_probe = Some(now + PROBE_EVERY);
        Verdict::Hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantined(now: Instant) -> PluginHealth {
        let health = PluginHealth::default();
        let verdicts = [2, 2, 2].map(|fresh| health.died(fresh, now));
        assert_eq!(verdicts, [Verdict::DeadLetter, Verdict::DeadLetter, Verdict::Hold]);
        health
    }

    #[test]
    fn a_batch_that_ends_two_fresh_stores_is_poison() {
        let (health, now) = (PluginHealth::default(), Instant::now());
        assert_eq!(health.died(0, now), Verdict::Again);
        assert_eq!(health.died(1, now), Verdict::Again);
        assert_eq!(health.died(2, now), Verdict::DeadLetter);
        assert!(!health.quarantined());
        assert!(health.may_try(now));
    }

    #[test]
    fn the_third_poisonous_batch_in_a_row_puts_the_plugin_in_quarantine() {
        let now = Instant::now();
        let health = quarantined(now);
        assert!(health.quarantined());
        assert_eq!(health.died(0, now), Verdict::Hold);
        assert_eq!(health.died(9, now), Verdict::Hold);
    }

    #[test]
    fn a_plugin_in_quarantine_is_tried_with_one_batch_at_a_time() {
        let now = Instant::now();
        let health = quarantined(now);
        let first = now + PROBE_EVERY;
        assert_eq!(health.held_until(now), Some(first));
        assert!(!health.may_try(now));
        assert_eq!(health.held_until(first), None);
        assert!(health.may_try(first));
        assert!(!health.may_try(first));
        assert_eq!(health.held_until(first), Some(first + PROBE_EVERY));
    }

    #[test]
    fn one_delivery_clears_the_plugin() {
        let now = Instant::now();
        let health = PluginHealth::default();
        health.died(2, now);
        health.died(2, now);
        assert!(!health.delivered());
        assert_eq!(health.died(2, now), Verdict::DeadLetter);
        let health = quarantined(now);
        assert!(health.delivered());
        assert!(!health.quarantined() && health.may_try(now));
        assert_eq!(health.died(2, now), Verdict::DeadLetter);
    }
}
