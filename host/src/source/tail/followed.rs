//! One file that is followed, by its open handle: whatever becomes of its name, what is written to it is read to its end.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::about;
use super::compressed::Compressed;
use super::content::Content;
use super::gathered::{Common, Gathered};
use super::identity::{FINGERPRINT_BYTES, FileId, Fingerprint, Mark, read_full};
use super::join::Joiner;
use super::position::FilePosition;
use super::text::{Lines, Records, is_wide, line_end};
use crate::record::{Position, now_ns};
use crate::source::lines::{Taken, TakesLines};
use encoding_rs::Encoding;

/// How much is read at a time, and so how large a chunk becomes.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// A file and how far it was read.
#[derive(Debug)]
pub(crate) struct Followed {
    /// Where it was last seen.
    pub(crate) path: PathBuf,
    /// Where it is in truth, where that name is a link.
    pub(crate) real: Option<PathBuf>,
    /// Which file it is.
    pub(crate) id: FileId,
    /// Whether a watch reports all of its growth: then it is looked at when it does.
    pub(crate) heard: bool,
    /// Whether there may be something to read.
    pub(crate) ready: bool,
    /// Whether a watch said that it changed: then it did, though its size and time may be the same.
    pub(crate) changed: bool,
    /// Since when it has not been found under any name that matches, or not under the name that it had.
    pub(crate) moved: Option<Moved>,
    /// Which stretch of a file this is.
    pub(crate) stretch: u64,
    pub(super) file: File,
    pub(super) content: Content,
    /// Before a place up to which it was read, as it was when that was written down.
    pub(super) mark: Option<Mark>,
    pub(super) fingerprint: Fingerprint,
    /// How far it was read: behind the last whole line.
    pub(super) offset: u64,
    pub(super) skipping: bool,
    /// Where lines are joined to records: those that are not handed in yet.
    joiner: Option<Joiner>,
    encoding: Option<&'static Encoding>,
    /// Where records are objects: their beginning, up to the text.
    object: Option<Box<[u8]>>,
    /// Whether it begins anew, and zeros at its beginning are a hole: a writer that does not append goes on, after a
    /// truncation, where it was.
    hole: bool,
    /// Size and time of change at the last look.
    pub(super) seen: (u64, i64, i64),
    pub(super) grew: Instant,
    /// How much the next read asks for: more than a block only inside a line that is longer.
    want: usize,
}

/// A block that was read.
struct Block {
    bytes: usize,
    /// How far the file was read for it.
    file_end: u64,
    more: bool,
    damage: Option<String>,
}

/// What rotation did to a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It has another name that matches: it stays, but its last line will not be completed any more.
    Renamed(Instant),
    /// It has no name that matches, or none at all: it is let go of at its end.
    Away(Instant),
}

/// What a look at a file gave.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Whether there is more to read at once.
    pub(crate) more: bool,
    /// Lines that were too long.
    pub(crate) cut: u64,
    /// It was truncated or written anew.
    pub(crate) restarted: Option<Restarted>,
    /// Records that became too large when lines were joined, and were given out as they were.
    pub(crate) too_large: u64,
    /// Why a compressed file cannot be read any further.
    pub(crate) damage: Option<String>,
}

/// What is at a file's end.
#[derive(Debug)]
pub(crate) enum End {
    /// There is more to read first.
    Grown,
    /// Everything is taken, also a last line without its end.
    Reached,
}

/// A file that begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restarted {
    /// How far it had been read.
    pub(crate) offset: u64,
    /// Bytes behind that which had been seen and were not read.
    pub(crate) unread: u64,
    /// What it was until then, if it may be found again, compressed.
    pub(crate) former: Option<(u64, FilePosition)>,
}

impl Followed {
    /// Opens a file, to be read from its beginning.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Metadata)> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let fingerprint = Fingerprint::take(&file, FINGERPRINT_BYTES)?;
        let content = Content::of(&file)?;
        let followed = Self {
            path: path.to_owned(),
            real: None,
            id: FileId::of(&metadata),
            heard: false,
            ready: true,
            changed: false,
            moved: None,
            stretch: 0,
            file,
            content,
            mark: None,
            fingerprint,
            offset: 0,
            skipping: false,
            joiner: None,
            encoding: None,
            object: None,
            hole: false,
            seen: (0, 0, 0),
            grew: Instant::now(),
            want: BLOCK_BYTES,
        };
        Ok((followed, metadata))
    }

    /// Makes records of its lines as the source wants them.
    pub(crate) fn configure(&mut self, common: &mut Common) {
        self.stretch = common.next_stretch();
        self.leave_out_compressed(common);
        self.joiner = common.multiline.clone().map(Joiner::new);
        self.encoding = common.encoding;
        self.object = common.has_objects().then(|| {
            let path_key = common.path_key.as_deref();
            about::object(path_key, common.kubernetes, &self.path, self.real.as_deref()).into()
        });
    }

    /// Whether a record is open that waits for more lines.
    pub(crate) fn holds(&self) -> bool {
        self.joiner.as_ref().is_some_and(|joiner| joiner.holds_from().is_some())
    }

    /// Where it is, whatever link leads there: after a rotation it is looked for beside that.
    pub(crate) fn place(&self) -> &Path {
        self.real.as_ref().unwrap_or(&self.path)
    }

    /// Whether this is the file that the position is of.
    pub(crate) fn is_of(&self, position: &FilePosition) -> io::Result<bool> {
        position.fingerprint.matches(&self.file)
    }

    /// Goes on where the position says.
    pub(crate) fn resume(&mut self, position: &FilePosition) {
        self.offset = position.offset;
        self.skipping = position.skipping;
        self.content = match position.member {
            Some(member) => Content::Compressed(Box::new(Compressed::resumed(member))),
            None => Content::Plain,
        };
    }

    /// Goes on at the file's present end. A line that is being written there is taken from where it is.
    pub(crate) fn skip_to(&mut self, end: u64) {
        match &mut self.content {
            Content::Compressed(compressed) => compressed.leave_out(end),
            _ => self.offset = end,
        }
    }

    /// How far its lines were taken.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The position behind the last record that was gathered.
    pub(crate) fn position(&self) -> FilePosition {
        let holds_from = self.joiner.as_ref().and_then(Joiner::holds_from);
        let offset = holds_from.unwrap_or(self.offset);
        let (mark, member) = match &self.content {
            Content::Compressed(compressed) => (None, Some(compressed.member(offset))),
            // Without a mark it is only not known again when it is compressed.
            _ => (Mark::take(&self.file, offset).unwrap_or_default(), None),
        };
        FilePosition {
            id: self.id,
            fingerprint: self.fingerprint,
            offset,
            mark,
            member,
            is_former: false,
            skipping: self.skipping && holds_from.is_none(),
            path: self.place().to_string_lossy().into_owned(),
            at: now_ns() / 1_000_000_000,
        }
    }

    /// Reads at most one block, and gathers its lines.
    pub(crate) fn look(&mut self, common: &mut Common) -> io::Result<Look> {
        self.ready = false;
        let mut look = Look::default();
        let metadata = self.file.metadata()?;
        let now = size_and_time(&metadata);
        let changed = std::mem::take(&mut self.changed);
        if now == self.seen && !changed {
            return Ok(look);
        }
        if metadata.len() < self.file_offset() {
            look.restarted = Some(self.restart(common)?);
            self.give_out(common, None);
        }
        if matches!(self.content, Content::Unknown) {
            self.content = Content::of(&self.file)?;
            self.leave_out_compressed(common);
        }
        if self.is_sought() {
            // That comes first: see `seek`.
            self.ready = true;
            return Ok(look);
        }
        let Some(block) = self.read(common, &metadata)? else {
            look.restarted = Some(self.restart(common)?);
            self.give_out(common, None);
            look.more = true;
            self.ready = true;
            return Ok(look);
        };
        if block.file_end > self.seen.0 || look.restarted.is_some() {
            self.grew = Instant::now();
        }
        look.more = block.more;
        // What was not read must not count as seen.
        self.seen = if look.more { (block.file_end, 0, 0) } else { now };
        self.ready = look.more;
        look.damage = block.damage;
        let read = block.bytes;
        let longest = common.longest;
        let (gathered, mut block) = common.gather(read);
        if self.hole && matches!(self.content, Content::Plain) {
            let zeros = block.iter().take_while(|byte| **byte == 0).count();
            let zeros = if is_wide(self.encoding) { zeros & !1 } else { zeros };
            block = block.get(zeros..).unwrap_or_default();
            self.offset += zeros as u64;
            self.hole = block.len() < 2 && block.first().is_none_or(|byte| *byte == 0);
        }
        let (before, skipping) = (gathered.chunk.len(), self.skipping);
        let mut lines = self.lines(gathered);
        let taken = lines.take(block, longest, skipping);
        look.too_large = lines.too_large;
        self.took(&taken, block.len(), longest.bytes);
        if let Content::Compressed(compressed) = &mut self.content {
            let rest = common.buffer.get(taken.bytes..read).unwrap_or_default();
            let holds_from = self.joiner.as_ref().and_then(Joiner::holds_from);
            compressed.took(rest, holds_from.unwrap_or(self.offset));
            // Nobody will write the end of its last line; somebody might append another member.
            if compressed.is_over() && self.moved.is_none() {
                self.moved = Some(Moved::Renamed(Instant::now()));
            }
        }
        look.cut = taken.cut;
        if common.gathered.chunk.len() > before {
            self.note_position(common);
        }
        Ok(look)
    }

    /// Gathers a last line that has no end, once nobody will write one.
    pub(crate) fn end(&mut self, common: &mut Common) -> io::Result<End> {
        let metadata = self.file.metadata()?;
        if size_and_time(&metadata) != self.seen {
            return Ok(End::Grown);
        }
        let read = match &self.content {
            Content::Compressed(compressed) => {
                let rest = compressed.rest();
                if common.buffer.len() < rest.len() {
                    common.buffer.resize(rest.len(), 0);
                }
                common.buffer.get_mut(..rest.len()).unwrap_or_default().copy_from_slice(rest);
                rest.len()
            }
            Content::LeftOut => 0,
            Content::Unknown | Content::Plain => self.read_block(&mut common.buffer)?,
        };
        let (gathered, line) = common.gather(read);
        if line_end(self.encoding, line).is_some() {
            return Ok(End::Grown);
        }
        let before = gathered.chunk.len();
        if !line.is_empty() && !self.skipping {
            self.lines(gathered).part(0, line);
            self.offset += read as u64;
            if let Content::Compressed(compressed) = &mut self.content {
                compressed.took(&[], self.offset);
            }
        }
        if common.gathered.chunk.len() > before {
            self.note_position(common);
        }
        self.give_out(common, None);
        Ok(End::Reached)
    }

    /// Gathers what is open: all of it, or records to which nothing was added since then.
    pub(crate) fn give_out(&mut self, common: &mut Common, since: Option<Instant>) {
        if !self.holds() {
            return;
        }
        let (gathered, _) = common.gather(0);
        let before = gathered.chunk.len();
        let Lines { joiner: Some(joiner), mut records, .. } = self.lines(gathered) else { return };
        match since {
            Some(since) => joiner.end_older(since, &mut |body| records.push(body)),
            None => joiner.give_out_all(&mut |body| records.push(body)),
        }
        if common.gathered.chunk.len() > before {
            self.note_position(common);
        }
    }

    /// Whether it has changed since the last look.
    pub(crate) fn differs(&self, metadata: &Metadata) -> bool {
        size_and_time(metadata) != self.seen
    }

    /// When it last grew, or was moved if that was later.
    pub(crate) fn quiet_since(&self) -> Instant {
        match self.moved {
            Some(Moved::Renamed(at) | Moved::Away(at)) => at.max(self.grew),
            None => self.grew,
        }
    }

    /// Whether the file has no name any more.
    pub(crate) fn is_deleted(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() == 0)
    }

    /// Where what is taken next goes.
    fn lines<'a>(&'a mut self, gathered: &'a mut Gathered) -> Lines<'a> {
        Lines {
            joiner: self.joiner.as_mut(),
            from: self.offset,
            now: Instant::now(),
            encoding: self.encoding,
            records: Records { chunk: &mut gathered.chunk, time_ns: gathered.time_ns, object: self.object.as_deref() },
            too_large: 0,
        }
    }

    /// How far the file was read.
    pub(super) fn file_offset(&self) -> u64 {
        match &self.content {
            Content::Compressed(compressed) => compressed.file_offset(),
            Content::LeftOut => 0,
            Content::Unknown | Content::Plain => self.offset,
        }
    }

    /// Reads a block; none where the file was written anew.
    fn read(&mut self, common: &mut Common, metadata: &Metadata) -> io::Result<Option<Block>> {
        let bytes = match self.content {
            Content::Plain => self.read_block(&mut common.buffer)?,
            _ => 0,
        };
        // Looked at after the bytes were read: so they are of the file that the fingerprint is of.
        let Some(fingerprint) = self.fingerprint.grown(&self.file)? else { return Ok(None) };
        self.fingerprint = fingerprint;
        Ok(Some(match &mut self.content {
            Content::Compressed(compressed) => {
                self.want = self.want.max(compressed.rest().len());
                let filled = compressed.fill(&self.file, self.offset, &mut common.buffer, self.want, &common.turns)?;
                let file_end = compressed.file_offset();
                Block { bytes: filled.bytes, file_end, more: filled.more, damage: filled.damage }
            }
            Content::Plain => {
                let file_end = self.offset + bytes as u64;
                Block { bytes, file_end, more: file_end < metadata.len(), damage: None }
            }
            Content::Unknown | Content::LeftOut => {
                Block { bytes: 0, file_end: metadata.len(), more: false, damage: None }
            }
        }))
    }

    fn read_block(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        if buffer.len() < self.want {
            buffer.resize(self.want, 0);
        }
        read_full(&self.file, buffer.get_mut(..self.want).unwrap_or_default(), self.offset)
    }

    fn took(&mut self, taken: &Taken, read: usize, max_line: usize) {
        self.offset += taken.bytes as u64;
        self.skipping = taken.skipping;
        let whole_block_is_one_line = taken.bytes == 0 && read == self.want;
        self.want = if whole_block_is_one_line {
            // One byte more than the longest line: then it either ends or is too long.
            self.want.saturating_mul(2).min(max_line.saturating_add(1)).max(BLOCK_BYTES)
        } else {
            BLOCK_BYTES
        };
    }

    fn note_position(&mut self, common: &mut Common) {
        let position = self.position();
        self.mark = position.mark;
        let key = position.key();
        common.unrecorded.retain(|other| other.key != key);
        common.gathered.chunk.position(Position { source: common.source.clone(), key, value: position.encode() });
        common.gathered.files += 1;
    }

    pub(super) fn restart(&mut self, common: &mut Common) -> io::Result<Restarted> {
        let unread = self.seen.0.saturating_sub(self.file_offset());
        let former = self.former().map(|former| (self.stretch, former));
        let restarted = Restarted { offset: self.offset, unread, former };
        self.stretch = common.next_stretch();
        self.mark = None;
        self.content = Content::Unknown;
        self.fingerprint = Fingerprint::take(&self.file, FINGERPRINT_BYTES)?;
        self.offset = 0;
        self.skipping = false;
        self.hole = true;
        self.seen = (0, 0, 0);
        self.want = BLOCK_BYTES;
        Ok(restarted)
    }
}

pub(super) fn size_and_time(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}
