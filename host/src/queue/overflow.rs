//! The output's share of the disk, and what happens past it.

use std::sync::Arc;
use std::time::Duration;

use super::partitions::Dropped;
use super::{Admission, Batch, DROP_NEWEST, DROP_OLDEST, Fullness, Inner, WhenFull};
use crate::record::{ChunkId, Portion, Position};
use crate::state::StateError;

const PAUSE: Duration = Duration::from_secs(1);
/// Partitions whose cursors are moved or removed in one change of the state.
pub(super) const CURSORS_AT_ONCE: usize = 256;

impl Inner {
    /// `room` is what all outputs of the tenant together have left; none is any.
    pub(super) fn admit(
        self: &Arc<Self>,
        bytes: u64,
        records: u32,
        when_full: WhenFull,
        room: Option<u64>,
    ) -> Admission {
        let admission = self.decide(bytes, records, when_full, room);
        // What waits though the output would drop it (a replay) says nothing about what sources are told.
        let options = self.options();
        if options.max_bytes.is_some() && when_full == options.when_full {
            self.lock().turned_away = (admission == Admission::Full).then_some(bytes);
        }
        admission
    }

    /// Whether sources are turned away now: what was last refused would still be, or there is no room for anything.
    pub(super) fn fullness(&self) -> Option<Fullness> {
        let options = self.options();
        let max = options.max_bytes?;
        let books = self.lock();
        let used = books.bytes() + books.reserved;
        let nothing_fits = options.when_full == WhenFull::Block && used >= max;
        let still_refused = books.turned_away.is_some_and(|bytes| used > 0 && used.saturating_add(bytes) > max);
        (nothing_fits || still_refused).then_some(Fullness { used, max })
    }

    fn decide(self: &Arc<Self>, bytes: u64, records: u32, when_full: WhenFull, room: Option<u64>) -> Admission {
        let mut books = self.lock();
        if books.leaving {
            return Admission::Full;
        }
        let used = books.bytes() + books.reserved;
        // What is larger than the whole share comes in alone: it would wait for ever.
        let max_bytes = self.options().max_bytes;
        let over_share = |used: u64| match max_bytes {
            Some(max) if used > 0 => used.saturating_add(bytes).saturating_sub(max),
            _ => 0,
        };
        let over_room = |freed: u64| room.map_or(0, |room| bytes.saturating_sub(room.saturating_add(freed)));
        let excess = over_share(used).max(over_room(0));
        if excess == 0 {
            books.reserved += bytes;
            return Admission::Granted;
        }
        let full = |used: u64| if over_share(used) > 0 { Admission::Full } else { Admission::FullForTenant };
        match when_full {
            WhenFull::Block => full(used),
            WhenFull::DropNewest => {
                drop(books);
                self.shared.metrics.dropped(&self.output, DROP_NEWEST, u64::from(records));
                Admission::Dropped
            }
            WhenFull::DropOldest => {
                let dropped = books.drop_oldest(excess, self.shared.now());
                let left = books.bytes() + books.reserved;
                let fits = over_share(left) == 0 && over_room(used.saturating_sub(left)) == 0;
                if fits {
                    books.reserved += bytes;
                }
                drop(books);
                if !(dropped.waiting.is_empty() && dropped.batches.is_empty()) {
                    self.give_up(dropped);
                }
                // What is left is in workers' hands.
                if fits { Admission::Granted } else { full(left) }
            }
        }
    }

    /// Makes it durable that records are dropped, then gives their chunks back to the journal. On a thread that may block.
    fn give_up(self: &Arc<Self>, dropped: Dropped) {
        let queue = self.clone();
        let work = move || {
            for waiting in dropped.waiting.chunks(CURSORS_AT_ONCE) {
                queue.give_up_waiting(waiting);
            }
            for batch in &dropped.batches {
                queue.give_up_batch(batch);
            }
            queue.wake.notify_one();
            queue.room.notify_waiters();
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(work)),
            Err(_) => work(),
        }
    }

    fn give_up_waiting(&self, waiting: &[(Arc<str>, Vec<Portion>)]) {
        let upto = |(partition, portions): &(Arc<str>, Vec<Portion>)| {
            portions.last().map(|portion| (partition.clone(), portion.id))
        };
        let cursors: Vec<_> = waiting.iter().filter_map(upto).collect();
        let portions: Vec<Portion> = waiting.iter().flat_map(|(_, portions)| portions).cloned().collect();
        self.count_dropped(&portions);
        let done = self.until_written(&portions, |positions| {
            self.shared.state.skip_chunks(&self.output, &cursors, positions).map(drop)
        });
        if done {
            self.shared.release(&portions);
            let now = self.shared.now();
            let mut books = self.lock();
            cursors.iter().for_each(|(partition, _)| books.idle(partition, now));
        }
    }

    fn give_up_batch(&self, batch: &Batch) {
        self.count_dropped(&batch.portions);
        let done = self.until_written(&batch.portions, |positions| {
            self.shared.state.settle_batch(&self.output, batch.row.id, positions).map(drop)
        });
        let now = self.shared.now();
        if done {
            self.shared.release(&batch.portions);
            self.lock().ended(batch, now);
        } else {
            self.lock().not_ended(batch, now);
        }
    }

    fn count_dropped(&self, portions: &[Portion]) {
        let records = portions.iter().map(|portion| u64::from(portion.records())).sum();
        self.shared.metrics.dropped(&self.output, DROP_OLDEST, records);
    }

    /// Tries until the state takes it. Not for longer than the queue is open: what is not written is there again after a restart.
    fn until_written(
        &self,
        portions: &[Portion],
        write: impl Fn(&[(Position, ChunkId)]) -> Result<(), StateError>,
    ) -> bool {
        loop {
            let positions = self.shared.positions_in(portions);
            match write(&positions) {
                Ok(()) => {
                    self.shared.positions_kept(&positions);
                    self.say_writable();
                    return true;
                }
                Err(e) => self.say_unwritable(&e),
            }
            if self.lock().is_closed() {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
