//! One file that is followed, by its open handle: whatever becomes of its name, what is written to it is read to its end.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::about;
use super::compressed::{Compressed, Origin, Turns};
use super::identity::{FINGERPRINT_BYTES, FileId, Fingerprint, Mark, read_full};
use super::join::Joiner;
use super::position::FilePosition;
use super::recognise::{Candidate, Search, Sought};
use super::text::{Lines, Records, is_wide, line_end};
use super::unpack::Begins;
use crate::config::{CompressedFiles, Multiline};
use crate::record::{BodyKind, Chunk, ChunkBuilder, Position, now_ns};
use crate::source::lines::{Longest, Taken, TakesLines};
use encoding_rs::Encoding;

/// How much is read at a time, and so how large a chunk becomes.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// Most files whose lines share a chunk: each has a position in its header.
const MOST_FILES: usize = 64;

/// No more is gathered once there is so much; the last block may still be of 1 MiB.
const ENOUGH_BYTES: u64 = 256 << 10;

/// Most positions of other files that a chunk carries besides its own.
const MOST_OTHERS: usize = 64;

/// What all files of a source have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) source: Arc<str>,
    pub(crate) tag: Arc<str>,
    pub(crate) longest: Longest,
    pub(crate) multiline: Option<Arc<Multiline>>,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) path_key: Option<String>,
    pub(crate) kubernetes: bool,
    pub(crate) compressed: CompressedFiles,
    /// Files that are being unpacked.
    pub(crate) turns: Turns,
    /// How many stretches of files there were so far.
    pub(crate) stretches: u64,
    /// A place to read into.
    pub(crate) buffer: Vec<u8>,
    /// Lines that are in no chunk yet.
    pub(crate) gathered: Gathered,
    /// Positions of files whose old content is left out, by `read_from: end` at the first start: they are to be kept though
    /// those files give no records yet. Where that does not work at once, they also go with the next chunks.
    pub(crate) unrecorded: Vec<Position>,
}

/// Lines of one or more files on their way into a chunk: many files with a few lines each share one.
#[derive(Debug)]
pub(crate) struct Gathered {
    chunk: ChunkBuilder,
    time_ns: i64,
    files: usize,
}

impl Gathered {
    pub(crate) fn new(tag: Arc<str>, objects: bool) -> Self {
        let kind = if objects { BodyKind::Json } else { BodyKind::Text };
        Self { chunk: ChunkBuilder::new(kind, tag), time_ns: now_ns(), files: 0 }
    }

    /// Whether it is large enough to be a chunk.
    pub(crate) fn is_enough(&self) -> bool {
        self.files >= MOST_FILES || self.chunk.body_bytes() >= ENOUGH_BYTES
    }
}

impl Common {
    /// A number for a stretch of a file: from one beginning to the next.
    pub(crate) fn next_stretch(&mut self) -> u64 {
        self.stretches += 1;
        self.stretches
    }

    /// Whether records are objects, and not lines as they are.
    fn has_objects(&self) -> bool {
        self.kubernetes || self.path_key.is_some()
    }

    /// What is gathered, and the block that was read.
    fn gather(&mut self, read: usize) -> (&mut Gathered, &[u8]) {
        // A chunk arrives when its first lines are read, not when the last chunk was closed.
        if self.gathered.chunk.is_empty() {
            self.gathered = Gathered::new(self.tag.clone(), self.has_objects());
        }
        (&mut self.gathered, self.buffer.get(..read).unwrap_or_default())
    }

    /// The chunk of what is gathered.
    pub(crate) fn close_chunk(&mut self) -> Option<Chunk> {
        let next = Gathered::new(self.tag.clone(), self.has_objects());
        let mut gathered = std::mem::replace(&mut self.gathered, next);
        if !gathered.chunk.is_empty() {
            let others = self.unrecorded.len().min(MOST_OTHERS);
            self.unrecorded.drain(..others).for_each(|other| gathered.chunk.position(other));
        }
        gathered.chunk.finish()
    }
}

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
    file: File,
    content: Content,
    /// Before a place up to which it was read, as it was when that was written down.
    mark: Option<Mark>,
    fingerprint: Fingerprint,
    /// How far it was read: behind the last whole line.
    offset: u64,
    skipping: bool,
    /// Where lines are joined to records: those that are not handed in yet.
    joiner: Option<Joiner>,
    encoding: Option<&'static Encoding>,
    /// Where records are objects: their beginning, up to the text.
    object: Option<Box<[u8]>>,
    /// Whether it begins anew, and zeros at its beginning are a hole: a writer that does not append goes on, after a
    /// truncation, where it was.
    hole: bool,
    /// Size and time of change at the last look.
    seen: (u64, i64, i64),
    grew: Instant,
    /// How much the next read asks for: more than a block only inside a line that is longer.
    want: usize,
}

/// What is in a file.
#[derive(Debug)]
enum Content {
    /// It is too short to be told.
    Unknown,
    Plain,
    Compressed(Box<Compressed>),
    /// It is compressed, and such files are left out.
    LeftOut,
}

impl Content {
    fn of(file: &File) -> io::Result<Self> {
        Ok(match Begins::of(file)? {
            Begins::TooShort => Self::Unknown,
            Begins::Otherwise => Self::Plain,
            Begins::Compressed(_) => Self::Compressed(Box::new(Compressed::new(now_ns().cast_unsigned()))),
        })
    }
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

    /// Goes on where a file was read to that it is, compressed; or from the beginning, where it is none that was read.
    pub(crate) fn resume_from(&mut self, former: Option<&FilePosition>) {
        let Content::Compressed(compressed) = &mut self.content else { return };
        self.offset = former.map_or(0, |former| former.offset);
        self.skipping = former.is_some_and(|former| former.skipping);
        compressed.begin_at(self.offset);
        self.seen = (0, 0, 0);
        self.ready = true;
    }

    /// Goes on at the file's present end. A line that is being written there is taken from where it is.
    pub(crate) fn skip_to(&mut self, end: u64) {
        match &mut self.content {
            Content::Compressed(compressed) => compressed.leave_out(end),
            _ => self.offset = end,
        }
    }

    fn leave_out_compressed(&mut self, common: &Common) {
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

    /// The candidates whose beginning is that of this file.
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
    pub(crate) fn is_cut_off(&mut self, after: std::time::Duration) -> bool {
        match &mut self.content {
            Content::Compressed(compressed) => compressed.is_cut_off(after),
            _ => false,
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
    fn file_offset(&self) -> u64 {
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

    /// What this stretch was, once it is over. Its content may be gone already.
    fn former(&self) -> Option<FilePosition> {
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

    fn restart(&mut self, common: &mut Common) -> io::Result<Restarted> {
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

fn size_and_time(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}
