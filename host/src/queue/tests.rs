//! The queue's rules, by hand-worked cases over a real state and a journal that only notes what it gets back.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicI64;

use super::ledger::{Keeper, lock};
use super::*;
use crate::journal::Recovery;
use crate::record::{BodyKind, PartitionKey, Route};

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
        let routes = routes.iter().map(|(o, p)| Route { output: (*o).into(), partition: (*p).into() }).collect();
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
    fn released(&self) -> Vec<u64> {
        lock(&self.journal.0).clone()
    }
    fn counted(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|l| l == line)
    }
}

fn ids(batch: &Batch) -> Vec<u64> {
    batch.chunks.iter().map(|(id, _)| id.0).collect()
}

/// Batches until the first that is not there at once.
async fn ready(queue: &Queue) -> Vec<Batch> {
    let mut all = Vec::new();
    while !matches!(peek(queue), partitions::Next::Wait(_)) {
        all.push(queue.next_batch().await.unwrap());
    }
    all
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
            let copy = partitions::Plan { row: plan.row.clone(), chunks: plan.chunks.clone() };
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
    let size = disk_bytes(&meta);
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
    let size = disk_bytes(&meta);
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

#[test]
fn a_partition_is_the_tag_where_tags_are_kept_apart_and_never_too_long() {
    let bench = Bench::new();
    let apart = bench.queue(options("a"));
    let together = bench.queue(QueueOptions { partition_by: vec![], ..options("b") });
    let tag: Arc<str> = "app.web".into();
    assert_eq!(apart.partition_of(&tag), tag);
    assert_eq!(&*together.partition_of(&tag), "");
    let (long, longer): (Arc<str>, Arc<str>) = ("é".repeat(600).into(), "é".repeat(601).into());
    assert!(apart.partition_of(&long).len() <= 512);
    assert_ne!(apart.partition_of(&long), apart.partition_of(&longer));
    assert_eq!(apart.partition_of(&long), apart.partition_of(&long));
}

#[derive(Debug, Clone)]
enum Op {
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
        6 => (0u8..3, 1u8..150).prop_map(|(p, n)| Op::Put(p, n)),
        4 => Just(Op::Take),
        3 => any::<u8>().prop_map(Op::Settle),
        1 => any::<u8>().prop_map(Op::GiveBack),
        1 => (1u8..12).prop_map(Op::Later),
        1 => Just(Op::Restart),
    ]
}

/// Takes batches until there is none at once, and notes what must hold of each.
async fn take(queue: &Queue, closed: &mut std::collections::HashMap<u64, Vec<u64>>) -> Option<Batch> {
    if matches!(peek(queue), partitions::Next::Wait(_)) {
        return None;
    }
    let batch = queue.next_batch().await.unwrap();
    let chunks = ids(&batch);
    assert!(chunks.is_sorted());
    let known = closed.entry(batch.row.number).or_insert_with(|| chunks.clone());
    assert_eq!(*known, chunks, "a batch has changed");
    Some(batch)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    /// The model: every chunk is settled once, with the batch that it was first in; those of a partition in order.
    #[test]
    fn whatever_happens_each_chunk_is_settled_once_and_partitions_keep_their_order(
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut bench = Bench::new();
            let mut queue = bench.queue(options("a"));
            let (mut put, mut settled, mut closed) = (0, Vec::new(), std::collections::HashMap::new());
            let mut in_hand: Vec<Batch> = Vec::new();
            for op in ops {
                match op {
                    Op::Put(partition, bytes) => {
                        put += 1;
                        bench.put(put, &partition.to_string(), u64::from(bytes), 1);
                    }
                    Op::Take => in_hand.extend(take(&queue, &mut closed).await),
                    Op::Settle(n) if !in_hand.is_empty() => {
                        let batch = in_hand.remove(usize::from(n) % in_hand.len());
                        queue.settle(&batch).unwrap();
                        settled.extend(ids(&batch));
                    }
                    Op::GiveBack(n) if !in_hand.is_empty() => {
                        queue.give_back(in_hand.remove(usize::from(n) % in_hand.len()));
                    }
                    Op::Settle(_) | Op::GiveBack(_) => {}
                    Op::Later(seconds) => bench.later(i64::from(seconds)),
                    Op::Restart => {
                        in_hand.clear();
                        drop(queue);
                        bench = bench.again();
                        queue = bench.queue(options("a"));
                    }
                }
                assert_eq!(queue.records(), put - settled.len() as u64);
            }
            for batch in in_hand {
                queue.give_back(batch);
            }
            queue.flush();
            while let Some(batch) = take(&queue, &mut closed).await {
                queue.settle(&batch).unwrap();
                settled.extend(ids(&batch));
            }
            settled.sort_unstable();
            assert_eq!(settled, (1..=put).collect::<Vec<_>>());
            assert_eq!((queue.bytes(), queue.oldest_arrival_ns()), (0, None));
            // By number, each partition's chunks were closed in order.
            let mut numbers: Vec<_> = closed.into_iter().collect();
            numbers.sort();
            let partition = |id: u64| bench_partition(&bench, id);
            let mut last = std::collections::HashMap::new();
            for id in numbers.into_iter().flat_map(|(_, chunks)| chunks) {
                if let Some(partition) = partition(id) {
                    assert!(last.insert(partition, id).is_none_or(|before| before < id));
                }
            }
        });
    }
}

/// The partition of a chunk that the journal still had at the last start.
fn bench_partition(bench: &Bench, id: u64) -> Option<Arc<str>> {
    let (_, meta) = bench.chunks.iter().find(|(chunk, _)| chunk.0 == id)?;
    Some(meta.routes[0].partition.clone())
}
