//! Opening: reads every segment, sets aside what is damaged, cuts what was torn, and leaves files that say so no second time.
//!
//! What is torn and what is damaged: groups are written one behind the other, each synced before the next, and an end mark
//! stands behind the last. So in every segment but the newest all that was written was committed, and what is not whole is
//! damage. In the newest one the last group may have been under way. Pages reach the disk in any order, so what is not whole
//! *behind* all that is whole is taken for a torn group and cut: nothing of it was acknowledged. What is not whole *before*
//! something that is could be either; it is reported as damage, since that is the case that must never be kept quiet.
//! Whole frames are always kept, also those behind a torn one that were never acknowledged.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layout::{Abandoned, BadHeader, FRAME_BYTES, HEADER_BYTES, Kind, SegmentHeader};
use super::quarantine::{Stretch, set_aside};
use super::scan::{Bad, Scan, find_salt, scan};
use super::segment::{Named, Segment, Spare, named, read_header, sync_dir, zero_from};
use super::table::{Held, Place, Table};
use super::{Cut, OpenError, Quarantined, Recovery};
use crate::record::ChunkId;

/// Spare files that are kept.
pub(super) const MAX_SPARES: usize = 2;

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    pub(super) length: u64,
    /// Where the next frame goes; an end mark stands there.
    pub(super) end: u64,
}

/// What a journal starts from.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) table: Table,
    pub(super) recovery: Recovery,
    pub(super) active: Option<Active>,
    pub(super) next_id: u64,
    pub(super) next_generation: u64,
    pub(super) abandoned: Vec<Abandoned>,
}

/// A segment file as it was found.
struct Candidate {
    segment: Segment,
    length: u64,
    /// Why there is no header, if there is none.
    header: Result<SegmentHeader, String>,
    /// Frames at and behind this were refused.
    refused_from: Option<u64>,
    scan: Scan,
}

impl Candidate {
    /// Everything in it is whole, and it ends where it should.
    fn ends_well(&self) -> bool {
        let end = self.scan.marked || self.refused_from == Some(self.scan.end);
        end && self.scan.behind.is_empty()
    }
}

pub(super) fn open(dir: &Path, quarantine: &Path, segment_bytes: u64) -> Result<Opened, OpenError> {
    make_dir(dir)?;
    let (mut candidates, spares) = list(dir, segment_bytes)?;

    let mut refused: BTreeMap<u64, u64> = BTreeMap::new();
    for cut in candidates.values().filter_map(|one| one.header.as_ref().ok()).flat_map(|header| &header.abandoned) {
        let offset = refused.entry(cut.generation).or_insert(cut.offset);
        *offset = cut.offset.min(*offset);
    }
    refused.retain(|generation, _| candidates.contains_key(generation));

    let mut next_id = 1;
    for (generation, one) in &mut candidates {
        one.refused_from = refused.get(generation).copied();
        one.scan = scan(&one.segment, one.refused_from.unwrap_or(one.length).min(one.length));
        let base = one.header.as_ref().map_or(0, |header| header.base);
        next_id = next_id.max(base).max(one.scan.next_id);
    }
    let next_generation = candidates.last_key_value().map_or(1, |(generation, _)| generation.saturating_add(1));

    // A chunk that was being copied forward is there twice; the later copy is as good.
    let mut places = HashMap::new();
    let mut metas = BTreeMap::new();
    for (generation, one) in &mut candidates {
        for found in one.scan.found.drain(..) {
            let place = Place {
                generation: *generation,
                offset: found.offset,
                length: found.length,
                records: found.meta.records,
            };
            places.insert(found.id, place);
            metas.insert(found.id, found.meta);
        }
    }

    let abandoned: Vec<_> = refused.into_iter().map(|(generation, offset)| Abandoned { generation, offset }).collect();
    let mut healer =
        Healer { quarantine, places: &places, next_id, abandoned: &abandoned, recovery: Recovery::default() };
    let newest = candidates.last_key_value().map(|(generation, _)| *generation);
    let mut table = Table::with_spares(spares);
    let mut active = None;
    for (generation, one) in candidates {
        let is_newest = newest == Some(generation);
        if one.header.is_err() && !one.scan.marked && one.scan.end == HEADER_BYTES && one.scan.behind.is_empty() {
            healer.nothing_left(&one);
            continue;
        }
        let healed = healer.heal(&one, is_newest);
        let (end, intact) = (one.scan.end, one.header.is_ok() && one.refused_from.is_none());
        let length = one.segment.file.metadata().map_or(one.length, |metadata| metadata.len());
        let mut held = Held::new(one.segment, length);
        held.abandoned = !intact;
        if is_newest && healed && intact && length == segment_bytes {
            table.active = Some(generation);
            active = Some(Active { segment: held.segment.clone(), length, end });
        }
        table.segments.insert(generation, held);
    }
    let mut recovery = healer.recovery;
    for (id, place) in &places {
        table.put(*id, *place);
    }
    recovery.chunks = metas.into_iter().map(|(id, meta)| (ChunkId(id), meta)).collect();
    Ok(Opened { table, recovery, active, next_id, next_generation, abandoned })
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_path_buf();
    move |cause| OpenError { path, what, cause }
}

fn make_dir(dir: &Path) -> Result<(), OpenError> {
    std::fs::create_dir_all(dir).map_err(failed(dir, "making the directory"))?;
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    sync_dir(parent).map_err(failed(parent, "syncing the directory"))
}

/// Opens all segments, ascending, and takes stock of spares.
fn list(dir: &Path, segment_bytes: u64) -> Result<(BTreeMap<u64, Candidate>, Vec<Spare>), OpenError> {
    let mut candidates = BTreeMap::new();
    let mut spares = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed(dir, "listing the directory"))? {
        let entry = entry.map_err(failed(dir, "listing the directory"))?;
        let path = entry.path();
        match named(&entry.file_name()) {
            Some(Named::Segment(generation)) => {
                let one = candidate(path, generation)?;
                let generation = one.segment.generation;
                if let Some(other) = candidates.insert(generation, one) {
                    tracing::error!(file = %other.segment.path.display(), "two journal segments say that they are the same; this one is left alone");
                }
            }
            Some(Named::Free) => {
                let length = entry.metadata().map_err(failed(&path, "looking at a spare file"))?.len();
                if length == segment_bytes && spares.len() < MAX_SPARES {
                    spares.push(Spare { path, length });
                } else {
                    std::fs::remove_file(&path).map_err(failed(&path, "removing a spare file"))?;
                }
            }
            None => tracing::warn!(file = %path.display(), "this file is not the journal's; it is left alone"),
        }
    }
    Ok((candidates, spares))
}

fn candidate(path: PathBuf, generation: u64) -> Result<Candidate, OpenError> {
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed(&path, "opening a segment"))?;
    let length = file.metadata().map_err(failed(&path, "looking at a segment"))?.len();
    let header = match SegmentHeader::decode(&read_header(&file)) {
        Ok(header) => Ok(header),
        Err(BadHeader::Damaged(reason)) => Err(reason),
        Err(BadHeader::Version(version)) => {
            let cause = io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "its format is version {version}, written by a later Wharf; run that one, or deliver everything with it first"
                ),
            );
            return Err(failed(&path, "reading a segment")(cause));
        }
    };
    // A spare that was about to be used again has its new header under its old name: the header is right.
    let generation = header.as_ref().map_or(generation, |header| header.generation);
    let mut segment = Segment { file, path, generation, salt: 0 };
    segment.salt = match &header {
        Ok(header) => header.salt,
        Err(_) => find_salt(&segment, length).unwrap_or_default(),
    };
    Ok(Candidate { segment, length, header, refused_from: None, scan: Scan::default() })
}

/// Reports and repairs. Repairs are made only once the bytes are safe elsewhere, and only so that the next opening does not
/// find the same again: where one fails, nothing is lost, and it is reported again.
struct Healer<'a> {
    quarantine: &'a Path,
    places: &'a HashMap<u64, Place>,
    next_id: u64,
    abandoned: &'a [Abandoned],
    recovery: Recovery,
}

impl Healer<'_> {
    /// Whether the segment may be written to.
    fn heal(&mut self, one: &Candidate, newest: bool) -> bool {
        let segment = &one.segment;
        let mut healed = true;
        if let Err(reason) = &one.header {
            let page = Bad::whole_of(0, HEADER_BYTES.min(one.length), reason.clone());
            healed &= self.damaged(segment, &page) && self.attempt(segment, || self.rewrite_header(one));
        }
        for bad in &one.scan.inside {
            if newest && bad.unmarked {
                self.cut(segment, bad.offset, bad.bytes);
            } else if !self.damaged(segment, bad) {
                healed = false;
                continue;
            }
            healed &= self.attempt(segment, || fill_gap(segment, bad.offset, bad.bytes));
        }
        if !one.ends_well() {
            let tail = one.scan.used.saturating_sub(one.scan.end);
            let safe = if newest {
                self.cut(segment, one.scan.end, tail);
                true
            } else if one.scan.behind.is_empty() {
                let reason = "the end of the segment is missing, with whatever stood there".to_owned();
                self.damaged(segment, &Bad::whole_of(one.scan.end, tail, reason))
            } else {
                // Each is set aside, also behind one that could not be.
                let mut safe = true;
                for bad in &one.scan.behind {
                    safe &= self.damaged(segment, bad);
                }
                safe
            };
            healed &= safe && self.attempt(segment, || end_at(segment, one.scan.end, self.next_id));
        }
        healed
    }

    /// A file with neither a header nor a frame.
    fn nothing_left(&mut self, one: &Candidate) {
        let reason = "neither a header nor a chunk of the segment can be found".to_owned();
        let bytes = if one.scan.used > HEADER_BYTES { one.scan.used } else { one.length.min(HEADER_BYTES) };
        if self.damaged(&one.segment, &Bad::whole_of(0, bytes, reason)) {
            self.attempt(&one.segment, || std::fs::remove_file(&one.segment.path));
        }
    }

    /// Sets a stretch aside and reports it. Whether its bytes are safe.
    fn damaged(&mut self, segment: &Segment, bad: &Bad) -> bool {
        if bad.id.is_some_and(|id| self.places.contains_key(&id)) {
            tracing::warn!(segment = %segment.path.display(), offset = bad.offset, reason = bad.reason, "one of two copies of a chunk is damaged; the other is used");
            return true;
        }
        let stretch = Stretch { segment, offset: bad.offset, bytes: bad.bytes, id: bad.id, reason: &bad.reason };
        let aside = set_aside(self.quarantine, &stretch);
        let safe = aside.is_ok();
        let (file, reason) = match aside {
            Ok(file) => (file, bad.reason.clone()),
            Err(cause) => (
                segment.path.clone(),
                format!(
                    "{}; it could not be copied to {} ({cause}) and stays where it is",
                    bad.reason,
                    self.quarantine.display()
                ),
            ),
        };
        tracing::error!(
            segment = %segment.path.display(), offset = bad.offset, bytes = bad.bytes, chunk = bad.id,
            file = %file.display(), reason, "a part of the journal is damaged and is set aside"
        );
        self.recovery.quarantined.push(Quarantined { id: bad.id.map(ChunkId), meta: bad.meta.clone(), file, reason });
        safe
    }

    fn cut(&mut self, segment: &Segment, offset: u64, bytes: u64) {
        tracing::warn!(
            segment = %segment.path.display(), offset, bytes,
            "the journal's last group was not written whole; it is cut off, nothing of it was acknowledged"
        );
        self.recovery.cut.push(Cut { segment: segment.path.clone(), offset, bytes });
    }

    fn rewrite_header(&self, one: &Candidate) -> io::Result<()> {
        let header = SegmentHeader {
            generation: one.segment.generation,
            salt: one.segment.salt,
            base: self.next_id,
            length: one.length,
            abandoned: self.abandoned.to_vec(),
        };
        write_and_sync(&one.segment.file, &header.encode(), 0)
    }

    fn attempt(&self, segment: &Segment, repair: impl FnOnce() -> io::Result<()>) -> bool {
        match repair() {
            Ok(()) => true,
            Err(cause) => {
                tracing::error!(segment = %segment.path.display(), %cause, "a damaged journal segment could not be repaired; it is reported again at the next start");
                false
            }
        }
    }
}

impl Bad {
    fn whole_of(offset: u64, bytes: u64, reason: String) -> Self {
        Self { offset, bytes, id: None, meta: None, reason, unmarked: false }
    }
}

fn write_and_sync(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)?;
    file.sync_data()
}

/// Says that the stretch means nothing.
fn fill_gap(segment: &Segment, offset: u64, bytes: u64) -> io::Result<()> {
    let Some(length) = bytes.checked_sub(FRAME_BYTES) else { return Ok(()) };
    write_and_sync(&segment.file, &segment.frame(Kind::Gap, 0, length).encode(), offset)
}

/// Makes the segment end here: zeros, so that nothing of what was there is found again, and an end mark.
fn end_at(segment: &Segment, end: u64, next_id: u64) -> io::Result<()> {
    zero_from(&segment.file, end)?;
    write_and_sync(&segment.file, &segment.frame(Kind::End, next_id, 0).encode(), end)
}
