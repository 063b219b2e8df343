//! The books of one queue: which portions of chunks wait in which partition, which is due when, which batches are held. No disk, no
//! waiting: every question is answered at once, under the queue's lock.
//!
//! In order, a partition has one batch at a time that is on its way, from its planning until it is settled: until then none is planned
//! behind it, and those that a start has found behind it are kept back. What waits can still be dropped.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Batch, BatchLimits};
use crate::record::{ChunkId, Portion};
use crate::state::{BatchId, BatchRow};

/// Due before everything else: what a flush asked for.
const AT_ONCE: i64 = i64::MIN;

#[derive(Debug, Default)]
struct Partition {
    waiting: VecDeque<Portion>,
    /// Bodies and overhead of what waits, as the limits count it.
    size: u64,
    records: u64,
    /// When the limits were reached.
    full_at: Option<i64>,
    flush_upto: Option<ChunkId>,
    /// A change of its cursor is being written. There is one at a time: a later one must not be on disk before an earlier.
    busy: bool,
    /// In order: its batch that is on its way.
    under_way: Option<BatchId>,
    /// In order: closed batches that come behind that, by number.
    behind: VecDeque<Batch>,
    placed: Option<Placed>,
}

/// A partition's places in `due` and `heads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    /// None: a batch of it is on its way, and they go in order.
    due: Option<i64>,
    head: ChunkId,
}

/// A batch that is to be recorded before anybody sees it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) row: BatchRow,
    pub(super) portions: Vec<Portion>,
}

/// What leaves the queue undelivered.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Of each partition the oldest that waited.
    pub(super) waiting: Vec<(Arc<str>, Vec<Portion>)>,
    /// Closed batches.
    pub(super) batches: Vec<Batch>,
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
    in_order: bool,
    by_name: HashMap<Arc<str>, Partition>,
    due: BTreeSet<(i64, Arc<str>)>,
    heads: BTreeSet<(ChunkId, Arc<str>)>,
    ready: VecDeque<Batch>,
    /// In order: the partitions of closed batches that are kept back, by the batches' numbers.
    behind: BTreeMap<u64, Arc<str>>,
    /// In order: partitions that are closed or flushed further than their batch that is on its way.
    kept_back: HashSet<Arc<str>>,
    /// What is closed and not settled; a worker may have it in hand.
    held: HashMap<BatchId, Batch>,
    unwritten: VecDeque<Plan>,
    writing: usize,
    paused_until: Option<Instant>,
    next_number: u64,
    bytes: u64,
    records: u64,
    arrivals: BTreeMap<i64, u64>,
    closed: bool,
    /// Nothing more is taken in: the output is about to be removed, or to get another queue.
    pub(super) leaving: bool,
    /// Bytes that were granted to chunks which have not committed yet.
    pub(super) reserved: u64,
    /// The chunk that was last told that there is no room for it, unless one was taken since: bytes.
    pub(super) turned_away: Option<u64>,
}

impl Partitions {
    pub(super) fn new(output: Arc<str>, limits: BatchLimits, in_order: bool, next_number: u64) -> Self {
        Self {
            output,
            limits,
            in_order,
            by_name: HashMap::new(),
            due: BTreeSet::new(),
            heads: BTreeSet::new(),
            ready: VecDeque::new(),
            behind: BTreeMap::new(),
            kept_back: HashSet::new(),
            held: HashMap::new(),
            unwritten: VecDeque::new(),
            writing: 0,
            paused_until: None,
            next_number,
            bytes: 0,
            records: 0,
            arrivals: BTreeMap::new(),
            closed: false,
            leaving: false,
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

    pub(super) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// From now on batches close by these limits; what is closed stays as it is.
    pub(super) fn set_limits(&mut self, limits: BatchLimits, now: i64) {
        self.limits = limits;
        let names: Vec<_> = self.by_name.keys().cloned().collect();
        for name in names {
            if let Some(partition) = self.by_name.get_mut(&name) {
                partition.size = partition.waiting.iter().map(|portion| size(&limits, portion)).sum();
                let full = partition.size >= limits.max_bytes || partition.records >= limits.max_records;
                partition.full_at = partition.full_at.filter(|_| full);
            }
            self.place(&name, now);
        }
    }

    /// Whether a batch is being recorded at this moment.
    pub(super) fn is_writing(&self) -> bool {
        self.writing > 0
    }

    /// Takes everything out: what waits, and every closed batch, whoever has it in hand.
    pub(super) fn take_all(&mut self) -> Dropped {
        let mut dropped = Dropped::default();
        for plan in self.unwritten.drain(..) {
            dropped.waiting.push((plan.row.partition, plan.portions));
        }
        for (name, partition) in &mut self.by_name {
            if !partition.waiting.is_empty() {
                dropped.waiting.push((name.clone(), partition.waiting.drain(..).collect()));
            }
        }
        dropped.batches = self.held.drain().map(|(_, batch)| batch).collect();
        dropped.batches.sort_by_key(|batch| batch.row.number);
        self.by_name.clear();
        self.due.clear();
        self.heads.clear();
        self.ready.clear();
        self.behind.clear();
        self.kept_back.clear();
        self.arrivals.clear();
        (self.bytes, self.records) = (0, 0);
        dropped
    }

    /// A portion comes in. Whether whoever waits for batches should look again.
    pub(super) fn add(&mut self, partition: &Arc<str>, portion: Portion, now: i64) -> bool {
        self.count_in(&portion);
        let before = self.due.first().map(|(at, _)| *at);
        let entry = self.by_name.entry(partition.clone()).or_default();
        entry.size += size(&self.limits, &portion);
        entry.records += u64::from(portion.records());
        entry.waiting.push_back(portion);
        self.place(partition, now);
        match (before, self.due.first()) {
            (_, Some((at, _))) if *at <= now => true,
            (Some(before), Some((at, _))) => *at < before,
            (None, first) => first.is_some(),
            (Some(_), None) => false,
        }
    }

    /// A closed batch is there again, as it was. They come by number.
    pub(super) fn restore(&mut self, batch: Batch, now: i64) {
        for portion in batch.portions.iter() {
            self.count_in(portion);
        }
        self.next_number = self.next_number.max(batch.row.number.saturating_add(1));
        self.held.insert(batch.row.id, batch.clone());
        if !self.in_order {
            self.ready.push_back(batch);
            return;
        }
        let name = batch.row.partition.clone();
        let partition = self.by_name.entry(name.clone()).or_default();
        if partition.under_way.is_some() {
            self.behind.insert(batch.row.number, name.clone());
            partition.behind.push_back(batch);
        } else {
            partition.under_way = Some(batch.row.id);
            self.ready.push_back(batch);
        }
        self.place(&name, now);
    }

    /// A batch that was handed out is to be handed out again.
    pub(super) fn give_back(&mut self, batch: Batch) {
        if self.held.contains_key(&batch.row.id) {
            self.ready.push_front(batch);
        }
    }

    pub(super) fn holds(&self, id: BatchId) -> bool {
        self.held.contains_key(&id)
    }

    /// A batch is settled. Whether it was held until now.
    pub(super) fn settled(&mut self, batch: &Batch, now: i64) -> bool {
        let held = self.held.remove(&batch.row.id).is_some();
        if held {
            self.count_out(&batch.portions);
            self.ended(batch, now);
        }
        held
    }

    /// The state does not have this batch any more: in order, its partition's next may go.
    pub(super) fn ended(&mut self, batch: &Batch, now: i64) {
        let name = &batch.row.partition;
        let Some(partition) = self.by_name.get_mut(name) else { return };
        if partition.under_way != Some(batch.row.id) {
            return;
        }
        partition.under_way = None;
        if let Some(next) = partition.behind.pop_front() {
            self.behind.remove(&next.row.number);
            partition.under_way = Some(next.row.id);
            self.ready.push_back(next);
        }
        self.place(name, now);
    }

    /// The queue was closed before this batch could leave the state: nothing of its partition goes before the next start.
    pub(super) fn not_ended(&mut self, batch: &Batch, now: i64) {
        let name = &batch.row.partition;
        let Some(partition) = self.by_name.get_mut(name) else { return };
        partition.flush_upto = None;
        for kept in std::mem::take(&mut partition.behind) {
            self.behind.remove(&kept.row.number);
        }
        self.place(name, now);
    }

    /// Everything that waits now is due.
    pub(super) fn flush(&mut self, now: i64) {
        let names: Vec<_> = self.by_name.keys().cloned().collect();
        for name in names {
            if let Some(partition) = self.by_name.get_mut(&name) {
                partition.flush_upto = partition.waiting.back().map(|portion| portion.id);
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
            None if self.closed && self.writing == 0 && self.kept_back.is_empty() => Next::Ended,
            first => Next::Wait(first.map(|(at, _)| at)),
        }
    }

    /// Takes a partition's oldest portions up to the limits, whole ones, at least one.
    fn plan(&mut self, name: &Arc<str>, now: i64) -> Option<Plan> {
        let partition = self.by_name.get_mut(name)?;
        let mut portions = Vec::new();
        let (mut total, mut records, mut bytes) = (0, 0, 0);
        while let Some(portion) = partition.waiting.front() {
            let more = size(&self.limits, portion);
            let over = total + more > self.limits.max_bytes
                || records + u64::from(portion.records()) > self.limits.max_records;
            if over && !portions.is_empty() {
                break;
            }
            total += more;
            records += u64::from(portion.records());
            bytes += portion.body_bytes();
            portions.extend(partition.waiting.pop_front());
        }
        partition.size = partition.size.saturating_sub(total);
        partition.records = partition.records.saturating_sub(records);
        partition.full_at = None;
        partition.busy = true;
        let (first, last) = (portions.first()?.id, portions.last()?.id);
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
        if self.in_order {
            partition.under_way = Some(row.id);
        }
        self.next_number += 1;
        self.writing += 1;
        self.place(name, now);
        Some(Plan { row, portions })
    }

    /// A plan's batch is recorded: it can be handed out.
    pub(super) fn written(&mut self, plan: Plan, now: i64) {
        self.writing -= 1;
        let partition = plan.row.partition.clone();
        let batch = Batch { row: plan.row, portions: plan.portions.into(), restored: false };
        self.held.insert(batch.row.id, batch.clone());
        self.ready.push_back(batch);
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

    /// Takes out the oldest that no worker has in hand until `excess` bytes are gone, or there is no more: what waits, then closed
    /// batches. Partitions that lose what waits are busy until [`Partitions::idle`], batches that go are under way until
    /// [`Partitions::ended`].
    pub(super) fn drop_oldest(&mut self, excess: u64, now: i64) -> Dropped {
        let mut gone = 0;
        let mut waiting: BTreeMap<Arc<str>, Vec<Portion>> = BTreeMap::new();
        while gone < excess
            && let Some((_, name)) = self.heads.first().cloned()
            && let Some(partition) = self.by_name.get_mut(&name)
            && let Some(portion) = partition.waiting.pop_front()
        {
            partition.size = partition.size.saturating_sub(size(&self.limits, &portion));
            partition.records = partition.records.saturating_sub(u64::from(portion.records()));
            gone += portion.disk_bytes();
            waiting.entry(name.clone()).or_default().push(portion);
            self.place(&name, now);
        }
        let mut dropped = Dropped::default();
        for (partition, portions) in waiting {
            self.count_out(&portions);
            self.by_name.entry(partition.clone()).or_default().busy = true;
            self.place(&partition, now);
            dropped.waiting.push((partition, portions));
        }
        while gone < excess
            && let Some(batch) = self.ready.pop_front().or_else(|| self.take_kept_back(now))
        {
            gone += batch.portions.iter().map(Portion::disk_bytes).sum::<u64>();
            self.held.remove(&batch.row.id);
            self.count_out(&batch.portions);
            dropped.batches.push(batch);
        }
        dropped
    }

    /// The oldest closed batch that an earlier one of its partition keeps back.
    fn take_kept_back(&mut self, now: i64) -> Option<Batch> {
        let (_, name) = self.behind.pop_first()?;
        let batch = self.by_name.get_mut(&name)?.behind.pop_front();
        self.place(&name, now);
        batch
    }

    /// Puts a partition where it now belongs in the orders of due times and of oldest chunks.
    fn place(&mut self, name: &Arc<str>, now: i64) {
        let Some(partition) = self.by_name.get_mut(name) else { return };
        let head = partition.waiting.front().map(|portion| (portion.id, portion.meta.arrival_ns));
        let flushed = head.is_some_and(|(head, _)| partition.flush_upto.is_some_and(|upto| head <= upto));
        let placed = match head {
            Some((head, arrival_ns)) if !partition.busy => {
                let full = partition.size >= self.limits.max_bytes || partition.records >= self.limits.max_records;
                let aged = arrival_ns.saturating_add(nanos(self.limits.max_age));
                let due = if flushed {
                    AT_ONCE
                } else if full {
                    aged.min(*partition.full_at.get_or_insert(now))
                } else {
                    // Never the mark of a flush.
                    aged.max(AT_ONCE + 1)
                };
                Some(Placed { due: partition.under_way.is_none().then_some(due), head })
            }
            _ => None,
        };
        let old = std::mem::replace(&mut partition.placed, placed);
        if partition.under_way.is_some() && (flushed || !partition.behind.is_empty()) {
            self.kept_back.insert(name.clone());
        } else if self.in_order {
            self.kept_back.remove(name);
        }
        if head.is_none() && !partition.busy && partition.under_way.is_none() {
            self.by_name.remove(name);
        }
        if old == placed {
            return;
        }
        if let Some(Placed { due, head }) = old {
            self.heads.remove(&(head, name.clone()));
            if let Some(due) = due {
                self.due.remove(&(due, name.clone()));
            }
        }
        if let Some(Placed { due, head }) = placed {
            self.heads.insert((head, name.clone()));
            if let Some(due) = due {
                self.due.insert((due, name.clone()));
            }
        }
    }

    fn count_in(&mut self, portion: &Portion) {
        self.bytes += portion.disk_bytes();
        self.records += u64::from(portion.records());
        *self.arrivals.entry(portion.meta.arrival_ns).or_default() += 1;
    }

    fn count_out(&mut self, portions: &[Portion]) {
        for portion in portions {
            self.bytes = self.bytes.saturating_sub(portion.disk_bytes());
            self.records = self.records.saturating_sub(u64::from(portion.records()));
            let arrival_ns = portion.meta.arrival_ns;
            if let Some(count) = self.arrivals.get_mut(&arrival_ns) {
                *count -= 1;
                if *count == 0 {
                    self.arrivals.remove(&arrival_ns);
                }
            }
        }
    }
}

/// A portion's size as the limits count it.
fn size(limits: &BatchLimits, portion: &Portion) -> u64 {
    portion.body_bytes() + u64::from(limits.record_overhead) * u64::from(portion.records())
}

pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
