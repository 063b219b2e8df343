//! The chunk: records in columns.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A chunk's place in the journal's order. Ids only grow, and are never used twice in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub u64);

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the bodies of a chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// Raw text, any bytes.
    Text,
    /// Each body is one JSON object, on one line.
    Json,
}

/// How far a source had read when it made a chunk. It commits with the chunk, so data and position never part.
/// `key` and `value` mean something to the source alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The source's name in the configuration.
    pub source: Arc<str>,
    /// What the position is of, for instance a file's identity. At most 512 bytes.
    pub key: String,
    /// The position. At most 1,024 bytes.
    pub value: Vec<u8>,
}

/// Who wants a chunk, fixed when it is accepted: a changed configuration does not re-route what is already kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The output's name.
    pub output: Arc<str>,
    /// The partition of that output which the chunk belongs to; empty where the output has just one.
    pub partition: Arc<str>,
}

/// All of a chunk but its columns and bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMeta {
    /// What the bodies are.
    pub kind: BodyKind,
    /// Every record's tag.
    pub tag: Arc<str>,
    /// Who wants it.
    pub routes: Vec<Route>,
    /// Positions that commit with it.
    pub positions: Vec<Position>,
    /// When it was accepted, nanoseconds since 1970 UTC.
    pub arrival_ns: i64,
    /// Earliest record time.
    pub first_ns: i64,
    /// Latest record time.
    pub last_ns: i64,
    /// How many records, at least 1.
    pub records: u32,
    /// Bytes of all bodies, without separators.
    pub body_bytes: u64,
}

/// Many records of one tag and kind. Immutable, cheap to clone.
#[derive(Debug, Clone)]
pub struct Chunk {
    _todo: Bytes,
}

/// One record of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Nanoseconds since 1970 UTC.
    pub time_ns: i64,
    /// The body, without its separator.
    pub body: &'a [u8],
}

/// Why bytes are not a chunk.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChunkError {
    /// They end too early.
    #[error("the chunk is cut off: {needed} bytes are needed, {found} are there")]
    Short {
        /// Bytes needed.
        needed: u64,
        /// Bytes there.
        found: u64,
    },
    /// They do not begin like one.
    #[error("not a chunk: it begins with {found:#010x}")]
    Magic {
        /// The first four bytes, little-endian.
        found: u32,
    },
    /// A later Wharf wrote it.
    #[error("the chunk has format version {found}, this Wharf reads {known}")]
    Version {
        /// Its version.
        found: u16,
        /// Ours.
        known: u16,
    },
    /// A checksum does not agree.
    #[error("the chunk's {part} is damaged: CRC-32C is {actual:#010x}, recorded {recorded:#010x}")]
    Crc {
        /// `header` or `content`.
        part: &'static str,
        /// As written.
        recorded: u32,
        /// As found.
        actual: u32,
    },
    /// A field makes no sense although the checksum agrees.
    #[error("the chunk's {0} is impossible")]
    Field(&'static str),
}

impl Chunk {
    /// Everything but the records.
    pub fn meta(&self) -> &Arc<ChunkMeta> {
        todo!()
    }
    /// The same records for other outputs. Cheap: bodies are shared.
    #[must_use]
    pub fn with_routes(self, _routes: Vec<Route>) -> Self {
        todo!()
    }
    /// Record `n`, if there is one.
    pub fn record(&self, _n: u32) -> Option<RecordRef<'_>> {
        todo!()
    }
    /// All records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        std::iter::empty()
    }
    /// All bodies, each followed by one line feed: `records` bytes longer than `body_bytes`.
    pub fn bodies(&self) -> &Bytes {
        todo!()
    }
    /// The chunk as bytes: what stands before the bodies (header and columns, with the checksums of all), and the bodies.
    /// Written one behind the other they are what [`Chunk::decode`] reads. Bodies are not copied.
    pub fn encode(&self) -> (Bytes, Bytes) {
        todo!()
    }
    /// How many bytes `encode` gives in all.
    pub fn encoded_len(&self) -> u64 {
        todo!()
    }
    /// Reads a chunk. Both checksums are verified; bodies stay in `bytes`, uncopied.
    ///
    /// # Errors
    /// See [`ChunkError`]. Never panics, whatever the bytes.
    pub fn decode(_bytes: &Bytes) -> Result<Self, ChunkError> {
        todo!()
    }
    /// Reads only the metadata from the beginning of an encoded chunk, verifying the header's own checksum. Gives also the
    /// encoded chunk's whole length.
    ///
    /// # Errors
    /// See [`ChunkError`].
    pub fn decode_meta(_bytes: &[u8]) -> Result<(ChunkMeta, u64), ChunkError> {
        todo!()
    }
}

/// Collects records into a chunk.
#[derive(Debug)]
pub struct ChunkBuilder {
    _todo: (),
}

impl ChunkBuilder {
    /// An empty chunk. `arrival_ns` is now.
    pub fn new(_kind: BodyKind, _tag: Arc<str>) -> Self {
        todo!()
    }
    /// Adds one record. The body is copied. A JSON body must be one object on one line; the caller has seen to that.
    pub fn push(&mut self, _time_ns: i64, _body: &[u8]) {
        todo!()
    }
    /// Adds the whole lines of `block` (each ended by `\n`; a `\r` before it is not part of the body), all with the
    /// same time, and gives how many bytes of `block` they were: what is behind the last `\n` is left to the caller.
    pub fn push_lines(&mut self, _time_ns: i64, _block: &[u8]) -> usize {
        todo!()
    }
    /// Adds a position.
    pub fn position(&mut self, _position: Position) {
        todo!()
    }
    /// Records so far.
    pub fn len(&self) -> u32 {
        todo!()
    }
    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of bodies so far.
    pub fn body_bytes(&self) -> u64 {
        todo!()
    }
    /// The chunk, or none when there is no record.
    pub fn finish(self) -> Option<Chunk> {
        todo!()
    }
}
