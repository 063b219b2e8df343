//! Log files that grow, with lines that can be told apart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The line `number` of `source`: what it says is what [`Delivered`](crate::Delivered) checks.
#[must_use]
pub fn line(source: &str, number: u64, bytes: usize) -> String {
    let mut line = format!("{source}-{number:08} ");
    while line.len() < bytes {
        line.push_str("the quick brown fox jumps over the lazy dog; ");
    }
    line.truncate(bytes.max(source.len() + 9));
    line
}

/// Writes numbered lines to a file, and rotates it as logrotate does. Lines are called `SOURCE.ROTATIONS-NUMBER`: those of one file have one
/// source, since only inside a file is there an order that must hold.
#[derive(Debug)]
pub struct LogWriter {
    source: String,
    path: PathBuf,
    file: File,
    next: u64,
    bytes: usize,
    /// The first line's number of each file after the first.
    rotated_at: Vec<u64>,
}

impl LogWriter {
    /// Opens (and makes) the file. Lines are called `source.0-00000000 …` and are `bytes` long.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn open(path: &Path, source: &str, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { source: source.to_owned(), path: path.to_owned(), file, next: 0, bytes, rotated_at: Vec::new() })
    }
    /// Lines written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.next
    }
    /// Every line written so far, without its padding: `source.0-00000000`.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.next).map(|number| {
            let rotations = self.rotated_at.iter().filter(|first| **first <= number).count();
            format!("{}.{rotations}-{number:08}", self.source)
        })
    }
    /// Appends lines, in one write.
    ///
    /// # Errors
    /// Where writing fails.
    pub fn write(&mut self, lines: u64) -> io::Result<()> {
        let mut text = String::with_capacity(lines as usize * (self.bytes + 1));
        let source = format!("{}.{}", self.source, self.rotated_at.len());
        for number in self.next..self.next + lines {
            text.push_str(&line(&source, number, self.bytes));
            text.push('\n');
        }
        self.file.write_all(text.as_bytes())?;
        self.next += lines;
        Ok(())
    }
    /// Renames the file to `NAME.N` and begins a new one of the old name.
    ///
    /// # Errors
    /// Where that fails.
    pub fn rotate(&mut self) -> io::Result<()> {
        self.rotated_at.push(self.next);
        let old = PathBuf::from(format!("{}.{}", self.path.display(), self.rotated_at.len()));
        fs::rename(&self.path, old)?;
        self.file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        Ok(())
    }
}
