//! What is in a file that is followed: text, or what has to be unpacked first, and then whether it was read before it was compressed.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use super::compressed::{Compressed, Origin, Turns};
use super::followed::{Followed, size_and_time};
use super::gathered::Common;
use super::identity::{FileId, Fingerprint, Mark};
use super::position::FilePosition;
use super::recognise::{Candidate, Search, Sought};
use super::unpack::Begins;
use crate::config::CompressedFiles;
use crate::record::now_ns;

/// What is in a file.
#[derive(Debug)]
pub(super) enum Content {
    /// It is too short to be told.
    Unknown,
    Plain,
    Compressed(Box<Compressed>),
    /// It is compressed, and such files are left out.
    LeftOut,
}

impl Content {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(match Begins::of(file)? {
            Begins::TooShort => Self::Unknown,
            Begins::Otherwise => Self::Plain,
            Begins::Compressed(_) => Self::Compressed(Box::new(Compressed::new(now_ns().cast_unsigned()))),
        })
    }
}

impl Followed {
    /// Goes on where a file was read to that it is, compressed; or from the beginning, where it is none that was read.
    pub(crate) fn resume_from(&mut self, former: Option<&FilePosition>) {
        let Content::Compressed(compressed) = &mut self.content else { return };
        self.offset = former.map_or(0, |former| former.offset);
        self.skipping = former.is_some_and(|former| former.skipping);
        compressed.begin_at(self.offset);
        self.seen = (0, 0, 0);
        self.ready = true;
    }

    /// Leaves it out where it is compressed and such files are not wanted.
    pub(super) fn leave_out_compressed(&mut self, common: &Common) {
        if common.compressed == CompressedFiles::Skip && matches!(self.content, Content::Compressed(_)) {
            self.content = Content::LeftOut;
        }
    }

    /// Whether it is compressed, and such files are left out.
    pub(crate) fn is_left_out(&self) -> bool {
        matches!(self.content, Content::LeftOut)
    }

    /// Goes on to find out what it was before it was compressed.
    pub(crate) fn seek(&mut self, common: &mut Common) -> io::Result<Sought> {
        self.ready = false;
        let metadata = self.file.metadata()?;
        let now = size_and_time(&metadata);
        let fingerprint = self.fingerprint.grown(&self.file)?;
        let Content::Compressed(compressed) = &mut self.content else { return Ok(Sought::Waits) };
        let Some(fingerprint) = fingerprint.filter(|_| metadata.len() >= compressed.file_offset()) else {
            // Nothing of it was read.
            self.restart(common)?;
            self.ready = true;
            return Ok(Sought::Waits);
        };
        self.fingerprint = fingerprint;
        if now != self.seen {
            self.grew = Instant::now();
        }
        let is_as_it_was = now == self.seen;
        let sought = compressed.seek(&self.file, &mut common.buffer, &common.turns, is_as_it_was)?;
        self.seen = if matches!(sought, Sought::Waits) { now } else { (metadata.len(), 0, 0) };
        self.ready = !matches!(sought, Sought::Waits);
        Ok(sought)
    }

    /// The search for that, while it goes on.
    pub(crate) fn search(&mut self) -> Option<&mut Search> {
        match &mut self.content {
            Content::Compressed(compressed) => compressed.search(),
            _ => None,
        }
    }

    /// Says that it is what another file is, which is read first; or that it is to be found out again.
    pub(crate) fn set_origin(&mut self, origin: Origin, turns: &Turns) {
        if let Content::Compressed(compressed) = &mut self.content {
            compressed.set_origin(origin, turns);
            self.seen = (0, 0, 0);
            self.ready = true;
        }
    }

    /// Whether it is compressed, and what it was before is not known yet.
    pub(crate) fn is_sought(&self) -> bool {
        matches!(&self.content, Content::Compressed(compressed) if !compressed.is_known())
    }

    /// The stretch of another file that is read first, since it is the same.
    pub(crate) fn follows(&self) -> Option<u64> {
        match &self.content {
            Content::Compressed(compressed) => compressed.follows(),
            _ => None,
        }
    }

    /// What it begins with, where it may be found again, compressed.
    pub(crate) fn begins(&self) -> Option<Fingerprint> {
        matches!(self.content, Content::Plain).then_some(self.fingerprint)
    }

    /// As one that may be found again, compressed.
    pub(crate) fn as_candidate(&self) -> Candidate {
        let mark = Mark::take(&self.file, self.offset).unwrap_or_default();
        Candidate { stretch: self.stretch, is_followed: true, offset: self.offset, mark }
    }

    /// Whether it is compressed and ends inside a member.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(&self.content, Content::Compressed(compressed) if compressed.is_unfinished())
    }

    /// Whether that has been so for so long, which is said once.
    pub(crate) fn is_cut_off(&mut self, after: Duration) -> bool {
        match &mut self.content {
            Content::Compressed(compressed) => compressed.is_cut_off(after),
            _ => false,
        }
    }

    /// What this stretch was, once it is over. Its content may be gone already.
    pub(super) fn former(&self) -> Option<FilePosition> {
        let is_known = matches!(self.content, Content::Plain) && self.mark.is_some();
        is_known.then(|| FilePosition {
            id: FileId::default(),
            fingerprint: self.fingerprint,
            offset: self.offset,
            mark: self.mark,
            member: None,
            is_former: true,
            skipping: self.skipping,
            path: self.place().to_string_lossy().into_owned(),
            at: now_ns() / 1_000_000_000,
        })
    }
}
