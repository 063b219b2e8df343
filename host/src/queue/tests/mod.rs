//! The queue's rules, by hand-worked cases over a real state and a journal that only notes what it gets back.

mod change;
mod closing;
mod full;
mod in_order;
mod model;
mod restart;
mod shared_out;
mod workers;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicI64;

use super::ledger::{Keeper, lock};
use super::*;
use crate::journal::Recovery;
use crate::record::{BodyKind, Part, PartitionKey, RecordSet, Route};

const SECOND: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Noting(Mutex<Vec<u64>>, std::sync::atomic::AtomicU64);

impl Keeper for Noting {
    fn raise_ids_above(&self, known: ChunkId) {
        self.1.store(known.0, Ordering::Relaxed);
    }
    fn release(&self, ids: &[ChunkId]) {
        lock(&self.0).extend(ids.iter().map(|id| id.0));
    }
}

/// A ledger with its state, journal and clock. `chunks` is what the journal holds.
struct Bench {
    dir: tempfile::TempDir,
    ledger: Ledger,
    journal: Arc<Noting>,
    clock: Arc<AtomicI64>,
    metrics: Metrics,
    chunks: Vec<(ChunkId, Arc<ChunkMeta>)>,
}

fn ledger(dir: &std::path::Path, journal: &Arc<Noting>, clock: &Arc<AtomicI64>, metrics: &Metrics) -> Ledger {
    let clock = clock.clone();
    let (state, _) = State::open(dir).unwrap();
    Ledger::with(journal.clone(), state, metrics.clone(), Arc::new(move || clock.load(Ordering::Relaxed)))
}

fn options(output: &str) -> QueueOptions {
    QueueOptions {
        output: output.into(),
        partition_by: vec![PartitionKey::Tag],
        in_order: false,
        limits: BatchLimits { max_bytes: 100, max_records: 1000, max_age: Duration::from_secs(10), record_overhead: 0 },
        max_bytes: None,
        when_full: WhenFull::Block,
    }
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (journal, clock, metrics) = (Arc::default(), Arc::new(AtomicI64::new(100 * SECOND)), Metrics::new());
        let ledger = ledger(dir.path(), &journal, &clock, &metrics);
        Self { dir, ledger, journal, clock, metrics, chunks: Vec::new() }
    }
    fn queue(&self, options: QueueOptions) -> Queue {
        self.queues(vec![options]).remove(0)
    }
    fn queues(&self, options: Vec<QueueOptions>) -> Vec<Queue> {
        self.restore(options).0
    }
    fn restore(&self, options: Vec<QueueOptions>) -> (Vec<Queue>, Vec<Position>) {
        let recovery = Recovery { chunks: self.chunks.clone(), ..Recovery::default() };
        self.ledger.restore(&recovery, options).unwrap()
    }
    /// As if the process had been killed and started again: the journal has all that it was not told to release.
    fn again(self) -> Self {
        let Self { dir, ledger: old, journal, clock, metrics, mut chunks } = self;
        drop(old);
        let released = std::mem::take(&mut *lock(&journal.0));
        chunks.retain(|(id, _)| !released.contains(&id.0));
        let ledger = ledger(dir.path(), &journal, &clock, &metrics);
        Self { dir, ledger, journal, clock, metrics, chunks }
    }
    fn now(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }
    fn later(&self, seconds: i64) {
        self.clock.fetch_add(seconds * SECOND, Ordering::Relaxed);
    }
    fn commit(&mut self, id: u64, meta: ChunkMeta) {
        let chunk = (ChunkId(id), Arc::new(meta));
        self.chunks.push(chunk.clone());
        self.ledger.committed(&[chunk]);
    }
    /// A chunk of `records` records and `bytes` bytes for output `a`.
    fn put(&mut self, id: u64, tag: &str, bytes: u64, records: u32) {
        let meta = self.meta(&[("a", tag)], bytes, records);
        self.commit(id, meta);
    }
    fn meta(&self, routes: &[(&str, &str)], bytes: u64, records: u32) -> ChunkMeta {
        let now = self.now();
        let route = |(o, p): &(&str, &str)| Route { output: (*o).into(), partition: (*p).into(), part: None };
        let routes = routes.iter().map(route).collect();
        ChunkMeta {
            kind: BodyKind::Text,
            tag: "t".into(),
            routes,
            positions: Vec::new(),
            arrival_ns: now,
            first_ns: now,
            last_ns: now,
            records,
            body_bytes: bytes,
        }
    }
    /// A chunk of `records` records of 10 bytes, of which each of these takes some.
    fn share(&mut self, id: u64, records: u32, routes: &[(&str, &str, &[u32])]) {
        let to: Vec<_> = routes.iter().map(|(output, partition, _)| (*output, *partition)).collect();
        let mut meta = self.meta(&to, 10 * u64::from(records), records);
        for (route, (.., numbers)) in meta.routes.iter_mut().zip(routes) {
            route.part = RecordSet::of(numbers.iter().copied()).map(|records| Part {
                body_bytes: 10 * u64::from(records.count()),
                records,
                first_ns: meta.first_ns,
                last_ns: meta.last_ns,
                crc: 0,
            });
        }
        self.commit(id, meta);
    }
    fn released(&self) -> Vec<u64> {
        lock(&self.journal.0).clone()
    }
    fn counted(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|l| l == line)
    }
}

fn ids(batch: &Batch) -> Vec<u64> {
    batch.portions.iter().map(|portion| portion.id.0).collect()
}

/// Batches until the first that is not there at once.
async fn ready(queue: &Queue) -> Vec<Batch> {
    let mut all = Vec::new();
    while !matches!(peek(queue), partitions::Next::Wait(_)) {
        all.push(queue.next_batch().await.unwrap());
    }
    all
}

/// Partition and chunks of the batches that are there at once.
async fn ready_of(queue: &Queue) -> (Vec<Batch>, Vec<(String, Vec<u64>)>) {
    let batches = ready(queue).await;
    let told = batches.iter().map(|batch| (batch.row.partition.to_string(), ids(batch))).collect();
    (batches, told)
}

fn told(expected: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
    expected.iter().map(|(partition, ids)| ((*partition).to_owned(), ids.to_vec())).collect()
}

/// What a worker would get now; taken only if it is nothing.
fn peek(queue: &Queue) -> partitions::Next {
    let now = queue.inner.shared.now();
    let mut books = queue.inner.lock();
    match books.next(now) {
        partitions::Next::Batch(batch) => {
            books.give_back(batch.clone());
            partitions::Next::Batch(batch)
        }
        partitions::Next::Plan(plan) => {
            let copy = partitions::Plan { row: plan.row.clone(), portions: plan.portions.clone() };
            books.not_written(plan, Duration::ZERO);
            partitions::Next::Plan(copy)
        }
        other => other,
    }
}
