//! Chunks that are shared out between partitions.

use super::*;

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
