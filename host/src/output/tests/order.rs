//! Batches of one partition, one after the other.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_waits_for_another_try_keeps_back_its_partition_and_no_other() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    wharf.put("fail_first", &["a"]).await;
    wharf.put("fail_first", &["b"]).await;
    let output = wharf.start_workers(2, "archive", "there", "{}", NEVER_AGAIN).await;
    until("the first has failed", || wharf.retries("archive", "transient") == 1).await;
    for line in ["c", "d", "e"] {
        wharf.put("ok", &[line]).await;
    }
    // The second of those that fail had been there before.
    until("the others are delivered", || wharf.delivered() == 3).await;
    assert_eq!(wharf.retries("archive", "transient"), 1);
    assert_eq!(output.status().queue_records, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_follows_when_the_one_before_got_through() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for line in ["a", "b", "c", "d"] {
        wharf.put("fail_first", &[line]).await;
    }
    let output = wharf.start_workers(3, "archive", "there", "{}", QUICK).await;
    until("all are delivered", || output.is_empty() && wharf.delivered() == 4).await;
    assert_eq!(wharf.retries("archive", "transient"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_refused_for_good_lets_the_next_go() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    wharf.put("rejected", &["a"]).await;
    wharf.put("rejected", &["b"]).await;
    wharf.put("trap", &["c"]).await;
    wharf.put("trap", &["d"]).await;
    let output = wharf.start_workers(2, "archive", "there", "{}", QUICK).await;
    until("all have ended", || output.is_empty()).await;
    until("they are counted", || wharf.rejected("rejected") == 2 && wharf.rejected("trap") == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_is_down_is_probed_although_every_partition_is_kept_back() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for _ in 0..2 {
        for tag in ["transient", "throttled", "auth", "fail_first"] {
            wharf.put(tag, &["a"]).await;
        }
    }
    let retry = RetryConfig { max: Duration::from_millis(1), ..QUICK };
    let output = wharf.start_workers(3, "archive", "there", "{}", retry).await;
    until("what can be delivered is", || wharf.delivered() == 2).await;
    until("the others are tried again and again", || wharf.retries("archive", "auth") >= 4).await;
    assert_eq!(output.status().queue_records, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_in_quarantine_keeps_its_batches_and_no_stop_waits_for_them() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for line in ["a", "b", "c", "d", "e"] {
        wharf.put("trap", &[line]).await;
    }
    let output = wharf.start_workers(2, "archive", "there", "{}", QUICK).await;
    until("the plugin is quarantined", || output.status().quarantined).await;
    drop(output);
    // Two were taken to be poison before the third spoke against the plugin.
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 3);
    let wharf = place.in_order().await;
    assert_eq!((wharf.queue("archive").records(), wharf.letters().len()), (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_delivers_what_is_open_one_after_the_other() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for line in ["a", "b", "c", "d", "e"] {
        wharf.put("ok", &[line]).await;
        wharf.put("fail_first", &[line]).await;
    }
    wharf.start_workers(3, "archive", "there", "{}", QUICK).await;
    let metrics = wharf.metrics.clone();
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 0);
    assert!(metrics.render().contains("wharf_delivered_records_total{output=\"archive\"} 10\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_what_a_plugin_that_cannot_be_started_keeps_back() {
    let place = Place::new();
    let mut wharf = place.in_order().await;
    for line in ["a", "b", "c"] {
        wharf.put("ok", &[line]).await;
    }
    let output = wharf.start_workers(3, "archive", "there", r#"{"configure":"trap"}"#, QUICK).await;
    until("it was tried", || output.status().last_failure.is_some_and(|failure| failure.kind == "trap")).await;
    drop(output);
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 3);

    let mut wharf = place.in_order().await;
    let output = wharf.start_workers(2, "archive", "there", "{}", QUICK).await;
    until("all are delivered", || output.is_empty() && wharf.delivered() == 3).await;
}
