//! The turns themselves: the book under its lock, jobs on threads that may compute.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::book::{Book, Kind};
use super::paced::Ticket;
use super::{Tenant, Wait, WaitFor};

thread_local! {
    /// The tenant whose turn this thread has.
    static CURRENT: RefCell<Option<Tenant>> = const { RefCell::new(None) };
}

type Begin = Box<dyn FnOnce(Duration) + Send>;

/// What waits for a turn.
pub(super) struct Waiter {
    work: Work,
    /// For as long as it waits.
    wait: Wait,
}

enum Work {
    /// A future, to be polled again.
    Future(Arc<Ticket>),
    /// A job, to be begun, with the time at which it was granted its turn.
    Job(Begin),
}

/// The turns of a process. Cheap to clone.
#[derive(Clone)]
pub(super) struct Turns {
    book: Arc<Mutex<Book<Waiter>>>,
    since: Instant,
}

/// A turn. It ends when it is dropped, and is paid for with the thread's CPU time inside it.
pub(super) struct Turn {
    tenant: Tenant,
    granted: Duration,
    cpu: Duration,
}

impl Turns {
    pub(super) fn new(places: u32) -> Self {
        Self { book: Arc::new(Mutex::new(Book::new(places))), since: Instant::now() }
    }

    pub(super) fn open_account(&self) -> usize {
        self.book().open()
    }

    pub(super) fn set_share(&self, account: usize, share: u32) {
        self.book().set_share(account, share);
    }

    /// The book is whole after each of its calls.
    fn book(&self) -> MutexGuard<'_, Book<Waiter>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Begins those whose turn it is.
    fn give_out(&self, mut book: MutexGuard<'_, Book<Waiter>>) {
        let now = self.now();
        let (mut wakers, mut jobs, mut waits) = (vec![], vec![], vec![]);
        while let Some((_, Waiter { work, wait })) = book.next(now) {
            waits.push(wait);
            match work {
                Work::Future(ticket) => wakers.extend(ticket.grant(now)),
                Work::Job(begin) => jobs.push(begin),
            }
        }
        drop(book);
        drop(waits);
        wakers.into_iter().for_each(Waker::wake);
        jobs.into_iter().for_each(|begin| begin(now));
    }
}

impl Tenant {
    /// A turn, if there is one now; else what `ticket` gives waits for one.
    pub(super) fn ask(&self, ticket: impl FnOnce() -> Arc<Ticket>) -> Option<Turn> {
        let turns = &self.inner.turns;
        let now = turns.now();
        let waiter = |()| Waiter { work: Work::Future(ticket()), wait: self.waits(WaitFor::Cpu) };
        let at_once = turns.book().ask(self.inner.account, Kind::Poll, now, (), waiter);
        at_once.map(|()| self.granted(now))
    }

    /// The turn that a ticket was granted.
    pub(super) fn granted(&self, at: Duration) -> Turn {
        Turn { tenant: self.clone(), granted: at, cpu: Duration::ZERO }
    }

    /// The ticket's owner does not wait any more. A turn that it was granted goes to another.
    pub(super) fn give_up(&self, ticket: &Arc<Ticket>) {
        let turns = &self.inner.turns;
        let mut book = turns.book();
        match ticket.granted() {
            Some(at) => {
                drop(book);
                drop(self.granted(at));
            }
            None => {
                book.forget(
                    self.inner.account,
                    |waiter| matches!(&waiter.work, Work::Future(other) if Arc::ptr_eq(other, ticket)),
                );
            }
        }
    }

    fn run(&self, work: impl FnOnce() + Send + 'static) {
        let turns = &self.inner.turns;
        let tenant = self.clone();
        let Ok(runtime) = Handle::try_current() else { return };
        let begin: Begin = Box::new(move |now| {
            // The job has it, so that it also ends where the runtime is shutting down and drops the job.
            let turn = tenant.granted(now);
            runtime.spawn_blocking(move || turn.with(work));
        });
        let now = turns.now();
        let waiter = |begin| Waiter { work: Work::Job(begin), wait: self.waits(WaitFor::Cpu) };
        let begin = turns.book().ask(self.inner.account, Kind::Job, now, begin, waiter);
        if let Some(begin) = begin {
            begin(now);
        }
    }
}

impl Turn {
    /// Does work in this turn.
    pub(super) fn with<T>(mut self, work: impl FnOnce() -> T) -> T {
        /// Puts back whose turn it was, and adds the CPU up, also after a panic.
        struct Reset<'a>(Option<Tenant>, Duration, &'a mut Duration);
        impl Drop for Reset<'_> {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|current| *current = self.0.take());
                *self.2 += thread_cpu().saturating_sub(self.1);
            }
        }
        let before = CURRENT.with_borrow_mut(|current| current.replace(self.tenant.clone()));
        let reset = Reset(before, thread_cpu(), &mut self.cpu);
        let done = work();
        drop(reset);
        done
    }
}

#[cfg(test)]
impl Turn {
    /// Ends it, and takes it to have cost so much.
    pub(super) fn costs(mut self, cpu: Duration) {
        self.cpu = cpu;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let turns = &self.tenant.inner.turns;
        let nanos = u64::try_from(self.cpu.as_nanos()).unwrap_or(u64::MAX);
        self.tenant.inner.cpu.fetch_add(nanos, Ordering::Relaxed);
        let mut book = turns.book();
        book.end(self.tenant.inner.account, self.granted, self.cpu);
        turns.give_out(book);
    }
}

/// CPU time of this thread.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The tenant in whose turn this is called, or the operator.
pub(crate) fn current() -> Tenant {
    turn_of().unwrap_or_else(|| Tenant::named(None))
}

/// The tenant in whose turn this is called.
pub(super) fn turn_of() -> Option<Tenant> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work`, which computes for long, on a thread that may: in a turn of the tenant in whose turn this is called, or in none. It is not begun any
/// more when nobody waits for it.
///
/// # Errors
/// Where the runtime is shutting down. A panic in `work` goes on in the caller.
pub(crate) async fn job<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ShuttingDown> {
    let (done, mut hears) = oneshot::channel();
    let work = move || {
        if !done.is_closed() {
            // Whoever does not wait any more does not want to know.
            let _ = done.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
        }
    };
    match turn_of() {
        Some(tenant) => tenant.run(work),
        None => drop(tokio::task::spawn_blocking(work)),
    }
    match (&mut hears).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => Err(ShuttingDown),
    }
}

/// The runtime takes no jobs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host is shutting down")]
pub(crate) struct ShuttingDown;
