//! Which file a compressed one was, before it was rotated and compressed.
//!
//! It is known by what it unpacks to: its first bytes are those of the file's fingerprint, and the bytes before the place up to which that
//! was read are those of its [`Mark`]. Many files begin alike (a header, a banner); that they are alike in front of one place as well says that they are one.

use std::fs::File;
use std::io;

use super::compressed::{Compressed, Given, Turns};
use super::identity::{FINGERPRINT_BYTES, Fingerprint, Mark};

/// How much is unpacked at one step, so that other files have their turn.
const MOST_UNPACKED: usize = 16 << 20;

/// A file that was read, and may be the one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// Which stretch of a file: from one beginning to the next.
    pub(crate) stretch: u64,
    /// Whether it is followed now.
    pub(crate) is_followed: bool,
    pub(crate) offset: u64,
    /// Where nothing of it was read, there is none.
    pub(crate) mark: Option<Mark>,
}

/// The search for one file.
#[derive(Debug, Default)]
pub(crate) struct Search {
    first: Vec<u8>,
    /// The last bytes that were unpacked, as many as a mark has.
    last: Vec<u8>,
    unpacked: u64,
    /// Those that begin like it and were not compared with yet, the first mark last.
    candidates: Option<Vec<Candidate>>,
    found: Option<Candidate>,
}

/// What a step of a search gave.
#[derive(Debug)]
pub(crate) enum Sought {
    /// There is more to be done at once.
    Goes,
    /// The file has to grow first.
    Waits,
    /// Its first bytes are known: the candidates that begin like this are wanted.
    Begins,
    /// It is this one; or none.
    Found(Option<Candidate>),
}

impl Search {
    /// Whether what was unpacked begins with what this is of.
    pub(crate) fn begins_with(&self, first: Fingerprint) -> bool {
        first.bytes > 0 && first.is_of(&self.first)
    }

    /// Whether its first bytes are known.
    pub(crate) fn has_begun(&self) -> bool {
        self.candidates.is_some()
    }

    /// The candidates that begin like it.
    pub(crate) fn compare_with(&mut self, mut candidates: Vec<Candidate>) {
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.mark.map_or(0, |mark| mark.at)));
        // Marks within the first bytes are there already.
        while let Some(candidate) = candidates.pop_if(|it| it.mark.is_none_or(|mark| mark.at <= self.unpacked)) {
            let before = |mark: Mark| self.first.get(..usize::try_from(mark.at).unwrap_or(usize::MAX));
            if candidate.mark.is_none_or(|mark| before(mark).is_some_and(|before| mark.is_at_end_of(before))) {
                self.is_one(candidate);
            }
        }
        self.candidates = Some(candidates);
    }

    /// Goes on with it. `is_all`: nothing more will come where the file ends now.
    pub(crate) fn step(
        &mut self,
        compressed: &mut Compressed,
        file: &File,
        buffer: &mut [u8],
        turns: &Turns,
        is_all: bool,
    ) -> io::Result<Sought> {
        let mut unpacked = 0;
        loop {
            let want = match &self.candidates {
                None if self.first.len() >= FINGERPRINT_BYTES => return Ok(Sought::Begins),
                None => FINGERPRINT_BYTES - self.first.len(),
                Some(candidates) => match candidates.last().and_then(|candidate| candidate.mark) {
                    None => return Ok(Sought::Found(self.found)),
                    Some(mark) => usize::try_from(mark.at - self.unpacked).unwrap_or(usize::MAX),
                },
            };
            let most = want.min(buffer.len());
            let out = buffer.get_mut(..most).unwrap_or_default();
            match compressed.unpack(file, out, turns)? {
                Given::Bytes(bytes) if compressed.unpacked() != self.unpacked + bytes as u64 => {
                    // Others had its turn: it was begun anew.
                    compressed.rewind();
                    *self = Self::default();
                    return Ok(Sought::Goes);
                }
                Given::Bytes(bytes) => self.took(out.get(..bytes).unwrap_or_default()),
                Given::NotNow => return Ok(Sought::Goes),
                Given::Unfinished if self.candidates.is_some() || !is_all => return Ok(Sought::Waits),
                _ if self.candidates.is_none() => return Ok(Sought::Begins),
                // It is shorter than what was read of those that are left.
                _ => return Ok(Sought::Found(self.found)),
            }
            unpacked += most;
            if unpacked > MOST_UNPACKED {
                return Ok(Sought::Goes);
            }
        }
    }

    fn took(&mut self, bytes: &[u8]) {
        if self.candidates.is_none() {
            self.first.extend_from_slice(bytes);
        }
        self.unpacked += bytes.len() as u64;
        self.last.extend_from_slice(bytes);
        self.last.drain(..self.last.len().saturating_sub(FINGERPRINT_BYTES));
        let Some(candidates) = &mut self.candidates else { return };
        let mut reached = Vec::new();
        while let Some(candidate) = candidates.pop_if(|it| it.mark.is_some_and(|mark| mark.at <= self.unpacked)) {
            reached.push(candidate);
        }
        for candidate in reached {
            if candidate.mark.is_some_and(|mark| mark.is_at_end_of(&self.last)) {
                self.is_one(candidate);
            }
        }
    }

    /// It is this, unless one that is followed still, or was read further, is as well.
    fn is_one(&mut self, candidate: Candidate) {
        let rank = |it: &Candidate| (it.is_followed, it.offset);
        if self.found.as_ref().is_none_or(|found| rank(found) < rank(&candidate)) {
            self.found = Some(candidate);
        }
    }
}
