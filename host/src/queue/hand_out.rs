//! Batches on their way to workers, and back.

use std::sync::Arc;
use std::time::Duration;

use super::ledger::lock;
use super::partitions::{Next, Plan};
use super::{Batch, Inner};
use crate::fair::Tenant;
use crate::state::StateError;

/// How long recording waits after it failed.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest sleep without a look at the clock, which may have been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

impl Inner {
    pub(super) async fn next_batch(self: &Arc<Self>) -> Option<Batch> {
        // Whoever was woken, or was the one to sleep until the next partition is due, leaves that to another when it goes.
        let _baton = Baton(self);
        loop {
            let woken = self.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let now = self.shared.now();
            let next = self.lock().next(now);
            let until = match next {
                Next::Batch(batch) => return Some(batch),
                Next::Ended => return None,
                Next::Plan(plan) => {
                    let writing = Writing { queue: self.clone(), plan: Some(plan) };
                    // Goes on when this worker does not wait for it any more: the batch is then there for the next.
                    let _ = Tenant::of(&self.output).on_disk(move || writing.write()).await;
                    continue;
                }
                Next::Wait(until) => until,
            };
            let pause = until.map_or(LONGEST_SLEEP, |until| {
                Duration::from_nanos(u64::try_from(until.saturating_sub(now)).unwrap_or(0)).min(LONGEST_SLEEP)
            });
            tokio::select! {
                () = &mut woken => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    pub(super) fn settle(&self, batch: &Batch) -> Result<(), StateError> {
        let positions = self.shared.positions_in(&batch.portions);
        self.shared.state.settle_batch(&self.output, batch.row.id, &positions)?;
        self.shared.positions_kept(&positions);
        if self.lock().settled(batch, self.shared.now()) {
            self.shared.release(&batch.portions);
            self.room.notify_waiters();
            if self.options().in_order {
                // The partition's next batch may go, or there is none any more.
                self.wake.notify_one();
            }
        }
        Ok(())
    }
}

struct Baton<'a>(&'a Inner);

impl Drop for Baton<'_> {
    fn drop(&mut self) {
        self.0.wake.notify_one();
    }
}

/// A plan that is being recorded. Whatever happens to the thread, the plan's portions do not get lost.
struct Writing {
    queue: Arc<Inner>,
    plan: Option<Plan>,
}

impl Writing {
    fn write(mut self) {
        let Some(plan) = &self.plan else { return };
        let shared = &self.queue.shared;
        let positions = shared.positions_in(&plan.portions);
        match shared.state.close_batch(&plan.row, &positions) {
            Ok(_) => {
                shared.positions_kept(&positions);
                if let Some(plan) = self.plan.take() {
                    let now = shared.now();
                    lock(&self.queue.books).written(plan, now);
                }
                self.queue.say_writable();
                self.queue.wake.notify_one();
            }
            Err(e) => self.queue.say_unwritable(&e),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.queue.lock().not_written(plan, PAUSE);
            self.queue.wake.notify_one();
        }
    }
}
