//! Reading dead letters back, a line at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::DeadLetterError;
use super::letter::StoredLetter;

/// A longer line is no letter of ours.
const LONGEST: u64 = 256 << 20;

/// The letters of one file, in order. After a line that is no letter it goes on with the next.
#[derive(Debug)]
pub struct Letters {
    path: PathBuf,
    file: BufReader<File>,
    line: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl Letters {
    pub(super) fn open(path: &Path) -> Result<Self, DeadLetterError> {
        let file = File::open(path).map_err(DeadLetterError::disk("read", path))?;
        let file = BufReader::with_capacity(256 << 10, file);
        Ok(Self { path: path.to_owned(), file, line: 0, buffer: vec![], ended: false })
    }

    /// The line that was read last, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    fn next_line(&mut self) -> Result<bool, DeadLetterError> {
        self.buffer.clear();
        self.line += 1;
        let read = (&mut self.file).take(LONGEST).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(DeadLetterError::disk("read", &self.path))?;
        if read as u64 == LONGEST && !self.buffer.ends_with(b"\n") {
            return Err(self.fault("the line is longer than 256 MiB".into()));
        }
        if self.buffer.ends_with(b"\n") {
            self.buffer.pop();
        }
        Ok(read > 0)
    }

    fn fault(&self, what: String) -> DeadLetterError {
        DeadLetterError::Line { path: self.path.clone(), line: self.line, what }
    }

    /// How many lines there are, without looking into them.
    pub(super) fn count(path: &Path) -> std::io::Result<u64> {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 256 << 10];
        let (mut lines, mut last) = (0, b'\n');
        loop {
            let read = file.read(&mut buffer)?;
            let Some(part) = buffer.get(..read).filter(|p| !p.is_empty()) else {
                return Ok(lines + u64::from(last != b'\n'));
            };
            lines += memchr::memchr_iter(b'\n', part).count() as u64;
            last = part.last().copied().unwrap_or(last);
        }
    }
}

impl Iterator for Letters {
    type Item = Result<StoredLetter, DeadLetterError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.ended {
                return None;
            }
            match self.next_line() {
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                Ok(false) => self.ended = true,
                // Editors leave empty lines.
                Ok(true) if self.buffer.iter().all(u8::is_ascii_whitespace) => {}
                Ok(true) => return Some(StoredLetter::parse(&self.buffer).map_err(|what| self.fault(what))),
            }
        }
    }
}
