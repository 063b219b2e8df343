//! A future that takes a turn for each poll.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::Tenant;
use super::turns::turn_of;

/// A future's place among those that wait for a turn.
pub(super) struct Ticket {
    state: Mutex<State>,
}

enum State {
    Waits(Waker),
    /// Since then.
    Granted(Duration),
}

impl Ticket {
    fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Waits(waker)) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has a turn from now on; gives who is to be woken.
    pub(super) fn grant(&self, now: Duration) -> Option<Waker> {
        match std::mem::replace(&mut *self.lock(), State::Granted(now)) {
            State::Waits(waker) => Some(waker),
            State::Granted(_) => None,
        }
    }

    /// Since when it has a turn.
    pub(super) fn granted(&self) -> Option<Duration> {
        match &*self.lock() {
            State::Waits(_) => None,
            State::Granted(at) => Some(*at),
        }
    }

    /// The same, or who is to be woken when it has.
    fn granted_or_wake(&self, waker: &Waker) -> Option<Duration> {
        match &mut *self.lock() {
            State::Granted(at) => Some(*at),
            State::Waits(old) => {
                old.clone_from(waker);
                None
            }
        }
    }
}

/// See [`Tenant::paced`]. Inside another one, whose turn it has then, it takes none.
pub(crate) struct Paced<F> {
    tenant: Tenant,
    waiting: Option<Arc<Ticket>>,
    future: Pin<Box<F>>,
}

impl<F> Paced<F> {
    pub(super) fn new(tenant: Tenant, future: F) -> Self {
        Self { tenant, waiting: None, future: Box::pin(future) }
    }
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let turn = match &this.waiting {
            // Waiting for a turn with one in hand could be for ever.
            None if turn_of().is_some() => return this.future.as_mut().poll(context),
            None => {
                let mut waiting = None;
                let turn = this.tenant.ask(|| Arc::clone(waiting.insert(Ticket::new(context.waker().clone()))));
                this.waiting = waiting;
                turn
            }
            Some(ticket) => ticket.granted_or_wake(context.waker()).map(|at| this.tenant.granted(at)),
        };
        let Some(turn) = turn else { return Poll::Pending };
        this.waiting = None;
        turn.with(|| this.future.as_mut().poll(context))
    }
}

impl<F> Drop for Paced<F> {
    fn drop(&mut self) {
        if let Some(ticket) = self.waiting.take() {
            self.tenant.give_up(&ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;
    use futures_util::poll;

    use super::super::WaitFor;
    use super::super::turns::{Turn, Turns, current, job};
    use super::*;

    /// Two tenants that share one core; the first has had much of it already.
    fn two() -> [Tenant; 2] {
        let turns = Turns::new(1);
        let tenants = ["a", "b"].map(|name| Tenant::in_turns(Some(name.into()), &turns));
        hold(&tenants[0]).costs(Duration::from_secs(1));
        tenants
    }

    /// Takes a turn and keeps it until it is dropped.
    fn hold(tenant: &Tenant) -> Turn {
        tenant.ask(|| Ticket::new(Waker::noop().clone())).unwrap()
    }

    #[tokio::test]
    async fn a_poll_waits_for_a_turn_and_is_woken_when_there_is_one() {
        let [a, b] = two();
        let held = hold(&b);
        let mut waits = a.paced(ready(7));
        assert_eq!(poll!(&mut waits), Poll::Pending);
        let counted = |tenant: &Tenant| {
            let waited = tenant.waited(WaitFor::Cpu);
            (waited.now, waited.times)
        };
        assert_eq!((counted(&a), counted(&b)), ((1, 0), (0, 0)));
        drop(held);
        assert_eq!(waits.await, 7);
        assert_eq!((counted(&a), counted(&b)), ((0, 1), (0, 0)), "who had its turn at once did not wait");
    }

    #[tokio::test]
    async fn what_turns_cost_is_added_up_for_the_tenant_that_had_them() {
        let [a, b] = two();
        assert_eq!((a.cpu(), b.cpu()), (Duration::from_secs(1), Duration::ZERO));
        hold(&b).costs(Duration::from_millis(3));
        hold(&b).costs(Duration::from_millis(4));
        assert_eq!(b.cpu(), Duration::from_millis(7));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_leaves_the_turn_to_another() {
        let [a, b] = two();
        let held = hold(&b);
        let (mut first, mut second) = (a.paced(ready(1)), a.paced(ready(2)));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        assert_eq!(a.waited(WaitFor::Cpu).now, 2);
        // Granted, but not polled again before it is dropped.
        drop(held);
        drop(first);
        assert_eq!(second.await, 2);
        let held = hold(&b);
        let mut third = a.paced(ready(3));
        assert!(poll!(&mut third).is_pending());
        drop(third);
        assert_eq!((a.waited(WaitFor::Cpu).now, a.waited(WaitFor::Cpu).times), (0, 3), "who gave up waited as well");
        drop(held);
        assert_eq!(hold(&b).with(|| 4), 4);
    }

    #[tokio::test]
    async fn a_future_that_waits_for_something_else_keeps_no_turn() {
        let [a, _] = two();
        let mut waiting: Vec<_> = (0..10).map(|_| a.paced(pending::<()>())).collect();
        for future in &mut waiting {
            assert!(poll!(future).is_pending());
        }
        assert_eq!(a.paced(ready(1)).now_or_never(), Some(1));
    }

    #[tokio::test]
    async fn what_is_begun_in_a_turn_is_of_its_tenant_and_takes_no_second_turn_in_it() {
        let [a, b] = two();
        let told = a.paced(async {
            let of_inner = b.paced(async { current().name().cloned() }).now_or_never();
            (current().name().cloned(), of_inner)
        });
        let name: Option<Arc<str>> = Some("a".into());
        assert_eq!(told.await, (name.clone(), Some(name.clone())));
        let of_job = a.paced(async { job(|| current().name().cloned()).await });
        assert_eq!(of_job.await, Ok(name));
        assert_eq!(job(|| 5).await, Ok(5), "outside of any turn it is begun at once");
    }

    #[tokio::test]
    async fn many_jobs_of_one_tenant_and_few_of_another_all_end() {
        let [a, b] = two();
        let many: Vec<_> = (0..200).map(|n| tokio::spawn(a.paced(async move { job(move || n).await }))).collect();
        for n in 0..20 {
            assert_eq!(b.paced(async move { job(move || n).await }).await, Ok(n));
        }
        for (n, it) in many.into_iter().enumerate() {
            assert_eq!(it.await.unwrap(), Ok(n));
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_job_goes_on_in_the_caller_and_its_turn_ends() {
        let [a, _] = two();
        for _ in 0..5 {
            let panics = std::panic::AssertUnwindSafe(a.paced(async { job(|| -> u32 { panic!("a bug") }).await }));
            assert!(panics.catch_unwind().await.is_err());
        }
        assert_eq!(a.paced(async { job(|| 1).await }).await, Ok(1));
    }
}
