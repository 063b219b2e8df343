//! For how long log groups that Wharf made keep their events: asked for when a group is made, and, where that failed or Wharf stopped in
//! between, again now and then. It never holds back logs.
//!
//! That it is owed is a row of the output, which all workers see and which outlives them.

use std::collections::HashMap;
use std::time::Duration;

use wharf_plugin::warn;

use super::NOT_FOUND;
use crate::naming;
use crate::world::World;

/// Between two tries.
const PAUSE: Duration = Duration::from_secs(300);
/// Groups of which this worker remembers when to look next.
const MAX_KNOWN: usize = 10_000;

#[derive(Debug)]
pub(super) struct Retention {
    days: Option<u32>,
    /// When to try again; none where nothing is owed.
    next: HashMap<String, Option<Duration>>,
}

impl Retention {
    pub(super) fn new(days: Option<u32>) -> Self {
        Self { days, next: HashMap::new() }
    }

    /// Before a group is made: whatever happens next, it is not forgotten.
    pub(super) fn is_owed<W: World>(&self, world: &W, group: &str) {
        if self.days.is_none() {
            return;
        }
        if let Err(cause) = world.store(&row(group), Some(b"")) {
            warn!("that a log group still needs its retention could not be written down: {}", cause, group = group);
        }
    }

    /// Asks for it.
    pub(super) fn set<W: World>(&mut self, world: &W, group: &str) {
        let Some(days) = self.days else { return };
        let settled = match world.put_retention(group, days) {
            Ok(()) => true,
            // Without its group it is owed no more; when that is made again, it will be.
            Err(error) if error.code() == NOT_FOUND => true,
            Err(error) => {
                world.count_all("side_call_failures", 1, &[("call", "retention")]);
                warn!(
                    "the retention of a log group could not be set to {} days, and is tried again: {}",
                    days,
                    error,
                    group = group
                );
                false
            }
        };
        if settled {
            if let Err(cause) = world.store(&row(group), None) {
                warn!("that a log group has its retention could not be written down: {}", cause, group = group);
            }
        }
        let next = (!settled).then(|| world.now() + PAUSE);
        self.remember(group, next);
    }

    /// Asks for it again where it is owed and due.
    pub(super) fn look_after<W: World>(&mut self, world: &W, group: &str) {
        if self.days.is_none() {
            return;
        }
        match self.next.get(group) {
            Some(None) => {}
            Some(Some(due)) if *due > world.now() => {}
            Some(Some(_)) => self.set(world, group),
            None => match world.stored(&row(group)) {
                Ok(Some(_)) => self.set(world, group),
                Ok(None) => self.remember(group, None),
                // Looked at again with the next batch.
                Err(_) => {}
            },
        }
    }

    fn remember(&mut self, group: &str, next: Option<Duration>) {
        if self.next.len() >= MAX_KNOWN && !self.next.contains_key(group) {
            self.next.clear();
        }
        self.next.insert(group.to_owned(), next);
    }
}

/// A group's name may be as long as a row's.
fn row(group: &str) -> String {
    format!("retention/{}", naming::hash(group))
}
