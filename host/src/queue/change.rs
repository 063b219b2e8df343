//! What a new configuration does to a queue that is at work: other limits at once; an end, for an output that is removed or whose records are
//! kept apart by other fields from now on.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::parked::discard;
use super::{Kept, Ledger, Queue, QueueOptions};
use crate::state::StateError;

/// How often it is looked whether what was granted room has come to its end.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl Queue {
    /// Its settings.
    #[must_use]
    pub fn options(&self) -> Arc<QueueOptions> {
        self.inner.options()
    }

    /// Whether [`Queue::change`] can take these settings: open batches and what waits were kept apart as the old ones say.
    #[must_use]
    pub fn can_become(&self, options: &QueueOptions) -> bool {
        let now = self.inner.options();
        now.partition_by == options.partition_by && now.in_order == options.in_order
    }

    /// Other limits, from now on. What is closed stays as it is. Only where [`Queue::can_become`] says so.
    pub fn change(&self, options: QueueOptions) {
        let limits = options.limits;
        *self.inner.options.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
        let now = self.inner.shared.now();
        let mut books = self.inner.lock();
        books.set_limits(limits, now);
        books.turned_away = None;
        drop(books);
        // What waits may be due earlier now, or have room.
        self.inner.wake.notify_one();
        self.inner.room.notify_waiters();
    }

    /// Takes nothing in any more, and waits until what had been granted room is here, or has given it back. Whether that came in `time`;
    /// where not, or where it is not to leave after all, see [`Queue::stay`].
    pub async fn leave(&self, time: Duration) -> bool {
        self.inner.lock().leaving = true;
        self.inner.room.notify_waiters();
        let arrived = async {
            while self.inner.lock().reserved > 0 {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(time, arrived).await.is_ok()
    }

    /// Whether it takes nothing in any more: what waits for room in it looks for its queues anew.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.inner.lock().leaving
    }

    /// It does not leave.
    pub fn stay(&self) {
        self.inner.lock().leaving = false;
        self.inner.wake.notify_one();
    }

    /// What is undelivered.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let books = self.inner.lock();
        Kept { output: self.output().clone(), records: books.records(), bytes: books.bytes() }
    }

    /// Drops everything: counted, and gone from the journal. The queue must have been left, and its workers have ended. Sequences and the
    /// plugin's rows stay. Gives what it was. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state could not be written; what is not written is there again after the next start.
    pub fn discard(&self) -> Result<Kept, StateError> {
        // A batch that is being recorded at this moment is there in a moment, or is in the books as it was.
        while self.inner.lock().is_writing() {
            std::thread::sleep(LOOK_EVERY);
        }
        let kept = self.kept();
        let dropped = self.inner.lock().take_all();
        discard(&self.inner.shared, self.output(), &dropped)?;
        Ok(kept)
    }
}

impl Ledger {
    /// From now on the queue hears of commits. One of the same output that left goes.
    pub fn take_in(&self, queue: &Queue) {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|known| known.output() != queue.output());
        queues.push(queue.clone());
    }

    /// A queue that left, and is empty, is no more. Its batches' numbers go on where another one of its name comes.
    pub fn remove(&self, queue: &Queue) {
        self.park_number(queue);
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|known| known.output() != queue.output());
    }
}
