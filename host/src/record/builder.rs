//! Collecting records into a chunk.

use std::sync::Arc;

use memchr::{memchr_iter, memrchr};

use super::chunk::{BodyKind, Chunk, ChunkMeta, Position};
use super::{layout, now_ns};

/// Longest tag that a chunk carries; what is longer is cut.
pub const MAX_TAG_BYTES: usize = 64 * 1024;

/// Collects records into a chunk.
#[derive(Debug)]
pub struct ChunkBuilder {
    kind: BodyKind,
    tag: Arc<str>,
    arrival_ns: i64,
    positions: Vec<Position>,
    times: Times,
    ends: Vec<u32>,
    /// Every body with its line feed. Stays shorter than 4 GiB, so that `ends` can count it.
    bodies: Vec<u8>,
}

/// Record times. A tail gives whole blocks one time, so the usual chunk needs just one.
#[derive(Debug)]
enum Times {
    /// Of all records.
    One(i64),
    /// Of each record.
    Each(Vec<i64>),
}

impl ChunkBuilder {
    /// An empty chunk. `arrival_ns` is now. A tag over [`MAX_TAG_BYTES`] is cut at a character.
    pub fn new(kind: BodyKind, tag: Arc<str>) -> Self {
        Self::arrived(kind, tag, now_ns())
    }
    /// An empty chunk of records that arrived at a given time.
    pub fn arrived(kind: BodyKind, tag: Arc<str>, arrival_ns: i64) -> Self {
        let tag =
            if tag.len() > MAX_TAG_BYTES { Arc::from(&tag[..tag.floor_char_boundary(MAX_TAG_BYTES)]) } else { tag };
        let (positions, ends, bodies) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, tag, arrival_ns, positions, times: Times::One(0), ends, bodies }
    }
    /// Makes room for so many bytes of bodies, so that they need not be moved as they grow.
    pub fn reserve(&mut self, bytes: usize) {
        self.bodies.reserve(bytes);
    }
    /// Adds one record. The body is copied. A JSON body must be one object on one line; the caller has seen to that.
    /// Gives false, and takes nothing, when the chunk would reach 4 GiB.
    pub fn push(&mut self, time_ns: i64, body: &[u8]) -> bool {
        self.has_room(body.len()) && self.push_with(time_ns, |out| out.extend_from_slice(body)).is_some()
    }
    /// Adds one record whose body `write` appends to what it is given, and gives its length; it is held to what [`Self::push`] asks of a body.
    /// Gives none, and takes nothing, when the chunk would reach 4 GiB.
    pub fn push_with(&mut self, time_ns: i64, write: impl FnOnce(&mut Vec<u8>)) -> Option<usize> {
        let begin = self.bodies.len();
        write(&mut self.bodies);
        if !self.has_room(0) {
            self.bodies.truncate(begin);
            return None;
        }
        let end = self.bodies.len();
        self.ends.push(end as u32);
        self.bodies.push(b'\n');
        self.note_times(time_ns, 1);
        Some(end - begin)
    }
    /// Adds the whole lines of `block` (each ended by `\n`; a `\r` before it is not part of the body), all with the
    /// same time, and gives how many bytes of `block` they were: what is behind the last `\n` is left to the caller.
    /// Takes nothing when the chunk would reach 4 GiB.
    pub fn push_lines(&mut self, time_ns: i64, block: &[u8]) -> usize {
        let whole = memrchr(b'\n', block).map_or(0, |last| last + 1);
        let Some(lines) = block.get(..whole).filter(|lines| !lines.is_empty() && self.has_room(lines.len())) else {
            return 0;
        };
        let before = self.ends.len();
        let base = self.bodies.len();
        let mut returns = false;
        self.ends.extend(memchr_iter(b'\n', lines).map(|end| {
            returns |= end > 0 && lines.get(end - 1) == Some(&b'\r');
            (base + end) as u32
        }));
        if returns {
            self.ends.truncate(before);
            self.push_lines_without_returns(lines);
        } else {
            self.bodies.extend_from_slice(lines);
        }
        self.note_times(time_ns, self.ends.len() - before);
        whole
    }
    /// Adds a position. It takes the place of an earlier one with the same source and key.
    pub fn position(&mut self, position: Position) {
        match self.positions.iter_mut().find(|known| known.source == position.source && known.key == position.key) {
            Some(known) => *known = position,
            None => self.positions.push(position),
        }
    }
    /// Records so far.
    pub fn len(&self) -> u32 {
        // Each record takes a byte of fewer than 2^32.
        self.ends.len() as u32
    }
    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Bytes of bodies so far.
    pub fn body_bytes(&self) -> u64 {
        (self.bodies.len() - self.ends.len()) as u64
    }
    /// The chunk, or none when there is no record.
    pub fn finish(self) -> Option<Chunk> {
        if self.is_empty() {
            return None;
        }
        let (records, body_bytes) = (self.len(), self.body_bytes());
        let (one, each) = match &self.times {
            Times::One(time_ns) => (Some(*time_ns), std::slice::from_ref(time_ns)),
            Times::Each(times) => (None, times.as_slice()),
        };
        let first_ns = each.iter().copied().min()?;
        let last_ns = each.iter().copied().max()?;
        let mut columns = Vec::with_capacity(each.len() * 8 + self.ends.len() * 4);
        columns.extend(each.iter().flat_map(|time| time.to_le_bytes()));
        columns.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        let meta = ChunkMeta {
            kind: self.kind,
            tag: self.tag,
            routes: Vec::new(),
            positions: self.positions,
            arrival_ns: self.arrival_ns,
            first_ns,
            last_ns,
            records,
            body_bytes,
        };
        Some(Chunk {
            meta: Arc::new(meta),
            one_time: one.is_some(),
            content_crc: layout::crc32c(&[&columns, &self.bodies]),
            columns: columns.into(),
            bodies: self.bodies.into(),
        })
    }

    /// Whether a body of so many bytes and its line feed can be added.
    fn has_room(&self, bytes: usize) -> bool {
        self.bodies.len() as u64 + bytes as u64 + 1 < u64::from(u32::MAX)
    }
    /// Lines of which some end in `\r\n`: each is copied by itself.
    fn push_lines_without_returns(&mut self, lines: &[u8]) {
        let mut start = 0;
        for end in memchr_iter(b'\n', lines) {
            let line = lines.get(start..end).unwrap_or_default();
            self.bodies.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            self.ends.push(self.bodies.len() as u32);
            self.bodies.push(b'\n');
            start = end + 1;
        }
    }
    /// The last `count` records have this time.
    fn note_times(&mut self, time_ns: i64, count: usize) {
        let before = self.ends.len() - count;
        match &mut self.times {
            Times::One(time) if before == 0 => *time = time_ns,
            Times::One(time) if *time == time_ns => {}
            Times::One(time) => {
                let mut times = vec![*time; before];
                times.resize(self.ends.len(), time_ns);
                self.times = Times::Each(times);
            }
            Times::Each(times) => times.resize(self.ends.len(), time_ns),
        }
    }
}
