//! What is given back, and what is there again after a restart.

use super::*;

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
