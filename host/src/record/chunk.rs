//! The chunk: records in columns. `layout` has its bytes, `builder` how one comes to be.

mod error;
mod meta;
mod part;
mod records;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::layout;
use records::Records;

pub use error::ChunkError;
pub use meta::{BodyKind, ChunkId, ChunkMeta, Position, Route};
pub use records::RecordRef;

/// Many records of one tag and kind. Immutable, cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk {
    pub(super) meta: Arc<ChunkMeta>,
    /// Whether the column of times has one for all records.
    pub(super) one_time: bool,
    /// Record times and record ends, one column behind the other, as they are encoded.
    pub(super) columns: Bytes,
    /// Every body with its line feed.
    pub(super) bodies: Bytes,
    /// CRC-32C of columns and bodies.
    pub(super) content_crc: u32,
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bodies are other people's data, and long.
        f.debug_struct("Chunk").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl Chunk {
    /// Everything but the records.
    pub fn meta(&self) -> &Arc<ChunkMeta> {
        &self.meta
    }
    /// The same records for other outputs. Cheap: bodies are shared.
    #[must_use]
    pub fn with_routes(mut self, routes: Vec<Route>) -> Self {
        Arc::make_mut(&mut self.meta).routes = routes;
        self
    }
    /// Record `n`, if there is one.
    pub fn record(&self, n: u32) -> Option<RecordRef<'_>> {
        self.range(n, 1).next()
    }
    /// All records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        self.range(0, self.meta.records)
    }
    /// `count` records from `first`, or fewer at the end.
    pub fn range(&self, first: u32, count: u32) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        let first = first.min(self.meta.records) as usize;
        let count = (count as usize).min(self.meta.records as usize - first);
        let (times, ends) = self.split_columns();
        Records {
            time_ns: self.meta.first_ns,
            times: if self.one_time { &[] } else { times.as_chunks().0.get(first..).unwrap_or_default() },
            ends: ends.as_chunks().0.get(first..first + count).unwrap_or_default(),
            start: self.start(first),
            bodies: &self.bodies,
        }
    }
    /// Where `count` records from `first` lie in the bodies, their separators included; ends early at the chunk's end.
    pub fn span(&self, first: u32, count: u32) -> Range<usize> {
        let first = first.min(self.meta.records) as usize;
        self.start(first)..self.start(first + count as usize)
    }
    /// Body sizes of `count` records from `first`, or fewer at the end.
    pub(crate) fn sizes(&self, first: u32, count: u32) -> impl Iterator<Item = u32> {
        let first = first.min(self.meta.records) as usize;
        let count = (count as usize).min(self.meta.records as usize - first);
        let mut start = self.start(first) as u32;
        let ends = self.split_columns().1.as_chunks().0.get(first..first + count).unwrap_or_default();
        ends.iter().map(move |end| {
            let end = u32::from_le_bytes(*end);
            let size = end.saturating_sub(start);
            // Behind the line feed.
            start = end.saturating_add(1);
            size
        })
    }
    /// How many of `count` records from `first` lie within the next `bytes`; at least one, where there is one.
    pub(crate) fn fitting(&self, first: u32, count: u32, bytes: usize) -> u32 {
        let first = first.min(self.meta.records);
        let count = count.min(self.meta.records - first);
        let limit = self.start(first as usize) + bytes;
        let ends = self.split_columns().1.as_chunks().0.get(first as usize..(first + count) as usize);
        let within = ends.unwrap_or_default().partition_point(|end| (u32::from_le_bytes(*end) as usize) < limit);
        (within as u32).max(1).min(count)
    }
    /// All bodies, each followed by one line feed: `records` bytes longer than `body_bytes`.
    pub fn bodies(&self) -> &Bytes {
        &self.bodies
    }
    /// The chunk as bytes: what stands before the bodies (header and columns, with the checksums of all), and the bodies.
    /// Written one behind the other they are what [`Chunk::decode`] reads. Bodies are not copied.
    pub fn encode(&self) -> (Bytes, Bytes) {
        let mut head = layout::write_header(&self.meta, self.one_time, self.content_crc, self.columns.len());
        head.extend_from_slice(&self.columns);
        (head.into(), self.bodies.clone())
    }
    /// How many bytes `encode` gives in all.
    pub fn encoded_len(&self) -> u64 {
        (layout::header_bytes(&self.meta) + self.columns.len() + self.bodies.len()) as u64
    }
    /// Reads a chunk. Both checksums are verified, and that the columns fit the bodies; bodies stay in `bytes`, uncopied.
    /// What is behind the chunk is ignored.
    ///
    /// # Errors
    /// See [`ChunkError`]. Never panics, whatever the bytes.
    pub fn decode(bytes: &Bytes) -> Result<Self, ChunkError> {
        let header = layout::read_header(bytes)?;
        let needed = header.chunk_bytes();
        let short = || ChunkError::Short { needed, found: bytes.len() as u64 };
        let end = usize::try_from(needed).ok().filter(|end| *end <= bytes.len()).ok_or_else(short)?;
        // Both lie before `end`, and so fit.
        let (start, bodies) = (header.columns().start as usize, header.columns().end as usize);
        let (columns, bodies) = (bytes.slice(start..bodies), bytes.slice(bodies..end));
        let actual = layout::crc32c(&[&columns, &bodies]);
        if actual != header.content_crc {
            return Err(ChunkError::Crc { part: "content", recorded: header.content_crc, actual });
        }
        let chunk = Self {
            meta: Arc::new(header.meta),
            one_time: header.one_time,
            columns,
            bodies,
            content_crc: header.content_crc,
        };
        let (times, ends) = chunk.split_columns();
        layout::check_columns(&chunk.meta, times, ends, &chunk.bodies)?;
        let mut parts = chunk.meta.routes.iter().filter_map(|route| route.part.as_ref());
        if parts.any(|part| chunk.measure(&part.records) != (part.body_bytes, part.first_ns, part.last_ns)) {
            return Err(ChunkError::Field("part that a route takes"));
        }
        Ok(chunk)
    }
    /// Reads only the metadata from the beginning of an encoded chunk, verifying the header's own checksum. Gives also the
    /// encoded chunk's whole length.
    ///
    /// # Errors
    /// See [`ChunkError`]. [`ChunkError::Short`] says how many bytes the header needs.
    pub fn decode_meta(bytes: &[u8]) -> Result<(ChunkMeta, u64), ChunkError> {
        let header = layout::read_header(bytes)?;
        let length = header.chunk_bytes();
        Ok((header.meta, length))
    }

    /// Where record `n` begins in the bodies; their end where there are fewer records.
    fn start(&self, n: usize) -> usize {
        let ends = self.split_columns().1.as_chunks().0;
        match n.checked_sub(1) {
            None => 0,
            Some(before) => ends.get(before).map_or(self.bodies.len(), |end| u32::from_le_bytes(*end) as usize + 1),
        }
    }
    /// The column of times and the column of ends.
    fn split_columns(&self) -> (&[u8], &[u8]) {
        let times = layout::times_bytes(self.one_time, self.meta.records) as usize;
        self.columns.split_at_checked(times).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
