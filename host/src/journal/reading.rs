//! Reading a chunk, and what is done when it is damaged.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::ReadError;
use super::layout::{FRAME_BYTES, Frame, Kind, frame_crcs};
use super::quarantine::{Stretch, set_aside};
use super::scan::decode;
use super::segment::{Segment, read_at};
use super::shared::Shared;
use super::table::Place;
use crate::buffers::Buffers;
use crate::record::{Chunk, ChunkError, ChunkId, Portion};

/// What stands in a chunk's place.
pub(super) enum Verified {
    /// The chunk, and the bytes that it was decoded from.
    Whole {
        chunk: Chunk,
        bytes: Bytes,
    },
    Damaged(ChunkError),
}

pub(super) fn read(shared: &Shared, id: ChunkId) -> Result<Chunk, ReadError> {
    let found = shared.table().find(id.0);
    read_found(shared, id, found)
}

/// Reads a chunk that was found there a moment ago.
pub(super) fn read_found(
    shared: &Shared,
    id: ChunkId,
    mut found: Option<(Place, Arc<Segment>)>,
) -> Result<Chunk, ReadError> {
    loop {
        let (place, segment) = found.ok_or(ReadError::Missing(id))?;
        let verified = read_frame(&shared.buffers, &segment, id.0, place);
        if !matches!(verified, Ok(Verified::Whole { .. })) {
            found = shared.table().find(id.0);
            if found.as_ref().map(|(now, _)| *now) != Some(place) {
                // It was released or copied elsewhere, and its file used again, while we read.
                continue;
            }
        }
        return match verified {
            Ok(Verified::Whole { chunk, .. }) => Ok(chunk),
            Ok(Verified::Damaged(cause)) => {
                let file = set_chunk_aside(shared, &segment, id.0, place, &cause);
                Err(ReadError::Corrupt { id, file, cause })
            }
            Err(cause) => Err(ReadError::Io { id, cause }),
        };
    }
}

/// Reads a portion of a chunk, as a chunk by itself: without the rest, where it is small; else of the whole.
pub(super) fn read_portion(shared: &Shared, portion: &Portion) -> Result<Chunk, ReadError> {
    match read_by_itself(shared, portion) {
        Some(chunk) => Ok(chunk),
        None => read(shared, portion.id).map(|chunk| portion.of(chunk)),
    }
}

/// None where the portion's own checksum does not agree, or the disk does not give it: then the whole chunk is read, and that finds out
/// what is wrong, and whether it was released or copied elsewhere meanwhile.
fn read_by_itself(shared: &Shared, portion: &Portion) -> Option<Chunk> {
    let part = portion.part()?;
    let (place, segment) = shared.table().find(portion.id.0)?;
    let read = |offset: u64, length: usize| {
        let mut buffer = Vec::new();
        let end = offset.checked_add(length as u64).filter(|end| *end <= place.length);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        read_at(&segment.file, place.offset + FRAME_BYTES + offset, length, &mut buffer)?;
        if buffer.len() == length { Ok(buffer) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    Chunk::read_part(&portion.meta, part, read).ok().flatten()
}

/// Reads and verifies the frame: one read into one allocation, which the chunk's bodies then are a part of.
pub(super) fn read_frame(buffers: &Buffers, segment: &Segment, id: u64, place: Place) -> io::Result<Verified> {
    let length = (FRAME_BYTES + place.length) as usize;
    let mut buffer = buffers.take(length);
    read_at(&segment.file, place.offset, length, &mut buffer)?;
    let expected = segment.frame(Kind::Chunk, id, place.length);
    if Frame::decode(&buffer, segment.generation, Some(segment.salt)) != Some(expected) {
        return Ok(Verified::Damaged(match frame_crcs(&buffer) {
            Some((recorded, actual)) if recorded != actual => ChunkError::Crc { part: "frame", recorded, actual },
            Some(_) => ChunkError::Field("frame"),
            None => ChunkError::Short { needed: FRAME_BYTES, found: buffer.len() as u64 },
        }));
    }
    let bytes = buffers.lend(buffer).slice(FRAME_BYTES as usize..);
    Ok(match decode(&bytes, place.length) {
        Ok(chunk) => Verified::Whole { chunk, bytes },
        Err(cause) => Verified::Damaged(cause),
    })
}

/// Sets a damaged chunk aside and forgets it; gives where its bytes are now.
pub(super) fn set_chunk_aside(
    shared: &Shared,
    segment: &Segment,
    id: u64,
    place: Place,
    cause: &ChunkError,
) -> PathBuf {
    let frame = segment.frame(Kind::Chunk, id, place.length);
    let reason = cause.to_string();
    let stretch = Stretch { segment, offset: place.offset, bytes: frame.span(), id: Some(id), reason: &reason };
    let aside = set_aside(&shared.quarantine, &stretch);
    let safe = aside.is_ok();
    let file = aside.unwrap_or_else(|cause| {
        tracing::error!(dir = %shared.quarantine.display(), %cause, "a damaged chunk could not be copied to the quarantine; it stays in its segment");
        segment.path.clone()
    });
    tracing::error!(
        chunk = id, segment = %segment.path.display(), offset = place.offset, reason, file = %file.display(),
        "a chunk was damaged on disk and is set aside"
    );
    let freed = {
        let mut table = shared.table();
        if table.place(id) != Some(place) {
            return file;
        }
        if safe {
            // So that the next start does not report it again. Under the lock: while the chunk is in the table its file
            // cannot become another segment. Not synced: at worst it is reported again.
            let gap = segment.frame(Kind::Gap, 0, place.length).encode();
            if let Err(cause) = segment.file.write_all_at(&gap, place.offset) {
                tracing::warn!(segment = %segment.path.display(), %cause, "a damaged chunk's place could not be marked; it is reported again at the next start");
            }
        }
        table.remove(id)
    };
    shared.quarantined_records.fetch_add(u64::from(place.records), Ordering::Relaxed);
    if freed {
        shared.ask_to_reclaim();
    }
    file
}
