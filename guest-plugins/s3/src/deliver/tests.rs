use serde_json::json;
use wharf_plugin::FailureKind;
use wharf_plugin::s3::Error;
use wharf_plugin::service::Service;

use super::deliver;
use crate::fake::{Fake, Object, service};
use crate::settings::Settings;
use crate::sweep;

const KEY: &str = "logs/segment_0";
const BATCH: &str = "0198f3a2b4c5700081e29c3d4e5f6071";
/// Small, to be fast; two parts make a threshold.
const PART: usize = 1000;

fn settings(more: serde_json::Value) -> Settings {
    let mut config = json!({ "bucket": "b", "key_format": "/logs/segment_$INDEX" });
    for (option, value) in more.as_object().unwrap() {
        config[option] = value.clone();
    }
    let (settings, _) = Settings::new(serde_json::from_value(config).unwrap()).unwrap();
    Settings { part_size: PART as u64, threshold: 2 * PART as u64, ..settings }
}

fn plain() -> Settings {
    settings(json!({}))
}

fn large() -> Fake {
    Fake::with_bytes(3 * PART + 100)
}

fn lost_answer() -> Error {
    Error::Connection(Service::S3, "reset".into())
}

/// The object is there, whole, and marked as the batch's; nothing is left over.
#[track_caller]
fn assert_delivered(fake: &Fake, key: &str) {
    let Object { bytes, metadata, .. } = fake.object(key).expect("the object is there");
    assert!(bytes == fake.bytes(), "the object's bytes are the batch's");
    assert_eq!(metadata, [("wharf-batch".to_owned(), fake.facts.id.clone())]);
    assert!(fake.shared.borrow().uploads.is_empty(), "no upload is left");
    assert!(fake.shared.borrow().stored.is_empty(), "no record for the sweep is left");
}

#[test]
fn a_small_batch_is_one_request() {
    let fake = Fake::with_bytes(1000);
    assert!(deliver(&fake, &plain()).unwrap().rejected().is_empty());
    assert_eq!(fake.calls(), ["put logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn a_batch_of_exactly_the_threshold_is_one_request_and_a_byte_more_is_parts() {
    let fake = Fake::with_bytes(2 * PART);
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.object(KEY).unwrap().parts, 0);
    let fake = Fake::with_bytes(2 * PART + 1);
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.object(KEY).unwrap().parts, 3);
    assert_delivered(&fake, KEY);
}

#[test]
fn numbers_follow_one_another_and_a_batch_keeps_its_number() {
    let first = Fake::with_bytes(10);
    let second = first.other("b2");
    for fake in [&first, &second, &first, &second] {
        deliver(fake, &plain()).unwrap();
    }
    let keys: Vec<_> = first.shared.borrow().objects.keys().cloned().collect();
    assert_eq!(keys, ["logs/segment_0", "logs/segment_1"]);
}

#[test]
fn a_counter_of_the_key_numbers_each_rest_of_the_key() {
    let settings = settings(json!({ "key_format": "/$TAG/$INDEX", "index_scope": "key", "index_start": 5 }));
    let a1 = Fake::with_bytes(10);
    let (mut b1, a2) = (a1.other("b1"), a1.other("a2"));
    b1.facts.tag = "web".into();
    for fake in [&a1, &b1, &a2] {
        deliver(fake, &settings).unwrap();
    }
    let keys: Vec<_> = a1.shared.borrow().objects.keys().cloned().collect();
    assert_eq!(keys, ["app/5", "app/6", "web/5"]);
}

#[test]
fn a_lost_answer_is_found_delivered_by_the_next_attempt() {
    let fake = Fake::with_bytes(1000);
    fake.fail("put", 0, lost_answer(), true);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Transient);
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls(), ["put logs/segment_0", "put logs/segment_0", "head logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn foreign_objects_are_passed_by_without_sending_the_bytes_to_each() {
    let fake = Fake::with_bytes(1000);
    for n in 0..50 {
        fake.foreign(&format!("logs/segment_{n}"));
    }
    deliver(&fake, &plain()).unwrap();
    assert_delivered(&fake, "logs/segment_50");
    assert_eq!(fake.calls().iter().filter(|call| call.starts_with("put")).count(), 2);
    assert_eq!(fake.object(KEY).unwrap().bytes, b"foreign");
    let next = fake.other("b2");
    deliver(&next, &plain()).unwrap();
    assert_delivered(&next, "logs/segment_51");
}

#[test]
fn the_operator_says_what_becomes_of_a_batch_whose_key_is_taken() {
    for (on_conflict, kind) in [("dead_letter", FailureKind::Rejected), ("hold", FailureKind::Misconfigured)] {
        for size in [1000, 3 * PART] {
            let fake = Fake::with_bytes(size);
            fake.foreign(KEY);
            let failure = deliver(&fake, &settings(json!({ "on_conflict": on_conflict }))).unwrap_err();
            assert_eq!(failure.kind, kind);
            assert!(
                failure.message.starts_with("s3://b/logs/segment_0 exists, is no object of this batch"),
                "{failure}"
            );
            assert_eq!(fake.object(KEY).unwrap().bytes, b"foreign");
            assert!(fake.shared.borrow().uploads.is_empty());
        }
    }
}

#[test]
fn a_large_batch_whose_key_is_taken_goes_to_the_next_number() {
    let fake = large();
    fake.foreign(KEY);
    deliver(&fake, &plain()).unwrap();
    assert_delivered(&fake, "logs/segment_1");
}

#[test]
fn a_key_taken_while_parts_were_sent_is_not_overwritten() {
    let fake = large();
    // The early question finds nobody, then S3 itself refuses.
    fake.fail("complete", 0, service(412, "PreconditionFailed"), false);
    fake.fail("head", 1, service(503, "SlowDown"), false);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Throttled, "S3 does not say whose it is");
    fake.foreign(KEY);
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.object(KEY).unwrap().bytes, b"foreign");
    assert_delivered(&fake, "logs/segment_1");
}

#[test]
fn without_conditional_writes_wharf_asks_before_it_writes() {
    let settings = settings(json!({ "conditional_write": false }));
    for size in [1000, 3 * PART] {
        let fake = Fake::with_bytes(size);
        fake.foreign(KEY);
        deliver(&fake, &settings).unwrap();
        deliver(&fake, &settings).unwrap();
        assert_eq!(fake.object(KEY).unwrap().bytes, b"foreign");
        assert_delivered(&fake, "logs/segment_1");
        assert_eq!(fake.shared.borrow().objects.len(), 2);
    }
}

#[test]
fn an_upload_is_gone_on_with_where_it_stopped() {
    let fake = large();
    fake.fail("part", 2, service(500, "InternalError"), false);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Transient);
    assert_eq!(fake.calls(), ["head logs/segment_0", "create logs/segment_0", "part 1", "part 2", "part 3", "part 4"]);
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls(), ["part 3", "complete logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn an_upload_whose_completion_was_answered_with_an_error_document_is_completed_again() {
    let fake = large();
    fake.fail("complete", 0, service(200, "InternalError"), false);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Transient);
    fake.calls();
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls(), ["complete logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn a_completion_whose_answer_was_lost_is_found_delivered() {
    let fake = large();
    fake.fail("complete", 0, lost_answer(), true);
    deliver(&fake, &plain()).unwrap_err();
    fake.calls();
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls(), ["complete logs/segment_0", "head logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn an_upload_that_somebody_aborted_is_begun_anew() {
    let fake = large();
    fake.fail("complete", 0, service(503, "SlowDown"), false);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Throttled);
    fake.shared.borrow_mut().uploads.clear();
    deliver(&fake, &plain()).unwrap();
    assert_delivered(&fake, KEY);
}

#[test]
fn an_upload_that_keeps_vanishing_waits_for_another_attempt() {
    let fake = large();
    for _ in 0..3 {
        fake.fail("complete", 0, service(404, "NoSuchUpload"), false);
    }
    let failure = deliver(&fake, &plain()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.message.contains("vanished 3 times"), "{failure}");
}

#[test]
fn bytes_are_encoded_once_where_nothing_goes_wrong() {
    for size in [1000, 5 * PART] {
        let fake = Fake::with_bytes(size);
        deliver(&fake, &plain()).unwrap();
        assert_eq!(fake.shared.borrow().encodings, 1, "{size} bytes");
    }
}

#[test]
fn a_server_without_conditional_writes_gets_a_hint() {
    let fake = Fake::with_bytes(10);
    fake.fail("put", 0, service(501, "NotImplemented"), false);
    let failure = deliver(&fake, &plain()).unwrap_err();
    assert!(failure.message.contains("set `conditional_write: false`"), "{failure}");
}

#[test]
fn after_a_conflict_the_whole_upload_is_made_again_by_the_next_attempt() {
    let fake = large();
    fake.fail("complete", 0, service(409, "ConditionalRequestConflict"), false);
    assert_eq!(deliver(&fake, &plain()).unwrap_err().kind, FailureKind::Transient);
    assert!(fake.shared.borrow().uploads.is_empty() && fake.shared.borrow().progress.is_empty());
    deliver(&fake, &plain()).unwrap();
    assert_delivered(&fake, KEY);
}

#[test]
fn parts_of_other_bytes_are_not_used() {
    let fake = large();
    fake.fail("complete", 0, service(500, ""), false);
    deliver(&fake, &plain()).unwrap_err();
    let row = format!("{BATCH}/part/00002");
    let text = String::from_utf8(fake.shared.borrow().progress[&row].clone()).unwrap();
    let (_, rest) = text.split_once(' ').unwrap();
    fake.shared.borrow_mut().progress.insert(row, format!("999 {rest}").into_bytes());
    fake.calls();
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls()[..2], ["abort u1", "head logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn an_upload_created_just_before_a_crash_is_found_and_aborted() {
    let fake = large();
    fake.fail("create", 0, lost_answer(), true);
    deliver(&fake, &plain()).unwrap_err();
    assert_eq!(fake.shared.borrow().uploads.len(), 1);
    fake.calls();
    deliver(&fake, &plain()).unwrap();
    assert_eq!(fake.calls()[..4], ["head logs/segment_0", "list logs/segment_0", "abort u1", "create logs/segment_0"]);
    assert_delivered(&fake, KEY);
}

#[test]
fn the_sweep_aborts_uploads_of_batches_that_are_gone_and_no_others() {
    let fake = large();
    for id in ["gone", "open"] {
        let batch = fake.other(id);
        batch.fail("complete", 0, service(500, ""), false);
        deliver(&batch, &settings(json!({ "key_format": "/$UUID" }))).unwrap_err();
    }
    fake.shared.borrow_mut().open.push("open".into());
    fake.fail("abort", 0, service(503, "SlowDown"), false);
    sweep::sweep(&fake);
    assert_eq!(fake.shared.borrow().uploads.len(), 2, "an abort that fails is tried again");
    sweep::sweep(&fake);
    assert_eq!(fake.shared.borrow().uploads.keys().collect::<Vec<_>>(), ["u2"]);
    assert_eq!(fake.shared.borrow().stored.keys().collect::<Vec<_>>(), ["upload/u2"]);
}

#[test]
fn a_batch_that_is_given_up_leaves_no_upload() {
    let fake = large();
    fake.fail("complete", 0, service(500, ""), false);
    deliver(&fake, &plain()).unwrap_err();
    sweep::abandon(&fake);
    assert!(fake.shared.borrow().uploads.is_empty() && fake.shared.borrow().stored.is_empty());
}

#[test]
fn records_without_the_log_key_are_rejected_and_all_of_them_are_named() {
    let settings = settings(json!({ "log_key": "log" }));
    let fake = Fake::new(vec![Some(b"a\n".into()), None, Some(b"b\n".into()), None]);
    let report = deliver(&fake, &settings).unwrap();
    assert_eq!(report.rejected().iter().map(|it| it.0).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(report.rejected()[0].1, "the record has no key `log`");
    assert_delivered(&fake, KEY);

    // The host names 10,000 at a time.
    let many = Fake::new((0..25_001).map(|n| (n == 12_000).then(|| b"x\n".to_vec())).collect());
    let report = deliver(&many, &settings).unwrap();
    let numbers: Vec<u32> = report.rejected().iter().map(|it| it.0).collect();
    assert_eq!(numbers, (0..25_001).filter(|n| *n != 12_000).collect::<Vec<_>>());
}

#[test]
fn a_batch_without_anything_to_write_makes_no_object_and_uses_no_number() {
    let fake = Fake::new(vec![None, None]);
    assert_eq!(deliver(&fake, &settings(json!({ "log_key": "log" }))).unwrap().rejections(), 2);
    assert!(fake.calls().is_empty() && fake.shared.borrow().counters.is_empty());
}

#[test]
fn a_key_that_a_tag_makes_too_long_is_rejected_before_a_number_is_used() {
    let mut fake = Fake::with_bytes(10);
    fake.facts.tag = "t".repeat(1100);
    let failure = deliver(&fake, &settings(json!({ "key_format": "/$TAG/$INDEX" }))).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Rejected);
    assert!(failure.message.contains("the tag in `key_format` is too long"), "{failure}");
    assert!(fake.shared.borrow().counters.is_empty());
}

#[test]
fn refusals_are_never_final() {
    for (error, kind) in [
        (service(403, "AccessDenied"), FailureKind::Auth),
        (service(400, "ExpiredToken"), FailureKind::Auth),
        (service(503, "SlowDown"), FailureKind::Throttled),
        (service(404, "NoSuchBucket"), FailureKind::Misconfigured),
        (service(500, ""), FailureKind::Transient),
    ] {
        for (size, call) in [(1000, "put"), (3 * PART, "create"), (3 * PART, "part"), (3 * PART, "complete")] {
            let fake = Fake::with_bytes(size);
            fake.fail(call, 0, error.clone(), false);
            let failure = deliver(&fake, &plain()).unwrap_err();
            assert_eq!(failure.kind, kind, "{call}: {error}");
            assert!(failure.message.contains("s3://b/logs/segment_0: S3 answered"), "{failure}");
            deliver(&fake, &plain()).unwrap();
            assert_delivered(&fake, KEY);
        }
    }
}
