//! Partitions whose batches go one after the other.

use super::*;

pub(super) fn in_order(output: &str) -> QueueOptions {
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
