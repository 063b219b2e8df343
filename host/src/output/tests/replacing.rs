//! Other workers take over.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_another_try_is_tried_at_once_by_the_new_ones() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("fail_first", &["a"]).await;
    let old = wharf.start(NEVER_AGAIN).await;
    until("it waits", || old.status().retries.is_some_and(|retries| retries.batches == 1)).await;
    wharf.replace(1, "there", NEVER_AGAIN).await;
    until("it is delivered", || wharf.delivered() == 1).await;
    assert_eq!(wharf.retries("archive", "transient"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_begins_when_the_one_before_has_ended_what_it_has_in_hand() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("spin", &["a"]).await;
    let old = wharf.start(NEVER_AGAIN).await;
    until("it is at work", || old.status().workers == [WorkerState::Busy]).await;
    wharf.put("ok", &["b"]).await;
    let new = wharf.replace(1, "there", QUICK).await;
    until("the other is delivered", || wharf.delivered() == 1).await;
    assert!(wharf.stores_lost("cpu_limit") >= 1, "the first was not waited for");
    // What the old one had in hand, the new one tries again: its store is not the last that it ends.
    until("it is tried again", || wharf.stores_lost("cpu_limit") >= 2).await;
    assert_eq!(new.status().workers.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_for_its_destination_leaves_its_batch_to_the_new_one() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    // Throttled, with 1.5 s to wait.
    wharf.put("throttled", &["a"]).await;
    let old = wharf.start(NEVER_AGAIN).await;
    until("the destination is paused", || wharf.retries("archive", "throttled") == 1).await;
    wharf.put("ok", &["b"]).await;
    until("the worker waits", || old.status().workers == [WorkerState::Paused]).await;
    let new = wharf.replace(2, "elsewhere", NEVER_AGAIN).await;
    until("it is delivered", || wharf.delivered() == 1).await;
    assert_eq!(new.status().queue_records, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn order_is_kept_from_old_workers_to_new_ones() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for line in ["a", "b", "c", "d"] {
        wharf.put("fail_first", &[line]).await;
    }
    wharf.start(QUICK).await;
    for workers in [3, 1, 2] {
        wharf.replace(workers, "there", QUICK).await;
    }
    until("all is delivered", || wharf.delivered() == 4).await;
    assert_eq!(wharf.queue("archive").records(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_workers_show_no_more_states_than_there_are() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    let output = wharf.start_workers(3, "archive", "there", "{}", QUICK).await;
    until("all are there", || output.status().workers == [WorkerState::Idle; 3]).await;
    let output = wharf.replace(1, "there", QUICK).await;
    let states = || wharf.metrics.render().lines().filter(|line| line.starts_with("wharf_worker_state{")).count();
    until("one is there", || output.status().workers == [WorkerState::Idle]).await;
    until("no other is shown", || {
        !wharf.metrics.render().contains("wharf_worker_state{output=\"archive\",worker=\"2\"")
    })
    .await;
    assert!(states() > 0);
    wharf.put("ok", &["a"]).await;
    until("it is delivered", || wharf.delivered() == 1).await;
}
