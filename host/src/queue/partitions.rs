//! The books of one queue: which chunks wait in which partition, which is due when, which batches are held. No disk, no
//! waiting: every question is answered at once, under the queue's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Batch, BatchLimits, disk_bytes};
use crate::record::{ChunkId, ChunkMeta};
use crate::state::{BatchId, BatchRow};

/// A chunk and its metadata.
pub(super) type Entry = (ChunkId, Arc<ChunkMeta>);

/// Due before everything else: what a flush asked for.
const AT_ONCE: i64 = i64::MIN;

#[derive(Debug, Default)]
struct Partition {
    waiting: VecDeque<Entry>,
    /// Bodies and overhead of what waits, as the limits count it.
    size: u64,
    records: u64,
    /// When the limits were reached.
    full_at: Option<i64>,
    flush_upto: Option<ChunkId>,
    /// A change of its cursor is being written. There is one at a time: a later one must not be on disk before an earlier.
    busy: bool,
    /// Its places in `due` and `heads`.
    placed: Option<(i64, ChunkId)>,
}

/// A batch that is to be recorded before anybody sees it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) row: BatchRow,
    pub(super) chunks: Vec<Entry>,
}

/// Chunks that leave the queue undelivered.
#[derive(Debug)]
pub(super) enum Dropped {
    /// The oldest of a partition.
    Waiting { partition: Arc<str>, chunks: Vec<Entry> },
    /// A closed batch.
    Batch(Batch),
}

/// What a worker that asks gets.
#[derive(Debug)]
pub(super) enum Next {
    /// This.
    Batch(Batch),
    /// Something to record first.
    Plan(Plan),
    /// Nothing before this moment (wall clock, nanoseconds), unless something happens.
    Wait(Option<i64>),
    /// Nothing any more.
    Ended,
}

#[derive(Debug)]
pub(super) struct Partitions {
    output: Arc<str>,
    limits: BatchLimits,
    by_name: HashMap<Arc<str>, Partition>,
    due: BTreeSet<(i64, Arc<str>)>,
    heads: BTreeSet<(ChunkId, Arc<str>)>,
    ready: VecDeque<Batch>,
    held: HashSet<BatchId>,
    unwritten: VecDeque<Plan>,
    writing: usize,
    paused_until: Option<Instant>,
    next_number: u64,
    bytes: u64,
    records: u64,
    arrivals: BTreeMap<i64, u64>,
    closed: bool,
    /// Bytes that were granted to chunks which have not committed yet.
    pub(super) reserved: u64,
    /// The chunk that was last told that there is no room for it, unless one was taken since: bytes.
    pub(super) turned_away: Option<u64>,
}

impl Partitions {
    pub(super) fn new(output: Arc<str>, limits: BatchLimits, next_number: u64) -> Self {
        Self {
            output,
            limits,
            by_name: HashMap::new(),
            due: BTreeSet::new(),
            heads: BTreeSet::new(),
            ready: VecDeque::new(),
            held: HashSet::new(),
            unwritten: VecDeque::new(),
            writing: 0,
            paused_until: None,
            next_number,
            bytes: 0,
            records: 0,
            arrivals: BTreeMap::new(),
            closed: false,
            reserved: 0,
            turned_away: None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    pub(super) fn records(&self) -> u64 {
        self.records
    }
    pub(super) fn oldest_arrival_ns(&self) -> Option<i64> {
        self.arrivals.keys().next().copied()
    }
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// A chunk comes in. Whether whoever waits for batches should look again.
    pub(super) fn add(&mut self, partition: &Arc<str>, chunk: Entry, now: i64) -> bool {
        self.count_in(&chunk);
        let before = self.due.first().map(|(at, _)| *at);
        let entry = self.by_name.entry(partition.clone()).or_default();
        entry.size += size(&self.limits, &chunk.1);
        entry.records += u64::from(chunk.1.records);
        entry.waiting.push_back(chunk);
        self.place(partition, now);
        match (before, self.due.first()) {
            (_, Some((at, _))) if *at <= now => true,
            (Some(before), Some((at, _))) => *at < before,
            (None, first) => first.is_some(),
            (Some(_), None) => false,
        }
    }

    /// A closed batch is there again, as it was.
    pub(super) fn restore(&mut self, batch: Batch) {
        for chunk in batch.chunks.iter() {
            self.count_in(chunk);
        }
        self.next_number = self.next_number.max(batch.row.number.saturating_add(1));
        self.held.insert(batch.row.id);
        self.ready.push_back(batch);
    }

    /// A batch that was handed out is to be handed out again.
    pub(super) fn give_back(&mut self, batch: Batch) {
        if self.held.contains(&batch.row.id) {
            self.ready.push_front(batch);
        }
    }

    pub(super) fn holds(&self, id: BatchId) -> bool {
        self.held.contains(&id)
    }

    /// A batch is settled. Whether it was held until now.
    pub(super) fn settled(&mut self, batch: &Batch) -> bool {
        let held = self.held.remove(&batch.row.id);
        if held {
            self.count_out(&batch.chunks);
        }
        held
    }

    /// Everything that waits now is due.
    pub(super) fn flush(&mut self, now: i64) {
        let names: Vec<_> = self.by_name.keys().cloned().collect();
        for name in names {
            if let Some(partition) = self.by_name.get_mut(&name) {
                partition.flush_upto = partition.waiting.back().map(|(id, _)| *id);
            }
            self.place(&name, now);
        }
    }

    /// What a worker gets that asks now.
    pub(super) fn next(&mut self, now: i64) -> Next {
        if let Some(batch) = self.ready.pop_front() {
            return Next::Batch(batch);
        }
        let paused = self.paused_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(pause) = paused.filter(|pause| !pause.is_zero()) {
            // Chunks whose batch cannot be recorded stay in the journal; a stop does not wait for the disk.
            return if self.closed { Next::Ended } else { Next::Wait(Some(now.saturating_add(nanos(pause)))) };
        }
        self.paused_until = None;
        if let Some(plan) = self.unwritten.pop_front() {
            self.writing += 1;
            return Next::Plan(plan);
        }
        let first = self.due.first().filter(|(at, _)| !self.closed || *at == AT_ONCE).cloned();
        match first {
            Some((at, name)) if at <= now => match self.plan(&name, now) {
                Some(plan) => Next::Plan(plan),
                None => Next::Wait(Some(now)),
            },
            None if self.closed && self.writing == 0 => Next::Ended,
            first => Next::Wait(first.map(|(at, _)| at)),
        }
    }

    /// Takes a partition's oldest chunks up to the limits, whole chunks, at least one.
    fn plan(&mut self, name: &Arc<str>, now: i64) -> Option<Plan> {
        let partition = self.by_name.get_mut(name)?;
        let mut chunks = Vec::new();
        let (mut total, mut records, mut bytes) = (0, 0, 0);
        while let Some((_, meta)) = partition.waiting.front() {
            let more = size(&self.limits, meta);
            let over =
                total + more > self.limits.max_bytes || records + u64::from(meta.records) > self.limits.max_records;
            if over && !chunks.is_empty() {
                break;
            }
            total += more;
            records += u64::from(meta.records);
            bytes += meta.body_bytes;
            chunks.extend(partition.waiting.pop_front());
        }
        partition.size = partition.size.saturating_sub(total);
        partition.records = partition.records.saturating_sub(records);
        partition.full_at = None;
        partition.busy = true;
        let (first, last) = (chunks.first()?.0, chunks.last()?.0);
        let row = BatchRow {
            id: BatchId(rand::random()),
            output: self.output.clone(),
            partition: name.clone(),
            number: self.next_number,
            first,
            last,
            records,
            bytes,
            closed_ns: now,
        };
        self.next_number += 1;
        self.writing += 1;
        self.place(name, now);
        Some(Plan { row, chunks })
    }

    /// A plan's batch is recorded: it can be handed out.
    pub(super) fn written(&mut self, plan: Plan, now: i64) {
        self.writing -= 1;
        self.held.insert(plan.row.id);
        let partition = plan.row.partition.clone();
        self.ready.push_back(Batch { row: plan.row, chunks: plan.chunks.into(), restored: false });
        self.idle(&partition, now);
    }

    /// A plan could not be recorded: it is kept as it is, for later.
    pub(super) fn not_written(&mut self, plan: Plan, pause: Duration) {
        self.writing -= 1;
        self.unwritten.push_back(plan);
        self.paused_until = Some(Instant::now() + pause);
    }

    /// A partition's cursor is written.
    pub(super) fn idle(&mut self, partition: &Arc<str>, now: i64) {
        if let Some(entry) = self.by_name.get_mut(partition) {
            entry.busy = false;
        }
        self.place(partition, now);
    }

    /// Takes out the oldest chunks that no worker has in hand until `excess` bytes are gone, or there are no more. Partitions
    /// that lose chunks are busy until [`Partitions::idle`].
    pub(super) fn drop_oldest(&mut self, excess: u64, now: i64) -> Vec<Dropped> {
        let mut gone = 0;
        let mut waiting: BTreeMap<Arc<str>, Vec<Entry>> = BTreeMap::new();
        while gone < excess
            && let Some((_, name)) = self.heads.first().cloned()
            && let Some(partition) = self.by_name.get_mut(&name)
            && let Some(chunk) = partition.waiting.pop_front()
        {
            partition.size = partition.size.saturating_sub(size(&self.limits, &chunk.1));
            partition.records = partition.records.saturating_sub(u64::from(chunk.1.records));
            gone += disk_bytes(&chunk.1);
            waiting.entry(name.clone()).or_default().push(chunk);
            self.place(&name, now);
        }
        let mut dropped = Vec::new();
        for (partition, chunks) in waiting {
            self.count_out(&chunks);
            self.by_name.entry(partition.clone()).or_default().busy = true;
            self.place(&partition, now);
            dropped.push(Dropped::Waiting { partition, chunks });
        }
        while gone < excess
            && let Some(batch) = self.ready.pop_front()
        {
            gone += batch.chunks.iter().map(|(_, meta)| disk_bytes(meta)).sum::<u64>();
            self.held.remove(&batch.row.id);
            self.count_out(&batch.chunks);
            dropped.push(Dropped::Batch(batch));
        }
        dropped
    }

    /// Puts a partition where it now belongs in the orders of due times and of oldest chunks.
    fn place(&mut self, name: &Arc<str>, now: i64) {
        let Some(partition) = self.by_name.get_mut(name) else { return };
        let place = match partition.waiting.front() {
            Some((first, oldest)) if !partition.busy => {
                let full = partition.size >= self.limits.max_bytes || partition.records >= self.limits.max_records;
                let aged = oldest.arrival_ns.saturating_add(nanos(self.limits.max_age));
                let due = if partition.flush_upto.is_some_and(|upto| *first <= upto) {
                    AT_ONCE
                } else if full {
                    aged.min(*partition.full_at.get_or_insert(now))
                } else {
                    // Never the mark of a flush.
                    aged.max(AT_ONCE + 1)
                };
                Some((due, *first))
            }
            _ => None,
        };
        let gone = place.is_none() && !partition.busy && partition.waiting.is_empty();
        let old = std::mem::replace(&mut partition.placed, place);
        if gone {
            self.by_name.remove(name);
        }
        if old == place {
            return;
        }
        if let Some((due, head)) = old {
            self.due.remove(&(due, name.clone()));
            self.heads.remove(&(head, name.clone()));
        }
        if let Some((due, head)) = place {
            self.due.insert((due, name.clone()));
            self.heads.insert((head, name.clone()));
        }
    }

    fn count_in(&mut self, (_, meta): &Entry) {
        self.bytes += disk_bytes(meta);
        self.records += u64::from(meta.records);
        *self.arrivals.entry(meta.arrival_ns).or_default() += 1;
    }

    fn count_out(&mut self, chunks: &[Entry]) {
        for (_, meta) in chunks {
            self.bytes = self.bytes.saturating_sub(disk_bytes(meta));
            self.records = self.records.saturating_sub(u64::from(meta.records));
            if let Some(count) = self.arrivals.get_mut(&meta.arrival_ns) {
                *count -= 1;
                if *count == 0 {
                    self.arrivals.remove(&meta.arrival_ns);
                }
            }
        }
    }
}

/// A chunk's size as the limits count it.
fn size(limits: &BatchLimits, meta: &ChunkMeta) -> u64 {
    meta.body_bytes + u64::from(limits.record_overhead) * u64::from(meta.records)
}

pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
