//! How a compressed file is read: which of its bytes were unpacked, and where it is gone on with.
//!
//! A position in it counts unpacked bytes. Since nobody can begin in the middle of a member, a start begins at the last end of a member before the
//! position, and leaves out what was read already.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::followed::BLOCK_BYTES;
use super::position::Member;
use super::recognise::{Search, Sought};
use super::unpack::{Fault, Step, Unpacker};

/// How many files are unpacked at the same time: each has a window in memory, of 32 KiB for gzip and at most 128 MiB for zstd. Others wait.
const MOST_UNPACKED: usize = 4;

/// How much of what was read already is left out at one look, so that other files have their turn.
const MOST_LEFT_OUT: usize = 16 * BLOCK_BYTES;

/// Counts the files that are being unpacked: each has a clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<()>);

impl Turns {
    fn are_taken(&self) -> bool {
        // One clone is nobody's.
        Arc::strong_count(&self.0) > MOST_UNPACKED
    }
}

/// The reading of one compressed file.
#[derive(Debug)]
pub(crate) struct Compressed {
    /// Tells it from an earlier file with its inode. A file's position may be kept before it gave a record, and such a one must not have a key
    /// under which chunks that are on their way have another.
    salt: u64,
    origin: Origin,
    unpacker: Option<(Unpacker, Turns)>,
    /// How much was unpacked, from its beginning.
    unpacked: u64,
    /// What of that is behind the position.
    carry: Vec<u8>,
    /// Ends of members; the first is not behind the position.
    ends: VecDeque<End>,
    state: State,
}

/// Which file it was before it was compressed.
#[derive(Debug)]
pub(crate) enum Origin {
    /// It is being found out.
    Sought(Box<Search>),
    /// It is what this stretch of a followed file is: that is read first.
    Follows(u64),
    /// It is known, or it was none that was read.
    Known,
}

/// Where a member ends, in the file and in what is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    file: u64,
    unpacked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The file ended inside a member, when it was looked at for the first time since it grew; and whether that was said.
    Unfinished(Instant, bool),
    Complete,
    Damaged,
}

/// What unpacking gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Bytes(usize),
    Unfinished,
    End,
    Damaged(String),
    /// Too many files are being unpacked.
    NotNow,
}

/// What is in the buffer after a read.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub(crate) bytes: usize,
    /// Whether there may be more to read at once.
    pub(crate) more: bool,
    /// Why the rest of the file cannot be read.
    pub(crate) damage: Option<String>,
}

impl Compressed {
    /// One that was not seen before.
    pub(crate) fn new(salt: u64) -> Self {
        let search = Origin::Sought(Box::default());
        Self::at(Member { salt, file: 0, unpacked: 0, damaged: false }, search)
    }

    /// One that was read before.
    pub(crate) fn resumed(member: Member) -> Self {
        Self::at(member, Origin::Known)
    }

    fn at(member: Member, origin: Origin) -> Self {
        Self {
            salt: member.salt,
            origin,
            unpacker: None,
            unpacked: member.unpacked,
            carry: Vec::new(),
            ends: [End { file: member.file, unpacked: member.unpacked }].into(),
            state: if member.damaged { State::Damaged } else { State::Open },
        }
    }

    /// Leaves out all that is there: what comes behind it is read, if it begins there.
    pub(crate) fn leave_out(&mut self, file_bytes: u64) {
        *self = Self::resumed(Member { salt: self.salt, file: file_bytes, unpacked: 0, damaged: false });
    }

    pub(crate) fn is_known(&self) -> bool {
        matches!(self.origin, Origin::Known)
    }

    /// The stretch of another file that is read first.
    pub(crate) fn follows(&self) -> Option<u64> {
        match self.origin {
            Origin::Follows(stretch) => Some(stretch),
            _ => None,
        }
    }

    pub(crate) fn search(&mut self) -> Option<&mut Search> {
        match &mut self.origin {
            Origin::Sought(search) => Some(search),
            _ => None,
        }
    }

    pub(crate) fn set_origin(&mut self, origin: Origin, turns: &Turns) {
        match origin {
            Origin::Sought(_) => self.rewind(),
            _ => self.yield_to_others(turns),
        }
        self.origin = origin;
    }

    /// A step of the search for what it was. `is_as_it_was`: it is not larger than at the last one.
    pub(crate) fn seek(
        &mut self,
        file: &File,
        buffer: &mut [u8],
        turns: &Turns,
        is_as_it_was: bool,
    ) -> io::Result<Sought> {
        let is_all = matches!(self.state, State::Unfinished(_, true));
        // Whoever waited at its end has nothing to do until it grows; but what is all there is may be enough to begin with.
        let waits = is_as_it_was && self.is_unfinished();
        let Origin::Sought(search) = &mut self.origin else { return Ok(Sought::Waits) };
        if waits && (!is_all || search.has_begun()) {
            return Ok(Sought::Waits);
        }
        let mut search = std::mem::take(search);
        let sought = search.step(self, file, buffer, turns, is_all);
        self.origin = Origin::Sought(search);
        sought
    }

    /// Goes on at this byte of what it unpacks to.
    pub(crate) fn begin_at(&mut self, offset: u64) {
        self.origin = Origin::Known;
        self.state = State::Open;
        if self.unpacked > offset {
            self.unpacker = None;
        }
    }

    /// Begins to unpack from the beginning.
    pub(crate) fn rewind(&mut self) {
        self.unpacker = None;
        self.unpacked = 0;
    }

    /// How much was unpacked, from the beginning.
    pub(crate) fn unpacked(&self) -> u64 {
        self.unpacked
    }

    /// From where a start goes on whose position is at `offset`.
    pub(crate) fn member(&self, offset: u64) -> Member {
        let end = self.ends.iter().rev().find(|end| end.unpacked <= offset).or(self.ends.front());
        let end = end.copied().unwrap_or(End { file: 0, unpacked: 0 });
        Member { salt: self.salt, file: end.file, unpacked: end.unpacked, damaged: self.state == State::Damaged }
    }

    /// How far the file was taken.
    pub(crate) fn file_offset(&self) -> u64 {
        let end = self.ends.back().map_or(0, |end| end.file);
        self.unpacker.as_ref().map_or(end, |(unpacker, _)| unpacker.offset())
    }

    /// Whether nothing will follow, as far as can be known.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Complete | State::Damaged)
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Unfinished(..))
    }

    /// Whether it has ended inside a member for so long, and that was not said yet.
    pub(crate) fn is_cut_off(&mut self, after: Duration) -> bool {
        match &mut self.state {
            State::Unfinished(since, said @ false) if since.elapsed() >= after => {
                *said = true;
                true
            }
            _ => false,
        }
    }

    /// The unpacked bytes behind the position.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.carry
    }

    /// Puts what is behind `offset` into the buffer, up to `want` bytes of it.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        offset: u64,
        buffer: &mut Vec<u8>,
        want: usize,
        turns: &Turns,
    ) -> io::Result<Filled> {
        let mut filled = Filled::default();
        if self.state != State::Damaged && !self.open(offset, turns) {
            filled.more = true;
        }
        let want = want.max(self.carry.len());
        if buffer.len() < want {
            buffer.resize(want, 0);
        }
        filled.bytes = self.carry.len();
        buffer.get_mut(..filled.bytes).unwrap_or_default().copy_from_slice(&self.carry);
        let mut left_out = 0;
        while self.unpacker.is_some() && filled.bytes < want {
            let to_leave_out = offset.saturating_sub(self.unpacked);
            let until = if to_leave_out > 0 { want.min(usize::try_from(to_leave_out).unwrap_or(want)) } else { want };
            let given = self.unpack(file, buffer.get_mut(filled.bytes..until).unwrap_or_default(), turns);
            match given.inspect_err(|_| self.keep(buffer.get(..filled.bytes).unwrap_or_default()))? {
                Given::Bytes(bytes) if to_leave_out > 0 => left_out += bytes,
                Given::Bytes(bytes) => filled.bytes += bytes,
                Given::Damaged(why) => {
                    // Where all was left out, the file ended inside a member then: what follows is none of ours.
                    let left_out_before = self.unpacked == 0 && self.ends.front().is_some_and(|end| end.file > 0);
                    filled.damage = (!left_out_before).then_some(why);
                    return Ok(filled);
                }
                Given::Unfinished | Given::End | Given::NotNow => return Ok(filled),
            }
            if left_out >= MOST_LEFT_OUT {
                break;
            }
        }
        filled.more |= self.unpacker.is_some();
        Ok(filled)
    }

    /// Keeps what of the buffer was not taken; what comes before `position` is not needed again.
    pub(crate) fn took(&mut self, rest: &[u8], position: u64) {
        self.keep(rest);
        while self.ends.get(1).is_some_and(|end| end.unpacked <= position) {
            self.ends.pop_front();
        }
    }

    /// Unpacks some more, into a place that is not empty.
    pub(crate) fn unpack(&mut self, file: &File, out: &mut [u8], turns: &Turns) -> io::Result<Given> {
        if self.unpacker.is_none() && !self.open(self.unpacked, turns) {
            return Ok(Given::NotNow);
        }
        let Some((unpacker, _)) = &mut self.unpacker else { return Ok(Given::NotNow) };
        let step = unpacker.read(file, out);
        if let Ok(Step::Bytes(bytes)) = &step {
            self.unpacked += *bytes as u64;
        }
        let end = End { file: unpacker.offset(), unpacked: self.unpacked };
        if unpacker.is_between() {
            self.ended(end);
        }
        match step {
            Ok(Step::Bytes(bytes)) => {
                self.state = State::Open;
                Ok(Given::Bytes(bytes))
            }
            Ok(Step::Unfinished) => {
                if !self.is_unfinished() {
                    self.state = State::Unfinished(Instant::now(), false);
                }
                self.yield_to_others(turns);
                Ok(Given::Unfinished)
            }
            Ok(Step::End) => {
                self.state = State::Complete;
                self.unpacker = None;
                Ok(Given::End)
            }
            Err(Fault::Damaged(why)) => {
                self.state = State::Damaged;
                self.unpacker = None;
                Ok(Given::Damaged(why))
            }
            Err(Fault::Reading(e)) => Err(e),
        }
    }

    /// Whoever waits for something must not keep others from being unpacked: where all turns are taken it gives up its own, and begins again later.
    /// So one is always left for those that go on.
    fn yield_to_others(&mut self, turns: &Turns) {
        if turns.are_taken() {
            self.unpacker = None;
        }
    }

    /// Begins to unpack, or goes on. Whether it may.
    fn open(&mut self, offset: u64, turns: &Turns) -> bool {
        if self.unpacker.is_some() {
            return true;
        }
        if turns.are_taken() {
            return false;
        }
        let behind = offset + self.carry.len() as u64;
        let from = match self.ends.back() {
            Some(end) if end.unpacked == behind => *end,
            _ => {
                self.carry.clear();
                self.ends.front().copied().unwrap_or(End { file: 0, unpacked: 0 })
            }
        };
        self.unpacked = from.unpacked;
        self.unpacker = Some((Unpacker::at(from.file), turns.clone()));
        true
    }

    fn keep(&mut self, rest: &[u8]) {
        self.carry.clear();
        self.carry.extend_from_slice(rest);
    }

    fn ended(&mut self, end: End) {
        match self.ends.back_mut() {
            // It was passed before.
            Some(last) if end.file <= last.file => {}
            Some(last) if end.unpacked == last.unpacked => *last = end,
            _ => self.ends.push_back(end),
        }
    }
}
