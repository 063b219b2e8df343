//! The journal keeps chunks on disk: segment files, one writer, one sequential stream, one `fdatasync` for all that
//! is waiting. Its commit is what an acknowledgement means.
//!
//! In: chunks with their routes. Out: an id for each once it is durable, and the chunk again by id, verified.
//! A chunk stays until it is released; a segment is deleted when none of its chunks is live, and a few live chunks that pin
//! an old segment are copied forward. Torn tails are cut, damaged chunks set aside in `quarantine/`, both reported.
//!
//! Inside: `layout` is the bytes; `segment` files; `table` what is where; `lanes` whose chunks are next; `writer` the one thread that writes;
//! `reclaim` getting disk space back; `recover` and `scan` opening. `docs/journal.md` describes the files.

mod lanes;
mod layout;
mod quarantine;
mod reading;
mod reclaim;
mod recover;
mod scan;
mod segment;
mod shared;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use tokio::sync::{oneshot, watch};

use crate::buffers::Buffers;
use crate::fair::Tenant;
use shared::{READ, Shared, Waiting, Work, lock};
use writer::Writer;

use crate::record::{Chunk, ChunkError, ChunkId, ChunkMeta, Portion};

/// How a journal behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size that a segment file is preallocated to, bytes.
    pub segment_bytes: u64,
    /// Most bytes of segment files; appends past it are refused. Segments are at least 64 KiB, so a limit under some of these
    /// takes nothing.
    pub max_bytes: Option<u64>,
    /// Bytes of free disk that appends leave alone, so that settling always works.
    pub reserve_bytes: u64,
}

impl Options {
    /// Sizes that work: segments of whole pages, and so small that a limit holds some of them, since space comes back by
    /// whole segments.
    fn settled(mut self) -> Self {
        const SMALLEST: u64 = 64 << 10;
        const IN_A_LIMIT: u64 = 8;
        let most = self.max_bytes.map_or(u64::MAX, |limit| limit / IN_A_LIMIT);
        self.segment_bytes = self.segment_bytes.min(most).max(SMALLEST) & !4095;
        self
    }
}

/// The journal. Cheap to clone; the writer thread ends when the last clone is dropped or [`Journal::close`] is called.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
    options: Options,
    _last: Arc<LastClone>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("dir", &self.shared.dir).field("options", &self.options).finish_non_exhaustive()
    }
}

/// Closes the journal when nobody has it any more.
struct LastClone(Arc<Shared>);

impl Drop for LastClone {
    fn drop(&mut self) {
        self.0.begin_closing();
        self.0.join();
    }
}

/// What opening found.
#[derive(Debug, Default)]
pub struct Recovery {
    /// All live chunks, ids ascending.
    pub chunks: Vec<(ChunkId, Arc<ChunkMeta>)>,
    /// A torn tail that was cut: segment file and offset.
    pub cut: Vec<Cut>,
    /// Damaged stretches set aside.
    pub quarantined: Vec<Quarantined>,
}

/// A tail that was not written whole; nothing in it was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment file.
    pub segment: PathBuf,
    /// Where the cut is, bytes from its beginning.
    pub offset: u64,
    /// Bytes that were cut off.
    pub bytes: u64,
}

/// Damaged bytes that were set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The chunk, where its header could still be read.
    pub id: Option<ChunkId>,
    /// Its metadata, where its header could still be read.
    pub meta: Option<Arc<ChunkMeta>>,
    /// Where the bytes are now.
    pub file: PathBuf,
    /// What is wrong.
    pub reason: String,
}

impl Quarantined {
    /// Records in it; 0 where its header cannot tell.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.meta.as_ref().map_or(0, |meta| u64::from(meta.records))
    }
}

/// Whether the journal takes appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It does.
    Writable,
    /// The disk has too little room.
    DiskFull {
        /// Bytes free.
        free: u64,
        /// Bytes that must be free.
        needed: u64,
    },
    /// The journal has reached its own limit.
    LimitReached {
        /// Bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// An I/O error other than a full disk.
    Failed(String),
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of live chunks.
    pub live_bytes: u64,
    /// Bytes of segment files on disk.
    pub disk_bytes: u64,
    /// Segment files.
    pub segments: usize,
    /// Live chunks.
    pub chunks: usize,
    /// fdatasync calls so far.
    pub commits: u64,
    /// Records in chunks that were found damaged on disk, at the opening and since, as far as their number is known.
    pub quarantined_records: u64,
}

/// Why a journal does not open.
#[derive(Debug, thiserror::Error)]
#[error("journal {path}: {what}: {cause}")]
pub struct OpenError {
    /// The file or directory.
    pub path: PathBuf,
    /// What was being done.
    pub what: &'static str,
    /// The cause.
    pub cause: std::io::Error,
}

/// Why an append was refused. The chunk is not durable and must not be acknowledged.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum AppendError {
    /// No room on the disk; the journal takes appends again by itself when there is.
    #[error("the disk is full: {free} bytes free, {needed} needed")]
    DiskFull {
        /// Bytes free.
        free: u64,
        /// Bytes that must be free.
        needed: u64,
    },
    /// `journal.max_bytes` is reached; taken again once chunks are delivered.
    #[error("the journal holds {used} bytes of at most {limit} (journal.max_bytes)")]
    LimitReached {
        /// Bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Writing or syncing failed.
    #[error("writing the journal failed: {0}")]
    Io(String),
    /// A chunk that was to come before this one was refused: it has to be handed in first.
    #[error("an earlier chunk was refused, and has to be handed in first")]
    Overtaking,
    /// The journal is closing.
    #[error("the journal is closed")]
    Closed,
}

/// Why a chunk could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there (released, or set aside).
    #[error("chunk {0} is not in the journal")]
    Missing(ChunkId),
    /// Its bytes are damaged; they were set aside.
    #[error("chunk {id} was damaged on disk and is set aside in {file}: {cause}")]
    Corrupt {
        /// The chunk.
        id: ChunkId,
        /// Where its bytes are now.
        file: PathBuf,
        /// What is wrong.
        cause: ChunkError,
    },
    /// The disk did not give it.
    #[error("reading chunk {id} failed: {cause}")]
    Io {
        /// The chunk.
        id: ChunkId,
        /// The cause.
        cause: std::io::Error,
    },
}

/// Called by the writer thread for each group once it is durable, ids ascending, before anybody who waits for it is woken:
/// whoever keeps the order of chunks hears of them in that order.
pub type OnCommit = Box<dyn FnMut(&[(ChunkId, Arc<ChunkMeta>)]) + Send>;

/// See [`Journal::lane`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lane {
    journal: Journal,
    lane: Arc<lanes::Lane>,
}

impl Lane {
    /// Queues a chunk. Chunks of a lane get their ids in the order of the calls. The receiver gives the id once the chunk is on disk.
    /// While the journal refuses ([`Journal::condition`]), so does this, at once.
    pub fn append(&self, chunk: Chunk) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        self.journal.append_in(&self.lane, chunk, None)
    }
    /// Like [`Lane::append`], but refuses ([`AppendError::Overtaking`]) when any chunk of this lane was refused since
    /// [`Lane::refusals`] was `seen`. So a chunk is never taken while an earlier one, which was refused meanwhile, is not.
    pub fn append_unless_refused_since(
        &self,
        chunk: Chunk,
        seen: u64,
    ) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        self.journal.append_in(&self.lane, chunk, Some(seen))
    }
    /// How many times chunks of this lane were refused so far.
    pub fn refusals(&self) -> u64 {
        self.lane.refusals()
    }
    /// Whether appends are taken, and when that changes.
    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.journal.condition()
    }
}

impl Journal {
    /// Opens the journal in `dir`, making it where it is not, and recovers. Appends wait until [`Journal::start`].
    ///
    /// # Errors
    /// Where a directory or file cannot be made, read or written.
    pub fn open(dir: &Path, quarantine: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        let options = options.settled();
        let mut opened = recover::open(dir, quarantine, options.segment_bytes)?;
        let recovery = std::mem::take(&mut opened.recovery);
        let shared = Arc::new(Shared {
            dir: dir.to_path_buf(),
            quarantine: quarantine.to_path_buf(),
            // Segments that nothing lives in are found by looking.
            work: Mutex::new(Work { reclaim: true, ..Work::default() }),
            wake: Condvar::new(),
            table: Mutex::new(std::mem::take(&mut opened.table)),
            condition: watch::Sender::new(Condition::Writable),
            commits: AtomicU64::new(0),
            quarantined_records: AtomicU64::new(recovery.quarantined.iter().map(Quarantined::records).sum()),
            lane: lanes::Lane::new(Tenant::named(None)),
            buffers: Buffers::new(READ),
            opened: Mutex::new(Some(opened)),
            thread: Mutex::new(None),
            #[cfg(test)]
            faults: tests::Faults::default(),
        });
        let last = Arc::new(LastClone(shared.clone()));
        Ok((Self { shared, options, _last: last }, recovery))
    }
    /// Sees to it that ids from now on are higher than this one, whatever the segments say: where some of them vanished, the
    /// state may know of ids that they do not. Has an effect only before [`Journal::start`].
    pub fn raise_ids_above(&self, known: ChunkId) {
        if let Some(opened) = &mut *lock(&self.shared.opened) {
            opened.next_id = opened.next_id.max(known.0.saturating_add(1));
        }
    }
    /// Starts the writer thread.
    pub fn start(&self, on_commit: OnCommit) {
        let mut thread = lock(&self.shared.thread);
        let Some(opened) = lock(&self.shared.opened).take() else {
            tracing::error!("the journal was started before; it is started once");
            return;
        };
        let writer = Writer::new(self.shared.clone(), on_commit, self.options.clone(), opened);
        match std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run()) {
            Ok(started) => *thread = Some(started),
            Err(cause) => {
                drop(thread);
                tracing::error!(%cause, "the journal's writer thread could not be started");
                self.shared.condition.send_replace(Condition::Failed(format!("no writer thread: {cause}")));
                self.shared.begin_closing();
            }
        }
    }
    /// A tenant's way into the journal. What waits in one does not hold up what waits in another.
    pub fn lane(&self, tenant: Tenant) -> Lane {
        Lane { journal: self.clone(), lane: lanes::Lane::new(tenant) }
    }
    /// Queues a chunk, in a lane of the operator's that all such calls share. See [`Lane::append`].
    pub fn append(&self, chunk: Chunk) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        self.append_in(&self.shared.lane, chunk, None)
    }
    fn append_in(
        &self,
        lane: &Arc<lanes::Lane>,
        chunk: Chunk,
        seen: Option<u64>,
    ) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        let (reply, receiver) = oneshot::channel();
        let waiting = Waiting::new(&chunk, lane, seen, reply);
        let mut work = self.shared.work();
        let refusal = if work.closing { Some(AppendError::Closed) } else { self.shared.refusal() };
        match refusal {
            Some(error) => {
                lane.count_refusal();
                drop(work);
                waiting.refuse(error);
            }
            None => {
                work.waiting.push(waiting);
                drop(work);
                self.shared.wake.notify_one();
            }
        }
        receiver
    }
    /// Reads a chunk and verifies it. Blocks on the disk. A damaged chunk is set aside.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, id: ChunkId) -> Result<Chunk, ReadError> {
        reading::read(&self.shared, id)
    }
    /// Reads a portion of a chunk and verifies it: its records as a chunk by themselves. Blocks on the disk. Where the chunk turns out to be
    /// damaged it is set aside.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_portion(&self, portion: &Portion) -> Result<Chunk, ReadError> {
        reading::read_portion(&self.shared, portion)
    }
    /// Whether the chunk is there: committed, not released, not set aside.
    pub fn contains(&self, id: ChunkId) -> bool {
        self.shared.table().place(id.0).is_some()
    }
    /// Gives chunks up: nobody needs them. What says so must be durable before this is called. Unknown ids are ignored.
    /// Their disk space comes back later, by the writer thread.
    pub fn release(&self, ids: &[ChunkId]) {
        let work = {
            let mut table = self.shared.table();
            for id in ids {
                table.remove(id.0);
            }
            table.has_work(self.shared.is_full())
        };
        if work {
            self.shared.ask_to_reclaim();
        }
    }
    /// How much there is.
    pub fn usage(&self) -> Usage {
        let quarantined = self.shared.quarantined_records.load(Ordering::Relaxed);
        self.shared.table().usage(self.shared.commits.load(Ordering::Relaxed), quarantined)
    }
    /// Bytes that wait to be written, by tenant; those of none are the operator's. A tenant of whom nothing waits is not there.
    pub fn waiting_bytes(&self) -> HashMap<Option<Arc<str>>, u64> {
        self.shared.work().waiting.bytes()
    }
    /// Whether appends are taken, and when that changes.
    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.shared.condition.subscribe()
    }
    /// Commits what is queued, refuses more, and ends the writer thread. Chunks can still be read.
    pub fn close(&self) {
        self.shared.begin_closing();
        self.shared.join();
    }
}
