//! The whole state as one file: what a rebuild starts from.

use std::io;
use std::path::Path;

use super::files;
use super::rows::Table;

const MAGIC: &[u8; 8] = b"WHRFSNP1";

/// Every row, and how many changes led to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dump {
    /// Changes so far; only grows, so of two dumps the higher is the later.
    pub(super) commits: u64,
    /// Rows of all tables.
    pub(super) rows: Vec<(Table, Vec<u8>, Vec<u8>)>,
}

/// A snapshot on disk.
#[derive(Debug)]
pub(super) enum Found {
    /// No file.
    Missing,
    /// All of it.
    Whole(Dump),
    /// It cannot be used.
    Damaged(String),
}

pub(super) fn read(path: &Path) -> io::Result<Found> {
    Ok(match files::read(path)? {
        None => Found::Missing,
        Some(content) => decode(&content).map_or_else(|cause| Found::Damaged(cause.into()), Found::Whole),
    })
}

/// Magic, commits, rows (table u8, key length u32, key, value length u32, value), CRC-32C of all before it.
pub(super) fn encode(dump: &Dump) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&dump.commits.to_be_bytes());
    for (table, key, value) in &dump.rows {
        out.push(*table as u8);
        for part in [key, value] {
            // Keys and values are at most a few kilobytes.
            out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(&files::crc(&out).to_be_bytes());
    out
}

fn decode(content: &[u8]) -> Result<Dump, &'static str> {
    let (body, crc) = content.split_last_chunk::<4>().ok_or("it is too short")?;
    if files::crc(body) != u32::from_be_bytes(*crc) {
        return Err("its checksum is wrong");
    }
    let rest = body.strip_prefix(MAGIC.as_slice()).ok_or("it does not begin like one")?;
    let (commits, mut rest) = rest.split_first_chunk::<8>().ok_or("it is too short")?;
    let mut dump = Dump { commits: u64::from_be_bytes(*commits), rows: Vec::new() };
    while let Some((table, behind)) = rest.split_first() {
        let table = *Table::ALL.get(usize::from(*table)).ok_or("it has a table that this Wharf does not know")?;
        let (key, behind) = part(behind).ok_or("a row is cut off")?;
        let (value, behind) = part(behind).ok_or("a row is cut off")?;
        dump.rows.push((table, key.to_vec(), value.to_vec()));
        rest = behind;
    }
    Ok(dump)
}

fn part(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = rest.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_read_as_it_was_written_and_any_cut_or_flip_is_noticed() {
        let dump = Dump {
            commits: 77,
            rows: vec![(Table::Kv, b"o\0k".to_vec(), vec![]), (Table::Meta, b"m".to_vec(), vec![1, 2, 3])],
        };
        let bytes = encode(&dump);
        assert_eq!(decode(&bytes).unwrap(), dump);
        for n in 0..bytes.len() {
            assert!(decode(&bytes[..n]).is_err());
            let mut flipped = bytes.clone();
            flipped[n] ^= 0x10;
            assert!(decode(&flipped).is_err());
        }
    }
}
