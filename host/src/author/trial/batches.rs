//! From records to batches, as a queue makes them: by the plugin's partition keys, whole chunks, up to the limits.

use std::sync::Arc;

use super::case::{Case, OUTPUT, Record};
use super::drive::said;
use crate::journal::Journal;
use crate::plugin::Plan;
use crate::record::{Chunk, ChunkBuilder, ChunkId, Partitioning, Portion};
use crate::state::{BatchId, BatchRow};

/// The records of a test in batches.
///
/// # Errors
/// Where the journal does not take them.
pub(super) async fn closed(case: &Case, plan: &Plan, journal: &Journal) -> Result<Vec<ClosedBatch>, String> {
    let partitioning = Arc::new(Partitioning::new(&plan.partition_by));
    let limits = &case.output.batch;
    let max_records = limits.max_records.or(plan.max_records).unwrap_or(u64::from(u32::MAX));
    let max_bytes = limits.max_bytes.or(plan.max_bytes).unwrap_or(u64::MAX);
    // A chunk goes into a batch whole, so where batches end each record is one.
    let bytes: u64 = case.records.iter().map(|record| record.body.len() as u64 + u64::from(plan.record_overhead)).sum();
    let apart = case.records.len() as u64 > max_records || bytes > max_bytes;
    let (mut open, mut closed): (Vec<ClosedBatch>, Vec<ClosedBatch>) = (vec![], vec![]);
    for chunk in chunks(&case.records, case.now_ns, apart) {
        let routes = partitioning.routes(&OUTPUT.into(), &chunk);
        let chunk = chunk.with_routes(routes);
        let meta = Arc::clone(chunk.meta());
        let id = journal.append(chunk).await.map_err(said)?.map_err(said)?;
        for (route, portion) in Portion::each(id, &meta) {
            let bytes = portion.body_bytes() + u64::from(plan.record_overhead) * u64::from(portion.records());
            let is_over = |batch: &&mut ClosedBatch| {
                batch.bytes + bytes > max_bytes || batch.records + u64::from(portion.records()) > max_records
            };
            let here = open.iter().position(|batch| batch.partition == route.partition);
            if let Some(here) = here
                && open.get_mut(here).as_ref().is_some_and(is_over)
            {
                closed.push(open.remove(here));
            }
            if !open.iter().any(|batch| batch.partition == route.partition) {
                open.push(ClosedBatch::new(Arc::clone(&route.partition), &partitioning));
            }
            for batch in open.iter_mut().filter(|batch| batch.partition == route.partition) {
                batch.bytes += bytes;
                batch.records += u64::from(portion.records());
                batch.portions.push(portion.clone());
            }
        }
    }
    closed.append(&mut open);
    Ok(closed)
}

/// A batch that is not yet in the state.
pub(super) struct ClosedBatch {
    partition: Arc<str>,
    pub(super) partitioning: Arc<Partitioning>,
    pub(super) portions: Vec<Portion>,
    pub(super) records: u64,
    /// With what encoding adds.
    bytes: u64,
}

impl ClosedBatch {
    fn new(partition: Arc<str>, partitioning: &Arc<Partitioning>) -> Self {
        Self { partition, partitioning: Arc::clone(partitioning), portions: vec![], records: 0, bytes: 0 }
    }

    /// As the state has it. `number` is from 1.
    pub(super) fn row(&self, id: BatchId, number: usize, now_ns: i64) -> BatchRow {
        let first = self.portions.first().map(|portion| portion.id).unwrap_or(ChunkId(0));
        BatchRow {
            id,
            output: OUTPUT.into(),
            partition: Arc::clone(&self.partition),
            number: (number as u64).saturating_sub(1),
            first,
            last: self.portions.last().map_or(first, |portion| portion.id),
            records: self.records,
            bytes: self.portions.iter().map(Portion::body_bytes).sum(),
            closed_ns: now_ns,
        }
    }
}

/// Neighbours of one tag and kind share a chunk, unless each record is to be one.
fn chunks(records: &[Record], now_ns: i64, apart: bool) -> Vec<Chunk> {
    let mut chunks = vec![];
    let same = |a: &Record, b: &Record| !apart && a.tag == b.tag && a.kind == b.kind;
    for run in records.chunk_by(same) {
        let Some(first) = run.first() else { continue };
        let mut builder = ChunkBuilder::arrived(first.kind, Arc::clone(&first.tag), now_ns);
        for record in run {
            builder.push(record.time_ns, &record.body);
        }
        chunks.extend(builder.finish());
    }
    chunks
}
