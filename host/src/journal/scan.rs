//! Reads one segment from its beginning to its end, and tells what is whole from what is not.
//!
//! Only one chunk is in memory at a time.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use super::layout::{self, FRAME_BYTES, Frame, HEADER_BYTES, Kind, PREFIX_BYTES, SALTLESS_BYTES};
use super::segment::{Segment, read_leniently};
use crate::record::{Chunk, ChunkError, ChunkMeta};

/// Bytes that are searched for a frame at once.
const WINDOW: usize = 256 << 10;

/// A whole chunk.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) meta: Arc<ChunkMeta>,
}

/// Bytes where a whole frame should be.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) id: Option<u64>,
    pub(super) meta: Option<Arc<ChunkMeta>>,
    pub(super) reason: String,
    /// An end mark stands here: what follows was never committed, or the disk lost a write.
    pub(super) unmarked: bool,
}

/// What a segment holds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) found: Vec<Found>,
    /// Bad stretches that something committed or whole follows.
    pub(super) inside: Vec<Bad>,
    /// Bad stretches behind everything that is whole.
    pub(super) behind: Vec<Bad>,
    /// Where the next frame belongs.
    pub(super) end: u64,
    /// An end mark stands there.
    pub(super) marked: bool,
    /// Where the bad bytes behind `end` end, as far as that can be told: bytes of an earlier life of the file count, too.
    pub(super) used: u64,
    /// Higher than every id seen.
    pub(super) next_id: u64,
}

/// Reads the frames of a segment that lie before `limit`.
pub(super) fn scan(segment: &Segment, limit: u64) -> Scan {
    let mut reader = Reader { segment, limit, buffer: Vec::new() };
    let mut scan = Scan { end: HEADER_BYTES, used: HEADER_BYTES, ..Scan::default() };
    let mut at = HEADER_BYTES;
    while at < limit {
        let Some(frame) = reader.frame(at) else {
            let Some(next) = reader.search(at + 8) else { break };
            scan.bad(at, next, None, "no frame is where one must begin".to_owned());
            at = next;
            continue;
        };
        let next = at + frame.span();
        match frame.kind {
            Kind::Chunk => {
                scan.next_id = scan.next_id.max(frame.id.saturating_add(1));
                match reader.chunk(at, frame.length) {
                    Ok(meta) => {
                        scan.found.push(Found { id: frame.id, offset: at, length: frame.length, meta });
                        scan.whole(next);
                    }
                    Err((cause, meta)) => {
                        scan.bad(at, next, Some(frame.id), cause.to_string());
                        if let Some(bad) = scan.behind.last_mut() {
                            bad.meta = meta;
                        }
                    }
                }
                at = next;
            }
            Kind::Gap => {
                scan.whole(next);
                at = next;
            }
            Kind::End | Kind::Closed => {
                scan.next_id = scan.next_id.max(frame.id);
                if frame.kind == Kind::Closed {
                    scan.whole(at);
                }
                let follows = reader.search(next);
                scan.marked |= at == scan.end;
                if let Some(follows) = follows {
                    scan.bad(at, follows, None, "frames follow what was the end of the segment".to_owned());
                    if let Some(bad) = scan.behind.last_mut() {
                        bad.unmarked = true;
                    }
                }
                at = follows.unwrap_or(limit);
            }
        }
    }
    scan.used = match scan.behind.last() {
        Some(bad) => bad.offset + bad.bytes,
        None if scan.marked => scan.end,
        None => reader.last_used(scan.end..limit),
    };
    scan
}

/// The salt of the first frame of this generation, where the header that should tell it is damaged.
pub(super) fn find_salt(segment: &Segment, limit: u64) -> Option<u64> {
    let mut reader = Reader { segment, limit, buffer: Vec::new() };
    let any = layout::prefix(segment.generation, 0);
    let needle = any.get(..SALTLESS_BYTES)?;
    let at = reader.search_for(HEADER_BYTES, needle, None)?;
    reader.frame_with(at, None).map(|frame| frame.salt)
}

impl Scan {
    /// Everything before `end` was committed, or is whole.
    fn whole(&mut self, end: u64) {
        self.inside.append(&mut self.behind);
        self.end = end;
        self.marked = false;
    }

    fn bad(&mut self, offset: u64, next: u64, id: Option<u64>, reason: String) {
        self.behind.push(Bad { offset, bytes: next - offset, id, meta: None, reason, unmarked: false });
    }
}

struct Reader<'a> {
    segment: &'a Segment,
    limit: u64,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    fn fill(&mut self, offset: u64, length: usize) {
        if let Some(cause) = read_leniently(&self.segment.file, offset, length, &mut self.buffer) {
            tracing::error!(segment = %self.segment.path.display(), offset, %cause, "the disk did not give a part of the journal");
        }
    }

    fn frame(&mut self, at: u64) -> Option<Frame> {
        self.frame_with(at, Some(self.segment.salt))
    }

    /// The frame at `at`, if it and its content end before the limit.
    fn frame_with(&mut self, at: u64, salt: Option<u64>) -> Option<Frame> {
        if at.checked_add(FRAME_BYTES)? > self.limit {
            return None;
        }
        self.fill(at, FRAME_BYTES as usize);
        let frame = Frame::decode(&self.buffer, self.segment.generation, salt)?;
        (at.checked_add(frame.span())? <= self.limit).then_some(frame)
    }

    /// Verifies a chunk. Its metadata comes along with an error where it can be read.
    fn chunk(&mut self, at: u64, length: u64) -> Result<Arc<ChunkMeta>, (ChunkError, Option<Arc<ChunkMeta>>)> {
        self.fill(at + FRAME_BYTES, length as usize);
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let decoded = decode(&bytes, length);
        let decoded = match decoded {
            Ok(chunk) => Ok(chunk.meta().clone()),
            Err(cause) => Err((cause, Chunk::decode_meta(&bytes).ok().map(|(meta, _)| Arc::new(meta)))),
        };
        // The buffer comes back uncopied: nothing holds the chunk any more.
        self.buffer = bytes.into();
        decoded
    }

    /// Where the next frame of this segment begins, at `from` or later.
    fn search(&mut self, from: u64) -> Option<u64> {
        let prefix = layout::prefix(self.segment.generation, self.segment.salt);
        self.search_for(from, &prefix, Some(self.segment.salt))
    }

    fn search_for(&mut self, from: u64, needle: &[u8], salt: Option<u64>) -> Option<u64> {
        let finder = memmem::Finder::new(needle);
        let mut window = Vec::new();
        let mut start = from;
        while start < self.limit {
            let length = (self.limit - start).min(WINDOW as u64) as usize;
            self.fill(start, length);
            // Frames are looked at with the same buffer.
            std::mem::swap(&mut window, &mut self.buffer);
            for hit in finder.find_iter(&window) {
                let at = start + hit as u64;
                if at.is_multiple_of(8) && self.frame_with(at, salt).is_some() {
                    return Some(at);
                }
            }
            if window.len() < WINDOW {
                return None;
            }
            // A needle that the window's end cuts is found by the next one.
            start += (WINDOW - PREFIX_BYTES) as u64;
        }
        None
    }

    /// The end of the last byte in the range that is not zero; the range's start where all are.
    fn last_used(&mut self, range: Range<u64>) -> u64 {
        let mut used = range.start;
        let mut start = range.start;
        while start < range.end {
            let length = (range.end - start).min(WINDOW as u64) as usize;
            self.fill(start, length);
            if let Some(last) = self.buffer.iter().rposition(|byte| *byte != 0) {
                used = start + last as u64 + 1;
            }
            if self.buffer.len() < length {
                break;
            }
            start += length as u64;
        }
        used
    }
}

/// Reads a chunk that must be exactly as long as its frame says.
pub(super) fn decode(bytes: &Bytes, length: u64) -> Result<Chunk, ChunkError> {
    let chunk = Chunk::decode(bytes)?;
    if chunk.encoded_len() == length { Ok(chunk) } else { Err(ChunkError::Field("length")) }
}
