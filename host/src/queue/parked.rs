//! What is kept for outputs that are not configured: nobody delivers it and nobody drops it, until an output of that name comes, or the
//! operator says that it is to be discarded.

use std::collections::HashMap;
use std::sync::Arc;

use super::ledger::{Shared, lock};
use super::overflow::CURSORS_AT_ONCE;
use super::partitions::Dropped;
use super::{Batch, DISCARDED, Ledger, Queue, QueueOptions};
use crate::record::Portion;
use crate::state::StateError;

/// Undelivered records of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The output.
    pub output: Arc<str>,
    /// How many.
    pub records: u64,
    /// Their bytes in the journal.
    pub bytes: u64,
}

/// An output's data without an output.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// What is in no batch, by partition, in order.
    pub(super) waiting: Vec<(Arc<str>, Portion)>,
    /// Closed batches in order of closing.
    pub(super) batches: Vec<Batch>,
    /// The number of the next batch.
    pub(super) next_number: u64,
}

impl Parked {
    pub(super) fn kept(&self, output: &Arc<str>) -> Kept {
        let waiting = self.waiting.iter().map(|(_, portion)| portion);
        let portions = waiting.chain(self.batches.iter().flat_map(|batch| batch.portions.iter()));
        let mut kept = Kept { output: output.clone(), records: 0, bytes: 0 };
        for portion in portions {
            kept.records += u64::from(portion.records());
            kept.bytes += portion.disk_bytes();
        }
        kept
    }

    fn into_dropped(self) -> Dropped {
        let mut waiting: HashMap<Arc<str>, Vec<Portion>> = HashMap::new();
        for (partition, portion) in self.waiting {
            waiting.entry(partition).or_default().push(portion);
        }
        Dropped { waiting: waiting.into_iter().collect(), batches: self.batches }
    }
}

impl Ledger {
    pub(super) fn park_all(&self, parked: HashMap<Arc<str>, Parked>) {
        *lock(&self.parked) = parked;
    }

    /// What is kept for outputs that are not configured, by name. Only where there is something.
    #[must_use]
    pub fn kept(&self) -> Vec<Kept> {
        let parked = lock(&self.parked);
        let mut kept: Vec<Kept> =
            parked.iter().map(|(output, parked)| parked.kept(output)).filter(|kept| kept.records > 0).collect();
        kept.sort_by(|a, b| a.output.cmp(&b.output));
        kept
    }

    /// A queue for an output that is configured now, with what was kept under its name. Nothing comes in before [`Ledger::take_in`].
    #[must_use]
    pub fn adopt(&self, options: QueueOptions) -> Queue {
        let parked = lock(&self.parked).remove(&options.output).unwrap_or_default();
        let queue = Queue::new(options, self.shared.clone(), parked.next_number);
        let now = self.shared.now();
        let mut books = queue.inner.lock();
        for (partition, portion) in parked.waiting {
            books.add(&partition, portion, now);
        }
        for batch in parked.batches {
            books.restore(batch, now);
        }
        drop(books);
        queue
    }

    /// Drops what is kept for an output that is not configured: counted, and gone from the journal. Its sequences and its plugin's rows stay,
    /// so that no number comes again. Gives what it was; none where nothing is kept. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state could not be written; what is not written is there again after the next start.
    pub fn discard_kept(&self, output: &str) -> Result<Option<Kept>, StateError> {
        let Some((name, parked)) = lock(&self.parked).remove_entry(output) else { return Ok(None) };
        let kept = parked.kept(&name);
        lock(&self.parked).insert(name.clone(), Parked { next_number: parked.next_number, ..Parked::default() });
        if kept.records == 0 {
            return Ok(None);
        }
        discard(&self.shared, &name, &parked.into_dropped())?;
        Ok(Some(kept))
    }

    /// The queue of an output that is removed takes part no more. It must have been left and be empty.
    pub(super) fn park_number(&self, queue: &Queue) {
        let next_number = queue.inner.lock().next_number();
        lock(&self.parked).insert(queue.output().clone(), Parked { next_number, ..Parked::default() });
    }
}

/// Makes it durable that records are dropped, then gives their chunks back.
pub(super) fn discard(shared: &Shared, output: &Arc<str>, dropped: &Dropped) -> Result<(), StateError> {
    let records = |portions: &[Portion]| portions.iter().map(|portion| u64::from(portion.records())).sum();
    for some in dropped.waiting.chunks(CURSORS_AT_ONCE) {
        let upto = |(partition, portions): &(Arc<str>, Vec<Portion>)| {
            portions.iter().map(|portion| portion.id).max().map(|last| (partition.clone(), last))
        };
        let cursors: Vec<_> = some.iter().filter_map(upto).collect();
        let portions: Vec<Portion> = some.iter().flat_map(|(_, portions)| portions).cloned().collect();
        let positions = shared.positions_in(&portions);
        shared.state.skip_chunks(output, &cursors, &positions)?;
        shared.positions_kept(&positions);
        shared.metrics.dropped(output, DISCARDED, records(&portions));
        shared.release(&portions);
    }
    for batch in &dropped.batches {
        let positions = shared.positions_in(&batch.portions);
        shared.state.settle_batch(output, batch.row.id, &positions)?;
        shared.positions_kept(&positions);
        shared.metrics.dropped(output, DISCARDED, records(&batch.portions));
        shared.release(&batch.portions);
    }
    Ok(())
}
