//! The queue's rules, by hand-worked cases over a real state and a journal that only notes what it gets back.

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

#[tokio::test]
async fn a_batch_closes_before_the_chunk_that_would_pass_max_bytes() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    for (id, bytes) in [(1, 40), (2, 40)] {
        bench.put(id, "", bytes, 1);
        assert!(matches!(peek(&queue), partitions::Next::Wait(Some(_))));
    }
    bench.put(3, "", 40, 1);
    let batches = ready(&queue).await;
    assert_eq!(batches.iter().map(ids).collect::<Vec<_>>(), [vec![1, 2]]);
    let row = &batches[0].row;
    assert_eq!((row.first, row.last, row.records, row.bytes, row.number), (ChunkId(1), ChunkId(2), 2, 80, 0));
}

#[tokio::test]
async fn chunks_that_reach_max_bytes_exactly_are_one_batch() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "", 60, 1);
    bench.put(2, "", 40, 1);
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [[1, 2]]);
}

#[tokio::test]
async fn a_chunk_larger_than_max_bytes_is_a_batch_alone() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    for (id, bytes) in [(1, 10), (2, 300), (3, 10)] {
        bench.put(id, "", bytes, 1);
    }
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [[1], [2]]);
}

#[tokio::test]
async fn record_overhead_and_max_records_count_too() {
    let mut bench = Bench::new();
    let mut wanted = options("a");
    wanted.limits = BatchLimits { max_bytes: 1000, max_records: 10, record_overhead: 90, ..wanted.limits };
    let queue = bench.queue(wanted);
    // 4 × (10 + 90) and 6 × (10 + 90) are 1,000.
    bench.put(1, "", 40, 4);
    bench.put(2, "", 60, 6);
    bench.put(3, "", 1, 1);
    bench.put(4, "", 9, 9);
    bench.put(5, "", 1, 1);
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [vec![1, 2], vec![3, 4]]);
}

#[tokio::test]
async fn a_partition_is_due_when_its_oldest_record_is_of_age() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "x", 10, 1);
    bench.later(9);
    bench.put(2, "x", 10, 1);
    let due = bench.now() + SECOND;
    assert!(matches!(peek(&queue), partitions::Next::Wait(Some(at)) if at == due));
    bench.later(1);
    assert_eq!(ids(&queue.next_batch().await.unwrap()), [1, 2]);
}

#[tokio::test]
async fn a_waiting_worker_is_woken_when_a_batch_is_due_by_age() {
    let mut bench = Bench::new();
    let mut wanted = options("a");
    wanted.limits.max_age = Duration::from_millis(1);
    let queue = bench.queue(wanted);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next_batch().await }
    });
    tokio::task::yield_now().await;
    bench.put(1, "", 10, 1);
    bench.later(1);
    assert_eq!(ids(&waiting.await.unwrap().unwrap()), [1]);
}

#[tokio::test]
async fn partitions_are_batched_apart_and_the_longest_due_comes_first() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "young", 10, 1);
    bench.put(2, "old", 10, 1);
    bench.later(5);
    bench.put(3, "full", 100, 1);
    bench.put(4, "young", 10, 1);
    bench.later(20);
    let batches = ready(&queue).await;
    let got: Vec<_> = batches.iter().map(|batch| (&*batch.row.partition, ids(batch))).collect();
    assert_eq!(got, [("full", vec![3]), ("old", vec![2]), ("young", vec![1, 4])]);
}

#[tokio::test]
async fn a_chunk_goes_back_to_the_journal_when_the_last_output_has_settled_it() {
    let mut bench = Bench::new();
    let queues = bench.queues(vec![options("a"), options("b")]);
    let meta = bench.meta(&[("a", ""), ("b", "p")], 100, 1);
    bench.commit(1, meta);
    let first = queues[0].next_batch().await.unwrap();
    let second = queues[1].next_batch().await.unwrap();
    queues[1].settle(&second).unwrap();
    queues[1].settle(&second).unwrap();
    assert_eq!(bench.released(), [] as [u64; 0]);
    assert!(queues[1].is_empty() && !queues[0].is_empty());
    queues[0].settle(&first).unwrap();
    assert_eq!(bench.released(), [1]);
    assert_eq!((queues[0].bytes(), queues[0].records(), queues[0].oldest_arrival_ns()), (0, 0, None));
}

#[tokio::test]
async fn after_a_restart_batches_are_the_same_and_the_rest_waits_again() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    for (id, tag) in [(1, "x"), (2, "y"), (3, "x"), (4, "y"), (5, "x"), (6, "x")] {
        bench.later(1);
        bench.put(id, tag, 50, 2);
    }
    assert!(!queue.next_batch().await.is_some_and(|batch| {
        let restored = batch.restored;
        queue.give_back(batch);
        restored
    }));
    bench.later(1);
    let before = ready(&queue).await;
    assert_eq!(before.iter().map(ids).collect::<Vec<_>>(), [[1, 3], [2, 4], [5, 6]]);
    bench.put(7, "y", 50, 2);
    queue.settle(&before[0]).unwrap();
    drop(queue);

    let mut bench = bench.again();
    let queue = bench.queue(options("a"));
    assert_eq!(queue.records(), 10);
    let after = ready(&queue).await;
    assert_eq!(after.iter().map(|b| b.row.clone()).collect::<Vec<_>>(), [before[1].row.clone(), before[2].row.clone()]);
    assert_eq!(after.iter().map(ids).collect::<Vec<_>>(), [[2, 4], [5, 6]]);
    assert!(after.iter().all(|batch| batch.restored));
    bench.put(8, "y", 50, 2);
    let next = queue.next_batch().await.unwrap();
    assert_eq!((ids(&next), next.row.number), (vec![7, 8], 3));
}

#[tokio::test]
async fn a_journal_that_was_lost_gets_no_ids_that_the_state_knows() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(7, "x", 100, 1);
    let batch = queue.next_batch().await.unwrap();
    queue.settle(&batch).unwrap();
    drop(queue);
    let bench = bench.again();
    let _queue = bench.queue(options("a"));
    assert_eq!(bench.journal.1.load(Ordering::Relaxed), 7);
}

#[tokio::test]
async fn what_was_settled_but_not_yet_released_is_released_at_the_next_start() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "", 100, 1);
    let batch = queue.next_batch().await.unwrap();
    queue.settle(&batch).unwrap();
    drop(queue);
    lock(&bench.journal.0).clear();
    let bench = bench.again();
    let queue = bench.queue(options("a"));
    assert!(queue.is_empty());
    assert_eq!(bench.released(), [1]);
}

#[tokio::test]
async fn positions_are_in_the_state_before_their_chunk_goes() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let at = |value: &str| Position { source: "app".into(), key: "f".into(), value: value.into() };
    for (id, value) in [(1, "10"), (2, "20")] {
        let mut meta = bench.meta(&[("a", "")], 100, 1);
        meta.positions.push(at(value));
        bench.commit(id, meta);
    }
    let positions = |bench: &Bench| bench.ledger.shared.state.load().unwrap().positions;
    for _ in 0..2 {
        let batch = queue.next_batch().await.unwrap();
        queue.settle(&batch).unwrap();
    }
    assert_eq!(positions(&bench), [(at("20"), ChunkId(2))]);
    assert_eq!(bench.released(), [1, 2]);
    drop(queue);
    let bench = bench.again();
    assert_eq!(bench.restore(vec![options("a")]).1, [at("20")]);
    bench.ledger.forget("app", &["f".into()]).unwrap();
    assert!(positions(&bench).is_empty());
}

#[tokio::test]
async fn the_journals_positions_are_newer_than_the_states() {
    let mut bench = Bench::new();
    let _queue = bench.queue(options("a"));
    let at = |value: &str| Position { source: "app".into(), key: "f".into(), value: value.into() };
    bench.ledger.shared.state.put_positions(&[(at("10"), ChunkId(1))]).unwrap();
    let mut meta = bench.meta(&[("a", "")], 100, 1);
    meta.positions.push(at("20"));
    bench.commit(2, meta);
    drop(_queue);
    let bench = bench.again();
    assert_eq!(bench.restore(vec![options("a")]).1, [at("20")]);
}

#[tokio::test]
async fn a_batch_that_lost_chunks_keeps_the_rest_and_one_that_lost_all_is_given_up() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    for id in 1..=4 {
        bench.put(id, "", 50, 1);
    }
    assert_eq!(ready(&queue).await.len(), 2);
    drop(queue);
    bench.chunks.retain(|(id, _)| id.0 == 2);
    let bench = bench.again();
    let queue = bench.queue(options("a"));
    let batches = ready(&queue).await;
    assert_eq!(batches.iter().map(ids).collect::<Vec<_>>(), [[2]]);
    assert_eq!((batches[0].row.records, batches[0].row.bytes), (1, 50));
    assert_eq!(bench.ledger.shared.state.load().unwrap().batches.len(), 1);
}

#[tokio::test]
async fn records_of_an_output_that_is_not_configured_are_kept_until_it_is() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "", 100, 1);
    bench.put(2, "", 10, 1);
    let _in_a_batch = queue.next_batch().await.unwrap();
    drop(queue);
    let bench = bench.again();
    bench.queue(options("other"));
    assert_eq!(bench.released(), [] as [u64; 0]);
    let bench = bench.again();
    let queue = bench.queue(options("a"));
    assert_eq!(queue.records(), 2);
}

#[tokio::test]
async fn a_full_queue_blocks_until_something_is_settled() {
    let mut bench = Bench::new();
    let meta = bench.meta(&[("a", "")], 100, 1);
    let size = meta.disk_bytes(None);
    let queue = bench.queue(QueueOptions { max_bytes: Some(2 * size), ..options("a") });
    assert_eq!(queue.admit(size, 1), Admission::Granted);
    assert_eq!(queue.admit(size, 1), Admission::Granted);
    assert_eq!(queue.admit(1, 1), Admission::Full);
    queue.withdraw(size);
    assert_eq!(queue.admit(size, 1), Admission::Granted);
    bench.commit(1, meta.clone());
    bench.commit(2, meta);
    assert_eq!(queue.admit(1, 1), Admission::Full);
    let batch = queue.next_batch().await.unwrap();
    queue.settle(&batch).unwrap();
    assert_eq!(queue.admit(size, 1), Admission::Granted);
}

#[tokio::test]
async fn a_queue_is_full_from_the_first_refusal_until_what_was_refused_would_fit() {
    let bench = Bench::new();
    let queue = bench.queue(QueueOptions { max_bytes: Some(100), ..options("a") });
    assert_eq!(queue.fullness(), None);
    assert_eq!(queue.admit(60, 1), Admission::Granted);
    assert_eq!(queue.admit(20, 1), Admission::Granted);
    assert_eq!(queue.fullness(), None, "nobody was turned away yet");
    assert_eq!(queue.admit(30, 1), Admission::Full);
    assert_eq!(queue.fullness(), Some(Fullness { used: 80, max: 100 }));
    // A smaller one is taken: so it is not full for all.
    assert_eq!(queue.admit(10, 1), Admission::Granted);
    assert_eq!(queue.fullness(), None);
    assert_eq!(queue.admit(30, 1), Admission::Full);
    queue.withdraw(20);
    assert_eq!(queue.fullness(), None, "70 of 100: 30 more would fit");
    assert_eq!(queue.admit(30, 1), Admission::Granted);
    assert_eq!(queue.fullness(), Some(Fullness { used: 100, max: 100 }), "there is room for nothing");
}

#[tokio::test]
async fn a_queue_that_drops_is_not_full_also_while_a_replay_waits_for_it() {
    let bench = Bench::new();
    let dropping = |when_full| QueueOptions { max_bytes: Some(100), when_full, ..options("a") };
    let queue = bench.queue(dropping(WhenFull::DropNewest));
    assert_eq!(queue.admit(100, 1), Admission::Granted);
    assert_eq!(queue.admit(10, 1), Admission::Dropped);
    assert_eq!(queue.admit_or_wait(10, 1), Admission::Full);
    assert_eq!(queue.fullness(), None);
}

#[tokio::test]
async fn what_is_larger_than_the_whole_share_comes_in_alone() {
    let bench = Bench::new();
    let queue = bench.queue(QueueOptions { max_bytes: Some(10), ..options("a") });
    assert_eq!(queue.admit(1000, 1), Admission::Granted);
    assert_eq!(queue.admit(1, 1), Admission::Full);
}

#[tokio::test]
async fn drop_newest_refuses_and_counts() {
    let bench = Bench::new();
    let queue = bench.queue(QueueOptions { max_bytes: Some(10), when_full: WhenFull::DropNewest, ..options("a") });
    assert_eq!(queue.admit(10, 1), Admission::Granted);
    assert_eq!(queue.admit(1, 7), Admission::Dropped);
    assert!(bench.counted(r#"wharf_dropped_records_total{output="a",reason="queue_full_drop_newest"} 7"#));
}

#[tokio::test]
async fn drop_oldest_drops_waiting_chunks_then_closed_batches_but_none_in_hand() {
    let mut bench = Bench::new();
    let meta = bench.meta(&[("a", "")], 100, 3);
    let size = meta.disk_bytes(None);
    let queue =
        bench.queue(QueueOptions { max_bytes: Some(4 * size), when_full: WhenFull::DropOldest, ..options("a") });
    for id in 1..=2 {
        bench.put(id, "x", 100, 3);
    }
    let in_hand = queue.next_batch().await.unwrap();
    let closed = queue.next_batch().await.unwrap();
    queue.give_back(closed);
    bench.put(3, "x", 100, 3);
    bench.put(4, "y", 100, 3);
    // Full: 1 in hand, 2 closed, 3 and 4 waiting. Three more: 3 goes, then 4, then 2.
    let room = || async {
        while queue.admit(size, 3) != Admission::Granted {
            queue.room().await;
        }
    };
    for gone in [vec![3], vec![3, 4], vec![2, 3, 4]] {
        room().await;
        let released = || bench.released().into_iter().collect::<BTreeSet<_>>();
        while released() != gone.iter().copied().collect() {
            tokio::task::yield_now().await;
        }
    }
    // Everything else is in a worker's hand, or granted.
    assert_eq!(queue.admit(size, 3), Admission::Full);
    assert!(bench.counted(r#"wharf_dropped_records_total{output="a",reason="queue_full_drop_oldest"} 9"#));
    drop(queue);
    let bench = bench.again();
    let queue = bench.queue(options("a"));
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [ids(&in_hand)]);
}

#[tokio::test]
async fn a_flush_makes_everything_due_and_a_closed_queue_ends_behind_it() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "x", 10, 1);
    bench.put(2, "y", 10, 1);
    bench.put(3, "y", 95, 1);
    queue.flush();
    queue.close();
    bench.put(4, "x", 10, 1);
    let mut got = Vec::new();
    while let Some(batch) = queue.next_batch().await {
        got.extend(ids(&batch));
    }
    got.sort_unstable();
    // 4 came too late; it is in the journal for the next start. What stood with 1 in its partition may go with it.
    assert_eq!(got.iter().filter(|id| **id != 4).copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(queue.next_batch().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_workers_share_all_batches_and_each_is_had_once() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut had = Vec::new();
                while let Some(batch) = queue.next_batch().await {
                    had.extend(ids(&batch));
                    let settling = queue.clone();
                    tokio::task::spawn_blocking(move || settling.settle(&batch)).await.unwrap().unwrap();
                }
                had
            })
        })
        .collect();
    for id in 1..=60 {
        bench.put(id, ["x", "y", "z"][(id % 3) as usize], 60, 1);
        tokio::task::yield_now().await;
    }
    queue.flush();
    queue.close();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (1..=60).collect::<Vec<u64>>());
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_worker_that_goes_away_while_it_waits_leaves_its_wake_up_to_another() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let gone = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next_batch().await }
    });
    let stays = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next_batch().await }
    });
    tokio::task::yield_now().await;
    bench.put(1, "", 100, 1);
    gone.abort();
    let first = gone.await.ok().flatten();
    match first {
        // It had the batch before it was stopped.
        Some(batch) => assert_eq!(ids(&batch), [1]),
        None => assert_eq!(ids(&stays.await.unwrap().unwrap()), [1]),
    }
}

#[tokio::test]
async fn a_chunk_that_is_shared_out_is_counted_by_portion_and_kept_until_the_last_is_settled() {
    let mut bench = Bench::new();
    let queues = bench.queues(vec![options("a"), options("b")]);
    bench.share(1, 5, &[("a", "x", &[0, 2, 4]), ("a", "y", &[1, 3]), ("b", "", &[])]);
    assert_eq!(queues.iter().map(Queue::records).collect::<Vec<_>>(), [5, 5]);
    assert!(bench.counted(r#"wharf_durable_records_total{output="a"} 5"#));
    assert!(bench.counted(r#"wharf_durable_bytes_total{output="b"} 50"#));
    queues.iter().for_each(Queue::flush);
    let (of_a, told_a) = ready_of(&queues[0]).await;
    assert_eq!(told_a, told(&[("x", &[1]), ("y", &[1])]));
    assert_eq!((of_a[0].row.records, of_a[0].row.bytes, of_a[1].row.records, of_a[1].row.bytes), (3, 30, 2, 20));
    let of_b = ready(&queues[1]).await;
    for (queue, batch, left) in [(0, &of_a[1], 3), (1, &of_b[0], 0), (0, &of_a[0], 0)] {
        assert_eq!(bench.released(), [] as [u64; 0]);
        queues[queue].settle(batch).unwrap();
        assert_eq!(queues[queue].records(), left);
    }
    assert_eq!(bench.released(), [1]);
    assert!(queues.iter().all(|queue| (queue.bytes(), queue.oldest_arrival_ns()) == (0, None)));
}

#[tokio::test]
async fn after_a_restart_only_the_portions_that_were_not_settled_are_there() {
    let mut bench = Bench::new();
    let queue =
        bench.queue(QueueOptions { limits: BatchLimits { max_bytes: 30, ..options("a").limits }, ..options("a") });
    // x is closed and settled, y is closed, z waits.
    bench.share(1, 8, &[("a", "x", &[0, 1, 2]), ("a", "y", &[3, 4, 6]), ("a", "z", &[5, 7])]);
    let (batches, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("x", &[1]), ("y", &[1])]));
    queue.settle(&batches[0]).unwrap();
    drop(queue);

    let mut bench = bench.again();
    let queue = bench.queue(options("a"));
    assert_eq!(queue.records(), 5);
    bench.share(2, 3, &[("a", "x", &[0]), ("a", "z", &[1, 2])]);
    queue.flush();
    let (again, found) = ready_of(&queue).await;
    // The closed one first.
    assert_eq!(found, told(&[("y", &[1]), ("x", &[2]), ("z", &[1, 2])]));
    assert_eq!(again[0].row, batches[1].row);
    assert_eq!(again[0].portions, batches[1].portions);
    assert_eq!(again[2].row.records, 4);
    assert_eq!(bench.released(), [] as [u64; 0]);
    for batch in [&again[0], &again[2]] {
        queue.settle(batch).unwrap();
    }
    assert_eq!(bench.released(), [1]);
}

#[tokio::test]
async fn a_position_is_in_the_state_as_soon_as_one_portion_is_settled_and_its_chunk_stays() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let at = Position { source: "app".into(), key: "f".into(), value: "10".into() };
    let mut meta = bench.meta(&[("a", "x"), ("a", "y")], 40, 4);
    meta.positions.push(at.clone());
    bench.commit(2, meta);
    queue.flush();
    let batches = ready(&queue).await;
    queue.settle(&batches[0]).unwrap();
    assert_eq!(bench.ledger.shared.state.load().unwrap().positions, [(at, ChunkId(2))]);
    assert_eq!(bench.released(), [] as [u64; 0]);
    queue.settle(&batches[1]).unwrap();
    assert_eq!(bench.released(), [2]);
}

#[tokio::test]
async fn drop_oldest_drops_portions_and_the_others_of_their_chunk_stay() {
    let mut bench = Bench::new();
    let dropping =
        |max_bytes| QueueOptions { max_bytes: Some(max_bytes), when_full: WhenFull::DropOldest, ..options("a") };
    let queue = bench.queue(dropping(100_000));
    bench.share(1, 6, &[("a", "x", &[0, 1, 2, 3]), ("a", "y", &[4, 5])]);
    bench.share(2, 2, &[("a", "x", &[0]), ("a", "y", &[1])]);
    // Room for all but the oldest portion.
    let (bytes, oldest) = (queue.bytes(), Portion::each(ChunkId(1), &bench.chunks[0].1).next().unwrap().1.disk_bytes());
    while queue.admit(100_000 - bytes + oldest, 1) != Admission::Granted {
        queue.room().await;
    }
    assert_eq!((queue.records(), queue.bytes()), (4, bytes - oldest));
    queue.flush();
    // The partition that lost something is there again once that is on the disk.
    let mut found = Vec::new();
    for _ in 0..2 {
        found.push(queue.next_batch().await.unwrap());
    }
    found.sort_by(|a, b| a.row.partition.cmp(&b.row.partition));
    let told: Vec<_> = found.iter().map(|batch| (&*batch.row.partition, ids(batch), batch.row.records)).collect();
    assert_eq!(told, [("x", vec![2], 1), ("y", vec![1, 2], 3)]);
    assert!(bench.counted(r#"wharf_dropped_records_total{output="a",reason="queue_full_drop_oldest"} 4"#));
    drop(queue);
    let bench = bench.again();
    assert_eq!(bench.queue(options("a")).records(), 4);
}

#[tokio::test]
async fn many_partitions_of_one_chunk_are_dropped_and_stay_dropped() {
    let mut bench = Bench::new();
    let queue = bench.queue(QueueOptions { max_bytes: Some(1 << 20), when_full: WhenFull::DropOldest, ..options("a") });
    let partitions: Vec<_> = (0..600).map(|n| (n.to_string(), [n])).collect();
    let routes: Vec<_> = partitions.iter().map(|(name, of)| ("a", name.as_str(), of.as_slice())).collect();
    bench.share(1, 600, &routes);
    while queue.admit(1 << 20, 1) != Admission::Granted {
        queue.room().await;
    }
    while bench.released() != [1] {
        tokio::task::yield_now().await;
    }
    lock(&bench.journal.0).clear();
    drop(queue);
    let bench = bench.again();
    let queue = bench.queue(options("a"));
    assert!(queue.is_empty());
    assert_eq!(bench.released(), [1]);
}

#[tokio::test]
async fn cursors_of_partitions_that_are_gone_are_forgotten_and_those_of_found_chunks_kept() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    for (id, partition) in [(1, "gone"), (2, "found again"), (3, "in a batch")] {
        bench.put(id, partition, 100, 1);
    }
    let batches = ready(&queue).await;
    queue.settle(&batches[0]).unwrap();
    queue.settle(&batches[1]).unwrap();
    drop(queue);
    // A crash before the journal had given the second one's place to something else.
    lock(&bench.journal.0).retain(|id| *id != 2);

    let mut bench = bench.again();
    let queue = bench.queue(options("a"));
    let cursors = |bench: &Bench| {
        let cursors = bench.ledger.shared.state.load().unwrap().cursors;
        cursors.into_iter().map(|(_, partition, upto)| (partition.to_string(), upto.0)).collect::<Vec<_>>()
    };
    assert_eq!(cursors(&bench), [("found again".to_owned(), 2), ("in a batch".to_owned(), 3)]);
    assert_eq!(queue.records(), 1);
    assert_eq!(bench.released(), [2]);
    bench.put(4, "gone", 100, 1);
    let (batches, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("in a batch", &[3]), ("gone", &[4])]));
    queue.settle(&batches[0]).unwrap();
    queue.settle(&batches[1]).unwrap();
    drop(queue);
    let bench = bench.again();
    assert!(bench.queue(options("a")).is_empty());
    assert_eq!(cursors(&bench), []);
}

#[tokio::test]
async fn cursors_are_kept_where_the_journal_was_damaged() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "x", 100, 1);
    let batch = queue.next_batch().await.unwrap();
    queue.settle(&batch).unwrap();
    drop(queue);
    let bench = bench.again();
    let damaged = crate::journal::Quarantined { id: None, meta: None, file: "f".into(), reason: String::new() };
    let recovery = Recovery { quarantined: vec![damaged], ..Recovery::default() };
    bench.ledger.restore(&recovery, vec![options("a")]).unwrap();
    assert_eq!(bench.ledger.shared.state.load().unwrap().cursors.len(), 1);
}

fn in_order(output: &str) -> QueueOptions {
    QueueOptions { in_order: true, ..options(output) }
}

#[tokio::test]
async fn in_order_a_partitions_next_batch_comes_when_the_one_before_is_settled() {
    let mut bench = Bench::new();
    let queue = bench.queue(in_order("a"));
    for (id, partition) in [(1, "x"), (2, "x"), (3, "y"), (4, "x")] {
        bench.put(id, partition, 100, 1);
    }
    let (first, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("x", &[1]), ("y", &[3])]));
    queue.settle(&first[1]).unwrap();
    assert_eq!(ready_of(&queue).await.1, told(&[]));
    // Given back, it is the same that comes again.
    queue.give_back(first[0].clone());
    let (again, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("x", &[1])]));
    queue.settle(&again[0]).unwrap();
    let (second, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("x", &[2])]));
    queue.settle(&second[0]).unwrap();
    assert_eq!(ready_of(&queue).await.1, told(&[("x", &[4])]));
}

#[tokio::test]
async fn in_order_what_waits_behind_a_batch_is_closed_only_when_it_can_go() {
    let mut bench = Bench::new();
    let queue = bench.queue(in_order("a"));
    bench.put(1, "x", 100, 1);
    let first = ready(&queue).await;
    bench.put(2, "x", 100, 1);
    bench.put(3, "x", 60, 1);
    assert_eq!(ready_of(&queue).await.1, told(&[]));
    assert_eq!(bench.ledger.shared.state.load().unwrap().batches.len(), 1);
    queue.settle(&first[0]).unwrap();
    let (second, found) = ready_of(&queue).await;
    assert_eq!(found, told(&[("x", &[2])]));
    queue.settle(&second[0]).unwrap();
    // Not full: its time has to come, as ever.
    assert_eq!(ready_of(&queue).await.1, told(&[]));
    bench.later(10);
    assert_eq!(ready_of(&queue).await.1, told(&[("x", &[3])]));
}

#[tokio::test]
async fn in_order_a_worker_that_waits_is_woken_when_a_batch_is_settled() {
    let mut bench = Bench::new();
    let queue = bench.queue(in_order("a"));
    bench.put(1, "x", 100, 1);
    bench.put(2, "x", 100, 1);
    let first = queue.next_batch().await.unwrap();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next_batch().await }
    });
    tokio::task::yield_now().await;
    queue.settle(&first).unwrap();
    assert_eq!(ids(&waiting.await.unwrap().unwrap()), [2]);
}

#[tokio::test]
async fn in_order_restored_batches_of_a_partition_come_one_after_the_other() {
    let mut bench = Bench::new();
    // Closed side by side, before anybody wanted them in order.
    let queue = bench.queue(options("a"));
    for (id, partition) in [(1, "x"), (2, "y"), (3, "x"), (4, "x")] {
        bench.put(id, partition, 100, 1);
    }
    assert_eq!(ready(&queue).await.len(), 4);
    bench.put(5, "x", 10, 1);
    drop(queue);

    let mut bench = bench.again();
    let queue = bench.queue(in_order("a"));
    assert_eq!(queue.records(), 5);
    bench.put(6, "x", 100, 1);
    let mut order = Vec::new();
    loop {
        let (batches, found) = ready_of(&queue).await;
        let Some(batch) = batches.first() else { break };
        assert_eq!(found.iter().filter(|(partition, _)| partition == "x").count(), 1, "{found:?}");
        order.extend(ids(batch));
        queue.settle(batch).unwrap();
        for other in &batches[1..] {
            queue.give_back(other.clone());
        }
    }
    assert_eq!(order.iter().filter(|id| **id != 2).collect::<Vec<_>>(), [&1, &3, &4, &5, &6]);
    assert!(queue.is_empty());
}

#[tokio::test]
async fn in_order_a_flush_hands_everything_out_one_after_the_other_and_then_ends() {
    let mut bench = Bench::new();
    let queue = bench.queue(in_order("a"));
    for id in 1..=3 {
        bench.put(id, "x", 60, 1);
    }
    bench.put(4, "y", 10, 1);
    queue.flush();
    queue.close();
    // Too late: it is not waited for.
    bench.put(5, "y", 10, 1);
    let other = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut had = Vec::new();
            while let Some(batch) = queue.next_batch().await {
                had.extend(ids(&batch));
                tokio::task::yield_now().await;
                queue.settle(&batch).unwrap();
            }
            had
        }
    });
    let mut had = Vec::new();
    while let Some(batch) = queue.next_batch().await {
        had.extend(ids(&batch));
        tokio::task::yield_now().await;
        queue.settle(&batch).unwrap();
    }
    had.extend(other.await.unwrap());
    had.sort_unstable();
    assert_eq!(had.iter().filter(|id| **id != 5).collect::<Vec<_>>(), [&1, &2, &3, &4]);
}

#[tokio::test]
async fn in_order_drop_oldest_drops_what_is_kept_back_and_the_rest_goes_on() {
    let mut bench = Bench::new();
    let size = bench.meta(&[("a", "")], 100, 1).disk_bytes(None);
    let before = bench.queue(options("a"));
    for id in 1..=3 {
        bench.put(id, "x", 100, 1);
    }
    assert_eq!(ready(&before).await.len(), 3);
    bench.put(4, "x", 100, 1);
    bench.put(5, "x", 100, 1);
    drop(before);

    let bench = bench.again();
    let queue =
        bench.queue(QueueOptions { max_bytes: Some(5 * size), when_full: WhenFull::DropOldest, ..in_order("a") });
    let in_hand = queue.next_batch().await.unwrap();
    assert_eq!(ids(&in_hand), [1]);
    // 4 and 5 wait, 2 and 3 are closed and kept back.
    for (more, gone) in [(2, vec![4, 5]), (1, vec![2, 4, 5])] {
        while queue.admit(more * size, 1) != Admission::Granted {
            queue.room().await;
        }
        let released = || bench.released().into_iter().collect::<BTreeSet<_>>();
        while released() != gone.iter().copied().collect() {
            tokio::task::yield_now().await;
        }
    }
    queue.settle(&in_hand).unwrap();
    let next = queue.next_batch().await.unwrap();
    assert_eq!(ids(&next), [3]);
    queue.give_back(next);
    // Nobody has it in hand: it goes, too.
    queue.withdraw(3 * size);
    while queue.admit(5 * size, 1) != Admission::Granted {
        queue.room().await;
    }
    while bench.released().len() < 5 {
        tokio::task::yield_now().await;
    }
    assert!(queue.is_empty());
    queue.flush();
    queue.close();
    assert!(queue.next_batch().await.is_none());
}

#[derive(Debug, Clone)]
enum Op {
    /// A chunk with a record for each partition whose bit is set.
    Put(u8, u8),
    Take,
    Settle(u8),
    GiveBack(u8),
    Later(u8),
    Restart,
}

fn op() -> impl proptest::strategy::Strategy<Value = Op> {
    use proptest::prelude::*;
    prop_oneof![
        6 => (1u8..8, 1u8..150).prop_map(|(partitions, n)| Op::Put(partitions, n)),
        4 => Just(Op::Take),
        3 => any::<u8>().prop_map(Op::Settle),
        1 => any::<u8>().prop_map(Op::GiveBack),
        1 => (1u8..12).prop_map(Op::Later),
        1 => Just(Op::Restart),
    ]
}

/// Of each batch by number: its partition and chunks when it was first seen.
type Closed = std::collections::BTreeMap<u64, (Arc<str>, Vec<u64>)>;

/// Takes a batch where there is one at once, and notes what must hold of each.
async fn take(queue: &Queue, closed: &mut Closed) -> Option<Batch> {
    if matches!(peek(queue), partitions::Next::Wait(_)) {
        return None;
    }
    let batch = queue.next_batch().await.unwrap();
    let chunks = ids(&batch);
    assert!(chunks.is_sorted());
    let records: u64 = batch.portions.iter().map(|portion| u64::from(portion.records())).sum();
    assert_eq!((batch.row.records, chunks.len() as u64), (records, records), "each portion has one record");
    let seen = (batch.row.partition.clone(), chunks);
    let known = closed.entry(batch.row.number).or_insert_with(|| seen.clone());
    assert_eq!(*known, seen, "a batch has changed");
    Some(batch)
}

impl Bench {
    /// Of a chunk each partition gets one record, of `bytes` bytes.
    fn put_each(&mut self, id: u64, partitions: &[&str], bytes: u64) {
        let to: Vec<_> = partitions.iter().map(|partition| ("a", *partition)).collect();
        let mut meta = self.meta(&to, bytes * to.len() as u64, to.len() as u32);
        for (number, route) in (0..).zip(&mut meta.routes).filter(|_| to.len() > 1) {
            let records = RecordSet::of([number]).unwrap();
            let now = meta.arrival_ns;
            route.part = Some(Part { records, body_bytes: bytes, first_ns: now, last_ns: now, crc: 0 });
        }
        self.commit(id, meta);
    }
}

/// What was settled: partitions and chunks.
fn note(settled: &mut Vec<(String, u64)>, batch: &Batch) {
    settled.extend(ids(batch).into_iter().map(|id| (batch.row.partition.to_string(), id)));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, ..Default::default() })]

    /// The model: every portion is settled once, with the batch that it was first in; those of a partition were closed in order. Where
    /// batches go in order, no two of a partition are in hand, and portions are settled in order, too. A chunk is released when, and
    /// only when, all its portions are settled.
    #[test]
    fn whatever_happens_each_portion_is_settled_once_and_partitions_keep_their_order(
        ops in proptest::collection::vec(op(), 1..60),
        in_order in proptest::prelude::any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let wanted = || QueueOptions { in_order, ..options("a") };
            let mut bench = Bench::new();
            let mut queue = bench.queue(wanted());
            let (mut chunks, mut put, mut settled) = (0, Vec::new(), Vec::new());
            let mut closed = Closed::new();
            let mut in_hand: Vec<Batch> = Vec::new();
            let mut released = BTreeSet::new();
            for op in ops {
                match op {
                    Op::Put(wanted, bytes) => {
                        chunks += 1;
                        let names = ["x", "y", "z"];
                        let of: Vec<_> = (0..3).filter(|n| wanted & (1 << n) != 0).map(|n: usize| names[n]).collect();
                        bench.put_each(chunks, &of, u64::from(bytes));
                        put.extend(of.into_iter().map(|partition| (partition.to_owned(), chunks)));
                    }
                    Op::Take => {
                        let taken = take(&queue, &mut closed).await;
                        if in_order && let Some(taken) = &taken {
                            assert!(in_hand.iter().all(|batch| batch.row.partition != taken.row.partition));
                        }
                        in_hand.extend(taken);
                    }
                    Op::Settle(n) if !in_hand.is_empty() => {
                        let batch = in_hand.remove(usize::from(n) % in_hand.len());
                        queue.settle(&batch).unwrap();
                        note(&mut settled, &batch);
                    }
                    Op::GiveBack(n) if !in_hand.is_empty() => {
                        queue.give_back(in_hand.remove(usize::from(n) % in_hand.len()));
                    }
                    Op::Settle(_) | Op::GiveBack(_) => {}
                    Op::Later(seconds) => bench.later(i64::from(seconds)),
                    Op::Restart => {
                        in_hand.clear();
                        drop(queue);
                        released.extend(bench.released());
                        bench = bench.again();
                        queue = bench.queue(wanted());
                    }
                }
                assert_eq!(queue.records(), (put.len() - settled.len()) as u64);
                let gone: BTreeSet<u64> = released.iter().copied().chain(bench.released()).collect();
                let left = |id: &u64| put.iter().any(|portion| portion.1 == *id && !settled.contains(portion));
                assert_eq!(gone, (1..=chunks).filter(|id| !left(id)).collect());
            }
            for batch in in_hand {
                queue.give_back(batch);
            }
            queue.flush();
            while let Some(batch) = take(&queue, &mut closed).await {
                queue.settle(&batch).unwrap();
                note(&mut settled, &batch);
            }
            if in_order {
                let mut last = std::collections::HashMap::new();
                for (partition, id) in &settled {
                    assert!(last.insert(partition, id).is_none_or(|before| before < id), "{settled:?}");
                }
            }
            settled.sort_unstable();
            put.sort_unstable();
            assert_eq!(settled, put);
            assert_eq!((queue.bytes(), queue.oldest_arrival_ns()), (0, None));
            let mut last = std::collections::HashMap::new();
            for (partition, chunks) in closed.into_values() {
                for id in chunks {
                    assert!(last.insert(partition.clone(), id).is_none_or(|before| before < id));
                }
            }
        });
    }
}
