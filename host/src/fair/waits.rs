//! Who is made to wait, for what, and for how long: counted where it happens, by tenant.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Tenant;

/// What something of a tenant waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// A turn: a core.
    Cpu,
    /// A place among the tenant's jobs that wait for the disk: the state, dead letters.
    Disk,
    /// Its lane's turn, for a chunk: the journal's bandwidth, and the sync that is under way.
    Journal,
    /// A destination that pushes back, or that takes no more deliveries at a time, for a batch.
    Destination,
    /// The next try of a batch that failed.
    Retry,
}

impl WaitFor {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Disk, Self::Journal, Self::Destination, Self::Retry];

    /// As metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::Journal => "journal",
            Self::Destination => "destination",
            Self::Retry => "retry",
        }
    }
}

/// How much a tenant waited for one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    /// Waits that are over.
    pub times: u64,
    /// How long those took together.
    pub took: Duration,
    /// Waits that are not over.
    pub now: u64,
}

/// What a tenant's waits add up to.
#[derive(Default)]
pub(super) struct Waits([Sum; WaitFor::ALL.len()]);

#[derive(Default)]
struct Sum {
    begun: AtomicU64,
    ended: AtomicU64,
    nanos: AtomicU64,
}

impl Waits {
    fn of(&self, what: WaitFor) -> Option<&Sum> {
        self.0.get(what as usize)
    }

    pub(super) fn so_far(&self, what: WaitFor) -> Waited {
        let Some(sum) = self.of(what) else { return Waited::default() };
        // In this order: a wait that ends in between is not taken to go on.
        let (times, begun) = (sum.ended.load(Ordering::SeqCst), sum.begun.load(Ordering::SeqCst));
        let took = Duration::from_nanos(sum.nanos.load(Ordering::SeqCst));
        Waited { times, took, now: begun.saturating_sub(times) }
    }
}

/// Something that waits. It has waited when this is dropped, whatever came of it.
pub(crate) struct Wait {
    tenant: Tenant,
    what: WaitFor,
    since: Instant,
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("tenant", &self.tenant).field("what", &self.what).finish_non_exhaustive()
    }
}

impl Tenant {
    /// Something of the tenant begins to wait.
    pub(crate) fn waits(&self, what: WaitFor) -> Wait {
        if let Some(sum) = self.inner.waits.of(what) {
            sum.begun.fetch_add(1, Ordering::SeqCst);
        }
        Wait { tenant: self.clone(), what, since: Instant::now() }
    }

    /// How much it waited for this until now.
    #[must_use]
    pub fn waited(&self, what: WaitFor) -> Waited {
        self.inner.waits.so_far(what)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(sum) = self.tenant.inner.waits.of(self.what) else { return };
        let nanos = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        sum.nanos.fetch_add(nanos, Ordering::SeqCst);
        sum.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_counted_while_it_goes_on_and_adds_up_when_it_is_over() {
        let [tenant, other] = ["waits/one", "waits/other"].map(|name| Tenant::named(Some(name)));
        let (first, second) = (tenant.waits(WaitFor::Disk), tenant.waits(WaitFor::Disk));
        assert_eq!(tenant.waited(WaitFor::Disk), Waited { now: 2, ..Waited::default() });
        std::thread::sleep(Duration::from_millis(5));
        drop(first);
        let waited = tenant.waited(WaitFor::Disk);
        assert_eq!((waited.times, waited.now), (1, 1));
        assert!(waited.took >= Duration::from_millis(5), "{waited:?}");
        drop(second);
        let waited = tenant.waited(WaitFor::Disk);
        assert_eq!((waited.times, waited.now), (2, 0));
        assert!(waited.took >= Duration::from_millis(10), "{waited:?}");
        for nothing in [tenant.waited(WaitFor::Journal), other.waited(WaitFor::Disk)] {
            assert_eq!(nothing, Waited::default());
        }
    }

    #[test]
    fn each_thing_has_a_sum_of_its_own() {
        for (number, what) in WaitFor::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, number, "{what:?}");
        }
    }
}
