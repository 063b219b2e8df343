//! The queue of one output: the chunks that it has not settled, by partition.
//!
//! In: chunks as they commit, in order. Out: closed batches. When a partition reaches `max_bytes`, `max_records` or `max_age`
//! (from its oldest record's arrival), its waiting chunks become a batch, which is recorded in the state before anybody sees it;
//! from then on its content never changes. A settled batch's chunks are released to the journal once no other output needs them.
//! The queue also guards the output's share of the disk: `block`, `drop_oldest` or `drop_newest`, every drop counted.

use std::sync::Arc;
use std::time::Duration;

use crate::journal::Journal;
use crate::record::{ChunkId, ChunkMeta, Position};
use crate::state::{BatchRow, State};
use crate::telemetry::Metrics;

/// When a partition's chunks become a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Bytes of bodies plus `record_overhead` for each record.
    pub max_bytes: u64,
    /// Records.
    pub max_records: u64,
    /// Age of the oldest waiting record, from its arrival.
    pub max_age: Duration,
    /// Bytes that encoding adds to a record.
    pub record_overhead: u32,
}

/// What happens to new records when the output's share of the disk is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Sources wait. The default.
    Block,
    /// The oldest records that no worker has in hand are dropped, and counted.
    DropOldest,
    /// New records are dropped, and counted.
    DropNewest,
}

/// An output's queue settings.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// The output.
    pub output: Arc<str>,
    /// Whether tags are kept apart.
    pub partition_by_tag: bool,
    /// When batches close.
    pub limits: BatchLimits,
    /// Share of the disk in bytes of chunks; none is without limit.
    pub max_bytes: Option<u64>,
    /// What happens past it.
    pub when_full: WhenFull,
}

/// Whether a chunk may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Yes; room for it is set aside until it commits or is withdrawn.
    Granted,
    /// Not now: wait for [`Queue::room`].
    Full,
    /// It is to be dropped for this output (`drop_newest`), and was counted.
    Dropped,
}

/// A batch that can be delivered.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its row in the state.
    pub row: BatchRow,
    /// Its chunks in order.
    pub chunks: Arc<[(ChunkId, Arc<ChunkMeta>)]>,
}

/// Everything the queues share: the references that outputs hold on chunks, the journal that gets them back, the
/// positions that are waiting to be written.
#[derive(Debug, Clone)]
pub struct Ledger {
    _todo: Arc<()>,
}

impl Ledger {
    /// A ledger over this journal and state.
    pub fn new(_journal: Journal, _state: State, _metrics: Metrics) -> Self {
        todo!()
    }
    /// Takes over what the journal and the state found at start, and builds every output's queue: chunks
    /// behind a cursor wait again, batches are there again, chunks that nobody needs (also those of outputs which are
    /// not configured any more, unless they still hold a batch) are told apart: they stay, and are named in the log. Gives positions, newest of
    /// journal and state.
    ///
    /// # Errors
    /// Where the state cannot be read.
    pub fn restore(
        &self,
        _recovery: &crate::journal::Recovery,
        _options: Vec<QueueOptions>,
    ) -> Result<(Vec<Queue>, Vec<Position>), crate::state::StateError> {
        todo!()
    }
    /// Takes note of a committed group: hand this to [`Journal::start`].
    pub fn committed(&self, _group: &[(ChunkId, Arc<ChunkMeta>)]) {
        todo!()
    }
}

/// One output's queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Queue {
    _todo: Arc<()>,
}

impl Queue {
    /// The output's name.
    pub fn output(&self) -> &Arc<str> {
        todo!()
    }
    /// The partition that a tag belongs to here.
    pub fn partition_of(&self, _tag: &Arc<str>) -> Arc<str> {
        todo!()
    }
    /// Asks for room for a chunk of so many encoded bytes and records.
    pub fn admit(&self, _bytes: u64, _records: u32) -> Admission {
        todo!()
    }
    /// Gives back room that was granted to a chunk which did not commit.
    pub fn withdraw(&self, _bytes: u64) {
        todo!()
    }
    /// Waits until there may be room.
    pub async fn room(&self) {
        todo!()
    }
    /// The next batch that nobody has in hand: restored ones first, then as partitions become due. Waits; several workers may ask.
    /// Gives none once the queue is closed and has no closed batch left to hand out.
    pub async fn next_batch(&self) -> Option<Batch> {
        todo!()
    }
    /// Closes every partition that has records, as a stop wants.
    pub fn flush(&self) {
        todo!()
    }
    /// No more batches are handed out, but those that [`Queue::flush`] closed before.
    pub fn close(&self) {
        todo!()
    }
    /// Ends a batch: the state forgets it, then its chunks are released. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state could not be written; the batch is still held then.
    pub fn settle(&self, _batch: &Batch) -> Result<(), crate::state::StateError> {
        todo!()
    }
    /// Arrival of the oldest undelivered record, nanoseconds since 1970 UTC.
    pub fn oldest_arrival_ns(&self) -> Option<i64> {
        todo!()
    }
    /// Bytes of chunks that are not settled.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
    /// Records that are not settled.
    pub fn records(&self) -> u64 {
        todo!()
    }
    /// Whether everything is settled.
    pub fn is_empty(&self) -> bool {
        self.records() == 0
    }
}
