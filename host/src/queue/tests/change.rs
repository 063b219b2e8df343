//! What another configuration does to a queue.

use super::*;

#[tokio::test]
async fn other_limits_count_for_what_waits_and_not_for_what_is_closed() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "x", 100, 1);
    let closed = queue.next_batch().await.unwrap();
    bench.put(2, "x", 40, 1);
    bench.put(3, "x", 40, 1);
    assert!(matches!(peek(&queue), partitions::Next::Wait(_)), "80 bytes of 100");

    let limits = BatchLimits { max_bytes: 40, ..options("a").limits };
    queue.change(QueueOptions { limits, ..options("a") });
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [[2], [3]]);
    assert!(queue.holds(&closed));

    // And the other way: what was full is not any more, and is old enough in its time.
    bench.put(4, "x", 40, 1);
    queue.change(options("a"));
    assert!(matches!(peek(&queue), partitions::Next::Wait(_)));
    bench.later(10);
    assert_eq!(ready(&queue).await.iter().map(ids).collect::<Vec<_>>(), [[4]]);
}

#[tokio::test]
async fn more_room_is_there_at_once() {
    let bench = Bench::new();
    let queue = bench.queue(QueueOptions { max_bytes: Some(100), ..options("a") });
    assert_eq!(queue.admit(100, 1), Admission::Granted);
    assert_eq!(queue.admit(50, 1), Admission::Full);
    let room = queue.room_from_now();
    queue.change(QueueOptions { max_bytes: Some(150), ..options("a") });
    room.await;
    assert_eq!(queue.admit(50, 1), Admission::Granted);
    assert_eq!(queue.fullness(), Some(Fullness { used: 150, max: 150 }));
}

#[tokio::test]
async fn a_queue_that_leaves_grants_nothing_and_waits_for_what_it_had_granted() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let meta = bench.meta(&[("a", "x")], 100, 1);
    let bytes = meta.disk_bytes(meta.routes.first());
    assert_eq!(queue.admit(bytes, 1), Admission::Granted);
    assert!(!queue.leave(Duration::ZERO).await, "it is on its way");
    assert!(queue.is_leaving());
    assert_eq!(queue.admit(1, 1), Admission::Full);
    bench.commit(1, meta);
    assert!(queue.leave(Duration::from_secs(60)).await);
    assert_eq!(queue.kept().records, 1);
    queue.stay();
    assert_eq!(queue.admit(1, 1), Admission::Granted);
}

#[test]
fn records_that_are_kept_apart_by_other_fields_need_another_queue() {
    let bench = Bench::new();
    let queue = bench.queue(options("a"));
    assert!(queue.can_become(&QueueOptions { max_bytes: Some(1), ..options("a") }));
    assert!(!queue.can_become(&QueueOptions { partition_by: vec![], ..options("a") }));
    assert!(!queue.can_become(&QueueOptions { in_order: true, ..options("a") }));
}

#[tokio::test]
async fn what_is_discarded_is_counted_goes_back_and_does_not_come_again_and_numbers_go_on() {
    let mut bench = Bench::new();
    let queues = bench.queues(vec![options("a"), options("b")]);
    bench.put(1, "x", 100, 2);
    let in_hand = queues[0].next_batch().await.unwrap();
    bench.put(2, "x", 100, 3);
    assert_eq!(ready(&queues[0]).await.len(), 1);
    bench.put(3, "x", 10, 4);
    let shared = bench.meta(&[("a", "y"), ("b", "")], 10, 5);
    bench.commit(4, shared);

    assert!(queues[0].leave(Duration::ZERO).await);
    let gone = queues[0].discard().unwrap();
    assert_eq!((&*gone.output, gone.records), ("a", 14));
    assert!(queues[0].is_empty());
    assert!(bench.counted(r#"wharf_dropped_records_total{output="a",reason="discarded"} 14"#));
    let mut released = bench.released();
    released.sort_unstable();
    assert_eq!(released, [1, 2, 3], "another output needs the fourth");
    // A worker that comes with its batch now is too late, and that is no harm.
    queues[0].settle(&in_hand).unwrap();
    bench.ledger.remove(&queues[0]);
    drop(queues);

    let mut bench = bench.again();
    let queues = bench.queues(vec![options("b")]);
    assert_eq!((bench.ledger.kept(), queues[0].records()), (vec![], 5));
    let again = bench.ledger.adopt(options("a"));
    bench.ledger.take_in(&again);
    bench.put(5, "x", 100, 1);
    assert_eq!(again.next_batch().await.unwrap().row.number, in_hand.row.number + 2);
}

#[tokio::test]
async fn what_is_kept_for_an_output_that_is_not_configured_is_adopted_or_discarded() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    bench.put(1, "x", 100, 2);
    let batch = queue.next_batch().await.unwrap();
    bench.put(2, "x", 10, 3);
    drop(queue);

    let mut bench = bench.again();
    assert!(bench.queues(vec![]).is_empty());
    let kept = bench.ledger.kept();
    assert_eq!((&*kept[0].output, kept[0].records), ("a", 5));
    let queue = bench.ledger.adopt(options("a"));
    bench.ledger.take_in(&queue);
    assert_eq!((bench.ledger.kept(), queue.records()), (vec![], 5));
    let first = queue.next_batch().await.unwrap();
    assert_eq!((first.row.clone(), ids(&first), first.restored), (batch.row, vec![1], true));
    bench.put(3, "x", 100, 1);
    assert_eq!(ids(&queue.next_batch().await.unwrap()), [2]);
    drop(queue);

    let bench = bench.again();
    assert!(bench.queues(vec![]).is_empty());
    assert_eq!(bench.ledger.discard_kept("a").unwrap().unwrap().records, 6);
    assert_eq!(bench.ledger.discard_kept("a").unwrap(), None);
    let mut released = bench.released();
    released.sort_unstable();
    assert_eq!(released, [1, 2, 3]);
}

#[test]
fn the_newest_positions_of_a_source_are_found_wherever_they_are() {
    let mut bench = Bench::new();
    let queue = bench.queue(options("a"));
    let position = |source: &str, key: &str, value: &str| Position {
        source: source.into(),
        key: key.into(),
        value: value.as_bytes().to_vec(),
    };
    bench
        .ledger
        .keep(&[position("app", "one", "1"), position("app", "two", "2"), position("apple", "one", "9")])
        .unwrap();
    let mut meta = bench.meta(&[("a", "x")], 10, 1);
    meta.positions = vec![position("app", "one", "3")];
    bench.commit(7, meta);
    let mut found = bench.ledger.positions("app").unwrap();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(found, [position("app", "one", "3"), position("app", "two", "2")]);
    drop(queue);
}
