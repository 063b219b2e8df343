//! Small durable state, in sled: batches, cursors, `$INDEX`, positions of sources, the plugins' key-value rows.
//!
//! Every change is one transaction, and is on the disk (a real sync, see [`open`](State::open)) when the call returns.
//! All calls block on the disk: call them from a thread that may. Nothing here knows of journals, queues or plugins.
//! When sled's directory cannot be opened, or has fallen back, it is set aside and made anew from the last snapshot, and
//! counters resume above every number that could have been used (`open.rs` says what is noticed and what is not).
//!
//! A change that failed with [`StateError::Store`] or [`StateError::DiskFull`] has normally not happened, but may have where
//! sled failed in its last step. So ask for it again: every change here may be asked for twice.
//!
//! Names of outputs and sources have no NUL; keys and counters' names have at most 512 bytes, values at most 1,024.

mod batches;
mod change;
mod files;
mod handle;
mod mark;
mod open;
mod plugin_rows;
mod reserve;
mod rows;
mod sequences;
mod snapshot;
mod space;
mod sync_shim;
#[cfg(test)]
mod tests;

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
    /// For each output: the number of the next batch that it closes.
    pub next_numbers: Vec<(Arc<str>, u64)>,
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
    /// An output's rows, or those of its tenant, would hold more than they may.
    #[error("the rows hold {current} bytes, and {requested} more would pass the limit of {limit}")]
    OverQuota {
        /// It is the tenant's.
        of_tenant: bool,
        /// The limit, bytes.
        limit: u64,
        /// What they hold, bytes.
        current: u64,
        /// How much more that would be, bytes.
        requested: u64,
    },
    /// An output, or its tenant, would have more counters than it may.
    #[error("there are {current} counters, and one more would pass the limit of {limit}")]
    TooManyCounters {
        /// It is the tenant's.
        of_tenant: bool,
        /// The limit.
        limit: u64,
        /// How many there are.
        current: u64,
    },
}

/// What an output may keep. What a tenant's outputs keep is also counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Of the output.
    pub output: Most,
    /// Of all outputs of its tenant, where it has one.
    pub tenant: Most,
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Bytes of keys and values of its rows, its batches' progress and its counters.
    pub bytes: u64,
    /// Counters, by themselves: each is also known in memory, and stays for ever.
    pub counters: u64,
}

impl Most {
    /// As much as there is room for.
    pub const ANY: Self = Self { bytes: u64::MAX, counters: u64::MAX };
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
#[derive(Clone)]
pub struct State {
    inner: Arc<change::Inner>,
}

/// Changes that may not pass a quota.
pub struct WithinQuota<'a> {
    inner: &'a change::Inner,
    quota: Quota,
}

impl fmt::Debug for WithinQuota<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithinQuota").field("quota", &self.quota).finish_non_exhaustive()
    }
}

#[expect(clippy::missing_errors_doc, reason = "as the methods of State, and StateError::OverQuota and TooManyCounters")]
impl WithinQuota<'_> {
    /// As [`State::apply`].
    pub fn apply(&self, output: &str, changes: &[Change]) -> Result<Flushed<()>, StateError> {
        self.inner.apply(Some(self.quota), output, changes)
    }
    /// As [`State::compare_and_set`].
    pub fn compare_and_set(
        &self,
        output: &str,
        key: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Flushed<bool>, StateError> {
        self.inner.compare_and_set(Some(self.quota), output, key, expected, new)
    }
    /// As [`State::progress_put`].
    pub fn progress_put(
        &self,
        output: &str,
        batch: BatchId,
        key: &str,
        value: Option<&[u8]>,
    ) -> Result<Flushed<()>, StateError> {
        self.inner.progress_put(Some(self.quota), output, batch, key, value)
    }
    /// As [`State::assign`].
    pub fn assign(&self, output: &str, name: &str, batch: BatchId, start: u64) -> Result<Flushed<u64>, StateError> {
        self.inner.assign(Some(self.quota), output, name, batch, start)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}

impl State {
    /// Opens the state below `dir`: `state/` is sled's; `state.snapshot`, `state.commits` and `sequences.reserve` are for
    /// a rebuild; `ballast` is given up when the disk is full. The caller holds the data directory's lock. Proves by a
    /// probe that a flush reaches `fdatasync`.
    ///
    /// # Errors
    /// Where even a new state cannot be made.
    pub fn open(dir: &Path) -> Result<(Self, Opened), StateError> {
        let (parts, opened) = open::open(dir)?;
        Ok((Self { inner: Arc::new(change::Inner::new(parts)?) }, opened))
    }
    /// Everything that the queue and the sources need at start.
    ///
    /// # Errors
    /// Where rows cannot be read.
    pub fn load(&self) -> Result<Loaded, StateError> {
        self.inner.load()
    }
    /// The positions of a source, each with the chunk that it came with.
    ///
    /// # Errors
    /// Where rows cannot be read.
    pub fn positions(&self, source: &str) -> Result<Vec<(Position, ChunkId)>, StateError> {
        self.inner.positions(source)
    }
    /// Records a closed batch, moves its partition's cursor to its last chunk, and keeps `positions`.
    ///
    /// # Errors
    /// Where it could not be made durable; nothing has changed then.
    pub fn close_batch(&self, batch: &BatchRow, positions: &[(Position, ChunkId)]) -> Result<Flushed<()>, StateError> {
        self.inner.close_batch(batch, positions)
    }
    /// Moves partitions' cursors over chunks that were dropped by policy.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn skip_chunks(
        &self,
        output: &str,
        cursors: &[(Arc<str>, ChunkId)],
        positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        self.inner.skip_chunks(output, cursors, positions)
    }
    /// Forgets partitions' cursors: for partitions of which no chunk is in the journal, not even a settled one.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn forget_cursors(&self, output: &str, partitions: &[Arc<str>]) -> Result<Flushed<()>, StateError> {
        self.inner.forget_cursors(output, partitions)
    }
    /// Ends a batch: its row, its sequence bindings and its progress go in one transaction.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn settle_batch(
        &self,
        output: &str,
        id: BatchId,
        positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        self.inner.settle_batch(output, id, positions)
    }
    /// Keeps positions alone.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn put_positions(&self, positions: &[(Position, ChunkId)]) -> Result<Flushed<()>, StateError> {
        self.inner.put_positions(positions)
    }
    /// Forgets positions (of files that are gone).
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn delete_positions(&self, source: &str, keys: &[String]) -> Result<Flushed<()>, StateError> {
        self.inner.delete_positions(source, keys)
    }

    /// The batch's number in counter `name` of `output`, bound now if it is not yet. See WIT `sequence.assign`.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn assign(&self, output: &str, name: &str, batch: BatchId, start: u64) -> Result<Flushed<u64>, StateError> {
        self.inner.assign(None, output, name, batch, start)
    }
    /// Binds the batch to the next free number, because `taken` proved taken. See WIT `sequence.reassign`. Where the batch
    /// has a higher number than `taken` already, that is the answer.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn reassign(&self, output: &str, name: &str, batch: BatchId, taken: u64) -> Result<Flushed<u64>, StateError> {
        self.inner.reassign(output, name, batch, taken)
    }

    /// An output's row.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn get(&self, output: &str, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        self.inner.get(output, key)
    }
    /// Applies all changes to an output's rows, or none.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn apply(&self, output: &str, changes: &[Change]) -> Result<Flushed<()>, StateError> {
        self.inner.apply(None, output, changes)
    }
    /// Sets the row to `new` if it is `expected`; whether it did.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn compare_and_set(
        &self,
        output: &str,
        key: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Flushed<bool>, StateError> {
        self.inner.compare_and_set(None, output, key, expected, new)
    }
    /// Rows with the prefix behind `after`, ascending, at most `limit`.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn list(
        &self,
        output: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        self.inner.list(output, prefix, after, limit)
    }
    /// The same changes, refused where the output's rows, or those of its tenant, would hold more than they may. That is decided in the transaction:
    /// workers that write at the same time do not pass it together.
    pub fn within(&self, quota: Quota) -> WithinQuota<'_> {
        WithinQuota { inner: &self.inner, quota }
    }

    /// Bytes of keys and values that an output holds, progress and counters included.
    pub fn stored_bytes(&self, output: &str) -> u64 {
        self.inner.known(|known| known.stored.get(output).copied().unwrap_or(0))
    }

    /// A row of a batch's progress.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn progress_get(&self, output: &str, batch: BatchId, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        self.inner.progress_get(output, batch, key)
    }
    /// Sets (or, with none, deletes) a row of a batch's progress.
    ///
    /// # Errors
    /// As [`State::close_batch`].
    pub fn progress_put(
        &self,
        output: &str,
        batch: BatchId,
        key: &str,
        value: Option<&[u8]>,
    ) -> Result<Flushed<()>, StateError> {
        self.inner.progress_put(None, output, batch, key, value)
    }
    /// Rows of a batch's progress with the prefix, ascending.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn progress_list(
        &self,
        output: &str,
        batch: BatchId,
        prefix: &str,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        self.inner.progress_list(output, batch, prefix)
    }
    /// Whether the batch is still held.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn is_open(&self, output: &str, batch: BatchId) -> Result<bool, StateError> {
        Ok(self.inner.batch_number(output, batch).is_some())
    }
    /// Writes the snapshot that a rebuild starts from. Called now and then, and at a clean stop.
    ///
    /// # Errors
    /// Where it cannot be written; the last one stays.
    pub fn snapshot(&self) -> Result<(), StateError> {
        self.inner.snapshot()
    }
}
