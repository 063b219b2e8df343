//! Unpacking a compressed file as a stream: gzip (RFC 1952), of one member or several, and zstd (RFC 8878), of one frame or several.
//!
//! It reads the file itself, by offsets, and keeps no more than a piece of it and the decoder's window. A file that ends inside a member is no fault:
//! somebody may still be writing it. Where it goes on later, so does this.

use std::fs::File;
use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation as _, OutBuffer};

use super::identity::read_full;
use crate::source::compressed::Compression;

/// How much is read of the file at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The largest window of a zstd frame, as a power of two: 128 MiB, what `zstd` itself unpacks without being asked to.
const ZSTD_WINDOW_LOG: u32 = 27;

/// So many of its first bytes say what a file is.
pub(crate) const MAGIC_BYTES: usize = 4;

/// What a file's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    Compressed(Compression),
    Otherwise,
    /// There are too few of them.
    TooShort,
}

impl Begins {
    /// Of the first bytes of a file, or of a member in it.
    pub(crate) fn with(first: &[u8]) -> Self {
        // No text begins like this: gzip's has a control character, so have zstd's frames that are to be skipped, and its others are no UTF-8.
        // The first byte of those is any of sixteen.
        let skipped = first.first().copied().filter(|byte| byte & 0xf0 == 0x50).unwrap_or(0x50);
        for (magic, compression) in [
            (&[0x1f, 0x8b, 0x08][..], Compression::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
            (&[skipped, 0x2a, 0x4d, 0x18], Compression::Zstd),
        ] {
            if first.starts_with(magic) {
                return Self::Compressed(compression);
            }
            if magic.starts_with(first) {
                return Self::TooShort;
            }
        }
        Self::Otherwise
    }

    /// Of a file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let mut first = [0; MAGIC_BYTES];
        let found = read_full(file, &mut first, 0)?;
        Ok(Self::with(first.get(..found).unwrap_or_default()))
    }
}

/// What a step of unpacking gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes, at least one.
    Bytes(usize),
    /// The file ends inside a member.
    Unfinished,
    /// The file ends where a member ends.
    End,
}

/// Why there is nothing more to be had.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file cannot be read now.
    Reading(io::Error),
    /// It is not what it should be, and never will.
    Damaged(String),
}

/// A file that is being unpacked.
pub(crate) struct Unpacker {
    decoder: Option<Decoder>,
    /// What was read of the file, and how much of it was taken.
    input: Vec<u8>,
    taken: usize,
    /// Where in the file is what was not taken yet.
    at: u64,
}

enum Decoder {
    Flate(Box<Decompress>),
    /// And how many bytes it wants next: as many as its next block has.
    Zstd(ZstdDecoder<'static>, usize),
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").field("at", &self.at).field("inside", &self.decoder.is_some()).finish()
    }
}

impl Unpacker {
    /// Begins where a member begins.
    pub(crate) fn at(at: u64) -> Self {
        Self { decoder: None, input: Vec::new(), taken: 0, at }
    }

    /// How far the file was taken.
    pub(crate) fn offset(&self) -> u64 {
        self.at
    }

    /// Whether that is where a member ends and another may begin.
    pub(crate) fn is_between(&self) -> bool {
        self.decoder.is_none()
    }

    /// Unpacks into `out`, which is not empty. Gives less than fits where a member ends.
    pub(crate) fn read(&mut self, file: &File, out: &mut [u8]) -> Result<Step, Fault> {
        loop {
            if self.decoder.is_none() {
                if let Some(step) = self.begin(file)? {
                    return Ok(step);
                }
                continue;
            }
            if self.rest().is_empty() {
                self.fill(file)?;
            }
            let input = self.input.get(self.taken..).unwrap_or_default();
            let Some(decoder) = &mut self.decoder else { continue };
            let (taken, given, ended) = decoder.run(input, out);
            let nothing_to_take = input.is_empty();
            self.taken += taken;
            self.at += taken as u64;
            match ended {
                Ok(false) => {}
                Ok(true) => self.decoder = None,
                // What came before the fault is good.
                Err(_) if given > 0 => {}
                Err(why) => return Err(Fault::Damaged(why)),
            }
            if given > 0 {
                return Ok(Step::Bytes(given));
            }
            if taken == 0 && self.decoder.is_some() {
                if nothing_to_take {
                    return Ok(Step::Unfinished);
                }
                return Err(Fault::Damaged("its decoder gets no further".to_owned()));
            }
        }
    }

    /// Between two members: begins the next. Zeros between and behind them are padding, as `gzip` has it.
    fn begin(&mut self, file: &File) -> Result<Option<Step>, Fault> {
        while self.rest().len() < MAGIC_BYTES && self.fill(file)? {}
        if self.at > 0 {
            let zeros = self.rest().iter().take_while(|byte| **byte == 0).count();
            self.taken += zeros;
            self.at += zeros as u64;
            if zeros > 0 {
                return Ok(None);
            }
        }
        if self.rest().is_empty() {
            return Ok(Some(Step::End));
        }
        self.decoder = match Begins::with(self.rest()) {
            Begins::Compressed(compression) => Some(Decoder::new(compression)?),
            Begins::TooShort => return Ok(Some(Step::Unfinished)),
            Begins::Otherwise => return Err(Fault::Damaged("what follows is not compressed".to_owned())),
        };
        Ok(None)
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.taken..).unwrap_or_default()
    }

    /// Reads on in the file. Whether there was more.
    fn fill(&mut self, file: &File) -> Result<bool, Fault> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let before = self.input.len();
        self.input.resize(before + PIECE_BYTES, 0);
        let read = read_full(file, self.input.get_mut(before..).unwrap_or_default(), self.at + before as u64);
        self.input.truncate(before + *read.as_ref().unwrap_or(&0));
        Ok(read.map_err(Fault::Reading)? > 0)
    }
}

impl Decoder {
    fn new(compression: Compression) -> Result<Self, Fault> {
        match compression {
            Compression::Gzip => Ok(Self::Flate(Box::new(Decompress::new_gzip(15)))),
            Compression::Deflate => Ok(Self::Flate(Box::new(Decompress::new(true)))),
            Compression::Zstd => {
                let mut decoder = ZstdDecoder::new().map_err(Fault::Reading)?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).map_err(Fault::Reading)?;
                // The largest header of a frame (RFC 8878, 3.1.1.1).
                Ok(Self::Zstd(decoder, 18))
            }
        }
    }

    /// How much it took and gave, and whether the member has ended, or why it is damaged.
    fn run(&mut self, input: &[u8], out: &mut [u8]) -> (usize, usize, Result<bool, String>) {
        match self {
            Self::Flate(gzip) => {
                let before = (gzip.total_in(), gzip.total_out());
                let ended = match gzip.decompress(input, out, FlushDecompress::None) {
                    Ok(status) => Ok(status == Status::StreamEnd),
                    Err(e) => Err(e.to_string()),
                };
                ((gzip.total_in() - before.0) as usize, (gzip.total_out() - before.1) as usize, ended)
            }
            Self::Zstd(zstd, wanted) => {
                // No more than it wants: what it has unpacked is lost where it finds a fault in the same call.
                let input = input.get(..*wanted).unwrap_or(input);
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(out));
                let ended = zstd.run(&mut from, &mut to);
                let (taken, given) = (from.pos(), to.pos());
                let ended = ended.map(|more| {
                    *wanted = more.max(1);
                    more == 0
                });
                (taken, given, ended.map_err(|e| e.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_first_bytes_say_whether_it_is_compressed() {
        use Begins::{Compressed, Otherwise, TooShort};
        for (first, said) in [
            (&b"\x1f\x8b\x08\x00"[..], Compressed(Compression::Gzip)),
            (b"\x28\xb5\x2f\xfd", Compressed(Compression::Zstd)),
            (b"\x50\x2a\x4d\x18", Compressed(Compression::Zstd)),
            (b"\x5f\x2a\x4d\x18", Compressed(Compression::Zstd)),
            (b"", TooShort),
            (b"\x1f\x8b", TooShort),
            (b"(", TooShort),
            (b"P", TooShort),
            (b"P*", TooShort),
            (b"\x1f\x8b\x09\x00", Otherwise),
            (b"PK\x03\x04", Otherwise),
            (b"2026", Otherwise),
            (b"`*M\x18", Otherwise),
        ] {
            assert_eq!(Begins::with(first), said, "{first:?}");
        }
    }
}
