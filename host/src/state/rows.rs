//! How rows are written: tables, keys, values.
//!
//! A key begins with the owner's name (an output, a source) and a NUL; so an owner's name has none, and what follows may be
//! any bytes. Numbers are big-endian, so keys sort as numbers do.

use std::sync::Arc;

use super::{BatchId, BatchRow, StateError};
use crate::record::{ChunkId, Position};

/// Longest key that a plugin or a source may use, bytes.
pub(super) const MAX_KEY: usize = 512;
/// Longest value, bytes. sled moves leaves of 128 KiB into files that it never syncs; small values keep leaves far below.
pub(super) const MAX_VALUE: usize = 1024;

/// sled's trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Table {
    /// output NUL number → batch
    Batches = 0,
    /// output NUL partition → chunk id
    Cursors = 1,
    /// source NUL key → chunk id, value
    Positions = 2,
    /// output NUL counter → its next number
    Sequences = 3,
    /// output NUL batch NUL counter → the batch's number
    Bindings = 4,
    /// output NUL key → value
    Kv = 5,
    /// output NUL batch NUL key → value
    Progress = 6,
    /// `commits`, and `number` NUL output → next batch number
    Meta = 7,
}

impl Table {
    pub(super) const ALL: [Self; 8] = [
        Self::Batches,
        Self::Cursors,
        Self::Positions,
        Self::Sequences,
        Self::Bindings,
        Self::Kv,
        Self::Progress,
        Self::Meta,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Batches => "batches",
            Self::Cursors => "cursors",
            Self::Positions => "positions",
            Self::Sequences => "sequences",
            Self::Bindings => "bindings",
            Self::Kv => "kv",
            Self::Progress => "progress",
            Self::Meta => "meta",
        }
    }

    /// The damaged row, as an error.
    pub(super) fn damaged(self, key: &[u8], cause: &str) -> StateError {
        StateError::Row { key: format!("{}/{}", self.name(), key.escape_ascii()), cause: cause.into() }
    }
}

/// `owner NUL rest`.
pub(super) fn key(owner: &str, rest: &[u8]) -> Result<Vec<u8>, StateError> {
    if owner.len() > MAX_KEY || owner.contains('\0') {
        return Err(StateError::Invalid(format!(
            "the name {owner:?} cannot be used: at most {MAX_KEY} bytes, and no NUL"
        )));
    }
    if rest.len() > MAX_KEY + 17 {
        return Err(StateError::Invalid(format!("a key of {} bytes is too long: at most {MAX_KEY}", rest.len())));
    }
    let mut key = Vec::with_capacity(owner.len() + 1 + rest.len());
    key.extend_from_slice(owner.as_bytes());
    key.push(0);
    key.extend_from_slice(rest);
    Ok(key)
}

/// `output NUL batch NUL rest`.
pub(super) fn batch_key(output: &str, batch: BatchId, rest: &str) -> Result<Vec<u8>, StateError> {
    let mut tail = batch.0.to_vec();
    tail.push(0);
    tail.extend_from_slice(rest.as_bytes());
    key(output, &tail)
}

/// The owner and the rest of a key.
pub(super) fn split(table: Table, key: &[u8]) -> Result<(&str, &[u8]), StateError> {
    let at = key.iter().position(|b| *b == 0).ok_or_else(|| table.damaged(key, "it has no owner"))?;
    let (owner, rest) = key.split_at(at);
    let owner = std::str::from_utf8(owner).map_err(|_| table.damaged(key, "its owner is not UTF-8"))?;
    Ok((owner, rest.get(1..).unwrap_or_default()))
}

/// The text that is the rest of a key.
pub(super) fn text(table: Table, key: &[u8], rest: &[u8]) -> Result<String, StateError> {
    String::from_utf8(rest.to_vec()).map_err(|_| table.damaged(key, "it is not UTF-8"))
}

/// Refuses keys and values that are too long.
pub(super) fn check(key: &str, value: Option<&[u8]>) -> Result<(), StateError> {
    if key.len() > MAX_KEY {
        return Err(StateError::Invalid(format!("a key has {} bytes; at most {MAX_KEY} are taken", key.len())));
    }
    match value {
        Some(value) if value.len() > MAX_VALUE => Err(StateError::Invalid(format!(
            "the value of key {key:?} has {} bytes; at most {MAX_VALUE} are taken",
            value.len()
        ))),
        _ => Ok(()),
    }
}

/// A number that is the whole value.
pub(super) fn number(table: Table, key: &[u8], value: &[u8]) -> Result<u64, StateError> {
    <[u8; 8]>::try_from(value).map(u64::from_be_bytes).map_err(|_| table.damaged(key, "it is not a number of 8 bytes"))
}

/// A chunk id and what stands behind it.
pub(super) fn positioned(key: &[u8], value: &[u8]) -> Result<(ChunkId, Vec<u8>), StateError> {
    let (id, value) =
        value.split_first_chunk::<8>().ok_or_else(|| Table::Positions.damaged(key, "it has no chunk id"))?;
    Ok((ChunkId(u64::from_be_bytes(*id)), value.to_vec()))
}

/// A position's value.
pub(super) fn position_value(position: &Position, chunk: ChunkId) -> Vec<u8> {
    let mut value = chunk.0.to_be_bytes().to_vec();
    value.extend_from_slice(&position.value);
    value
}

const BATCH_VERSION: u8 = 1;

/// A batch's value; output and number are in its key.
pub(super) fn batch_value(row: &BatchRow) -> Vec<u8> {
    let mut value = vec![BATCH_VERSION];
    value.extend_from_slice(&row.id.0);
    for n in [row.first.0, row.last.0, row.records, row.bytes] {
        value.extend_from_slice(&n.to_be_bytes());
    }
    value.extend_from_slice(&row.closed_ns.to_be_bytes());
    value.extend_from_slice(row.partition.as_bytes());
    value
}

/// The batch in a row.
pub(super) fn batch(key: &[u8], value: &[u8]) -> Result<BatchRow, StateError> {
    let table = Table::Batches;
    let (output, rest) = split(table, key)?;
    let number = number(table, key, rest)?;
    let short = || table.damaged(key, "it is too short");
    let (version, rest) = value.split_first().ok_or_else(short)?;
    if *version != BATCH_VERSION {
        return Err(table.damaged(key, &format!("it has version {version}, this Wharf reads {BATCH_VERSION}")));
    }
    let (id, mut rest) = rest.split_first_chunk::<16>().ok_or_else(short)?;
    let mut next = || -> Result<[u8; 8], StateError> {
        let (n, behind) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        rest = behind;
        Ok(*n)
    };
    let (first, last, records, bytes, closed) = (next()?, next()?, next()?, next()?, next()?);
    let partition = std::str::from_utf8(rest).map_err(|_| table.damaged(key, "its partition is not UTF-8"))?;
    Ok(BatchRow {
        id: BatchId(*id),
        output: output.into(),
        partition: Arc::from(partition),
        number,
        first: ChunkId(u64::from_be_bytes(first)),
        last: ChunkId(u64::from_be_bytes(last)),
        records: u64::from_be_bytes(records),
        bytes: u64::from_be_bytes(bytes),
        closed_ns: i64::from_be_bytes(closed),
    })
}

/// One row's change: its new value, or none.
pub(super) type Write = (Table, Vec<u8>, Option<Vec<u8>>);
/// Changes that are made together.
pub(super) type Writes = Vec<Write>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let row = BatchRow {
            id: BatchId([7; 16]),
            output: "archive".into(),
            partition: "app.\0é".into(),
            number: 258,
            first: ChunkId(3),
            last: ChunkId(u64::MAX),
            records: 5,
            bytes: 6,
            closed_ns: -7,
        };
        let key = key("archive", &258u64.to_be_bytes()).unwrap();
        assert_eq!(key, b"archive\0\0\0\0\0\0\0\x01\x02");
        assert_eq!(batch(&key, &batch_value(&row)).unwrap(), row);
        for cut in 0..57 {
            assert!(batch(&key, &batch_value(&row)[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn an_owner_with_a_nul_is_refused() {
        assert!(matches!(key("a\0b", b""), Err(StateError::Invalid(_))));
    }
}
