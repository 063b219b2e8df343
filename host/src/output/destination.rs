//! What outputs deliver to: how much of it at a time, and when not at all.
//!
//! A destination that throttles gets half the deliveries at once and a pause; each success gives some of it back
//! (additive increase, multiplicative decrease). One that fails three times in a row with nothing delivered in between is taken to be
//! down: it is then tried with one batch at a time until one gets through. So an outage costs one probe a pause and
//! not one failure for each waiting batch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::RetryConfig;
use crate::fair::{Tenant, WaitFor};
use crate::plugin::{Failure, FailureKind};

use super::backoff;

/// Failures in a row after which a destination is taken to be down.
pub(super) const DOWN_AFTER: u32 = 3;

/// One destination, shared by all outputs of a tenant that deliver there.
#[derive(Debug)]
pub struct Destination {
    name: String,
    tenant: Tenant,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Deliveries at a time that the destination has shown it can take.
    limit: f64,
    /// Workers of all outputs that deliver here.
    most: f64,
    in_flight: u32,
    failures_in_a_row: u32,
    closed_until: Option<Instant>,
}

/// Leave to deliver once. Dropping it without a word (a stop, a panic) only gives the place back.
#[derive(Debug)]
pub(crate) struct Permit {
    destination: Arc<Destination>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.destination.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.destination.changed.notify_waiters();
    }
}

impl Destination {
    fn new(tenant: Tenant, name: String) -> Self {
        let state = State { limit: 0.0, most: 0.0, in_flight: 0, failures_in_a_row: 0, closed_until: None };
        Self { name, tenant, state: Mutex::new(state), changed: Notify::new() }
    }

    /// For messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn joined_by(&self, workers: u32) {
        self.changed_by(0, workers);
    }

    /// So many workers deliver elsewhere now, or nowhere.
    pub(crate) fn left_by(&self, workers: u32) {
        self.changed_by(workers, 0);
    }

    /// An output that delivers here has so many workers now. What the destination has shown that it can take stays known.
    pub(crate) fn changed_by(&self, before: u32, now: u32) {
        let more = f64::from(now) - f64::from(before);
        let mut state = self.lock();
        state.most = (state.most + more).max(0.0);
        state.limit = (state.limit + more.max(0.0)).min(state.most);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is a handful of numbers, whole after each line that changes it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for leave to deliver.
    pub(crate) async fn permit(self: &Arc<Self>) -> Permit {
        let mut waits = None;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = match self.try_permit(Instant::now()) {
                Ok(permit) => return permit,
                Err(until) => until,
            };
            waits.get_or_insert_with(|| self.tenant.waits(WaitFor::Destination));
            match until {
                Some(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Leave to deliver now, or from when on (none: when another delivery ends).
    fn try_permit(self: &Arc<Self>, now: Instant) -> Result<Permit, Option<Instant>> {
        let mut state = self.lock();
        if let Some(until) = state.closed_until {
            if now < until {
                return Err(Some(until));
            }
            state.closed_until = None;
        }
        let down = state.failures_in_a_row >= DOWN_AFTER;
        let allowed = if down { 1.0 } else { state.limit.max(1.0).floor() };
        if f64::from(state.in_flight) >= allowed {
            return Err(None);
        }
        state.in_flight += 1;
        Ok(Permit { destination: Arc::clone(self) })
    }

    /// Ends when a delivery has ended since this was called (not since it was first awaited).
    pub(crate) fn delivery_ends(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Whether it is taken to be down: then batches that already failed are tried before new ones.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().failures_in_a_row >= DOWN_AFTER
    }

    pub(crate) fn succeeded(&self) {
        let mut state = self.lock();
        state.failures_in_a_row = 0;
        state.closed_until = None;
        state.limit = (state.limit + 1.0 / state.limit.max(1.0)).min(state.most);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn failed(&self, failure: &Failure, retry: &RetryConfig, now: Instant, random: f64) {
        let mut state = self.lock();
        match failure.kind {
            FailureKind::Throttled | FailureKind::Transient | FailureKind::Auth => {}
            // About this batch or this configuration, not about the destination's strength.
            FailureKind::Misconfigured | FailureKind::Rejected => return,
        }
        state.failures_in_a_row = state.failures_in_a_row.saturating_add(1);
        let throttled = failure.kind == FailureKind::Throttled;
        if throttled {
            state.limit = (state.limit / 2.0).max(1.0);
        }
        if throttled || state.failures_in_a_row >= DOWN_AFTER {
            let own = backoff::wait(retry, state.failures_in_a_row, random);
            let pause = failure.retry_after.unwrap_or(own).min(retry.max.max(own));
            state.closed_until = Some(state.closed_until.map_or(now + pause, |until| until.max(now + pause)));
        }
    }
}

/// Destinations by tenant and name. What pushes one tenant back says little about another, which has its own credentials and objects; and if two shared
/// one, a tenant whose deliveries fail would take the other's turns to deliver.
#[derive(Debug, Default)]
pub struct Destinations {
    by_name: HashMap<(Option<String>, String), Weak<Destination>>,
}

impl Destinations {
    /// A tenant's destination of that name (or the operator's), the same one each time as long as somebody delivers there.
    pub fn get(&mut self, tenant: Option<&str>, name: &str) -> Arc<Destination> {
        self.by_name.retain(|_, destination| destination.strong_count() > 0);
        let key = (tenant.map(ToOwned::to_owned), name.to_owned());
        if let Some(known) = self.by_name.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let made = Arc::new(Destination::new(Tenant::named(tenant), name.to_owned()));
        self.by_name.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn retry() -> RetryConfig {
        RetryConfig { max_age: Duration::from_secs(60), initial: Duration::from_secs(1), max: Duration::from_secs(60) }
    }

    fn failure(kind: FailureKind, retry_after: Option<Duration>) -> Failure {
        Failure { kind, message: String::new(), retry_after }
    }

    fn with_workers(workers: u32) -> Arc<Destination> {
        let destination = Destinations::default().get(None, "s3://bucket");
        destination.joined_by(workers);
        destination
    }

    #[test]
    fn every_worker_may_deliver_while_all_is_well() {
        let destination = with_workers(2);
        let now = Instant::now();
        let first = destination.try_permit(now);
        let second = destination.try_permit(now);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(destination.try_permit(now).unwrap_err(), None);
        drop(first);
        assert!(destination.try_permit(now).is_ok());
    }

    #[test]
    fn throttling_halves_what_goes_at_once_and_pauses_as_the_service_asked() {
        let destination = with_workers(4);
        let now = Instant::now();
        destination.failed(&failure(FailureKind::Throttled, Some(Duration::from_secs(7))), &retry(), now, 1.0);
        assert_eq!(destination.try_permit(now).unwrap_err(), Some(now + Duration::from_secs(7)));
        let later = now + Duration::from_secs(7);
        let permits: Vec<_> = (0..4).map(|_| destination.try_permit(later)).filter_map(Result::ok).collect();
        assert_eq!(permits.len(), 2);
    }

    #[test]
    fn success_gives_strength_back_slowly() {
        let destination = with_workers(4);
        let now = Instant::now();
        destination.failed(&failure(FailureKind::Throttled, Some(Duration::ZERO)), &retry(), now, 1.0);
        let at_once =
            |d: &Arc<Destination>| (0..9).map(|_| d.try_permit(now)).filter_map(Result::ok).collect::<Vec<_>>().len();
        assert_eq!(at_once(&destination), 2);
        for _ in 0..3 {
            destination.succeeded();
        }
        assert_eq!(at_once(&destination), 3);
        for _ in 0..20 {
            destination.succeeded();
        }
        assert_eq!(at_once(&destination), 4);
    }

    #[test]
    fn three_failures_in_a_row_leave_one_probe_and_a_growing_pause() {
        let destination = with_workers(4);
        let now = Instant::now();
        let auth = failure(FailureKind::Auth, None);
        for _ in 0..2 {
            destination.failed(&auth, &retry(), now, 1.0);
        }
        assert!(!destination.is_down());
        destination.failed(&auth, &retry(), now, 1.0);
        assert!(destination.is_down());
        assert_eq!(destination.try_permit(now).unwrap_err(), Some(now + Duration::from_secs(4)));
        let later = now + Duration::from_secs(4);
        let probe = destination.try_permit(later);
        assert!(probe.is_ok());
        assert_eq!(destination.try_permit(later).unwrap_err(), None);
        destination.succeeded();
        assert!(destination.try_permit(later).is_ok());
    }

    #[test]
    fn what_a_destination_has_shown_stays_known_when_other_workers_take_over() {
        let destination = with_workers(4);
        let now = Instant::now();
        destination.failed(&failure(FailureKind::Throttled, Some(Duration::ZERO)), &retry(), now, 1.0);
        let at_once = || (0..9).map(|_| destination.try_permit(now)).filter_map(Result::ok).collect::<Vec<_>>().len();
        for (before, workers, most) in [(4, 4, 2), (4, 6, 4), (6, 1, 1)] {
            destination.changed_by(before, workers);
            assert_eq!(at_once(), most, "{before} to {workers}");
        }
    }

    #[test]
    fn a_fault_of_one_batch_does_not_slow_the_destination() {
        let destination = with_workers(1);
        for _ in 0..9 {
            destination.failed(&failure(FailureKind::Misconfigured, None), &retry(), Instant::now(), 1.0);
        }
        assert!(!destination.is_down());
    }

    #[test]
    fn the_same_name_is_the_same_destination_of_one_tenant() {
        let mut all = Destinations::default();
        let (own, acme) = (all.get(None, "a"), all.get(Some("acme"), "a"));
        assert!(Arc::ptr_eq(&own, &all.get(None, "a")));
        assert!(!Arc::ptr_eq(&own, &all.get(None, "b")));
        assert!(Arc::ptr_eq(&acme, &all.get(Some("acme"), "a")));
        assert!(!Arc::ptr_eq(&acme, &all.get(Some("globex"), "a")));
        assert!(!Arc::ptr_eq(&acme, &own));
    }
}
