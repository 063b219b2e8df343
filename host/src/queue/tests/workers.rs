//! Workers that wait, and the end.

use super::*;

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
