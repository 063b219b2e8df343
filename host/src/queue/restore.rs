//! After a start: what waits, what is in a batch, what nobody needs any more.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::overflow::CURSORS_AT_ONCE;
use super::parked::Parked;
use super::{Batch, Ledger, Queue, QueueOptions};
use crate::journal::Recovery;
use crate::record::{ChunkId, Portion, Position};
use crate::state::{BatchRow, Loaded, StateError};

/// The batches of each output and partition, by their first chunk, and the portions that were found of each.
type Batches = HashMap<(Arc<str>, Arc<str>), BTreeMap<ChunkId, (BatchRow, Vec<Portion>)>>;

/// Up to where a partition of an output is settled, or in batches.
struct Cursor {
    upto: ChunkId,
    /// Something of the partition is in the journal, or in a batch.
    needed: bool,
}

type Cursors = HashMap<(Arc<str>, Arc<str>), Cursor>;

pub(super) fn restore(
    ledger: &Ledger,
    recovery: &Recovery,
    options: Vec<QueueOptions>,
) -> Result<(Vec<Queue>, Vec<Position>), StateError> {
    let shared = &ledger.shared;
    let Loaded { batches: rows, cursors, positions, next_numbers } = shared.state.load()?;
    // Were the journal's directory lost, ids would begin anew below the cursors, and new chunks pass for settled ones.
    let in_batches = rows.iter().map(|row| row.last);
    let in_positions = positions.iter().map(|(_, id)| *id);
    if let Some(known) = cursors.iter().map(|(.., upto)| *upto).chain(in_batches).chain(in_positions).max() {
        shared.keeper.raise_ids_above(known);
    }
    let next_numbers: HashMap<_, _> = next_numbers.into_iter().collect();
    let cursor = |(output, partition, upto)| ((output, partition), Cursor { upto, needed: false });
    let mut cursors: Cursors = cursors.into_iter().map(cursor).collect();
    let mut batches = Batches::new();
    for row in rows {
        let of = (row.output.clone(), row.partition.clone());
        batches.entry(of).or_default().insert(row.first, (row, Vec::new()));
    }
    let queues: Vec<Queue> = options
        .into_iter()
        .map(|options| {
            let next = next_numbers.get(&options.output).copied().unwrap_or(0);
            Queue::new(options, shared.clone(), next)
        })
        .collect();
    let by_output: HashMap<_, _> = queues.iter().map(|queue| (queue.output().clone(), queue)).collect();

    let mut parked: HashMap<Arc<str>, Parked> = HashMap::new();
    for (output, next_number) in next_numbers.iter().filter(|(output, _)| !by_output.contains_key(*output)) {
        parked.entry(output.clone()).or_default().next_number = *next_number;
    }
    let mut free = Vec::new();
    let mut in_journal = Vec::new();
    let now = shared.now();
    for (id, meta) in &recovery.chunks {
        let mut needed = 0;
        for (route, portion) in Portion::each(*id, meta) {
            let of = (route.output.clone(), route.partition.clone());
            let queue = by_output.get(&route.output);
            let cursor = cursors.get_mut(&of);
            let settled = cursor.is_some_and(|cursor| {
                cursor.needed = true;
                *id <= cursor.upto
            });
            let batch = batches.get_mut(&of).and_then(|of| of.range_mut(..=*id).next_back().map(|(_, batch)| batch));
            if let Some((_, portions)) = batch.filter(|(row, _)| *id <= row.last) {
                portions.push(portion);
            } else if settled {
                continue;
            } else if let Some(queue) = queue {
                queue.inner.lock().add(&route.partition, portion, now);
            } else {
                parked.entry(route.output.clone()).or_default().waiting.push((route.partition.clone(), portion));
            }
            needed += 1;
        }
        if needed == 0 {
            // What settled it also kept its positions, unless a later chunk has them; since then they may have been forgotten.
            free.push(Portion::whole(*id, meta.clone()));
        } else {
            shared.need(*id, needed);
            shared.note_positions(*id, meta);
            in_journal.extend(meta.positions.iter().map(|position| (position.clone(), *id)));
        }
    }
    for of in batches.keys() {
        if let Some(cursor) = cursors.get_mut(of) {
            cursor.needed = true;
        }
    }
    restore_batches(batches, &by_output, &mut parked, ledger)?;
    for (output, held) in &parked {
        let held = held.kept(output);
        if held.records > 0 {
            tracing::warn!(
                output = %output,
                records = held.records,
                bytes = held.bytes,
                "records are kept for an output that is not configured: configure an output of this name to deliver them, or drop them with `--discard {output}`"
            );
        }
    }
    ledger.park_all(parked);
    if recovery.quarantined.is_empty() {
        forget_cursors(cursors, ledger);
    }
    let positions = newest(positions.into_iter().chain(in_journal));
    shared.give_up(free);
    for queue in &queues {
        ledger.add(queue.clone());
    }
    Ok((queues, positions))
}

/// Batches are there again in the order of their closing, with what is left of them.
fn restore_batches(
    batches: Batches,
    by_output: &HashMap<Arc<str>, &Queue>,
    parked: &mut HashMap<Arc<str>, Parked>,
    ledger: &Ledger,
) -> Result<(), StateError> {
    let mut all: Vec<_> = batches.into_values().flat_map(BTreeMap::into_values).collect();
    all.sort_by_key(|(row, _)| row.number);
    for (mut row, portions) in all {
        let records = portions.iter().map(|portion| u64::from(portion.records())).sum();
        if portions.is_empty() {
            tracing::error!(
                output = %row.output, batch = %row.id, records = row.records,
                "no chunk of a closed batch is in the journal any more (see quarantine); it is given up"
            );
            ledger.shared.state.settle_batch(&row.output, row.id, &[])?;
            continue;
        }
        if records != row.records {
            tracing::error!(
                output = %row.output, batch = %row.id, records = row.records, left = records,
                "a closed batch has lost chunks in the journal (see quarantine); the rest is delivered"
            );
            row.records = records;
            row.bytes = portions.iter().map(Portion::body_bytes).sum();
        }
        let now = ledger.shared.now();
        let batch = Batch { row, portions: portions.into(), restored: true };
        match by_output.get(&batch.row.output) {
            Some(queue) => queue.inner.lock().restore(batch, now),
            None => parked.entry(batch.row.output.clone()).or_default().batches.push(batch),
        }
    }
    Ok(())
}

/// Cursors that no chunk in the journal is held against any more: where records are kept apart by fields, partitions come and go without end. What
/// comes later has higher ids, so it makes no difference whether there is a cursor; only what is found again may need it. So this
/// is done where every chunk that is on the disk was found.
fn forget_cursors(cursors: Cursors, ledger: &Ledger) {
    let mut of_outputs: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
    for ((output, partition), _) in cursors.into_iter().filter(|(_, cursor)| !cursor.needed) {
        of_outputs.entry(output).or_default().push(partition);
    }
    for (output, partitions) in of_outputs {
        for some in partitions.chunks(CURSORS_AT_ONCE) {
            if let Err(error) = ledger.shared.state.forget_cursors(&output, some) {
                tracing::warn!(%output, %error, "cursors of partitions that are gone could not be removed; it is tried at the next start");
                return;
            }
        }
    }
}

/// For each source and key the position of the highest chunk.
fn newest(all: impl Iterator<Item = (Position, ChunkId)>) -> Vec<Position> {
    let mut newest: BTreeMap<(Arc<str>, String), (Position, ChunkId)> = BTreeMap::new();
    for (position, id) in all {
        let of = (position.source.clone(), position.key.clone());
        match newest.get_mut(&of) {
            Some(known) if known.1 > id => {}
            Some(known) => *known = (position, id),
            None => {
                newest.insert(of, (position, id));
            }
        }
    }
    newest.into_values().map(|(position, _)| position).collect()
}
