//! What is known of a chunk beside its records.

use std::fmt;
use std::sync::Arc;

use crate::record::portion::Part;

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
    /// The partition of that output which the records belong to; empty where the output has just one.
    pub partition: Arc<str>,
    /// Which records it wants; none is all of them. An output with several partitions may have a route for each.
    pub part: Option<Part>,
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
