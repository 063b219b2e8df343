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
