//! What a store may take of the host: linear memory in sum, tables, handles, and what a call may hand over.

use wasmtime::{Error, ResourceLimiter, Result};

/// Elements of all tables of a store.
pub(super) const TABLE_ELEMENTS: usize = 20_000;
/// Handles of host objects that a guest may hold, its own bookkeeping of borrows included.
pub(super) const HANDLES: usize = 1024;
/// Bytes that the host copies out of a guest in one call or one answer. The largest honest one is a body of the guest's own
/// ([`OWN_BODY_BYTES`](crate::capability::OWN_BODY_BYTES)); what goes past that is told so, and what goes past this ends the guest.
pub(super) const LIFTED_BYTES: usize = 2 * crate::capability::OWN_BODY_BYTES;
/// Core instances, tables and memories of a store: one component, with its language's adapters. The component itself counts as well.
const INSTANCES: usize = super::engine::CORE_INSTANCES as usize + 1;
const TABLES: usize = 16;
const MEMORIES: usize = 2;

/// Counts what one store takes. `wasmtime::StoreLimits` bounds each memory; this bounds their sum.
#[derive(Debug)]
pub(super) struct Limiter {
    max_memory: usize,
    memory: usize,
    elements: usize,
    granted: usize,
    denied: Option<Denied>,
}

/// A growth that was refused. The guest's own trap says only `unreachable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) what: &'static str,
    pub(super) wanted: usize,
    pub(super) limit: usize,
}

impl Limiter {
    pub(super) fn new(max_memory_bytes: u64) -> Self {
        let max_memory = usize::try_from(max_memory_bytes).unwrap_or(usize::MAX);
        Self { max_memory, memory: 0, elements: 0, granted: 0, denied: None }
    }

    /// Bytes of all linear memories, which never shrink.
    pub(super) fn memory(&self) -> u64 {
        self.memory as u64
    }

    /// The last growth that was refused since the call began.
    pub(super) fn denied(&self) -> Option<Denied> {
        self.denied
    }

    /// A call begins: what was refused before has nothing to do with how it ends.
    pub(super) fn begin_call(&mut self) {
        self.denied = None;
    }

    fn deny(&mut self, what: &'static str, wanted: usize, limit: usize) -> bool {
        self.denied = Some(Denied { what, wanted, limit });
        false
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let delta = desired.saturating_sub(current);
        let sum = self.memory.saturating_add(delta);
        // A memory's own declared maximum is the guest's affair: growing past it fails without being a limit of ours.
        if maximum.is_some_and(|maximum| desired > maximum) && sum <= self.max_memory {
            return Ok(false);
        }
        if sum > self.max_memory {
            return Ok(self.deny("bytes of memory", sum, self.max_memory));
        }
        self.memory = sum;
        self.granted = delta;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        tracing::debug!(error = format!("{error:#}"), "a plugin's memory could not grow");
        self.memory = self.memory.saturating_sub(std::mem::take(&mut self.granted));
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let sum = self.elements.saturating_add(desired.saturating_sub(current));
        if sum > TABLE_ELEMENTS {
            return Ok(self.deny("table elements", sum, TABLE_ELEMENTS));
        }
        self.elements = sum;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_memories_together_stay_under_the_limit() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.denied(), Some(Denied { what: "bytes of memory", wanted: 120, limit: 100 }));
        assert!(limiter.memory_growing(60, 100, None).unwrap());
    }

    #[test]
    fn a_growth_that_failed_later_is_given_back() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 80, None).unwrap());
        limiter.memory_grow_failed(Error::msg("no room")).unwrap();
        assert!(limiter.memory_growing(0, 100, None).unwrap());
    }

    #[test]
    fn tables_are_counted_in_sum() {
        let mut limiter = Limiter::new(0);
        assert!(limiter.table_growing(0, 15_000, None).unwrap());
        assert!(!limiter.table_growing(0, 5_001, None).unwrap());
        assert!(limiter.table_growing(0, 5_000, None).unwrap());
    }

    #[test]
    fn a_new_call_starts_without_an_old_refusal() {
        let mut limiter = Limiter::new(1);
        assert!(!limiter.memory_growing(0, 2, None).unwrap());
        limiter.begin_call();
        assert_eq!(limiter.denied(), None);
    }
}
