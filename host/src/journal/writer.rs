//! The writer thread: takes what waits, writes it as one group, syncs once, tells of it in order.
//!
//! A group lies in one segment and is written at its end, over the end mark, with a new end mark behind it. Since each group is
//! synced before the next is written, a segment is wholly on the disk when it is left for the next.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::layout::{self, Abandoned, FRAME_BYTES, HEADER_BYTES, Kind};
use super::recover::{Active, Opened};
use super::segment::write_pieces;
use super::shared::{Shared, Waiting};
use super::space::FreeSpace;
use super::table::Place;
use super::{AppendError, Condition, OnCommit, Options};
use crate::record::ChunkId;

/// How often a journal that refuses looks whether it still must. What had been queued behind a refused chunk was refused
/// with it, so this is also the time in which whoever handed it in hears of that before anything later is taken.
const RETRY: Duration = Duration::from_millis(250);

/// What is written as one frame. Copying shares the bytes.
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) head: Bytes,
    pub(super) bodies: Bytes,
    pub(super) records: u32,
}

impl Item {
    fn length(&self) -> u64 {
        (self.head.len() + self.bodies.len()) as u64
    }
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    on_commit: OnCommit,
    pub(super) options: Options,
    pub(super) free: FreeSpace,
    pub(super) active: Option<Active>,
    pub(super) next_id: u64,
    pub(super) next_generation: u64,
    /// Where abandoned segments that still exist end.
    pub(super) abandoned: Vec<Abandoned>,
    /// When to look next whether there is room again.
    retry_at: Instant,
    /// Bytes that the last refused chunk needs.
    refused_bytes: u64,
}

enum Turn {
    Group(VecDeque<Waiting>),
    Reclaim,
    Retry,
    Close,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, on_commit: OnCommit, options: Options, opened: Opened) -> Self {
        Self {
            free: FreeSpace::new(shared.dir.clone()),
            shared,
            on_commit,
            options,
            active: opened.active,
            next_id: opened.next_id,
            next_generation: opened.next_generation,
            abandoned: opened.abandoned,
            retry_at: Instant::now(),
            refused_bytes: 0,
        }
    }

    pub(super) fn run(mut self) {
        let _alarm = Alarm(self.shared.clone());
        loop {
            match self.next_turn() {
                Turn::Group(group) => {
                    self.commit(group);
                    // In between, so that neither holds up the other when there is always more to write.
                    if std::mem::take(&mut self.shared.work().reclaim) {
                        self.reclaim();
                    }
                }
                Turn::Reclaim => self.reclaim(),
                Turn::Retry => self.retry(),
                Turn::Close => break,
            }
        }
        // What is left would only be read, and found released, at the next start.
        self.retire_dead();
        self.mark_closed();
    }

    fn next_turn(&self) -> Turn {
        let mut work = self.shared.work();
        loop {
            work.idle = false;
            if !work.waiting.is_empty() {
                return Turn::Group(work.waiting.take_group());
            }
            if work.closing {
                return Turn::Close;
            }
            if std::mem::take(&mut work.reclaim) {
                return Turn::Reclaim;
            }
            work.idle = true;
            if *self.shared.condition.borrow() == Condition::Writable {
                work = self.shared.wake.wait(work).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let wait = self.retry_at.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return Turn::Retry;
            }
            work = self.shared.wake.wait_timeout(work, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Commits a group, in parts where it does not fit the segment.
    fn commit(&mut self, mut group: VecDeque<Waiting>) {
        while let Some(first) = group.front() {
            if let Some(error) = self.shared.refusal() {
                count_refusals(&group);
                return refuse_all(group, &error);
            }
            if first.overtakes() {
                if let Some(first) = group.pop_front() {
                    first.refuse(AppendError::Overtaking);
                }
                continue;
            }
            let span = layout::span(first.length());
            if let Some(error) = self.never_fits(span) {
                if let Some(first) = group.pop_front() {
                    first.lane.count_refusal();
                    first.refuse(error);
                }
                continue;
            }
            if let Err(error) = self.make_room(span) {
                self.refused_bytes = span;
                return self.refuse(group, error);
            }
            let part = self.take_what_fits(&mut group);
            let items: Vec<Item> = part
                .iter()
                .map(|waiting| Item {
                    id: self.take_id(),
                    head: waiting.head.clone(),
                    bodies: waiting.bodies.clone(),
                    records: waiting.meta.records,
                })
                .collect();
            match self.write(&items) {
                Ok(places) => self.committed(part, &items, &places),
                Err(cause) => {
                    let error = self.failed(cause);
                    let mut refused = VecDeque::from(part);
                    refused.append(&mut group);
                    return self.refuse(refused, error);
                }
            }
        }
    }

    fn committed(&mut self, part: Vec<Waiting>, items: &[Item], places: &[Place]) {
        {
            let mut table = self.shared.table();
            for (item, place) in items.iter().zip(places) {
                table.put(item.id, *place);
            }
        }
        let chunks: Vec<_> =
            items.iter().zip(&part).map(|(item, waiting)| (ChunkId(item.id), waiting.meta.clone())).collect();
        (self.on_commit)(&chunks);
        for (waiting, (id, _)) in part.into_iter().zip(&chunks) {
            // Whoever does not wait any more does not want to know; the chunk is kept all the same.
            let _ = waiting.reply.send(Ok(*id));
        }
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn take_what_fits(&self, group: &mut VecDeque<Waiting>) -> Vec<Waiting> {
        let mut room = self.room();
        let mut part = Vec::new();
        let fits = |waiting: &Waiting, room: u64| layout::span(waiting.length()) <= room && !waiting.overtakes();
        while let Some(waiting) = group.pop_front_if(|waiting| fits(waiting, room)) {
            room -= layout::span(waiting.length());
            part.push(waiting);
        }
        part
    }

    pub(super) fn segment_bytes(&self) -> u64 {
        self.options.segment_bytes
    }

    /// Writes frames at the end of the active segment, and syncs. After an error the segment must not be used again.
    pub(super) fn write(&mut self, items: &[Item]) -> io::Result<Vec<Place>> {
        const ZEROS: [u8; 8] = [0; 8];
        let next_id = self.next_id;
        let Some(active) = &mut self.active else { return Err(io::Error::other("there is no segment to write to")) };
        let segment = active.segment.clone();
        let headers: Vec<_> =
            items.iter().map(|item| segment.frame(Kind::Chunk, item.id, item.length()).encode()).collect();
        let end_mark = segment.frame(Kind::End, next_id, 0).encode();
        let mut pieces = Vec::with_capacity(items.len() * 4 + 1);
        let mut places = Vec::with_capacity(items.len());
        let start = active.end;
        for (item, header) in items.iter().zip(&headers) {
            let length = item.length();
            let place = Place { generation: segment.generation, offset: active.end, length, records: item.records };
            places.push(place);
            pieces.push(IoSlice::new(header));
            pieces.push(IoSlice::new(&item.head));
            pieces.push(IoSlice::new(&item.bodies));
            pieces.push(IoSlice::new(ZEROS.get(..layout::padding(length)).unwrap_or_default()));
            active.end += layout::span(length);
        }
        pieces.push(IoSlice::new(&end_mark));
        let end = active.end;
        // Until the sync has succeeded the end is the old one: that is where a failed group is cut.
        active.end = start;
        write_pieces(&segment.file, &mut pieces, start)?;
        #[cfg(test)]
        self.shared.faults.on_sync()?;
        segment.file.sync_data()?;
        active.end = end;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        Ok(places)
    }

    /// Gives the active segment up after a failed write or sync, and says what whoever waited is told.
    ///
    /// They are told no, so what was written must not be found at the next opening. Three things see to that. The file is
    /// cut where the group began, which takes the group out of the page cache and, once the file system commits, off
    /// the disk. But the disk has just failed, and after a failed sync the kernel calls pages clean that never
    /// arrived; so no sync of this file is believed again. Instead the next segment's header tells where this one ends, and
    /// that header is on the disk before anybody's append is taken again. Only where no next segment can be made either and
    /// the machine loses power before the cut is committed may the group come back, as a chunk that was never acknowledged.
    pub(super) fn failed(&mut self, cause: io::Error) -> AppendError {
        let mut error = self.error_of(&cause);
        tracing::error!(%cause, "writing the journal failed; what was waiting is refused, and a new segment is begun");
        if let Some(active) = self.active.take() {
            let segment = &active.segment;
            let cut = Abandoned { generation: segment.generation, offset: active.end };
            let end_mark = segment.frame(Kind::End, self.next_id, 0).encode();
            let cleaned = segment.file.set_len(active.end).and_then(|()| {
                write_pieces(&segment.file, &mut [IoSlice::new(&end_mark)], active.end)?;
                segment.file.sync_all()
            });
            if let Err(cause) = cleaned {
                tracing::error!(segment = %segment.path.display(), %cause, "the failed segment could not be cut");
            }
            self.abandoned.push(cut);
            let mut table = self.shared.table();
            table.active = None;
            if let Some(held) = table.segments.get_mut(&cut.generation) {
                held.abandoned = true;
                held.length = segment.file.metadata().map_or(held.length, |metadata| metadata.len());
            }
        }
        if let Err(cause) = self.begin_segment(self.options.segment_bytes) {
            error = self.error_of(&cause);
            tracing::error!(%cause, "a new journal segment could not be made; it is tried again until it can");
        }
        error
    }

    /// Refuses a group and all that waits behind it: nothing later may be taken while whoever handed this in does not know.
    /// So the condition changes before anybody hears of it.
    pub(super) fn refuse(&mut self, group: VecDeque<Waiting>, error: AppendError) {
        let condition = match &error {
            AppendError::DiskFull { free, needed } => Condition::DiskFull { free: *free, needed: *needed },
            AppendError::LimitReached { used, limit } => Condition::LimitReached { used: *used, limit: *limit },
            AppendError::Io(cause) => Condition::Failed(cause.clone()),
            AppendError::Closed | AppendError::Overtaking => return refuse_all(group, &error),
        };
        tracing::warn!(reason = %error, "the journal takes no records for now");
        self.retry_at = Instant::now() + RETRY;
        let behind = {
            let mut work = self.shared.work();
            let behind = work.waiting.take_all();
            count_refusals(&group);
            count_refusals(&behind);
            self.shared.condition.send_replace(condition);
            work.reclaim = true;
            behind
        };
        refuse_all(group, &error);
        refuse_all(behind, &error);
    }

    /// Looks whether appends can be taken again.
    fn retry(&mut self) {
        self.retry_at = Instant::now() + RETRY;
        let segment = self.options.segment_bytes - HEADER_BYTES - FRAME_BYTES;
        let now = match self.make_room(self.refused_bytes.clamp(layout::span(1), segment)) {
            Ok(()) => {
                tracing::info!("the journal takes records again");
                Condition::Writable
            }
            Err(AppendError::DiskFull { free, needed }) => Condition::DiskFull { free, needed },
            Err(AppendError::LimitReached { used, limit }) => Condition::LimitReached { used, limit },
            Err(error) => Condition::Failed(error.to_string()),
        };
        self.shared.condition.send_if_modified(|condition| {
            let changed = *condition != now;
            *condition = now;
            changed
        });
    }

    /// A clean end: what is not whole at the next opening was damaged, not torn.
    fn mark_closed(&mut self) {
        if let Some(active) = &self.active {
            let mark = active.segment.frame(Kind::Closed, self.next_id, 0).encode();
            let done = write_pieces(&active.segment.file, &mut [IoSlice::new(&mark)], active.end)
                .and_then(|()| active.segment.file.sync_data());
            if let Err(cause) = done {
                tracing::warn!(segment = %active.segment.path.display(), %cause, "the journal's closing mark could not be written; nothing is lost by that");
            }
        }
    }
}

/// Before any of them hears of it.
fn count_refusals(group: &VecDeque<Waiting>) {
    group.iter().for_each(|waiting| waiting.lane.count_refusal());
}

fn refuse_all(group: VecDeque<Waiting>, error: &AppendError) {
    for waiting in group {
        waiting.refuse(error.clone());
    }
}

/// Tells everybody when the writer ends, also by a panic: nobody must wait for a thread that is gone.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.condition.send_replace(Condition::Failed("the journal's writer thread ended".to_owned()));
        }
        let waiting = {
            let mut work = self.0.work();
            work.closing = true;
            work.waiting.take_all()
        };
        refuse_all(waiting, &AppendError::Closed);
    }
}
