//! Batches that fail and are tried again.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_failure_is_counted_and_tried_again() {
    let kinds = ["throttled", "transient", "auth", "misconfigured"];
    let place = Place::new();
    let mut wharf = place.archive().await;
    for kind in kinds {
        wharf.put(kind, &[kind]).await;
    }
    let output = wharf.start(QUICK).await;
    for kind in kinds {
        until(kind, || wharf.retries("archive", kind) >= 2).await;
    }
    assert_eq!(output.status().queue_records, 4);
    assert!(kinds.contains(&&*output.status().last_failure.unwrap().kind));
    assert_eq!(wharf.letters(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_is_delivered_when_the_destination_takes_it() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("fail_first", &["a"]).await;
    let output = wharf.start(QUICK).await;
    until("it is delivered", || output.is_empty() && wharf.delivered() == 1).await;
    assert_eq!(wharf.retries("archive", "transient"), 1);
    assert_eq!(output.status().last_failure, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_never_gets_through_does_not_keep_the_others_from_being_tried() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("transient", &["never"]).await;
    wharf.put("transient", &["nor this"]).await;
    let output = wharf.start(QUICK).await;
    // As far as can be told from these, the destination is down.
    until("they failed often", || wharf.retries("archive", "transient") >= 8).await;
    for line in ["a", "b", "c"] {
        wharf.put("ok", &[line]).await;
    }
    until("the others are delivered", || wharf.delivered() == 3).await;
    assert_eq!(output.status().queue_records, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_for_a_retry_is_not_idle_and_it_is_shown_until_when_and_why() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    let output = wharf.start(NEVER_AGAIN).await;
    until("there is nothing to do", || output.status().workers == [WorkerState::Idle]).await;
    assert_eq!(output.status().retries, None);
    wharf.put("auth", &["a"]).await;
    wharf.put("transient", &["b"]).await;
    until("both have failed", || output.status().retries.is_some_and(|retries| retries.batches == 2)).await;
    until("the worker waits", || output.status().workers == [WorkerState::WaitingForRetry]).await;
    let retries = output.status().retries.unwrap();
    // Which of the two is tried first is left to chance.
    let of_one = ["auth: ", "transient: "].iter().any(|kind| retries.why.starts_with(kind));
    assert!(of_one, "{retries:?}");
    assert!(retries.next > tokio::time::Instant::now());
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_share_a_destination_share_its_pause() {
    let place = Place::new();
    let mut wharf = place.open(&["archive", "neighbour", "elsewhere"], 1).await;
    for line in ["a", "b", "c"] {
        wharf.put("transient", &[line]).await;
    }
    wharf.start(NEVER_AGAIN).await;
    until("the destination is taken to be down", || wharf.retries("archive", "transient") == 3).await;

    let neighbour = wharf.start_with("neighbour", "there", "{}", QUICK).await;
    wharf.start_with("elsewhere", "another", "{}", QUICK).await;
    wharf.put_for("neighbour", "ok", &["d"]).await;
    until("the neighbour waits too", || neighbour.status().workers == [WorkerState::Paused]).await;
    wharf.put_for("elsewhere", "ok", &["e"]).await;
    let elsewhere = r#"wharf_delivered_records_total{output="elsewhere"}"#;
    until("what goes elsewhere is delivered", || wharf.count(elsewhere) == 1).await;
    assert_eq!(neighbour.status().queue_records, 1);
    assert_eq!(neighbour.status().workers, [WorkerState::Paused]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_waits_for_the_hosts_own_disk_does_not_hold_the_destination() {
    let place = Place::new();
    let mut wharf = place.open(&["archive", "neighbour"], 1).await;
    // A file stands where the output's dead letters should go.
    std::fs::create_dir(place.dir.path().join("dead-letters")).unwrap();
    let obstacle = place.dir.path().join("dead-letters/archive");
    std::fs::write(&obstacle, b"").unwrap();
    wharf.put("rejected", &["a"]).await;
    let output = wharf.start(QUICK).await;
    until("the batch was refused", || output.status().last_failure.is_some()).await;

    // Three failures leave the destination one delivery at a time: the neighbour needs the place that the other had.
    wharf.start_with("neighbour", "there", "{}", QUICK).await;
    wharf.put_for("neighbour", "transient", &["b"]).await;
    until("the neighbour is tried", || wharf.retries("neighbour", "transient") >= 5).await;
    assert_eq!(output.status().queue_records, 1);

    std::fs::remove_file(&obstacle).unwrap();
    until("the dead letter is written", || output.is_empty()).await;
    assert_eq!(wharf.letters().len(), 1);
}
