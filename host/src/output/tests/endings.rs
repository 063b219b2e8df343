//! How a batch ends: each record is delivered, a dead letter, or counted as damaged.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_the_destination_refuses_becomes_dead_letters_at_once() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("rejected", &["a", "b"]).await;
    let output = wharf.start(QUICK).await;
    until("the batch has ended", || output.is_empty()).await;
    let letters = wharf.letters();
    let told: Vec<_> = letters.iter().map(|letter| (letter.record, letter.body.as_slice(), &*letter.failure)).collect();
    assert_eq!(told, [(0, &b"a"[..], "rejected"), (1, b"b", "rejected")]);
    until("they are counted", || wharf.rejected("rejected") == 2).await;
    assert_eq!(wharf.retries("archive", "rejected"), 0);
    assert_eq!(wharf.delivered(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_rejects_some_records_delivers_the_rest() {
    let place = Place::new();
    let mut wharf = place.open(&["archive"], 5).await;
    wharf.put("reject_odd", &["zero", "one"]).await;
    wharf.put("reject_odd", &["two", "three", "four"]).await;
    let output = wharf.start(QUICK).await;
    until("the batch has ended", || output.is_empty() && wharf.rejected("rejected") == 2).await;
    assert_eq!(output.dead_letters(), 2);
    let because = || "because".to_owned();
    assert_eq!(wharf.told(), [(1, "one".into(), because()), (3, "three".into(), because())]);
    assert_eq!(wharf.delivered(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_records_of_a_chunk_that_is_shared_out_are_those_that_the_batch_had_there() {
    let place = Place::new();
    let by_pod = vec![PartitionKey::Tag, PartitionKey::Field(vec!["pod".into()])];
    let keys = |options| QueueOptions { partition_by: by_pod.clone(), ..options };
    let mut wharf = place.open_as(&["archive"], 4, keys).await;
    let objects = [
        r#"{"pod":"x","n":0}"#,
        r#"{"pod":"y","n":0}"#,
        r#"{"pod":"y","n":1}"#,
        r#"{"pod":"x","n":1}"#,
        r#"{"pod":"x","n":2}"#,
    ];
    wharf.put_json("archive", "reject_odd", &objects).await;
    wharf.put_json("archive", "reject_odd", &[r#"{"pod":"x","n":3}"#, r#"{"pod":"y","n":2}"#]).await;
    wharf.put_json("archive", "reject_odd", &[r#"{"pod":"y","n":3}"#]).await;
    let output = wharf.start(QUICK).await;
    until("both batches have ended", || output.is_empty() && wharf.rejected("rejected") == 4).await;
    let odd = [("x", 1), ("x", 3), ("y", 1), ("y", 3)];
    let odd = odd.map(|(pod, n)| (n, format!(r#"{{"pod":"{pod}","n":{n}}}"#), "because".to_owned()));
    assert_eq!(wharf.told(), odd);
    assert_eq!(wharf.delivered(), 4);
    until("the journal holds nothing", || wharf.journal.usage().chunks == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_time_is_over_is_abandoned_and_becomes_dead_letters() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("transient", &["a"]).await;
    let output = wharf.start(NO_SECOND_CHANCE).await;
    until("the batch has ended", || output.is_empty() && wharf.rejected("retry_expired") == 1).await;
    assert_eq!(wharf.abandoned("transient"), 1);
    let letters = wharf.letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].failure, "retry_expired");
    assert!(letters[0].reason.starts_with("given up after 1 tries in "), "{}", letters[0].reason);
    assert!(letters[0].reason.ends_with(": reset"), "{}", letters[0].reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_chunk_does_not_keep_the_rest_of_its_batch_from_delivery() {
    let place = Place::new();
    let mut wharf = place.open(&["archive"], 3).await;
    wharf.put("take", &["the first of three"]).await;
    wharf.put("take", &["the second of three"]).await;
    wharf.put("take", &["the third of three"]).await;
    place.damage("the second of three");
    let output = wharf.start(QUICK).await;
    until("the batch has ended", || output.is_empty() && wharf.damaged() == 1).await;
    assert_eq!(wharf.delivered(), 2);
    assert_eq!(wharf.letters(), []);
    let aside = std::fs::read_dir(place.dir.path().join("quarantine")).unwrap();
    let aside = aside.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    assert!(aside.into_iter().any(|bytes| bytes.windows(18).any(|window| window == b"he second of three")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_which_nothing_is_left_ends_and_is_counted_as_damaged() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("take", &["a lone chunk", "and its second record"]).await;
    place.damage("a lone chunk");
    let output = wharf.start(QUICK).await;
    until("the batch has ended", || output.is_empty() && wharf.damaged() == 2).await;
    assert_eq!((wharf.delivered(), wharf.letters()), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_damaged_while_dead_letters_are_written_is_counted_apart() {
    let place = Place::new();
    let mut wharf = place.open(&["archive"], 3).await;
    wharf.put("rejected", &["the first of three"]).await;
    wharf.put("rejected", &["the second of three"]).await;
    wharf.put("rejected", &["the third of three"]).await;
    place.damage("the second of three");
    let output = wharf.start(QUICK).await;
    until("the batch has ended", || output.is_empty() && wharf.damaged() == 1).await;
    assert_eq!(wharf.rejected("rejected"), 2);
    let told: Vec<_> = wharf.told().into_iter().map(|(number, body, _)| (number, body)).collect();
    assert_eq!(told, [(0, "the first of three".into()), (2, "the third of three".into())]);
}
