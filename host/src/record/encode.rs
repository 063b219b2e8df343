//! Writing records as bytes: JSON lines or text, plain, gzip or zstd, in pieces of a given size.

use bytes::Bytes;

use super::{Chunk, DateFormat};

/// What the bytes look like.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
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

/// A stream of encoded bytes over a batch.
#[derive(Debug)]
pub struct Encoder<C> {
    _chunks: C,
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
    /// Starts at the first selected record.
    pub fn new(_chunks: C, _selection: Selection, _options: Options) -> Self {
        todo!()
    }
    /// The next piece: exactly `max` bytes, or fewer at the end; none after the end. The first call always gives a piece,
    /// if an empty one.
    ///
    /// # Errors
    /// Where a chunk cannot be read; the encoder is then at its end.
    pub fn next(&mut self, _max: usize) -> Result<Option<Bytes>, EncodeError<C::Error>> {
        todo!()
    }
    /// Whether everything was given out.
    pub fn finished(&self) -> bool {
        todo!()
    }
    /// Selected records that gave no bytes because they lack the `log_key`: how many, and the first 10,000 numbers.
    pub fn skipped(&self) -> (u64, &[u32]) {
        todo!()
    }
}
