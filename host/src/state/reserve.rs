//! Which numbers may have been used, kept outside sled.
//!
//! Before a counter's number is handed out for the first time, the reservation that covers it is appended here and
//! synced. So whatever happens to sled, a counter can resume above every number that anybody has seen, and a sled
//! that stands below a reservation's beginning is known to have fallen back.
//!
//! A reservation is one number where numbers are rare (the rule: one object, one number), so that a rebuild
//! leaves no gap; it doubles, up to 1,000, while numbers of a counter follow each other within a tenth of a second,
//! so that the sync here does not slow a busy one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{StateError, files};

const MAGIC: &[u8; 8] = b"WHRFSEQ1";
const LARGEST_BLOCK: u64 = 1000;
const BUSY: Duration = Duration::from_millis(100);
const COMPACT_AT: u64 = 1 << 20;

/// A counter's output and name.
pub(super) type Counter = (String, String);

/// Numbers from `from` to below `upto` may be in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    /// The counter's next number when this was reserved: sled was never below it since.
    pub(super) from: u64,
    /// Numbers from here on were never handed out.
    pub(super) upto: u64,
}

/// What was found at open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// No file.
    Missing,
    /// All of it, but perhaps a last record that was never synced.
    Whole,
    /// Something that had been synced is gone.
    Damaged(String),
}

/// The file of reservations.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    file: File,
    len: u64,
    compact_at: u64,
    counters: HashMap<Counter, Reserved>,
    pace: HashMap<Counter, (Instant, u64)>,
}

/// Reads the file and changes nothing: a damaged one is needed until whatever was damaged with it is rebuilt.
pub(super) fn read(path: &Path) -> io::Result<(HashMap<Counter, Reserved>, Found)> {
    Ok(match files::read(path)? {
        None => (HashMap::new(), Found::Missing),
        Some(content) => parse(&content),
    })
}

impl Reserve {
    /// Makes the file say `counters` and nothing else, and opens it for appending.
    pub(super) fn start(path: &Path, counters: HashMap<Counter, Reserved>) -> io::Result<Self> {
        let compact = encode_all(&counters);
        if files::read(path)?.as_deref() != Some(compact.as_slice()) {
            files::replace(path, &compact)?;
        }
        let file = OpenOptions::new().append(true).open(path)?;
        let len = compact.len() as u64;
        let compact_at = COMPACT_AT.max(len * 2);
        Ok(Self { path: path.into(), file, len, compact_at, counters, pace: HashMap::new() })
    }

    /// The counter's number that comes next, where sled says `kept` (none: it does not know the counter) and the first is
    /// `least`. Never below what was ever handed out, even if sled fell back and nobody noticed.
    pub(super) fn next(&self, output: &str, name: &str, kept: Option<u64>, least: u64) -> u64 {
        let next = kept.unwrap_or(least);
        match self.counters.get(&(output.to_owned(), name.to_owned())) {
            Some(reserved) if next < reserved.from => reserved.upto,
            _ => next,
        }
    }

    /// Makes sure that `n`, the counter's next number, is reserved on disk.
    pub(super) fn cover(&mut self, output: &str, name: &str, n: u64) -> Result<(), StateError> {
        let counter = (output.to_owned(), name.to_owned());
        if self.counters.get(&counter).is_some_and(|reserved| n < reserved.upto) {
            return Ok(());
        }
        let now = Instant::now();
        let block = match self.pace.get(&counter) {
            Some((last, block)) if now.duration_since(*last) < BUSY => (block * 2).min(LARGEST_BLOCK),
            _ => 1,
        };
        let reserved = Reserved { from: n, upto: n.saturating_add(block) };
        self.append(&encode(&counter, reserved)).map_err(|e| failed(&self.path, &e))?;
        self.pace.insert(counter.clone(), (now, block));
        self.counters.insert(counter, reserved);
        Ok(())
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.len + record.len() as u64 > self.compact_at {
            let compact = encode_all(&self.counters);
            files::replace(&self.path, &compact)?;
            self.file = OpenOptions::new().append(true).open(&self.path)?;
            self.len = compact.len() as u64;
            self.compact_at = COMPACT_AT.max(self.len * 2);
        }
        let written = self.file.write_all(record).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.len += record.len() as u64,
            // What was written of it would hide all later records. Where it cannot be cut off, the next append compacts.
            Err(_) if self.file.set_len(self.len).is_err() => self.compact_at = 0,
            Err(_) => {}
        }
        written
    }
}

fn failed(path: &Path, e: &io::Error) -> StateError {
    if matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        StateError::DiskFull
    } else {
        StateError::Store { doing: "written", cause: format!("{}: {e}", path.display()) }
    }
}

/// Length (u16), CRC-32C (u32), and: from, upto (u64), length of the output's name (u16), output, counter.
fn encode((output, name): &Counter, reserved: Reserved) -> Vec<u8> {
    let mut body = Vec::with_capacity(18 + output.len() + name.len());
    body.extend_from_slice(&reserved.from.to_be_bytes());
    body.extend_from_slice(&reserved.upto.to_be_bytes());
    // Names are at most 512 bytes: `rows::key` has seen to that.
    body.extend_from_slice(&u16::try_from(output.len()).unwrap_or(u16::MAX).to_be_bytes());
    body.extend_from_slice(output.as_bytes());
    body.extend_from_slice(name.as_bytes());
    let mut record = Vec::with_capacity(6 + body.len());
    record.extend_from_slice(&u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
    record.extend_from_slice(&files::crc(&body).to_be_bytes());
    record.extend_from_slice(&body);
    record
}

fn encode_all(counters: &HashMap<Counter, Reserved>) -> Vec<u8> {
    let mut sorted: Vec<_> = counters.iter().collect();
    sorted.sort_by_key(|(counter, _)| *counter);
    let mut content = MAGIC.to_vec();
    for (counter, reserved) in sorted {
        content.extend_from_slice(&encode(counter, *reserved));
    }
    content
}

fn parse(content: &[u8]) -> (HashMap<Counter, Reserved>, Found) {
    let mut counters: HashMap<Counter, Reserved> = HashMap::new();
    let Some(mut rest) = content.strip_prefix(MAGIC.as_slice()) else {
        return (counters, Found::Damaged("it does not begin like one".into()));
    };
    while !rest.is_empty() {
        let at = content.len() - rest.len();
        let Some((body, crc, behind)) = frame(rest) else {
            // Cut within a record: it was never synced.
            return (counters, Found::Whole);
        };
        if files::crc(body) != crc || body.is_empty() {
            let found = if rest.iter().all(|b| *b == 0) {
                Found::Whole
            } else {
                Found::Damaged(format!("the record at byte {at} has a wrong checksum"))
            };
            return (counters, found);
        }
        let Some((counter, reserved)) = decode(body) else {
            return (counters, Found::Damaged(format!("the record at byte {at} makes no sense")));
        };
        let known = counters.entry(counter).or_insert(reserved);
        if reserved.upto >= known.upto {
            *known = reserved;
        }
        rest = behind;
    }
    (counters, Found::Whole)
}

fn frame(rest: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let (body, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    Some((body, u32::from_be_bytes(*crc), behind))
}

fn decode(body: &[u8]) -> Option<(Counter, Reserved)> {
    let (from, rest) = body.split_first_chunk::<8>()?;
    let (upto, rest) = rest.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<2>()?;
    let (output, name) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let counter = (String::from_utf8(output.to_vec()).ok()?, String::from_utf8(name.to_vec()).ok()?);
    Some((counter, Reserved { from: u64::from_be_bytes(*from), upto: u64::from_be_bytes(*upto) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> (Reserve, Found) {
        let (counters, found) = read(path).unwrap();
        (Reserve::start(path, counters).unwrap(), found)
    }

    fn upto(reserve: &Reserve, name: &str) -> u64 {
        reserve.counters[&("out".to_owned(), name.to_owned())].upto
    }

    #[test]
    fn a_reservation_is_found_again_and_a_torn_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sequences.reserve");
        let (mut reserve, found) = open(&path);
        assert_eq!(found, Found::Missing);
        reserve.cover("out", "a", 5).unwrap();
        assert_eq!(upto(&reserve, "a"), 6);
        let whole = std::fs::read(&path).unwrap();
        reserve.cover("out", "b", 0).unwrap();
        let both = std::fs::read(&path).unwrap();
        for cut in whole.len()..both.len() {
            std::fs::write(&path, &both[..cut]).unwrap();
            let (reserve, found) = open(&path);
            assert_eq!(found, Found::Whole);
            assert_eq!(reserve.counters.len(), 1, "cut at {cut}");
            assert_eq!(upto(&reserve, "a"), 6);
        }
    }

    #[test]
    fn a_busy_counter_reserves_blocks_that_double() {
        let dir = tempfile::tempdir().unwrap();
        let (mut reserve, _) = open(&dir.path().join("r"));
        for n in 0..5000 {
            reserve.cover("out", "a", n).unwrap();
            assert!(upto(&reserve, "a") > n);
            assert!(upto(&reserve, "a") <= n + LARGEST_BLOCK);
        }
    }

    #[test]
    fn a_flipped_byte_is_told_apart_from_a_torn_tail() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let (mut reserve, _) = open(&path);
        reserve.cover("out", "a", 5).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(matches!(parse(&bytes).1, Found::Damaged(_)));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_strange_to_parse(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            parse(&bytes);
            parse(&[MAGIC.as_slice(), &bytes].concat());
        }
    }
}
