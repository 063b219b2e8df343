//! CPU time of a guest's call: the thread's CPU time inside `poll` of the call's future. Time that the call waits costs nothing, and
//! neither does what other processes take from this one.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::fair::{Paced, Tenant};

/// How much CPU one store's current call has taken, and whose it is. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    inner: Arc<Counters>,
    tenant: Tenant,
}

#[derive(Debug, Default)]
struct Counters {
    /// Of polls that have ended, nanoseconds.
    spent: AtomicI64,
    /// The thread's CPU clock when the running poll began, nanoseconds.
    began: AtomicI64,
}

impl Meter {
    /// For calls of this tenant's outputs.
    pub(super) fn new(tenant: Tenant) -> Self {
        Self { inner: Arc::default(), tenant }
    }

    /// Forgets the last call.
    pub(super) fn reset(&self) {
        self.inner.spent.store(0, Ordering::Relaxed);
    }

    /// What the call has taken, the running poll included. Only the thread that polls may ask while a poll runs.
    pub(super) fn running(&self) -> Duration {
        self.ended().saturating_add(nanos(thread_cpu() - self.inner.began.load(Ordering::Relaxed)))
    }

    /// What all polls that have ended have taken.
    pub(super) fn ended(&self) -> Duration {
        nanos(self.inner.spent.load(Ordering::Relaxed))
    }

    /// A future that is measured, and polled in turns of its tenant: a guest that is at work when its tick ends stands behind the others then.
    pub(super) fn measure<F: Future>(&self, future: F) -> Paced<Measured<F>> {
        self.tenant.paced(Measured { meter: self.clone(), future: Box::pin(future) })
    }
}

/// A future whose polls are measured.
pub(super) struct Measured<F> {
    meter: Meter,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let began = thread_cpu();
        self.meter.inner.began.store(began, Ordering::Relaxed);
        let polled = self.future.as_mut().poll(context);
        self.meter.inner.spent.fetch_add(thread_cpu() - began, Ordering::Relaxed);
        polled
    }
}

/// CPU time of this thread, nanoseconds.
fn thread_cpu() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

fn nanos(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_inside_a_poll_is_counted_until_the_meter_is_reset() {
        let meter = Meter::new(Tenant::named(None));
        let seen = meter
            .measure(async {
                // Burns until the thread's own clock has moved, however long that takes.
                let began = thread_cpu();
                while thread_cpu() - began < 1_000_000 {
                    std::hint::spin_loop();
                }
                meter.running()
            })
            .await;
        assert!(seen >= Duration::from_millis(1));
        assert!(meter.ended() >= seen);
        meter.reset();
        assert_eq!(meter.ended(), Duration::ZERO);
    }
}
