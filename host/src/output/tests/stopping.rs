//! A stop, and the start after it.

use super::*;

/// A grace that is over.
fn no_grace() -> CancellationToken {
    let over = CancellationToken::new();
    over.cancel();
    over
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_delivers_what_is_open() {
    let place = Place::new();
    let mut wharf = place.open(&["archive"], 1_000).await;
    wharf.put("ok", &["a"]).await;
    wharf.put("fail_first", &["b", "c"]).await;
    wharf.start(QUICK).await;
    let metrics = wharf.metrics.clone();
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 0);
    assert!(metrics.render().contains("wharf_delivered_records_total{output=\"archive\"} 3\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stop_leaves_is_delivered_after_the_next_start_as_a_second_attempt() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    // It is delivered from its second attempt on.
    wharf.put("fail_first", &["a", "b"]).await;
    wharf.start(NEVER_AGAIN).await;
    until("it has failed", || wharf.retries("archive", "transient") == 1).await;
    assert_eq!(wharf.stop(&no_grace()).await, 2);

    let mut wharf = place.archive().await;
    let output = wharf.start(NEVER_AGAIN).await;
    assert!(!output.is_empty());
    until("it is delivered", || output.is_empty() && wharf.delivered() == 2).await;
    assert_eq!(wharf.retries("archive", "transient"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_waits_for_its_destination_when_the_grace_ends_stays() {
    let place = Place::new();
    let mut wharf = place.open(&["archive", "neighbour"], 1).await;
    for line in ["a", "b", "c"] {
        wharf.put("transient", &[line]).await;
    }
    wharf.start(NEVER_AGAIN).await;
    until("the destination is taken to be down", || wharf.retries("archive", "transient") == 3).await;
    wharf.put_for("neighbour", "ok", &["d"]).await;
    let neighbour = wharf.start_with("neighbour", "there", "{}", QUICK).await;
    until("a worker has it in hand", || neighbour.status().workers == [WorkerState::Paused]).await;
    assert_eq!(wharf.stop(&no_grace()).await, 4);
    drop(neighbour);

    let mut wharf = place.open(&["archive", "neighbour"], 1).await;
    let neighbour = wharf.start_with("neighbour", "there", "{}", QUICK).await;
    until("it is delivered", || neighbour.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_cannot_be_started_keeps_its_batches_and_no_stop_waits_for_it() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("ok", &["a"]).await;
    let output = wharf.start_with("archive", "there", r#"{"configure":"trap"}"#, NO_SECOND_CHANCE).await;
    until("it was tried", || output.status().last_failure.is_some_and(|failure| failure.kind == "trap")).await;
    drop(output);
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 1);

    let mut wharf = place.archive().await;
    let output = wharf.start(QUICK).await;
    until("it is delivered", || output.is_empty() && wharf.delivered() == 1).await;
}
