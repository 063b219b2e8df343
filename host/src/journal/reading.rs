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
use crate::record::{Chunk, ChunkError, ChunkId};

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
        let verified = read_frame(&segment, id.0, place);
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

/// Reads and verifies the frame: one read into one allocation, which the chunk's bodies then are a part of.
pub(super) fn read_frame(segment: &Segment, id: u64, place: Place) -> io::Result<Verified> {
    let mut buffer = Vec::new();
    read_at(&segment.file, place.offset, (FRAME_BYTES + place.length) as usize, &mut buffer)?;
    let expected = segment.frame(Kind::Chunk, id, place.length);
    if Frame::decode(&buffer, segment.generation, Some(segment.salt)) != Some(expected) {
        return Ok(Verified::Damaged(match frame_crcs(&buffer) {
            Some((recorded, actual)) if recorded != actual => ChunkError::Crc { part: "frame", recorded, actual },
            Some(_) => ChunkError::Field("frame"),
            None => ChunkError::Short { needed: FRAME_BYTES, found: buffer.len() as u64 },
        }));
    }
    let bytes = Bytes::from(buffer).slice(FRAME_BYTES as usize..);
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
