//! The log lines of a benchmark, in memory.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

/// A line, its line feed included: about what a web server writes.
pub const LINE_BYTES: u64 = 200;

pub struct Input {
    folder: TempDir,
    lines: u64,
}

impl Input {
    pub fn make(bytes: u64) -> anyhow::Result<Self> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("wharf-bench-").tempdir_in(&place)?;
        let lines = bytes / LINE_BYTES;
        let path = folder.path().join("input.log");
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        for number in 0..lines {
            file.write_all(line(number).as_bytes()).with_context(|| format!("writing {}", path.display()))?;
        }
        file.flush()?;
        Ok(Self { folder, lines })
    }
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("input.log")
    }
    pub fn lines(&self) -> u64 {
        self.lines
    }
    pub fn bytes(&self) -> u64 {
        self.lines * LINE_BYTES
    }
}

/// An access log's line: fields that change, so that compressors have the work that they have in life.
fn line(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let (a, b, size) = (mixed % 255, (mixed >> 8) % 255, (mixed >> 16) % 90_000);
    let status = if mixed.is_multiple_of(17) { 404 } else { 200 };
    let mut line = format!(
        "10.{a}.{b}.7 - - [30/Nov/2026:12:{:02}:{:02} +0000] \"GET /items/{mixed:x}?page={} HTTP/1.1\" {status} {size} \"https://shop.example/{:x}\" \"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/145.0\" ",
        number / 6000 % 60,
        number / 100 % 60,
        number % 40,
        mixed >> 24,
    );
    line.truncate(LINE_BYTES as usize - 1);
    while line.len() < LINE_BYTES as usize - 1 {
        line.push('.');
    }
    line.push('\n');
    line
}
