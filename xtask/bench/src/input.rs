//! The records of a benchmark, in memory.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

/// A line, its line feed included: about what a web server writes.
pub const LINE_BYTES: u64 = 200;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// An access log's.
    Text,
    /// A JSON object.
    Json,
}

/// Lines, and how many files they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub records: Records,
    pub files: u64,
}

impl Shape {
    /// Text in one file.
    pub const LINES: Self = Self { records: Records::Text, files: 1 };
}

#[derive(Debug)]
pub struct Input {
    shape: Shape,
    folder: TempDir,
    lines: u64,
    /// Bytes that have to be escaped where a line becomes a JSON string.
    escaped: u64,
}

impl Input {
    /// Writes so many bytes, or a little less.
    pub fn make(shape: Shape, bytes: u64) -> anyhow::Result<Self> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("wharf-bench-").tempdir_in(&place)?;
        let each = bytes / LINE_BYTES / shape.files;
        let mut input = Self { shape, folder, lines: each * shape.files, escaped: 0 };
        for (file, path) in (0..).zip(input.paths()) {
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
            for number in file * each..(file + 1) * each {
                let line = match shape.records {
                    Records::Text => text(number),
                    Records::Json => json(number),
                };
                input.escaped += line.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count() as u64;
                out.write_all(line.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
            }
            out.flush()?;
        }
        Ok(input)
    }
    pub fn shape(&self) -> Shape {
        self.shape
    }
    /// Its files.
    pub fn paths(&self) -> Vec<PathBuf> {
        (0..self.shape.files).map(|file| self.folder.path().join(format!("input-{file}.log"))).collect()
    }
    pub fn lines(&self) -> u64 {
        self.lines
    }
    pub fn bytes(&self) -> u64 {
        self.lines * LINE_BYTES
    }
    /// Bytes of all lines without their line feeds: each as it is, or as `{"log": line}`.
    pub fn message_bytes(&self, as_objects: bool) -> u64 {
        let around = if as_objects { r#"{"log":""}"#.len() as u64 * self.lines + self.escaped } else { 0 };
        self.bytes() - self.lines + around
    }
}

/// The input that scenarios use one after the other: made when it is first needed, gone when another is.
#[derive(Debug)]
pub struct Inputs {
    bytes: u64,
    current: Input,
}

impl Inputs {
    /// Begins with text in one file.
    pub fn new(bytes: u64) -> anyhow::Result<Self> {
        Ok(Self { bytes, current: Input::make(Shape::LINES, bytes)? })
    }
    pub fn of(&mut self, shape: Shape) -> anyhow::Result<&Input> {
        if self.current.shape() != shape {
            self.current = Input::make(shape, self.bytes)?;
        }
        Ok(&self.current)
    }
}

/// An access log's line: fields that change, so that compressors have the work that they have in life.
fn text(number: u64) -> String {
    let mixed = mix(number);
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

/// The same as a program that logs objects writes it.
fn json(number: u64) -> String {
    let mixed = mix(number);
    let mut line = format!(
        r#"{{"time":"2026-11-30T12:{:02}:{:02}Z","level":"info","status":{},"bytes":{},"user":"{:x}","path":"/items/{mixed:x}","message":"request served"#,
        number / 6000 % 60,
        number / 100 % 60,
        if mixed.is_multiple_of(17) { 404 } else { 200 },
        mixed % 90_000,
        mixed >> 24,
    );
    while line.len() < LINE_BYTES as usize - 3 {
        line.push('.');
    }
    line.push_str("\"}\n");
    line
}

fn mix(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_length_that_rates_are_told_by() {
        for number in [0, 1, 17, 123_456, u64::MAX] {
            assert_eq!((text(number).len() as u64, json(number).len() as u64), (LINE_BYTES, LINE_BYTES), "{number}");
        }
    }

    #[test]
    fn message_bytes_are_those_of_the_lines_and_of_their_json() {
        let input = Input::make(Shape { records: Records::Text, files: 2 }, 4_000).unwrap();
        let lines: Vec<String> = input
            .paths()
            .iter()
            .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert_eq!((lines.len() as u64, input.lines(), input.bytes()), (20, 20, 4_000));
        let plain: usize = lines.iter().map(String::len).sum();
        let objects: usize = lines.iter().map(|line| format!(r#"{{"log":{line:?}}}"#).len()).sum();
        assert_eq!((input.message_bytes(false), input.message_bytes(true)), (plain as u64, objects as u64));
    }
}
