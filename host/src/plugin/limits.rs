//! What a store may take of the host: linear memory, by itself, with its tenant's others, and with all; tables; handles; and what a call may
//! hand over.

use std::sync::Arc;

use wasmtime::{Error, ResourceLimiter, Result};

use crate::capability::share::Budget;
use crate::capability::{OWN_BODY_BYTES, Reached, Services};
use crate::config::{Limit, Limits};

/// Core instances, tables and memories of a store: one component, with its language's adapters. The component itself counts as well.
const INSTANCES: usize = super::engine::CORE_INSTANCES as usize + 1;
const TABLES: usize = 16;
const MEMORIES: usize = 2;

/// Bytes that the host copies out of a guest in one call or one answer. The largest honest one is a body of the guest's own; what goes past
/// that is told so, and what goes past this ends the guest. So there is always room for one, with its lists around it.
pub(super) fn call_bytes(limits: &Limits) -> usize {
    limits.size(Limit::CallBytes).max(OWN_BODY_BYTES + (64 << 10))
}

/// Counts what one store takes. `wasmtime::StoreLimits` bounds each memory; this bounds their sum, and the sum of all stores.
#[derive(Debug)]
pub(super) struct Limiter {
    services: Arc<Services>,
    memory: u64,
    elements: u64,
    granted: u64,
    /// What this store shares with others, first the tenant's.
    budgets: Vec<Budget>,
    /// The pool's places are no larger than this.
    most_memory: u64,
    denied: Option<(Limit, Reached)>,
}

impl Limiter {
    /// A store of an output with these services. `all` is what all stores have together, `most_memory` what one can have here at all.
    pub(super) fn new(services: Arc<Services>, all: &Budget, most_memory: u64) -> Self {
        let tenant = services.tenant().map(|tenant| tenant.memory.clone());
        let budgets = tenant.into_iter().chain([all.clone()]).collect();
        Self { services, memory: 0, elements: 0, granted: 0, budgets, most_memory, denied: None }
    }

    /// Bytes of all linear memories, which never shrink.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// The last growth that was refused since the call began. The guest's own trap says only `unreachable`.
    pub(super) fn denied(&self) -> Option<&(Limit, Reached)> {
        self.denied.as_ref()
    }

    /// A call begins: what was refused before has nothing to do with how it ends.
    pub(super) fn begin_call(&mut self) {
        self.denied = None;
    }

    /// Bytes of linear memory that this store may have.
    fn max_memory(&self) -> u64 {
        self.services.limits().of(Limit::Memory).min(self.most_memory)
    }

    fn deny(&mut self, limit: Limit, current: u64, requested: u64) -> bool {
        let reached = self.services.reached(limit, current, requested);
        let reached = if limit == Limit::Memory { Reached { limit: self.max_memory(), ..reached } } else { reached };
        self.denied = Some((limit, reached));
        false
    }

    /// Takes from every budget, or from none.
    fn take(&mut self, more: u64) -> bool {
        for (number, budget) in self.budgets.iter().enumerate() {
            let Err(reached) = budget.take(more) else { continue };
            self.budgets.iter().take(number).for_each(|taken| taken.give_back(more));
            self.services.count_reached(budget.limit());
            self.denied = Some((budget.limit(), reached));
            return false;
        }
        true
    }

    fn give_back(&self, less: u64) {
        self.budgets.iter().for_each(|budget| budget.give_back(less));
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        self.give_back(self.memory);
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let (sum, most) = (self.memory.saturating_add(more), self.max_memory());
        // A memory's own declared maximum is the guest's affair: growing past it fails without being a limit of ours.
        if maximum.is_some_and(|maximum| desired > maximum) && sum <= most {
            return Ok(false);
        }
        if sum > most {
            return Ok(self.deny(Limit::Memory, self.memory, more));
        }
        if !self.take(more) {
            return Ok(false);
        }
        self.memory = sum;
        self.granted = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        tracing::debug!(error = format!("{error:#}"), "a plugin's memory could not grow");
        let granted = std::mem::take(&mut self.granted);
        self.memory = self.memory.saturating_sub(granted);
        self.give_back(granted);
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let sum = self.elements.saturating_add(more);
        if sum > self.services.limits().of(Limit::TableElements) {
            return Ok(self.deny(Limit::TableElements, self.elements, more));
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
    use crate::config::Level;

    fn all(most: u64) -> Budget {
        Budget::new(Limit::TotalMemory, "plugins.limits.total_memory".into(), most)
    }

    fn limiter(output: &str, memory: u64, all: &Budget) -> Limiter {
        let services = Services::detached(output.into());
        let limits = Limits::default().with(Limit::Memory, memory, Level::Plugins);
        services.limited_by(&Arc::new(limits.with(Limit::TenantMemory, 100, Level::Tenant)));
        Limiter::new(services, all, u64::MAX)
    }

    fn told(limiter: &Limiter) -> String {
        limiter.denied().map(|(_, reached)| reached.to_string()).unwrap_or_default()
    }

    #[test]
    fn two_memories_together_stay_under_the_limit() {
        let mut limiter = limiter("o", 100, &all(1000));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(told(&limiter), "plugins.limits.max_memory is 100 bytes, 60 are in use, and 60 more were wanted");
        assert!(limiter.memory_growing(60, 100, None).unwrap());
    }

    #[test]
    fn a_growth_that_failed_later_is_given_back() {
        let all = all(100);
        let mut limiter = limiter("o", 100, &all);
        assert!(limiter.memory_growing(0, 80, None).unwrap());
        limiter.memory_grow_failed(Error::msg("no room")).unwrap();
        assert_eq!(all.used(), 0);
        assert!(limiter.memory_growing(0, 100, None).unwrap());
    }

    #[test]
    fn stores_of_a_tenant_and_all_stores_have_a_limit_together_and_give_back_what_they_had() {
        let all = all(150);
        let mut one = limiter("limiter-test/a", 80, &all);
        let mut two = limiter("limiter-test/b", 80, &all);
        let mut other = limiter("o", 80, &all);
        assert!(one.memory_growing(0, 80, None).unwrap());
        assert!(!two.memory_growing(0, 21, None).unwrap());
        let key = "tenants.limiter-test.plugin_limits.tenant_memory";
        assert_eq!(told(&two), format!("{key} is 100 bytes, 80 are in use, and 21 more were wanted"));
        assert!(two.memory_growing(0, 20, None).unwrap());
        assert!(!other.memory_growing(0, 51, None).unwrap());
        assert_eq!(told(&other), "plugins.limits.total_memory is 150 bytes, 100 are in use, and 51 more were wanted");
        drop(one);
        assert_eq!(all.used(), 20);
        assert!(other.memory_growing(0, 51, None).unwrap());
        drop((two, other));
        assert_eq!(all.used(), 0);
    }

    #[test]
    fn tables_are_counted_in_sum() {
        let mut limiter = limiter("o", 0, &all(0));
        assert!(limiter.table_growing(0, 15_000, None).unwrap());
        assert!(!limiter.table_growing(0, 5_001, None).unwrap());
        let key = "plugins.limits.table_elements";
        assert_eq!(
            told(&limiter),
            format!("{key} is 20000 table elements, 15000 are in use, and 5001 more were wanted")
        );
        assert!(limiter.table_growing(0, 5_000, None).unwrap());
    }

    #[test]
    fn a_new_call_starts_without_an_old_refusal() {
        let mut limiter = limiter("o", 1, &all(1));
        assert!(!limiter.memory_growing(0, 2, None).unwrap());
        limiter.begin_call();
        assert_eq!(limiter.denied(), None);
    }
}
