//! What one output wants of a chunk for one of its partitions: all records, or some.
//!
//! A chunk is stored once, however it is shared out: its routes say who gets which records. Everything behind the journal counts,
//! keeps and settles portions, and a portion of a chunk can be read as if it were a chunk of its own.

use std::sync::Arc;

use super::chunk::{Chunk, ChunkId, ChunkMeta, Route};
use super::record_set::RecordSet;

/// Some of a chunk's records, and what is to be known of them without reading bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub records: RecordSet,
    /// Bytes of their bodies, without separators.
    pub body_bytes: u64,
    /// Earliest record time.
    pub first_ns: i64,
    /// Latest record time.
    pub last_ns: i64,
    /// CRC-32C of the columns and bodies that a chunk of these records alone has: so they can be read, and trusted, without the rest.
    pub crc: u32,
}

/// A chunk, or the part of it that one of its routes takes. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portion {
    /// The chunk.
    pub id: ChunkId,
    /// Its metadata, of all its records.
    pub meta: Arc<ChunkMeta>,
    /// Which of its routes this is; [`WHOLE`] is none.
    route: u32,
}

/// No route has this number: its header would have more than 4 GiB.
const WHOLE: u32 = u32::MAX;

impl Portion {
    /// All of a chunk.
    pub fn whole(id: ChunkId, meta: Arc<ChunkMeta>) -> Self {
        Self { id, meta, route: WHOLE }
    }
    /// What each route takes of a chunk, in their order.
    pub fn each(id: ChunkId, meta: &Arc<ChunkMeta>) -> impl Iterator<Item = (&Route, Self)> {
        (0..).zip(&meta.routes).map(move |(route, to)| (to, Self { id, meta: meta.clone(), route }))
    }
    /// How many records.
    pub fn records(&self) -> u32 {
        self.part().map_or(self.meta.records, |part| part.records.count())
    }
    /// Bytes of their bodies, without separators.
    pub fn body_bytes(&self) -> u64 {
        self.part().map_or(self.meta.body_bytes, |part| part.body_bytes)
    }
    /// Earliest record time.
    pub fn first_ns(&self) -> i64 {
        self.part().map_or(self.meta.first_ns, |part| part.first_ns)
    }
    /// Latest record time.
    pub fn last_ns(&self) -> i64 {
        self.part().map_or(self.meta.last_ns, |part| part.last_ns)
    }
    /// Bytes on disk that it is counted with: see [`ChunkMeta::disk_bytes`].
    pub fn disk_bytes(&self) -> u64 {
        self.meta.disk_bytes(self.route())
    }
    /// The portion of its chunk, as a chunk by itself: record 0 is the portion's first.
    pub fn of(&self, chunk: Chunk) -> Chunk {
        match self.part() {
            Some(part) => chunk.only(part),
            None => chunk,
        }
    }

    fn route(&self) -> Option<&Route> {
        self.meta.routes.get(self.route as usize)
    }
    /// Which records of the chunk; none is all.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.route()?.part.as_ref()
    }
}

impl ChunkMeta {
    /// Bytes on disk that a route's portion is counted with, give or take: its bodies with their separators, ends and times, and, where
    /// it is all of the chunk, the header; where it is a part, the route's own place there.
    #[must_use]
    pub fn disk_bytes(&self, route: Option<&Route>) -> u64 {
        let one_time = self.first_ns == self.last_ns;
        match route.and_then(|route| Some((route, route.part.as_ref()?))) {
            None => {
                let times = if one_time { 8 } else { 8 * u64::from(self.records) };
                self.body_bytes + 5 * u64::from(self.records) + times + self.tag.len() as u64 + 128
            }
            Some((route, part)) => {
                let each = if one_time { 5 } else { 13 };
                let place = route.output.len() + route.partition.len() + part.records.as_bytes().len() + 40;
                part.body_bytes + each * u64::from(part.records.count()) + place as u64
            }
        }
    }
}
