//! Room: how much the disk has, and how the writer gets a segment that takes the next chunk.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::AppendError;
use super::layout::{FRAME_BYTES, HEADER_BYTES, MAX_CUTS, SegmentHeader};
use super::recover::Active;
use super::segment::make;
use super::table::Held;
use super::writer::Writer;

/// How old an answer may be.
const FRESH: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct FreeSpace {
    dir: PathBuf,
    last: Option<(Instant, u64)>,
}

impl FreeSpace {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, last: None }
    }

    /// Bytes free, as of at most 100 ms ago.
    pub(super) fn bytes(&mut self) -> io::Result<u64> {
        match self.last {
            Some((at, free)) if at.elapsed() < FRESH => Ok(free),
            _ => self.bytes_now(),
        }
    }

    /// Bytes free now, for a process without privileges.
    pub(super) fn bytes_now(&mut self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.dir)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        self.last = Some((Instant::now(), free));
        Ok(free)
    }
}

/// Whether an error means that there is no room, rather than that the disk is failing.
pub(super) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Writer {
    /// How long a segment must be that takes so many bytes of frames: a large chunk gets one of its own.
    pub(super) fn segment_for(&self, span: u64) -> u64 {
        (HEADER_BYTES + span + FRAME_BYTES).max(self.options.segment_bytes)
    }

    /// Bytes of frames that the active segment can still take; its last end mark needs its place, too.
    pub(super) fn room(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| (active.length - FRAME_BYTES).saturating_sub(active.end))
    }

    /// What whoever waits is told of an I/O error.
    pub(super) fn error_of(&mut self, cause: &io::Error) -> AppendError {
        if is_full(cause) {
            let free = self.free.bytes_now().unwrap_or_default();
            AppendError::DiskFull { free, needed: self.options.reserve_bytes + self.options.segment_bytes }
        } else {
            AppendError::Io(cause.to_string())
        }
    }

    /// A chunk that would be refused even by an empty journal. It alone is refused: others need not wait for it.
    pub(super) fn never_fits(&self, span: u64) -> Option<AppendError> {
        let limit = self.options.max_bytes?;
        let alone = HEADER_BYTES + span + FRAME_BYTES;
        (alone > limit.max(self.options.segment_bytes)).then_some(AppendError::LimitReached { used: alone, limit })
    }

    /// Sees to it that so many bytes of frames fit the active segment, and that the disk keeps its reserve.
    pub(super) fn make_room(&mut self, span: u64) -> Result<(), AppendError> {
        let reserve = self.options.reserve_bytes;
        let statvfs = |cause: io::Error| AppendError::Io(format!("asking for the disk's free space failed: {cause}"));
        if self.free.bytes().map_err(statvfs)? < reserve {
            self.drop_spares();
            let free = self.free.bytes_now().map_err(statvfs)?;
            if free < reserve {
                return Err(AppendError::DiskFull { free, needed: reserve });
            }
        }
        if span <= self.room() {
            return Ok(());
        }
        let length = self.segment_for(span);
        if !self.has_spare(length) {
            let used = |writer: &Self| writer.shared.table().disk_bytes();
            if let Some(limit) = self.options.max_bytes {
                if used(self).saturating_add(length) > limit {
                    self.drop_spares();
                }
                if used(self).saturating_add(length) > limit {
                    return Err(AppendError::LimitReached { used: used(self), limit });
                }
            }
            let needed = reserve.saturating_add(length);
            if self.free.bytes_now().map_err(statvfs)? < needed {
                self.drop_spares();
                let free = self.free.bytes_now().map_err(statvfs)?;
                if free < needed {
                    return Err(AppendError::DiskFull { free, needed });
                }
            }
        }
        self.begin_segment(length).map_err(|cause| {
            tracing::error!(%cause, "a new journal segment could not be made");
            self.error_of(&cause)
        })
    }

    fn has_spare(&self, length: u64) -> bool {
        self.shared.table().spares.iter().any(|spare| spare.length == length)
    }

    fn drop_spares(&mut self) {
        for spare in std::mem::take(&mut self.shared.table().spares) {
            if let Err(cause) = std::fs::remove_file(&spare.path) {
                tracing::warn!(file = %spare.path.display(), %cause, "a spare journal file could not be removed");
            }
        }
    }

    /// Makes a new segment the active one, from a spare where there is one of that size.
    pub(super) fn begin_segment(&mut self, length: u64) -> io::Result<()> {
        if self.abandoned.len() > MAX_CUTS {
            return Err(io::Error::other(
                "more segments were abandoned than a header can name; deliver what they hold",
            ));
        }
        let spare = {
            let mut table = self.shared.table();
            let at = table.spares.iter().position(|spare| spare.length == length);
            at.map(|at| table.spares.swap_remove(at))
        };
        let generation = self.next_generation;
        self.next_generation += 1;
        let header = SegmentHeader {
            generation,
            salt: rand::random(),
            base: self.next_id,
            length,
            abandoned: self.abandoned.clone(),
        };
        #[cfg(test)]
        self.shared.faults.on_make()?;
        let held = Held::new(make(&self.shared.dir, &header, spare.as_ref())?, length);
        self.active = Some(Active { segment: held.segment.clone(), length, end: HEADER_BYTES });
        let mut table = self.shared.table();
        table.active = Some(generation);
        table.segments.insert(generation, held);
        let work = table.has_work(self.shared.is_full());
        drop(table);
        if work {
            self.shared.ask_to_reclaim();
        }
        Ok(())
    }
}
