//! The queue of one output: the portions of chunks that it has not settled, by partition.
//!
//! In: chunks as they commit, in order; of each what this output's routes take. Out: closed batches. When a partition reaches
//! `max_bytes`, `max_records` or `max_age` (from its oldest record's arrival), what waits there becomes a batch, which is recorded in the
//! state before anybody sees it; from then on its content never changes. Where the output wants its batches in order, a partition's next
//! one is closed and handed out when the one before is settled. A chunk is released to the journal once the last portion of it is settled.
//! The queue also guards the output's share of the disk: `block`, `drop_oldest` or `drop_newest`, every drop counted.
//!
//! A batch is closed when a worker asks for one, not before: while workers are busy, records wait unbatched.

mod change;
mod hand_out;
mod ledger;
mod overflow;
mod parked;
mod partitions;
mod restore;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::journal::Journal;
use crate::record::{Chunk, ChunkId, ChunkMeta, PartitionKey, Partitioning, Portion, Position, Route, now_ns};
use crate::state::{BatchRow, State, StateError};
use crate::telemetry::Metrics;
pub use parked::Kept;
use parked::Parked;
use partitions::Partitions;

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

impl WhenFull {
    /// The reason for which `wharf_dropped_records_total` counts what this drops, if it does.
    #[must_use]
    pub fn drop_reason(self) -> Option<&'static str> {
        match self {
            Self::Block => None,
            Self::DropOldest => Some(DROP_OLDEST),
            Self::DropNewest => Some(DROP_NEWEST),
        }
    }
}

const DROP_OLDEST: &str = "queue_full_drop_oldest";
const DROP_NEWEST: &str = "queue_full_drop_newest";
/// Why records are dropped that an operator gave up with `--discard`.
pub const DISCARDED: &str = "discarded";

/// An output's queue settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOptions {
    /// The output.
    pub output: Arc<str>,
    /// What keeps records apart.
    pub partition_by: Vec<PartitionKey>,
    /// Whether the batches of a partition are handed out one after the other.
    pub in_order: bool,
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
    /// Not now: all outputs of the tenant together have what they may have.
    FullForTenant,
}

/// A share of the disk that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fullness {
    /// Bytes of chunks, as [`disk_bytes`] counts them.
    pub used: u64,
    /// What the output may have.
    pub max: u64,
}

/// A batch that can be delivered.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its row in the state.
    pub row: BatchRow,
    /// What it is made of, in order.
    pub portions: Arc<[Portion]>,
    /// Whether it was closed before this start: it may have been tried, and even delivered, before.
    pub restored: bool,
}

/// Everything the queues share: the references that outputs hold on chunks, the journal that gets them back, the
/// positions that are waiting to be written.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<ledger::Shared>,
    queues: Arc<RwLock<Vec<Queue>>>,
    parked: Arc<Mutex<HashMap<Arc<str>, Parked>>>,
}

impl Ledger {
    /// A ledger over this journal and state.
    pub fn new(journal: Journal, state: State, metrics: Metrics) -> Self {
        Self::with(Arc::new(journal), state, metrics, Arc::new(now_ns))
    }

    fn with(keeper: Arc<dyn ledger::Keeper>, state: State, metrics: Metrics, clock: ledger::Clock) -> Self {
        let shared = ledger::Shared::new(keeper, state, metrics, clock);
        Self { shared: Arc::new(shared), queues: Arc::default(), parked: Arc::default() }
    }

    /// Takes over what the journal and the state found at start, and builds every output's queue: chunks
    /// behind a cursor wait again, batches are there again. Chunks that nobody needs go back to the journal. Chunks of
    /// outputs that are not configured any more stay, and are named in the log (see [`Ledger::kept`]). Gives positions, newest of journal
    /// and state.
    ///
    /// # Errors
    /// Where the state cannot be read.
    pub fn restore(
        &self,
        recovery: &crate::journal::Recovery,
        options: Vec<QueueOptions>,
    ) -> Result<(Vec<Queue>, Vec<Position>), StateError> {
        restore::restore(self, recovery, options)
    }

    /// Takes note of a committed group: hand this to [`Journal::start`].
    pub fn committed(&self, group: &[(ChunkId, Arc<ChunkMeta>)]) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        for (id, meta) in group {
            self.shared.note_positions(*id, meta);
            // Before a queue can settle it.
            self.shared.need(*id, u32::try_from(meta.routes.len()).unwrap_or(u32::MAX));
            for (route, portion) in Portion::each(*id, meta) {
                self.shared.metrics.durable(&route.output, u64::from(portion.records()), portion.body_bytes());
                match queues.iter().find(|queue| *queue.output() == route.output) {
                    Some(queue) => queue.inner.committed(&route.partition, portion),
                    None => tracing::error!(
                        output = %route.output, chunk = %id,
                        "a chunk was taken for an output that has no queue; it stays in the journal"
                    ),
                }
            }
        }
    }

    /// Keeps positions that came with no chunk: any chunk that brings one of the same key is newer. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state could not be written; what could be is kept.
    pub fn keep(&self, positions: &[Position]) -> Result<(), StateError> {
        self.shared.keep(positions)
    }

    /// Forgets positions, here and in the state. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state could not be written.
    pub fn forget(&self, source: &str, keys: &[String]) -> Result<(), StateError> {
        self.shared.forget(source, keys)
    }

    /// The newest positions of a source, in the state or on the way there. Blocks on the disk.
    ///
    /// # Errors
    /// Where the state cannot be read.
    pub fn positions(&self, source: &str) -> Result<Vec<Position>, StateError> {
        self.shared.positions(source)
    }

    fn add(&self, queue: Queue) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).push(queue);
    }
}

/// One output's queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Queue {
    inner: Arc<Inner>,
}

struct Inner {
    output: Arc<str>,
    options: RwLock<Arc<QueueOptions>>,
    partitioning: Arc<Partitioning>,
    shared: Arc<ledger::Shared>,
    books: Mutex<Partitions>,
    /// There may be a batch.
    wake: Notify,
    /// There may be room.
    room: Notify,
    /// Whether it was said that the state cannot be written.
    said: AtomicBool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("output", &self.output).finish_non_exhaustive()
    }
}

impl Queue {
    fn new(options: QueueOptions, shared: Arc<ledger::Shared>, next_number: u64) -> Self {
        let books = Partitions::new(options.output.clone(), options.limits, options.in_order, next_number);
        let inner = Inner {
            partitioning: Arc::new(Partitioning::new(&options.partition_by)),
            output: options.output.clone(),
            options: RwLock::new(Arc::new(options)),
            shared,
            books: Mutex::new(books),
            wake: Notify::new(),
            room: Notify::new(),
            said: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The output's name.
    pub fn output(&self) -> &Arc<str> {
        &self.inner.output
    }
    /// What keeps its records apart.
    pub fn partitioning(&self) -> &Arc<Partitioning> {
        &self.inner.partitioning
    }
    /// A chunk's routes to this output: one for each partition that the chunk has records of.
    pub fn routes(&self, chunk: &Chunk) -> Vec<Route> {
        self.inner.partitioning.routes(self.output(), chunk)
    }
    /// Asks for room for so many bytes ([`ChunkMeta::disk_bytes`], of all of a chunk's routes to this output) and records.
    pub fn admit(&self, bytes: u64, records: u32) -> Admission {
        self.inner.admit(bytes, records, self.inner.options().when_full, None)
    }
    /// The same, where all outputs of a tenant together have only so much room left (none: any): past it this output does as it does
    /// past its own share.
    pub fn admit_within(&self, bytes: u64, records: u32, room: Option<u64>) -> Admission {
        self.inner.admit(bytes, records, self.inner.options().when_full, room)
    }
    /// The same for what must not be dropped, whatever the output's setting.
    pub fn admit_or_wait(&self, bytes: u64, records: u32) -> Admission {
        self.inner.admit(bytes, records, WhenFull::Block, None)
    }
    /// What happens past the output's share of the disk.
    pub fn when_full(&self) -> WhenFull {
        self.inner.options().when_full
    }
    /// Gives back room that was granted to a chunk which did not commit.
    pub fn withdraw(&self, bytes: u64) {
        let mut books = self.inner.lock();
        books.reserved = books.reserved.saturating_sub(bytes);
        drop(books);
        self.inner.room.notify_waiters();
    }
    /// Waits until there may be room.
    pub async fn room(&self) {
        // Room may have come between the question and this; so it is asked again now and then.
        let _ = tokio::time::timeout(Duration::from_millis(100), self.room_from_now()).await;
    }
    /// Ends when there may be more room than there was when this was called (not when it was first awaited).
    pub(crate) fn room_from_now(&self) -> tokio::sync::futures::Notified<'_> {
        self.inner.room.notified()
    }
    /// The next batch that nobody has in hand: restored ones first, then as partitions become due. Waits; several workers may ask.
    /// In order, none while an earlier one of its partition is not settled. Gives none once the queue is closed and has no closed batch
    /// left to hand out, now or when those before it are settled.
    pub async fn next_batch(&self) -> Option<Batch> {
        self.inner.next_batch().await
    }
    /// A batch that a worker had in hand and does not deliver: the next that asks gets it.
    pub fn give_back(&self, batch: Batch) {
        self.inner.lock().give_back(batch);
        self.inner.wake.notify_one();
    }
    /// Closes every partition that has records, as a stop wants.
    pub fn flush(&self) {
        let now = self.inner.shared.now();
        self.inner.lock().flush(now);
        self.inner.wake.notify_one();
    }
    /// No more batches are handed out, but those that [`Queue::flush`] closed before.
    pub fn close(&self) {
        self.inner.lock().close();
        self.inner.wake.notify_one();
        self.inner.room.notify_waiters();
    }
    /// Ends a batch: the state forgets it, then its chunks are released. Blocks on the disk. May be repeated.
    ///
    /// # Errors
    /// Where the state could not be written; the batch is still held then.
    pub fn settle(&self, batch: &Batch) -> Result<(), StateError> {
        self.inner.settle(batch)
    }
    /// Whether the batch is still held.
    pub fn holds(&self, batch: &Batch) -> bool {
        self.inner.lock().holds(batch.row.id)
    }
    /// Arrival of the oldest undelivered record, nanoseconds since 1970 UTC.
    pub fn oldest_arrival_ns(&self) -> Option<i64> {
        self.inner.lock().oldest_arrival_ns()
    }
    /// Whether sources are turned away now because the output's share of the disk is used up.
    pub fn fullness(&self) -> Option<Fullness> {
        self.inner.fullness()
    }
    /// Bytes of what is not settled, and of what was granted and has not committed yet.
    pub fn used(&self) -> u64 {
        let books = self.inner.lock();
        books.bytes() + books.reserved
    }
    /// Bytes of what is not settled.
    pub fn bytes(&self) -> u64 {
        self.inner.lock().bytes()
    }
    /// Records that are not settled.
    pub fn records(&self) -> u64 {
        self.inner.lock().records()
    }
    /// Whether everything is settled.
    pub fn is_empty(&self) -> bool {
        self.records() == 0
    }
    /// Tells the metrics how much there is, and how old.
    pub fn report(&self, metrics: &Metrics) {
        let (bytes, records, oldest) = {
            let books = self.inner.lock();
            (books.bytes(), books.records(), books.oldest_arrival_ns())
        };
        let age = oldest.map_or(0, |oldest| self.inner.shared.now().saturating_sub(oldest).max(0));
        metrics.queue(self.output(), bytes, records, age as f64 / 1e9);
    }
}

impl Inner {
    fn options(&self) -> Arc<QueueOptions> {
        Arc::clone(&self.options.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock(&self) -> MutexGuard<'_, Partitions> {
        ledger::lock(&self.books)
    }

    fn committed(&self, partition: &Arc<str>, portion: Portion) {
        let now = self.shared.now();
        let mut books = self.lock();
        books.reserved = books.reserved.saturating_sub(portion.disk_bytes());
        let look = books.add(partition, portion, now);
        drop(books);
        if look {
            self.wake.notify_one();
        }
    }

    fn say_unwritable(&self, e: &StateError) {
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::warn!(output = %self.output, error = %e, "batches cannot be recorded; it is tried again");
        }
    }

    fn say_writable(&self) {
        if self.said.swap(false, Ordering::Relaxed) {
            tracing::info!(output = %self.output, "batches can be recorded again");
        }
    }
}
