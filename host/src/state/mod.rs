//! Small durable state, in sled: batches, cursors, `$INDEX`, positions of sources, the plugins' key-value rows.
//!
//! Every change is one transaction, and is on the disk (a real sync, see [`open`](State::open)) when the call returns.
//! All calls block on the disk: call them from a thread that may. Nothing here knows of journals, queues or plugins.
//! When sled's directory cannot be opened it is set aside and made anew from the last snapshot, and counters resume above
//! every number that could have been used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::record::{ChunkId, Position};

/// A batch's name: 16 random bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub [u8; 16]);

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A closed batch: all chunks of one output and partition from `first` to `last`. Its content never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRow {
    /// Its name.
    pub id: BatchId,
    /// The output.
    pub output: Arc<str>,
    /// The partition.
    pub partition: Arc<str>,
    /// Order of closing within the output, from 0.
    pub number: u64,
    /// First chunk.
    pub first: ChunkId,
    /// Last chunk.
    pub last: ChunkId,
    /// Records in it.
    pub records: u64,
    /// Bytes of bodies in it.
    pub bytes: u64,
    /// When it was closed, nanoseconds since 1970 UTC: what the output's retry limit counts from.
    pub closed_ns: i64,
}

/// Proof that a change is on the disk: only this room makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed<T>(T);

impl<T> Flushed<T> {
    /// The value.
    pub fn get(self) -> T {
        self.0
    }
}

/// How the state was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A new, empty one.
    New,
    /// As it was left.
    Intact,
    /// sled's directory was damaged, gone, or behind: it was set aside and made anew.
    Rebuilt {
        /// Why.
        reason: String,
        /// Where the old directory is now, if there was one.
        set_aside: Option<PathBuf>,
    },
}

/// What the queue needs at start.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Closed, unsettled batches in order of closing.
    pub batches: Vec<BatchRow>,
    /// For each output and partition: the last chunk that is in a batch, or was dropped. Later ones are in none.
    pub cursors: Vec<(Arc<str>, Arc<str>, ChunkId)>,
    /// Positions of sources, with the chunk that each came with.
    pub positions: Vec<(Position, ChunkId)>,
}

/// Why a change did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The disk is full.
    #[error("the state could not be written: the disk is full")]
    DiskFull,
    /// sled failed; the state is reopened by itself.
    #[error("the state could not be {doing}: {cause}")]
    Store {
        /// read or written
        doing: &'static str,
        /// sled's words.
        cause: String,
    },
    /// A row does not have the shape that this Wharf writes.
    #[error("the state's row {key} is damaged: {cause}")]
    Row {
        /// Tree and key.
        key: String,
        /// What is wrong.
        cause: String,
    },
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Invalid(String),
}

/// One change of a plugin's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Set(String, Vec<u8>),
    /// Deletes a key.
    Delete(String),
}

/// The state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct State {
    _todo: Arc<()>,
}

impl State {
    /// Opens the state below `dir` (`dir/state` is sled's; `dir/state.snapshot` and `dir/sequences` are for a rebuild). The caller holds the
    /// data directory's lock. Proves by a probe that a flush reaches `fdatasync`.
    ///
    /// # Errors
    /// Where even a new state cannot be made.
    pub fn open(_dir: &Path) -> Result<(Self, Opened), StateError> {
        todo!()
    }
    /// Everything that the queue and the sources need at start.
    ///
    /// # Errors
    /// Where rows cannot be read.
    pub fn load(&self) -> Result<Loaded, StateError> {
        todo!()
    }
    /// Records a closed batch, moves its partition's cursor to its last chunk, and keeps `positions`.
    ///
    /// # Errors
    /// Where it could not be made durable; nothing has changed then.
    pub fn close_batch(
        &self,
        _batch: &BatchRow,
        _positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Moves a partition's cursor over chunks that were dropped by policy.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn skip_chunks(
        &self,
        _output: &str,
        _partition: &str,
        _upto: ChunkId,
        _positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Ends a batch: its row, its sequence bindings and its progress go in one transaction.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn settle_batch(
        &self,
        _output: &str,
        _id: BatchId,
        _positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Keeps positions alone.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn put_positions(&self, _positions: &[(Position, ChunkId)]) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Forgets positions (of files that are gone).
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn delete_positions(&self, _source: &str, _keys: &[String]) -> Result<Flushed<()>, StateError> {
        todo!()
    }

    /// The batch's number in counter `name` of `output`, bound now if it is not yet. See WIT `sequence.assign`.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn assign(&self, _output: &str, _name: &str, _batch: BatchId, _start: u64) -> Result<Flushed<u64>, StateError> {
        todo!()
    }
    /// Binds the batch to the next free number, because `taken` proved taken. See WIT `sequence.reassign`.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn reassign(
        &self,
        _output: &str,
        _name: &str,
        _batch: BatchId,
        _taken: u64,
    ) -> Result<Flushed<u64>, StateError> {
        todo!()
    }

    /// An output's row.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn get(&self, _output: &str, _key: &str) -> Result<Option<Vec<u8>>, StateError> {
        todo!()
    }
    /// Applies all changes to an output's rows, or none.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn apply(&self, _output: &str, _changes: &[Change]) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Sets the row to `new` if it is `expected`; whether it did.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn compare_and_set(
        &self,
        _output: &str,
        _key: &str,
        _expected: Option<&[u8]>,
        _new: Option<&[u8]>,
    ) -> Result<Flushed<bool>, StateError> {
        todo!()
    }
    /// Rows with the prefix behind `after`, ascending, at most `limit`.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn list(
        &self,
        _output: &str,
        _prefix: &str,
        _after: Option<&str>,
        _limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        todo!()
    }
    /// Bytes of keys and values that an output holds.
    pub fn stored_bytes(&self, _output: &str) -> u64 {
        todo!()
    }

    /// A row of a batch's progress.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn progress_get(&self, _output: &str, _batch: BatchId, _key: &str) -> Result<Option<Vec<u8>>, StateError> {
        todo!()
    }
    /// Sets (or, with none, deletes) a row of a batch's progress.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn progress_put(
        &self,
        _output: &str,
        _batch: BatchId,
        _key: &str,
        _value: Option<&[u8]>,
    ) -> Result<Flushed<()>, StateError> {
        todo!()
    }
    /// Rows of a batch's progress with the prefix, ascending.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn progress_list(
        &self,
        _output: &str,
        _batch: BatchId,
        _prefix: &str,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        todo!()
    }
    /// Whether the batch is still held.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn is_open(&self, _output: &str, _batch: BatchId) -> Result<bool, StateError> {
        todo!()
    }
    /// Writes the snapshot that a rebuild starts from. Called now and then, and at a clean stop.
    ///
    /// # Errors
    /// Where it cannot be written; the last one stays.
    pub fn snapshot(&self) -> Result<(), StateError> {
        todo!()
    }
}
