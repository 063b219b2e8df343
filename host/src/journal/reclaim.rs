//! Getting disk space back: segments that nothing lives in are kept as spares or deleted; what little lives in others is copied
//! forward, so that few chunks do not pin much disk.

use bytes::Bytes;

use super::lanes::GROUP_BYTES;
use super::layout;
use super::reading::{Verified, read_frame, set_chunk_aside};
use super::recover::MAX_SPARES;
use super::segment::{Spare, free_path, sync_dir};
use super::table::{Held, Place};
use super::writer::{Item, Writer};

impl Writer {
    /// Deletes what is dead, then copies one group forward. Comes again while there is more to do.
    pub(super) fn reclaim(&mut self) {
        self.retire_dead();
        if self.copy_forward() {
            self.shared.ask_to_reclaim();
        }
    }

    /// Deletes segments that nothing lives in, or keeps them as spares.
    pub(super) fn retire_dead(&mut self) {
        while let Some(dead) = self.take_dead() {
            self.retire(dead);
        }
    }

    fn take_dead(&self) -> Option<Held> {
        self.shared.table().take_dead()
    }

    fn retire(&mut self, dead: Held) {
        let path = &dead.segment.path;
        let spare = {
            let table = self.shared.table();
            !dead.abandoned
                && dead.length == self.segment_bytes()
                && table.spares.len() < MAX_SPARES
                && !self.shared.is_full()
        };
        let done = if spare {
            let free = free_path(&self.shared.dir, dead.segment.generation);
            std::fs::rename(path, &free)
                .map(|()| self.shared.table().spares.push(Spare { path: free, length: dead.length }))
        } else {
            std::fs::remove_file(path)
        };
        match done {
            Ok(()) if dead.abandoned => self.forget_abandoned(dead.segment.generation),
            Ok(()) => {}
            // It is found at the next start, and its chunks are known to be settled then as now.
            Err(cause) => {
                tracing::error!(segment = %path.display(), %cause, "a journal segment that is not needed could not be removed");
            }
        }
    }

    /// Where an abandoned segment ends may be forgotten only once its file is gone for good.
    fn forget_abandoned(&mut self, generation: u64) {
        match sync_dir(&self.shared.dir) {
            Ok(()) => self.abandoned.retain(|cut| cut.generation != generation),
            Err(cause) => tracing::warn!(%cause, "syncing the journal's directory failed"),
        }
    }

    /// Copies live chunks of the emptiest segment to the end of the active one. Whether to come again.
    fn copy_forward(&mut self) -> bool {
        let chunks = self.shared.table().to_copy(self.shared.is_full());
        let Some(chunks) = chunks else { return false };
        let mut items: Vec<Item> = Vec::new();
        let mut from: Vec<Place> = Vec::new();
        let mut spans = 0;
        for (id, place) in chunks {
            let span = layout::span(place.length);
            if spans + span > self.room() {
                if items.is_empty() {
                    return self.room_for_copies(span);
                }
                break;
            }
            if !items.is_empty() && spans + span > GROUP_BYTES {
                break;
            }
            if let Some(bytes) = self.raw(id, place) {
                items.push(Item { id, head: bytes, bodies: Bytes::new(), records: place.records });
                from.push(place);
                spans += span;
            }
        }
        if items.is_empty() {
            // All of them are gone, or are in a segment that is left alone from now on.
            return true;
        }
        match self.write(&items) {
            Ok(places) => {
                let mut table = self.shared.table();
                for ((item, from), to) in items.iter().zip(from).zip(places) {
                    table.moved(item.id, from, to);
                }
                true
            }
            Err(cause) => {
                let error = self.failed(cause);
                self.refuse(Default::default(), error);
                false
            }
        }
    }

    /// The encoded chunk, verified. None where it is gone, damaged (and set aside by this), or not readable.
    fn raw(&self, id: u64, place: Place) -> Option<Bytes> {
        let (now, segment) = self.shared.table().find(id)?;
        if now != place {
            return None;
        }
        match read_frame(&self.shared.buffers, &segment, id, place) {
            Ok(Verified::Whole { bytes, .. }) => Some(bytes),
            Ok(Verified::Damaged(cause)) => {
                set_chunk_aside(&self.shared, &segment, id, place, &cause);
                None
            }
            Err(cause) => {
                tracing::error!(segment = %segment.path.display(), chunk = id, %cause, "the disk does not give a chunk; its segment is not copied forward");
                if let Some(held) = self.shared.table().segments.get_mut(&place.generation) {
                    held.unreadable = true;
                }
                None
            }
        }
    }

    /// Begins a segment to copy to. Neither the reserve nor the limit holds it up: it frees more than it takes. A full disk does.
    fn room_for_copies(&mut self, span: u64) -> bool {
        match self.begin_segment(self.segment_for(span)) {
            Ok(()) => true,
            Err(cause) => {
                tracing::warn!(%cause, "live chunks could not be copied forward; their segments stay until they are delivered");
                false
            }
        }
    }
}
