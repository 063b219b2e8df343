//! A queue that is full, and its policies.

use super::*;

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
