//! Batches, cursors and positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::Inner;
use super::handle::{Handle, Trouble};
use super::rows::{self, Table, Writes};
use super::{BatchId, BatchRow, Flushed, Loaded, StateError};
use crate::record::{ChunkId, Position};

/// Longest partition, bytes.
const MAX_PARTITION: usize = 512;

fn number_key(output: &str) -> Vec<u8> {
    [b"number\0", output.as_bytes()].concat()
}

impl Inner {
    pub(super) fn load(&self) -> Result<Loaded, StateError> {
        self.read(|handle| {
            let mut loaded = Loaded::default();
            for row in handle.scan(Table::Batches, &[], &[])? {
                let (key, value) = row?;
                loaded.batches.push(rows::batch(&key, &value)?);
            }
            for row in handle.scan(Table::Cursors, &[], &[])? {
                let (key, value) = row?;
                let (output, partition) = rows::split(Table::Cursors, &key)?;
                let partition = rows::text(Table::Cursors, &key, partition)?;
                let upto = ChunkId(rows::number(Table::Cursors, &key, &value)?);
                loaded.cursors.push((output.into(), partition.into(), upto));
            }
            for row in handle.scan(Table::Positions, &[], &[])? {
                let (key, value) = row?;
                let (source, rest) = rows::split(Table::Positions, &key)?;
                let (chunk, value) = rows::positioned(&key, &value)?;
                let key = rows::text(Table::Positions, &key, rest)?;
                loaded.positions.push((Position { source: source.into(), key, value }, chunk));
            }
            for row in handle.scan(Table::Meta, b"number\0", &[])? {
                let (key, value) = row?;
                let (_, output) = rows::split(Table::Meta, &key)?;
                let output = rows::text(Table::Meta, &key, output)?;
                loaded.next_numbers.push((output.into(), rows::number(Table::Meta, &key, &value)?));
            }
            Ok(loaded)
        })
    }

    pub(super) fn positions(&self, source: &str) -> Result<Vec<(Position, ChunkId)>, StateError> {
        self.read(|handle| {
            let mut positions = vec![];
            for row in handle.scan(Table::Positions, &rows::key(source, b"")?, &[])? {
                let (key, value) = row?;
                let (source, rest) = rows::split(Table::Positions, &key)?;
                let (chunk, value) = rows::positioned(&key, &value)?;
                let key = rows::text(Table::Positions, &key, rest)?;
                positions.push((Position { source: source.into(), key, value }, chunk));
            }
            Ok(positions)
        })
    }

    pub(super) fn close_batch(
        &self,
        batch: &BatchRow,
        positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        self.change(|_, handle| {
            let key = rows::key(&batch.output, &batch.number.to_be_bytes())?;
            let mut writes = cursor_write(handle, &batch.output, &batch.partition, batch.last)?;
            if let Some(there) = handle.get(Table::Batches, &key)?
                && rows::batch(&key, &there)?.id != batch.id
            {
                let taken = format!("output {} has another batch with number {} already", batch.output, batch.number);
                return Err(StateError::Invalid(taken).into());
            }
            writes.push((Table::Batches, key, Some(rows::batch_value(batch))));
            let number = number_key(&batch.output);
            let next = handle.number(Table::Meta, &number)?.unwrap_or(0).max(batch.number.saturating_add(1));
            writes.push((Table::Meta, number, Some(next.to_be_bytes().to_vec())));
            writes.extend(position_writes(handle, positions)?);
            Ok((writes, ()))
        })
    }

    pub(super) fn skip_chunks(
        &self,
        output: &str,
        cursors: &[(Arc<str>, ChunkId)],
        positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        self.change(|_, handle| {
            let mut writes = Writes::new();
            for (partition, upto) in cursors {
                writes.extend(cursor_write(handle, output, partition, *upto)?);
            }
            writes.extend(position_writes(handle, positions)?);
            Ok((writes, ()))
        })
    }

    pub(super) fn forget_cursors(&self, output: &str, partitions: &[Arc<str>]) -> Result<Flushed<()>, StateError> {
        self.change(|_, _| {
            let mut writes = Writes::new();
            for partition in partitions {
                writes.push((Table::Cursors, rows::key(output, partition.as_bytes())?, None));
            }
            Ok((writes, ()))
        })
    }

    pub(super) fn settle_batch(
        &self,
        output: &str,
        id: BatchId,
        positions: &[(Position, ChunkId)],
    ) -> Result<Flushed<()>, StateError> {
        self.change(|_, handle| {
            let mut writes = position_writes(handle, positions)?;
            // Not there: it was settled before, and only the answer was lost.
            if let Some(number) = self.batch_number(output, id) {
                writes.push((Table::Batches, rows::key(output, &number.to_be_bytes())?, None));
            }
            let prefix = rows::batch_key(output, id, "")?;
            for table in [Table::Bindings, Table::Progress] {
                for row in handle.scan(table, &prefix, &[])? {
                    writes.push((table, row?.0.to_vec(), None));
                }
            }
            Ok((writes, ()))
        })
    }

    pub(super) fn put_positions(&self, positions: &[(Position, ChunkId)]) -> Result<Flushed<()>, StateError> {
        self.change(|_, handle| Ok((position_writes(handle, positions)?, ())))
    }

    pub(super) fn delete_positions(&self, source: &str, keys: &[String]) -> Result<Flushed<()>, StateError> {
        self.change(|_, _| {
            let mut writes = Writes::new();
            for key in keys {
                writes.push((Table::Positions, rows::key(source, key.as_bytes())?, None));
            }
            Ok((writes, ()))
        })
    }

    /// The open batch's number of closing.
    pub(super) fn batch_number(&self, output: &str, id: BatchId) -> Option<u64> {
        self.known(|known| known.batches.get(output)?.get(&id).copied())
    }

    /// Refuses what would add rows to a batch that is settled: nothing would ever remove them.
    pub(super) fn require_open(&self, output: &str, id: BatchId) -> Result<(), StateError> {
        match self.batch_number(output, id) {
            Some(_) => Ok(()),
            None => Err(StateError::Invalid(format!("batch {id} of output {output} is not held any more"))),
        }
    }
}

/// Moves a cursor forward, never back.
fn cursor_write(handle: &Handle, output: &str, partition: &str, upto: ChunkId) -> Result<Writes, Trouble> {
    if partition.len() > MAX_PARTITION {
        let cause = format!("a partition's name has {} bytes; at most {MAX_PARTITION} are taken", partition.len());
        return Err(StateError::Invalid(cause).into());
    }
    let key = rows::key(output, partition.as_bytes())?;
    let upto = handle.number(Table::Cursors, &key)?.unwrap_or(0).max(upto.0);
    Ok(vec![(Table::Cursors, key, Some(upto.to_be_bytes().to_vec()))])
}

/// Keeps for each key the position of the highest chunk.
fn position_writes(handle: &Handle, positions: &[(Position, ChunkId)]) -> Result<Writes, Trouble> {
    let mut newest: BTreeMap<Vec<u8>, (&Position, ChunkId)> = BTreeMap::new();
    for (position, chunk) in positions {
        let checked = rows::check(&position.key, Some(&position.value));
        let key = match checked.and_then(|()| rows::key(&position.source, position.key.as_bytes())) {
            Ok(key) => key,
            Err(e) => {
                // To fail here would keep a delivered batch from being settled for ever.
                tracing::error!(source = %position.source, error = %e, "a position cannot be kept");
                continue;
            }
        };
        let best = newest.entry(key).or_insert((position, *chunk));
        if *chunk >= best.1 {
            *best = (position, *chunk);
        }
    }
    let mut writes = Writes::new();
    for (key, (position, chunk)) in newest {
        let kept = handle.get(Table::Positions, &key)?;
        let kept = kept.map(|value| rows::positioned(&key, &value)).transpose()?;
        if kept.is_none_or(|(kept, _)| kept <= chunk) {
            writes.push((Table::Positions, key, Some(rows::position_value(position, chunk))));
        }
    }
    Ok(writes)
}
