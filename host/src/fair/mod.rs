//! Who is next, by tenant: CPU, and work that waits for the disk.
//!
//! What costs CPU takes a *turn* first: a poll of a guest or of a connection ([`Tenant::paced`]), a job that computes ([`job`]). There are as many
//! turns as cores. While there are enough nobody waits. When there are not, the tenant that has had the least CPU for its
//! share is next ([`book`] is the rule, without threads or clocks). Work that blocks on the disk takes no turn, since it computes nothing: of each
//! tenant a few such jobs run at a time ([`Tenant::on_disk`]).
//!
//! The cores are the process's, so these books are too. What has no tenant is the operator's own, which is one tenant by itself. What each had to wait
//! for, and how long, is counted here as well ([`WaitFor`]), also by rooms that have a queue of their own.

mod book;
mod paced;
mod turns;
mod waits;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::config::{TenantConfig, tenant_in};

pub(crate) use paced::Paced;
use turns::Turns;
pub(crate) use turns::{current, job};
pub(crate) use waits::Wait;
use waits::Waits;
pub use waits::{WaitFor, Waited};

/// Jobs of one tenant that wait for the disk at a time. The state makes one change after the other, so more of them would only stand before its door,
/// where the first to come is the first to go.
const ON_DISK_AT_ONCE: usize = 4;

/// Cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Threads for the runtime: one more than there are ever turns. Whoever has a turn may keep a thread for a tick, and what needs none (sockets, timers,
/// the disk's answers, asking for a turn) must not wait behind it.
#[must_use]
pub fn runtime_threads() -> usize {
    book::ON_TOP as usize * cores() + 1
}

static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(u32::try_from(cores()).unwrap_or(1)));
static TENANTS: LazyLock<Mutex<HashMap<Option<Arc<str>>, Tenant>>> = LazyLock::new(Mutex::default);

/// Gives each tenant of a configuration its share from now on. One that is not among them keeps what it had.
pub fn set_shares(tenants: &[TenantConfig]) {
    for tenant in tenants {
        Tenant::named(Some(&tenant.name)).set_share(tenant.share);
    }
}

/// A tenant, as far as its share goes. Cheap to clone.
#[derive(Clone)]
pub struct Tenant {
    inner: Arc<Inner>,
}

struct Inner {
    name: Option<Arc<str>>,
    share: AtomicU32,
    turns: Turns,
    /// Its place in the books.
    account: usize,
    disk: Arc<Semaphore>,
    waits: Waits,
    /// CPU of the turns that it had, nanoseconds.
    cpu: AtomicU64,
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenant").field("name", &self.inner.name).field("share", &self.share()).finish_non_exhaustive()
    }
}

impl Tenant {
    /// The tenant of this name, or the operator: the same one each time.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        let mut tenants = TENANTS.lock().unwrap_or_else(PoisonError::into_inner);
        let name: Option<Arc<str>> = name.map(Into::into);
        tenants.entry(name.clone()).or_insert_with(|| Self::in_turns(name, &TURNS)).clone()
    }

    /// The tenant of a source or an output of this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self::named(tenant_in(name))
    }

    fn in_turns(name: Option<Arc<str>>, turns: &Turns) -> Self {
        let disk = Arc::new(Semaphore::new(ON_DISK_AT_ONCE));
        let account = turns.open_account();
        let (share, turns) = (AtomicU32::new(1), turns.clone());
        let (waits, cpu) = (Waits::default(), AtomicU64::new(0));
        Self { inner: Arc::new(Inner { name, share, turns, account, disk, waits, cpu }) }
    }

    /// Its name; none is the operator.
    #[must_use]
    pub fn name(&self) -> Option<&Arc<str>> {
        self.inner.name.as_ref()
    }

    /// Its part of what tenants share, as against the others'.
    #[must_use]
    pub fn share(&self) -> u32 {
        self.inner.share.load(Ordering::Relaxed)
    }

    /// From now on its share is this one (at least 1).
    pub fn set_share(&self, share: u32) {
        let share = share.max(1);
        self.inner.share.store(share, Ordering::Relaxed);
        self.inner.turns.set_share(self.inner.account, share);
    }

    /// CPU that it had in turns until now.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.inner.cpu.load(Ordering::Relaxed))
    }

    /// A future that takes a turn for each time that it is polled.
    pub(crate) fn paced<F: Future>(&self, future: F) -> Paced<F> {
        Paced::new(self.clone(), future)
    }

    /// Runs `work`, which waits for the disk more than it computes, on a thread that may block. It goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// Where it panicked, or the runtime is shutting down.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        let disk = Arc::clone(&self.inner.disk);
        let place = match Arc::clone(&disk).try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) => {
                let _waits = self.waits(WaitFor::Disk);
                // Never closed.
                disk.acquire_owned().await.ok()
            }
        };
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        })
        .await
    }
}
