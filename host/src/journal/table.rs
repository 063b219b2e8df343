//! What is where, in memory: live chunks, segments, spares.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Usage;
use super::segment::{Segment, Spare};

/// Closed segments that there must be before a poor use of them is worth copying for.
const COPY_FROM_SEGMENTS: usize = 4;
/// Copying starts when live bytes are under one part in this many of the closed segments' bytes. The emptiest segment is then
/// under that, too, so a segment is won for at most a quarter of it written.
const COPY_BELOW: u64 = 4;
/// The same where the journal is full: any half-empty segment is copied.
const COPY_BELOW_WHEN_FULL: u64 = 2;

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) generation: u64,
    /// Of its frame.
    pub(super) offset: u64,
    /// Bytes of the encoded chunk.
    pub(super) length: u64,
    /// In it: for the count, where it proves damaged and cannot tell any more.
    pub(super) records: u32,
}

/// A segment file and what lives in it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) segment: Arc<Segment>,
    /// Of the file, bytes.
    pub(super) length: u64,
    /// A write to it failed: it is not used again.
    pub(super) abandoned: bool,
    /// The disk does not give some of it: it stays as it is until all of it was released.
    pub(super) unreadable: bool,
    live_bytes: u64,
    live_chunks: usize,
    /// Every chunk that was put here, also those that are gone.
    ids: Vec<u64>,
}

impl Held {
    pub(super) fn new(segment: Segment, length: u64) -> Self {
        Self {
            segment: Arc::new(segment),
            length,
            abandoned: false,
            unreadable: false,
            live_bytes: 0,
            live_chunks: 0,
            ids: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    chunks: HashMap<u64, Place>,
    pub(super) segments: BTreeMap<u64, Held>,
    pub(super) spares: Vec<Spare>,
    /// The segment that is written to.
    pub(super) active: Option<u64>,
    live_bytes: u64,
}

impl Table {
    pub(super) fn with_spares(spares: Vec<Spare>) -> Self {
        Self { spares, ..Self::default() }
    }

    pub(super) fn place(&self, id: u64) -> Option<Place> {
        self.chunks.get(&id).copied()
    }

    /// Where a chunk is, and the file.
    pub(super) fn find(&self, id: u64) -> Option<(Place, Arc<Segment>)> {
        let place = self.place(id)?;
        Some((place, self.segments.get(&place.generation)?.segment.clone()))
    }

    /// A chunk is now here, and nowhere else.
    pub(super) fn put(&mut self, id: u64, place: Place) {
        self.remove(id);
        if let Some(held) = self.segments.get_mut(&place.generation) {
            held.live_bytes += place.length;
            held.live_chunks += 1;
            held.ids.push(id);
            self.live_bytes += place.length;
            self.chunks.insert(id, place);
        }
    }

    /// A chunk was copied; its place changes if it is still wanted, and is still what was copied.
    pub(super) fn moved(&mut self, id: u64, from: Place, to: Place) {
        if self.place(id) == Some(from) {
            self.put(id, to);
        }
    }

    /// Forgets a chunk. Whether its segment has no live chunk any more.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(place) = self.chunks.remove(&id) else { return false };
        self.live_bytes -= place.length;
        let Some(held) = self.segments.get_mut(&place.generation) else { return false };
        held.live_bytes -= place.length;
        held.live_chunks -= 1;
        held.live_chunks == 0
    }

    /// Takes out a segment that nobody needs. The newest one always stays: its header and its marks keep the next id.
    pub(super) fn take_dead(&mut self) -> Option<Held> {
        let newest = self.segments.last_key_value().map(|(generation, _)| *generation);
        let dead = self.segments.iter().find(|(generation, held)| {
            held.live_chunks == 0 && Some(**generation) != newest && Some(**generation) != self.active
        });
        let generation = *dead?.0;
        self.segments.remove(&generation)
    }

    /// Whether there is a segment to delete, or one to copy.
    pub(super) fn has_work(&self, full: bool) -> bool {
        let newest = self.segments.last_key_value().map(|(generation, _)| *generation);
        self.segments.iter().any(|(generation, held)| held.live_chunks == 0 && Some(*generation) != newest)
            || self.victim(full).is_some()
    }

    /// The live chunks of the emptiest, oldest closed segment, where copying them is worth it.
    pub(super) fn to_copy(&self, full: bool) -> Option<Vec<(u64, Place)>> {
        let (generation, held) = self.victim(full)?;
        let here = |id: &u64| {
            let place = self.place(*id)?;
            (place.generation == generation).then_some((*id, place))
        };
        let mut chunks: Vec<_> = held.ids.iter().filter_map(here).collect();
        // A chunk that came back to where it was is listed twice.
        chunks.sort_unstable_by_key(|(id, _)| *id);
        chunks.dedup_by_key(|(id, _)| *id);
        Some(chunks)
    }

    fn victim(&self, full: bool) -> Option<(u64, &Held)> {
        let active = self.active?;
        let closed = || self.segments.iter().filter(|(generation, _)| **generation != active);
        let live: u64 = closed().map(|(_, held)| held.live_bytes).sum();
        let length: u64 = closed().map(|(_, held)| held.length).sum();
        let poor = closed().count() >= COPY_FROM_SEGMENTS && live.saturating_mul(COPY_BELOW) < length;
        let (generation, held) = closed().filter(|(_, held)| held.live_chunks > 0 && !held.unreadable).min_by_key(
            |(generation, held)| (held.live_bytes.saturating_mul(1000) / held.length.max(1), **generation),
        )?;
        let below = if full { COPY_BELOW_WHEN_FULL } else { COPY_BELOW };
        ((poor || full) && held.live_bytes.saturating_mul(below) < held.length).then_some((*generation, held))
    }

    /// Bytes of files on the disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        let segments: u64 = self.segments.values().map(|held| held.length).sum();
        segments + self.spares.iter().map(|spare| spare.length).sum::<u64>()
    }

    pub(super) fn usage(&self, commits: u64, quarantined_records: u64) -> Usage {
        Usage {
            live_bytes: self.live_bytes,
            disk_bytes: self.disk_bytes(),
            segments: self.segments.len(),
            chunks: self.chunks.len(),
            commits,
            quarantined_records,
        }
    }
}
