//! When a batch closes, and which comes first.

use super::*;

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
