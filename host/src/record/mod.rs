//! Records, chunks of them, and how they are written as bytes.
//!
//! A [`Chunk`] is what a source hands in and what the journal keeps: many records of one tag, in columns, so that
//! metadata can be read without touching bodies. Each body is followed by one line feed that is not part of it, so a
//! chunk's bodies are already line-delimited text and a plain copy is the commonest encoding.
//!
//! A chunk is shared out without being cut: its [`Route`]s say which output gets which records, and in which partition
//! ([`Partitioning`] finds out); a [`Portion`] is what one of them gets.
//! [`encode`] writes a selection of records as JSON lines or text, compressed or not, piece by piece.
//!
//! Promises: decoding never panics on any bytes; encoding is a pure function of records and options.

mod builder;
mod chunk;
pub mod encode;
mod layout;
mod partition;
mod portion;
mod record_set;
mod time;

pub use builder::{ChunkBuilder, MAX_TAG_BYTES};
pub use chunk::{BodyKind, Chunk, ChunkError, ChunkId, ChunkMeta, Position, RecordRef, Route};
pub use partition::{PartitionKey, Partitioning};
pub use portion::{Part, Portion};
pub use record_set::RecordSet;
pub use time::{DateFormat, now_ns};
