//! One file that is followed, by its open handle: whatever becomes of its name, what is written to it is read to its end.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::about;
use super::identity::{FINGERPRINT_BYTES, FileId, Fingerprint, read_full};
use super::join::Joiner;
use super::position::FilePosition;
use super::text::{Lines, Records, is_wide, line_end};
use crate::config::Multiline;
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
    file: File,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restarted {
    /// How far it had been read.
    pub(crate) offset: u64,
    /// Bytes behind that which had been seen and were not read.
    pub(crate) unread: u64,
}

impl Followed {
    /// Opens a file, to be read from its beginning.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Metadata)> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let fingerprint = Fingerprint::take(&file, FINGERPRINT_BYTES)?;
        let followed = Self {
            path: path.to_owned(),
            real: None,
            id: FileId::of(&metadata),
            heard: false,
            ready: true,
            changed: false,
            moved: None,
            file,
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
    pub(crate) fn configure(&mut self, common: &Common) {
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
    }

    /// Goes on at the file's present end. A line that is being written there is taken from where it is.
    pub(crate) fn skip_to(&mut self, end: u64) {
        self.offset = end;
    }

    /// The position behind the last record that was gathered.
    pub(crate) fn position(&self) -> FilePosition {
        let holds_from = self.joiner.as_ref().and_then(Joiner::holds_from);
        FilePosition {
            id: self.id,
            fingerprint: self.fingerprint,
            offset: holds_from.unwrap_or(self.offset),
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
        if metadata.len() < self.offset {
            look.restarted = Some(self.restart()?);
            self.give_out(common, None);
        }
        let read = self.read_block(&mut common.buffer)?;
        // Looked at after the bytes were read: so they are of the file that the fingerprint is of.
        let Some(fingerprint) = self.fingerprint.grown(&self.file)? else {
            look.restarted = Some(self.restart()?);
            self.give_out(common, None);
            look.more = true;
            self.ready = true;
            return Ok(look);
        };
        self.fingerprint = fingerprint;
        let end = self.offset + read as u64;
        if end > self.seen.0 || look.restarted.is_some() {
            self.grew = Instant::now();
        }
        look.more = end < metadata.len();
        // What was not read must not count as seen.
        self.seen = if look.more { (end, 0, 0) } else { now };
        self.ready = look.more;
        let longest = common.longest;
        let (gathered, mut block) = common.gather(read);
        if self.hole {
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
        let read = self.read_block(&mut common.buffer)?;
        let (gathered, line) = common.gather(read);
        if line_end(self.encoding, line).is_some() {
            return Ok(End::Grown);
        }
        let before = gathered.chunk.len();
        if !line.is_empty() && !self.skipping {
            self.lines(gathered).part(0, line);
            self.offset += read as u64;
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

    fn note_position(&self, common: &mut Common) {
        let position = self.position();
        let key = position.id.key();
        common.unrecorded.retain(|other| other.key != key);
        common.gathered.chunk.position(Position { source: common.source.clone(), key, value: position.encode() });
        common.gathered.files += 1;
    }

    fn restart(&mut self) -> io::Result<Restarted> {
        let restarted = Restarted { offset: self.offset, unread: self.seen.0.saturating_sub(self.offset) };
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
