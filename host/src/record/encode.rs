//! Writing records as bytes: JSON lines, a JSON array or text, plain, gzip or zstd, in pieces of a given size.
//!
//! The bytes depend on records and options alone. How they are cut into pieces changes nothing, compressed or not: lines are
//! made in windows whose borders come from the records, and a compressor is always fed the same way.
//!
//! [`Messages`] gives records one by one instead, as destinations take them that have no lines.

mod cursor;
mod escape;
mod lines;
mod messages;
mod object;
mod options;
mod sink;

use std::fmt;
use std::sync::LazyLock;

use bytes::Bytes;

use super::{Chunk, DateFormat};
use crate::buffers::{Buffers, Keep};
use cursor::Cursor;
use lines::Lines;
use sink::Sink;

pub(super) use escape::undo as unescape;
pub(crate) use escape::write_lossy as escape_lossy;
pub use messages::{Message, Messages};
pub(super) use object::Key;
pub use options::{DEFAULT_GZIP_LEVEL, DEFAULT_ZSTD_LEVEL};

/// The key that a text record's body has in JSON.
pub(super) const TEXT_KEY: &str = "log";
/// Bytes of bodies that are made into lines at a time: they and their lines stay in the processor's second cache.
const WINDOW: usize = 64 * 1024;
/// Memory that is taken ahead for one piece.
const MAX_RESERVE: usize = 8 * 1024 * 1024;

/// Buffers of pieces, for all outputs of the process: those of one that waits for its destination and of one that is made, and another.
static PIECES: LazyLock<Buffers> =
    LazyLock::new(|| Buffers::new(Keep { room: (1 << 20, 16 << 20), buffers: 3, bytes: 25 << 20 }));

/// Gives memory back that pieces had, and that later ones would have again.
pub(crate) fn let_go_of_pieces() {
    PIECES.let_go();
}

/// What the bytes look like.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// One JSON array of the same objects, on one line without a line feed.
    JsonArray,
    /// The text and a line feed.
    Text,
}

/// Compression of the whole stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    None,
    /// One gzip member, level 0 to 9.
    Gzip(u32),
    /// One zstd frame, level 1 to 19.
    Zstd(i32),
}

/// How to write records: WIT's `records.encoding`, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// See [`Format`].
    pub format: Format,
    /// The key that carries the record's time.
    pub date_key: Option<String>,
    /// How the time is written.
    pub date_format: DateFormat,
    /// Write only this key's value.
    pub log_key: Option<String>,
    /// Compression of the whole.
    pub compression: Compression,
}

/// Which records, counted over all chunks of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// First record and how many.
    Range(u32, u32),
    /// Ascending, each once.
    Indexes(Vec<u32>),
}

/// Gives the chunks of a batch one by one, in order.
pub trait Chunks: Send {
    /// What can go wrong with getting one.
    type Error;
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Records in chunk `n`, without reading it.
    fn records(&self, n: usize) -> u32;
    /// Chunk `n`.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn chunk(&mut self, n: usize) -> Result<Chunk, Self::Error>;
}

/// Chunks that are in memory already.
impl Chunks for Vec<Chunk> {
    type Error = NoSuchChunk;

    fn len(&self) -> usize {
        self.as_slice().len()
    }
    fn records(&self, n: usize) -> u32 {
        self.get(n).map_or(0, |chunk| chunk.meta().records)
    }
    fn chunk(&mut self, n: usize) -> Result<Chunk, Self::Error> {
        self.get(n).cloned().ok_or(NoSuchChunk(n))
    }
}

/// A chunk was asked for that is not there.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no chunk {0}")]
pub struct NoSuchChunk(pub usize);

/// A stream of encoded bytes over a batch. Holds one chunk and about one piece at a time.
pub struct Encoder<C> {
    chunks: C,
    cursor: Cursor,
    /// The chunk that the cursor was in last.
    held: Option<(usize, Chunk)>,
    lines: Lines,
    sink: Sink,
    /// Made, but too much for the piece before.
    ready: Bytes,
    /// Whether a piece was given out.
    begun: bool,
    /// Whether everything is made.
    complete: bool,
}

impl<C> fmt::Debug for Encoder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("cursor", &self.cursor)
            .field("complete", &self.complete)
            .finish_non_exhaustive()
    }
}

/// Why encoding stopped.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError<E> {
    /// A chunk could not be read.
    #[error(transparent)]
    Chunk(E),
    /// The compressor failed.
    #[error("compressing failed: {0}")]
    Compress(String),
}

impl<C: Chunks> Encoder<C> {
    /// Starts at the first selected record. Selected numbers that the batch does not have are passed over.
    pub fn new(chunks: C, selection: Selection, options: Options) -> Self {
        let total = (0..chunks.len()).map(|n| u64::from(chunks.records(n))).sum();
        Self {
            chunks,
            cursor: Cursor::new(selection, total),
            held: None,
            sink: Sink::new(options.compression),
            lines: Lines::new(options),
            ready: Bytes::new(),
            begun: false,
            complete: false,
        }
    }
    /// The next piece: exactly `max` bytes, or fewer at the end; none after the end. The first call always gives a piece,
    /// if an empty one.
    ///
    /// # Errors
    /// Where a chunk cannot be read; the encoder is then at its end.
    pub fn next(&mut self, max: usize) -> Result<Option<Bytes>, EncodeError<C::Error>> {
        if self.begun && self.finished() {
            return Ok(None);
        }
        self.begun = true;
        let max = max.max(1);
        // One byte more than asked for, or the end: only then is it known whether another piece follows.
        if self.ready.len() <= max && !self.complete {
            let made = self.make_more_than(max);
            if made.is_err() {
                self.ready = Bytes::new();
                self.complete = true;
            }
            self.ready = made?;
        }
        let piece = self.ready.split_to(max.min(self.ready.len()));
        Ok(Some(piece))
    }
    /// Whether everything was given out.
    pub fn finished(&self) -> bool {
        self.begun && self.complete && self.ready.is_empty()
    }
    /// Selected records that gave no bytes because they lack the `log_key`: how many, and the first 10,000 numbers.
    pub fn skipped(&self) -> (u64, &[u32]) {
        self.lines.skipped()
    }

    /// What is ready and what follows, more than `max` bytes or up to the end.
    fn make_more_than(&mut self, max: usize) -> Result<Bytes, EncodeError<C::Error>> {
        let mut start = PIECES.take(max.min(MAX_RESERVE) + 2 * WINDOW);
        start.extend_from_slice(&self.ready);
        self.sink.begin(start);
        while self.sink.made() <= max && !self.complete {
            if !self.make_window()? {
                self.complete = true;
                self.lines.finish(self.sink.input());
                self.sink.finish().map_err(|error| EncodeError::Compress(error.to_string()))?;
            }
        }
        Ok(PIECES.lend(self.sink.take()))
    }
    /// Makes the next few records. Gives false when there are none.
    fn make_window(&mut self) -> Result<bool, EncodeError<C::Error>> {
        let chunks = &self.chunks;
        let Some(at) = self.cursor.locate(chunks.len(), |n| chunks.records(n)) else { return Ok(false) };
        let chunk = match self.held.take() {
            Some((n, chunk)) if n == at.chunk => chunk,
            _ => self.chunks.chunk(at.chunk).map_err(EncodeError::Chunk)?,
        };
        let count = chunk.fitting(at.first, at.count, WINDOW).max(1);
        self.lines.write(&chunk, at.first, count, at.number, self.sink.input());
        self.held = Some((at.chunk, chunk));
        self.cursor.advance(count);
        self.sink.fed().map_err(|error| EncodeError::Compress(error.to_string()))?;
        Ok(true)
    }
}

/// All records of some chunks as one piece.
///
/// # Errors
/// Where the compressor fails.
pub fn encode_all(chunks: &[Chunk], options: Options) -> Result<Bytes, EncodeError<NoSuchChunk>> {
    let mut encoder = Encoder::new(chunks.to_vec(), Selection::All, options);
    Ok(encoder.next(usize::MAX)?.unwrap_or_default())
}

/// Appends a text as a JSON string, quotation marks included.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape::write(text.as_bytes(), out);
    out.push(b'"');
}

#[cfg(test)]
mod tests;
