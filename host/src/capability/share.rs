//! What several have together: so much of it in all (memory), or so much of it a second (requests, bytes).
//!
//! A [`TenantShare`] is what the outputs of one tenant have together. It is found by the tenant's name and what its limits are, so that
//! outputs which come and go with a changed configuration share with those that stay.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::limit::Reached;
use crate::config::{Limit, Limits, tenant_in};
use crate::state::Most;

/// So much in all. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: Limit,
    name: String,
    most: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: Limit, name: String, most: u64) -> Self {
        Self { inner: Arc::new(Inner { limit, name, most, used: AtomicU64::new(0) }) }
    }

    /// Takes so much more, or says why not. It is given back by whoever took it.
    pub(crate) fn take(&self, more: u64) -> Result<(), Reached> {
        let Inner { limit, name, most, used } = &*self.inner;
        let fits = |used: u64| used.checked_add(more).filter(|sum| sum <= most);
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(drop).map_err(|current| Reached {
            name: name.clone(),
            limit: *most,
            current,
            requested: more,
            unit: limit.about().unit,
        })
    }

    pub(crate) fn give_back(&self, less: u64) {
        self.inner.used.fetch_sub(less, Ordering::Relaxed);
    }

    /// How much is taken now.
    pub(crate) fn used(&self) -> u64 {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// Which limit it is.
    pub(crate) fn limit(&self) -> Limit {
        self.inner.limit
    }
}

/// So much a second, and a second's worth at once after a quiet time. What is taken ahead of time is waited for.
#[derive(Debug)]
pub(crate) struct Rate {
    limit: Limit,
    name: String,
    most: u64,
    inner: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    /// What may be taken at once; below zero where that much is owed.
    there: f64,
    filled: Instant,
}

impl Rate {
    pub(crate) fn new(limit: Limit, name: String, most: u64, now: Instant) -> Self {
        Self { limit, name, most, inner: Mutex::new(Level { there: most as f64, filled: now }) }
    }

    /// How long it takes until so much may be taken; of more than a second's worth, until a whole second's worth may.
    pub(crate) fn wait(&self, now: Instant, wanted: u64) -> Duration {
        let missing = (wanted.min(self.most) as f64 - self.level(now)).max(0.0);
        Duration::try_from_secs_f64(missing / self.most.max(1) as f64).unwrap_or(Duration::MAX)
    }

    /// Takes so much, now or ahead of time.
    pub(crate) fn take(&self, now: Instant, taken: u64) {
        self.level(now);
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).there -= taken as f64;
    }

    fn level(&self, now: Instant) -> f64 {
        let mut level = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = now.saturating_duration_since(level.filled).as_secs_f64();
        level.filled = level.filled.max(now);
        level.there = (level.there + seconds * self.most as f64).min(self.most as f64);
        level.there
    }

    pub(crate) fn reached(&self, requested: u64) -> (Limit, Reached) {
        let unit = self.limit.about().unit;
        (self.limit, Reached { name: self.name.clone(), limit: self.most, current: 0, requested, unit })
    }
}

/// What bounds HTTP requests: of an output, or of a tenant.
#[derive(Debug)]
pub(crate) struct HttpShare {
    pub(crate) requests: Rate,
    pub(crate) sent: Rate,
    pub(crate) received: Rate,
    pub(crate) places: Arc<Semaphore>,
    places_limit: (Limit, String, u64),
}

impl HttpShare {
    /// Of one output.
    pub(crate) fn of_output(limits: &Limits, output: &str) -> Self {
        use Limit::{HttpConnections, HttpReceived, HttpRequests, HttpSent};
        Self::new(limits, output, [HttpRequests, HttpSent, HttpReceived, HttpConnections])
    }

    fn of_tenant(limits: &Limits, output: &str) -> Self {
        use Limit::{TenantHttpConnections, TenantHttpReceived, TenantHttpRequests, TenantHttpSent};
        Self::new(limits, output, [TenantHttpRequests, TenantHttpSent, TenantHttpReceived, TenantHttpConnections])
    }

    fn new(limits: &Limits, output: &str, [requests, sent, received, places]: [Limit; 4]) -> Self {
        let now = Instant::now();
        let rate = |limit: Limit| Rate::new(limit, limits.place(limit, output), limits.of(limit), now);
        Self {
            requests: rate(requests),
            sent: rate(sent),
            received: rate(received),
            places: Arc::new(Semaphore::new(limits.size(places).min(Semaphore::MAX_PERMITS))),
            places_limit: (places, limits.place(places, output), limits.of(places)),
        }
    }

    /// The limit that is reached where there is no place.
    pub(crate) fn no_place(&self) -> (Limit, Reached) {
        let (limit, name, most) = &self.places_limit;
        let reached =
            Reached { name: name.clone(), limit: *most, current: *most, requested: 1, unit: limit.about().unit };
        (*limit, reached)
    }
}

/// What the outputs of one tenant have together.
#[derive(Debug)]
pub(crate) struct TenantShare {
    /// Linear memory of all stores.
    pub(crate) memory: Budget,
    /// HTTP requests.
    pub(crate) http: HttpShare,
    /// Bytes of all rows that they may hold.
    pub(crate) kept: Most,
}

/// What tenants' shares are found by: the name, and the limits that are the tenant's.
type Key = (String, Vec<u64>);

impl TenantShare {
    /// Of the tenant whose output this is; none of the operator's own.
    pub(crate) fn of(limits: &Limits, output: &str) -> Option<Arc<Self>> {
        static SHARES: Mutex<Option<HashMap<Key, Weak<TenantShare>>>> = Mutex::new(None);
        let tenant = tenant_in(output)?;
        let of_tenants = |limit: &Limit| limit.about().scope == crate::config::Scope::Tenant;
        let amounts = Limit::ALL.into_iter().filter(of_tenants).map(|limit| limits.of(limit)).collect();
        let mut shares = SHARES.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = shares.get_or_insert_default();
        shares.retain(|_, share| share.strong_count() > 0);
        let key = (tenant.to_owned(), amounts);
        if let Some(known) = shares.get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        let place = |limit| limits.place(limit, output);
        let new = Arc::new(Self {
            memory: Budget::new(Limit::TenantMemory, place(Limit::TenantMemory), limits.of(Limit::TenantMemory)),
            http: HttpShare::of_tenant(limits, output),
            kept: Most { bytes: limits.of(Limit::TenantStorage), counters: limits.of(Limit::TenantCounters) },
        });
        shares.insert(key, Arc::downgrade(&new));
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_what_would_pass_it_with_the_numbers_and_keeps_what_it_has() {
        let budget = Budget::new(Limit::TenantMemory, "tenants.a.plugin_limits.tenant_memory".into(), 100);
        budget.take(60).unwrap();
        let refused = budget.take(41).unwrap_err().to_string();
        assert_eq!(
            refused,
            "tenants.a.plugin_limits.tenant_memory is 100 bytes, 60 are in use, and 41 more were wanted"
        );
        assert!(budget.take(u64::MAX).is_err());
        budget.take(40).unwrap();
        budget.give_back(100);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_rate_lets_a_seconds_worth_pass_at_once_and_then_makes_wait() {
        let start = Instant::now();
        let rate = Rate::new(Limit::HttpRequests, "n".into(), 10, start);
        assert_eq!(rate.wait(start, 10), Duration::ZERO);
        rate.take(start, 10);
        assert_eq!(rate.wait(start, 5), Duration::from_millis(500));
        // Taken ahead: who comes next waits behind.
        rate.take(start, 5);
        assert_eq!(rate.wait(start, 5), Duration::from_secs(1));
        let later = start + Duration::from_secs(100);
        assert_eq!(rate.wait(later, 10), Duration::ZERO);
        assert_eq!(
            rate.wait(later, 1_000_000),
            Duration::ZERO,
            "more than a second's worth, once there is a second's worth"
        );
        rate.take(later, 20);
        assert_eq!(rate.wait(later, 1), Duration::from_millis(1100));
    }

    #[test]
    fn outputs_of_a_tenant_have_one_share_and_other_tenants_another() {
        let limits = Limits::default();
        let one = TenantShare::of(&limits, "share-test/a").unwrap();
        assert!(Arc::ptr_eq(&one, &TenantShare::of(&limits, "share-test/b").unwrap()));
        assert!(!Arc::ptr_eq(&one, &TenantShare::of(&limits, "share-test-2/a").unwrap()));
        assert!(TenantShare::of(&limits, "archive").is_none());
    }
}
