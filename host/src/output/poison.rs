//! Telling a batch that kills stores from a plugin that dies of anything.
//!
//! A batch that ends two fresh stores is poison: it becomes dead letters. But when that happens to several batches in a row, with none
//! delivered in between, it is the plugin: it is quarantined, its batches are held, and one is tried now and then.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Fresh stores that a batch may end before it is taken to be poison.
pub(crate) const FRESH_DEATHS: u32 = 2;
/// Poisonous batches in a row that make the plugin the suspect.
const POISON_IN_A_ROW: u32 = 3;
/// How often a quarantined plugin is tried.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct PluginHealth {
    poison_in_a_row: AtomicU32,
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
    pub(crate) fn new() -> Self {
        Self { poison_in_a_row: AtomicU32::new(0) }
    }

    pub(crate) fn delivered(&self) {
        self.poison_in_a_row.store(0, Ordering::Relaxed);
    }

    pub(crate) fn quarantined(&self) -> bool {
        self.poison_in_a_row.load(Ordering::Relaxed) >= POISON_IN_A_ROW
    }

    pub(crate) fn died(&self, fresh_deaths: u32) -> Verdict {
        if self.quarantined() {
            return Verdict::Hold;
        }
        if fresh_deaths < FRESH_DEATHS {
            return Verdict::Again;
        }
        let in_a_row = self.poison_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        if in_a_row >= POISON_IN_A_ROW { Verdict::Hold } else { Verdict::DeadLetter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_ends_two_fresh_stores_is_poison() {
        let health = PluginHealth::new();
        assert_eq!(health.died(0), Verdict::Again);
        assert_eq!(health.died(1), Verdict::Again);
        assert_eq!(health.died(2), Verdict::DeadLetter);
        assert!(!health.quarantined());
    }

    #[test]
    fn the_third_poisonous_batch_in_a_row_puts_the_plugin_in_quarantine() {
        let health = PluginHealth::new();
        assert_eq!(
            [health.died(2), health.died(2), health.died(2)],
            [Verdict::DeadLetter, Verdict::DeadLetter, Verdict::Hold]
        );
        assert!(health.quarantined());
        assert_eq!(health.died(0), Verdict::Hold);
    }

    #[test]
    fn one_delivery_clears_the_plugin() {
        let health = PluginHealth::new();
        health.died(2);
        health.died(2);
        health.delivered();
        assert_eq!(health.died(2), Verdict::DeadLetter);
    }
}
