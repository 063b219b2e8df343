//! Telling a batch that kills stores from a plugin that dies of anything, and a plugin that dies in one output from one that dies in all.
//!
//! A batch that ends two fresh stores is poison: it becomes dead letters. But when that happens to several batches in a row, with none
//! delivered in between, it is the plugin: it is quarantined, its batches are held however old they grow, and one is tried now and then.
//!
//! What is known of a plugin is known by its digest, for all outputs that run it. Where several of them see nothing but poison, it is the component
//! and not a configuration: all outputs that run it are held, and one batch of any of them is tried at a time. But one tenant must not be able to
//! have a component quarantined that others run: what happens in outputs of one tenant alone holds only that tenant's. One delivery in any output
//! shows that the component can do its work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::tenant_in;

/// Fresh stores that a batch may end before it is taken to be poison.
pub(crate) const FRESH_DEATHS: u32 = 2;
/// Poisonous batches in a row that make the plugin the suspect.
const POISON_IN_A_ROW: u32 = 3;
/// How often a quarantined plugin is tried.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(120);
/// Outputs that run a quarantined plugin take turns with its probe: each that was tried less long ago waits so much longer.
const TURN: Duration = Duration::from_secs(1);
const MOST_TURNS: u32 = 30;
/// Waits before another store where the last ones were lost one after the other: none at first, then this doubled up to the longest.
const RESTART_FIRST: Duration = Duration::from_millis(50);
const RESTART_LAST: Duration = Duration::from_secs(5);

/// What is known of every plugin that runs, by digest. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Quarantines {
    plugins: Arc<Mutex<BTreeMap<String, Weak<Plugin>>>>,
}

/// A plugin, as one output sees it.
#[derive(Debug)]
pub(crate) struct PluginHealth {
    output: Arc<str>,
    plugin: Arc<Plugin>,
}

#[derive(Debug, Default)]
struct Plugin {
    inner: Mutex<Inner>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    outputs: BTreeMap<Arc<str>, Standing>,
    /// Outputs with a poisonous batch, and how many, with nothing delivered by any since.
    suspects: BTreeMap<Arc<str>, u32>,
    /// In quarantine everywhere: when the next batch may be tried.
    next_probe: Option<Instant>,
    probes: u64,
}

/// How the plugin does in one output.
#[derive(Debug, Default)]
struct Standing {
    /// How often the output runs it: twice while new workers take over from old ones.
    joined: u32,
    poison_in_a_row: u32,
    /// In quarantine in this output: when the next batch may be tried.
    next_probe: Option<Instant>,
    /// Number of the last probe that it had; 0 is none.
    last_probe: u64,
    stores_lost_in_a_row: u32,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Quarantines {
    /// An output begins to run a plugin.
    pub(crate) fn join(&self, digest: &str, output: Arc<str>) -> PluginHealth {
        let mut plugins = lock(&self.plugins);
        plugins.retain(|_, plugin| plugin.strong_count() > 0);
        let plugin = plugins.get(digest).and_then(Weak::upgrade).unwrap_or_else(|| {
            let new = Arc::<Plugin>::default();
            plugins.insert(digest.to_owned(), Arc::downgrade(&new));
            new
        });
        let health = PluginHealth { output, plugin };
        {
            // Somebody has changed something where an output joins again: what it was held for may be over.
            let mut inner = lock(&health.plugin.inner);
            inner.suspects.remove(&health.output);
            let own = inner.own(&health.output);
            own.forget();
            own.joined += 1;
        }
        health
    }
}

impl Standing {
    /// Nothing speaks against the plugin any more.
    fn forget(&mut self) {
        self.poison_in_a_row = 0;
        self.next_probe = None;
        self.stores_lost_in_a_row = 0;
    }
}

impl Inner {
    fn own(&mut self, output: &Arc<str>) -> &mut Standing {
        self.outputs.entry(Arc::clone(output)).or_default()
    }

    /// Whether what is known from all outputs speaks against the plugin in this one.
    fn is_suspect(&self, output: &str) -> bool {
        let tenants: BTreeSet<Option<&str>> = self.suspects.keys().map(|output| tenant_in(output)).collect();
        self.suspects.len() >= 2 && (tenants.len() >= 2 || tenants.contains(&tenant_in(output)))
    }

    fn is_held_everywhere(&self, output: &str) -> bool {
        self.next_probe.is_some() && self.is_suspect(output)
    }

    fn is_held(&self, output: &str) -> bool {
        let own = self.outputs.get(output).is_some_and(|own| own.next_probe.is_some());
        own || self.is_held_everywhere(output)
    }

    /// All outputs that are held.
    fn held(&self) -> Vec<Arc<str>> {
        self.outputs.keys().filter(|output| self.is_held(output)).cloned().collect()
    }

    /// When a batch of this output may be tried, where it is held.
    fn next_probe(&self, output: &str) -> Option<Instant> {
        let own = self.outputs.get(output);
        let everywhere = self.next_probe.filter(|_| self.is_suspect(output)).map(|next| {
            let last = own.map_or(0, |own| own.last_probe);
            let before = self.outputs.values().filter(|other| other.last_probe < last).count();
            next + TURN * u32::try_from(before).unwrap_or(u32::MAX).min(MOST_TURNS)
        });
        own.and_then(|own| own.next_probe).max(everywhere)
    }
}

impl PluginHealth {
    /// A batch got through. Gives the outputs that were held until then, and are not any more.
    pub(crate) fn delivered(&self) -> Vec<Arc<str>> {
        let mut inner = lock(&self.plugin.inner);
        self.clear(&mut inner)
    }

    /// Ends the plugin's quarantine in this output by hand, and with it that of all outputs that were held together. Gives the others that are held
    /// no longer; none where this one was not held.
    pub(crate) fn release(&self) -> Option<Vec<Arc<str>>> {
        let mut inner = lock(&self.plugin.inner);
        if !inner.is_held(&self.output) {
            return None;
        }
        let mut released = self.clear(&mut inner);
        released.retain(|output| *output != self.output);
        Some(released)
    }

    /// Nothing speaks against the plugin any more, but for what is known from another output alone. Gives the outputs that were held and are not any
    /// more.
    fn clear(&self, inner: &mut Inner) -> Vec<Arc<str>> {
        let own = inner.own(&self.output);
        let is_held = own.next_probe.is_some() || inner.next_probe.is_some();
        let before = if is_held { inner.held() } else { vec![] };
        inner.suspects.clear();
        inner.next_probe = None;
        inner.own(&self.output).forget();
        if is_held {
            self.plugin.released.notify_waiters();
        }
        before.into_iter().filter(|output| !inner.is_held(output)).collect()
    }

    /// Waits until a quarantine ends.
    pub(crate) fn released(&self) -> tokio::sync::futures::Notified<'_> {
        self.plugin.released.notified()
    }

    pub(crate) fn quarantined(&self) -> bool {
        lock(&self.plugin.inner).is_held(&self.output)
    }

    /// Other outputs in which the plugin dies of whatever it is given, where it is quarantined for that.
    pub(crate) fn suspects(&self) -> Vec<Arc<str>> {
        let inner = lock(&self.plugin.inner);
        let others = inner.suspects.keys().filter(|other| **other != self.output);
        if inner.is_held_everywhere(&self.output) { others.cloned().collect() } else { vec![] }
    }

    /// In quarantine, when the next batch may be tried; that may be past. None where it is not held.
    pub(crate) fn next_probe(&self) -> Option<Instant> {
        lock(&self.plugin.inner).next_probe(&self.output)
    }

    /// In quarantine, when the next batch may be tried; none where one may be tried now.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        lock(&self.plugin.inner).next_probe(&self.output).filter(|next| now < *next)
    }

    /// Leave to try a batch now. In quarantine that is the one probe, and the next is far off.
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        let mut inner = lock(&self.plugin.inner);
        let Some(next) = inner.next_probe(&self.output) else { return true };
        if now < next {
            return false;
        }
        let later = Some(now + PROBE_EVERY);
        inner.probes += 1;
        let number = inner.probes;
        if inner.is_held_everywhere(&self.output) {
            inner.next_probe = later;
        }
        let own = inner.own(&self.output);
        own.last_probe = number;
        own.next_probe = own.next_probe.and(later);
        true
    }

    /// A call came back from a store, whatever it said.
    pub(crate) fn survived(&self) {
        lock(&self.plugin.inner).own(&self.output).stores_lost_in_a_row = 0;
    }

    /// A store is lost. How long to wait before the next is made, so that a plugin that dies of everything does not take a core with it.
    pub(crate) fn store_lost(&self) -> Duration {
        let mut inner = lock(&self.plugin.inner);
        let own = inner.own(&self.output);
        own.stores_lost_in_a_row = own.stores_lost_in_a_row.saturating_add(1);
        match own.stores_lost_in_a_row {
            0 | 1 => Duration::ZERO,
            more => RESTART_FIRST.saturating_mul(1 << (more - 2).min(16)).min(RESTART_LAST),
        }
    }

    /// A batch ended its store; with this one, so many fresh ones.
    pub(crate) fn died(&self, fresh_deaths: u32, now: Instant) -> Verdict {
        let mut inner = lock(&self.plugin.inner);
        if inner.is_held(&self.output) {
            return Verdict::Hold;
        }
        if fresh_deaths < FRESH_DEATHS {
            return Verdict::Again;
        }
        *inner.suspects.entry(Arc::clone(&self.output)).or_default() += 1;
        let poison: u32 = inner.suspects.values().sum();
        if poison >= POISON_IN_A_ROW && inner.is_suspect(&self.output) {
            inner.next_probe = Some(now + PROBE_EVERY);
        }
        let own = inner.own(&self.output);
        own.poison_in_a_row = own.poison_in_a_row.saturating_add(1);
        if own.poison_in_a_row >= POISON_IN_A_ROW {
            own.next_probe = Some(now + PROBE_EVERY);
        }
        if inner.is_held(&self.output) { Verdict::Hold } else { Verdict::DeadLetter }
    }
}

impl Drop for PluginHealth {
    fn drop(&mut self) {
        let mut inner = lock(&self.plugin.inner);
        let own = inner.own(&self.output);
        own.joined = own.joined.saturating_sub(1);
        if own.joined == 0 {
            inner.outputs.remove(&self.output);
            inner.suspects.remove(&self.output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone() -> PluginHealth {
        Quarantines::default().join("digest", "o".into())
    }

    fn quarantined(now: Instant) -> PluginHealth {
        let health = alone();
        let verdicts = [2, 2, 2].map(|fresh| health.died(fresh, now));
        assert_eq!(verdicts, [Verdict::DeadLetter, Verdict::DeadLetter, Verdict::Hold]);
        health
    }

    #[test]
    fn a_batch_that_ends_two_fresh_stores_is_poison() {
        let (health, now) = (alone(), Instant::now());
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
        let health = alone();
        health.died(2, now);
        health.died(2, now);
        assert!(health.delivered().is_empty());
        assert_eq!(health.died(2, now), Verdict::DeadLetter);
        let health = quarantined(now);
        assert_eq!(health.delivered(), ["o".into()]);
        assert!(!health.quarantined() && health.may_try(now));
        assert_eq!(health.died(2, now), Verdict::DeadLetter);
    }

    /// Poison in each of these outputs, one after the other; the verdicts.
    fn poison(all: &[&PluginHealth], now: Instant) -> Vec<Verdict> {
        all.iter().map(|health| health.died(2, now)).collect()
    }

    #[test]
    fn a_plugin_that_is_bad_in_two_outputs_is_held_in_all_that_have_nothing_to_say_for_it() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let [a, b, c] = ["a", "b", "c"].map(|output| all.join("digest", output.into()));
        let other = all.join("another digest", "d".into());
        use Verdict::{DeadLetter, Hold};
        assert_eq!(poison(&[&a, &b, &a], now), [DeadLetter, DeadLetter, Hold]);
        assert!(a.quarantined() && b.quarantined() && c.quarantined() && !other.quarantined());
        assert_eq!(c.suspects().iter().map(|output| &**output).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(b.died(2, now), Hold, "it is not the batch");
        // One probe at a time, of whichever output comes first; who had it waits behind the others.
        let first = now + PROBE_EVERY;
        assert!(!c.may_try(now) && a.may_try(first) && !b.may_try(first) && !c.may_try(first));
        let second = first + PROBE_EVERY;
        assert!(a.held_until(second).is_some() && b.may_try(second));
        let third = second + PROBE_EVERY;
        assert!(a.held_until(third).is_some() && b.held_until(third).is_some() && c.may_try(third));
        // It gets through in one: it can do its work.
        assert_eq!(c.delivered(), ["a", "b", "c"].map(Into::into));
        assert!(!a.quarantined() && !b.quarantined() && a.may_try(third) && b.may_try(third));
    }

    #[test]
    fn a_plugin_that_dies_in_one_output_and_delivers_in_another_is_held_in_that_one_alone() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let [good, bad] = ["good", "bad"].map(|output| all.join("digest", output.into()));
        for _ in 0..3 {
            bad.died(2, now);
            good.delivered();
        }
        assert!(bad.quarantined() && !good.quarantined());
        good.delivered();
        assert!(bad.quarantined(), "it is not the component");
        assert_eq!((bad.release(), bad.quarantined(), bad.release()), (Some(vec![]), false, None));
    }

    #[test]
    fn a_quarantine_that_is_ended_by_hand_ends_for_all_that_were_held_together_and_begins_again_where_nothing_is_mended()
     {
        let (all, now) = (Quarantines::default(), Instant::now());
        let [a, b, c] = ["a", "b", "c"].map(|output| all.join("digest", output.into()));
        poison(&[&a, &b, &a, &c], now);
        assert_eq!(c.release(), Some(vec!["a".into(), "b".into()]));
        assert!(a.may_try(now) && b.may_try(now) && c.may_try(now));
        use Verdict::{DeadLetter, Hold};
        assert_eq!(poison(&[&c, &c, &c], now), [DeadLetter, DeadLetter, Hold]);
        assert_eq!(poison(&[&a], now), [Hold], "its own three in a row, two of them before");
        // What is known from one output alone is its own affair.
        let alone = all.join("another digest", "alone".into());
        let other = all.join("another digest", "other".into());
        for _ in 0..3 {
            poison(&[&alone], now);
            other.delivered();
        }
        poison(&[&other, &other, &other], now);
        assert!(alone.quarantined() && other.quarantined());
        assert_eq!((other.release(), alone.quarantined()), (Some(vec![]), true));
    }

    #[test]
    fn a_tenant_cannot_have_a_plugin_quarantined_that_others_run() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let [one, two, third] = ["evil/one", "evil/two", "evil/three"].map(|output| all.join("digest", output.into()));
        let [good, own] = ["good/fine", "archive"].map(|output| all.join("digest", output.into()));
        poison(&[&one, &two, &one, &two], now);
        assert!(one.quarantined() && two.quarantined() && third.quarantined());
        assert!(!good.quarantined() && !own.quarantined() && good.may_try(now) && own.may_try(now));
        // Where it dies of two batches there as well, it is not the tenant.
        poison(&[&good], now);
        assert!(good.quarantined() && own.quarantined());
    }

    #[test]
    fn stores_that_are_lost_one_after_the_other_are_made_anew_more_and_more_slowly() {
        let health = alone();
        let waits: Vec<_> = (0..10).map(|_| health.store_lost().as_millis()).collect();
        assert_eq!(waits, [0, 50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        health.survived();
        assert_eq!(health.store_lost(), Duration::ZERO);
    }

    #[test]
    fn an_output_that_joins_again_begins_anew_and_stays_when_the_old_one_leaves() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let old = all.join("digest", "o".into());
        poison(&[&old, &old, &old], now);
        assert!(old.quarantined());
        let new = all.join("digest", "o".into());
        assert!(!new.quarantined());
        poison(&[&new, &new, &new], now);
        drop(old);
        assert!(new.quarantined());
    }

    #[test]
    fn an_output_that_is_gone_takes_its_poison_with_it() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let [a, b] = ["a", "b"].map(|output| all.join("digest", output.into()));
        poison(&[&a, &b, &a], now);
        drop(a);
        assert!(!b.quarantined());
    }
}
