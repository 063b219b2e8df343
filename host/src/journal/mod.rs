//! The journal keeps chunks on disk: segment files, one writer, one sequential stream, one `fdatasync` for all that
//! is waiting. Its commit is what an acknowledgement means.
//!
//! In: chunks with their routes. Out: an id for each once it is durable, and the chunk again by id, verified.
//! A chunk stays until it is released; a segment is deleted when none of its chunks is live, and a few live chunks that pin
//! an old segment are copied forward. Torn tails are cut, damaged chunks set aside in `quarantine/`, both reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use crate::record::{Chunk, ChunkError, ChunkId, ChunkMeta};

/// How a journal behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size that a segment file is preallocated to, bytes.
    pub segment_bytes: u64,
    /// Most bytes of segment files; appends past it are refused.
    pub max_bytes: Option<u64>,
    /// Bytes of free disk that appends leave alone, so that settling always works.
    pub reserve_bytes: u64,
}

/// The journal. Cheap to clone; the writer thread ends when the last clone is dropped or [`Journal::close`] is called.
#[derive(Debug, Clone)]
pub struct Journal {
    _todo: Arc<()>,
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

impl Journal {
    /// Opens the journal in `dir`, making it where it is not, and recovers. Appends wait until [`Journal::start`].
    ///
    /// # Errors
    /// Where a directory or file cannot be made, read or written.
    pub fn open(_dir: &Path, _quarantine: &Path, _options: Options) -> Result<(Self, Recovery), OpenError> {
        todo!()
    }
    /// Starts the writer thread.
    pub fn start(&self, _on_commit: OnCommit) {
        todo!()
    }
    /// Queues a chunk. Chunks get their ids in the order of the calls. The receiver gives the id once the chunk is on disk.
    pub fn append(&self, _chunk: Chunk) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        todo!()
    }
    /// Reads a chunk and verifies it. Blocks on the disk. A damaged chunk is set aside.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, _id: ChunkId) -> Result<Chunk, ReadError> {
        todo!()
    }
    /// Gives chunks up: nobody needs them. What says so must be durable before this is called. Unknown ids are ignored.
    pub fn release(&self, _ids: &[ChunkId]) {
        todo!()
    }
    /// How much there is.
    pub fn usage(&self) -> Usage {
        todo!()
    }
    /// Whether appends are taken, and when that changes.
    pub fn condition(&self) -> watch::Receiver<Condition> {
        todo!()
    }
    /// Commits what is queued, refuses more, and ends the writer thread.
    pub fn close(&self) {
        todo!()
    }
}
