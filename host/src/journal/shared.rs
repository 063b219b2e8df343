//! What the writer thread and everybody else share.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::lanes::{Lane, Lanes};
use super::recover::Opened;
use super::table::Table;
use super::{AppendError, Condition};
use crate::buffers::{Buffers, Keep};
use crate::fair::Wait;
use crate::record::{Chunk, ChunkId, ChunkMeta};

/// Buffers of chunks that are read. A chunk may be one message of a sender: 2 MB from Fluent Bit, 4 MB of JSON from a collector. Larger ones are rare,
/// and would be kept for nothing.
pub(super) const READ: Keep = Keep { room: (64 << 10, 4 << 20), buffers: 16, bytes: 8 << 20 };

/// A chunk that waits for its place, already as bytes.
pub(super) struct Waiting {
    pub(super) head: Bytes,
    pub(super) bodies: Bytes,
    pub(super) meta: Arc<ChunkMeta>,
    pub(super) reply: oneshot::Sender<Result<ChunkId, AppendError>>,
    /// Its tenant's.
    pub(super) lane: Arc<Lane>,
    /// It is not to be taken when more than these were refused of its lane.
    pub(super) seen: Option<u64>,
    /// For as long as it waits in its lane.
    pub(super) wait: Option<Wait>,
}

impl Waiting {
    pub(super) fn new(
        chunk: &Chunk,
        lane: &Arc<Lane>,
        seen: Option<u64>,
        reply: oneshot::Sender<Result<ChunkId, AppendError>>,
    ) -> Self {
        let (head, bodies) = chunk.encode();
        Self { head, bodies, meta: chunk.meta().clone(), reply, lane: Arc::clone(lane), seen, wait: None }
    }
    /// Whether a chunk was refused behind which this one was meant to be.
    pub(super) fn overtakes(&self) -> bool {
        self.seen.is_some_and(|seen| seen != self.lane.refusals())
    }
    /// Bytes of the encoded chunk.
    pub(super) fn length(&self) -> u64 {
        (self.head.len() + self.bodies.len()) as u64
    }
    pub(super) fn refuse(self, error: AppendError) {
        // Whoever does not wait any more does not want to know.
        let _ = self.reply.send(Err(error));
    }
}

/// What the writer has to do.
#[derive(Default)]
pub(super) struct Work {
    pub(super) waiting: Lanes,
    /// Segments may be deleted or copied.
    pub(super) reclaim: bool,
    /// The writer has nothing to do.
    pub(super) idle: bool,
    /// No more appends are taken.
    pub(super) closing: bool,
}

pub(super) struct Shared {
    pub(super) dir: PathBuf,
    pub(super) quarantine: PathBuf,
    pub(super) work: Mutex<Work>,
    pub(super) wake: Condvar,
    pub(super) table: Mutex<Table>,
    pub(super) condition: watch::Sender<Condition>,
    pub(super) commits: AtomicU64,
    /// Records in chunks that were damaged on disk, as far as their number is known: found at the opening and since.
    pub(super) quarantined_records: AtomicU64,
    /// For chunks that are handed in without a lane of their own.
    pub(super) lane: Arc<Lane>,
    /// Where chunks are read into.
    pub(super) buffers: Buffers,
    /// What the writer starts from, until it does.
    pub(super) opened: Mutex<Option<Opened>>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
    #[cfg(test)]
    pub(super) faults: super::tests::Faults,
}

impl Shared {
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
    }
    /// Whether the journal is refusing for lack of room.
    pub(super) fn is_full(&self) -> bool {
        matches!(*self.condition.borrow(), Condition::DiskFull { .. } | Condition::LimitReached { .. })
    }
    /// Why appends are refused, if they are.
    pub(super) fn refusal(&self) -> Option<AppendError> {
        match &*self.condition.borrow() {
            Condition::Writable => None,
            Condition::DiskFull { free, needed } => Some(AppendError::DiskFull { free: *free, needed: *needed }),
            Condition::LimitReached { used, limit } => Some(AppendError::LimitReached { used: *used, limit: *limit }),
            Condition::Failed(cause) => Some(AppendError::Io(cause.clone())),
        }
    }
    /// Lets the writer look for segments to delete or to copy.
    pub(super) fn ask_to_reclaim(&self) {
        self.work().reclaim = true;
        self.wake.notify_one();
    }
    /// Takes no more appends, and lets the writer end. Where it never began, what waits is refused here.
    pub(super) fn begin_closing(&self) {
        let mut work = self.work();
        work.closing = true;
        if lock(&self.thread).is_none() {
            for waiting in work.waiting.take_all() {
                waiting.refuse(AppendError::Closed);
            }
        }
        drop(work);
        self.wake.notify_one();
    }
    /// Waits for the writer's end, unless it is the writer that asks.
    pub(super) fn join(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the journal's writer thread had panicked");
        }
    }
}

/// A lock that somebody panicked under is taken all the same: every change made under one leaves the data consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
