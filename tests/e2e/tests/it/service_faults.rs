//! What S3 and the network do to a client, and what holds all the same.

use std::time::Duration;

use wharf_e2e::LogWriter;
use wharf_local_aws::{Fault, Operation, Rule, S3};

use crate::support::{PREFIX, archive, assert_no_overwrites, delivered, s3, tail_place, write_in_steps};

const SMALL: &str = "max_bytes: 9KB, max_age: 300ms";

/// Delivers 1,000 lines under these rules, which must all have struck, and checks every promise.
fn survives(rules: Vec<Rule>) -> S3 {
    let s3 = s3();
    let place = tail_place(&s3, 2, SMALL);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    let hits: Vec<_> = rules.into_iter().map(|rule| s3.faults().add(rule)).collect();
    let mut wharf = place.start().unwrap();
    write_in_steps(&mut writer, 10, 100, &mut wharf, &place);
    wharf.wait_until("everything is delivered", 90, || delivered(&s3).lines() >= 1000);
    wharf.wait_until("everything is settled", 30, || place.all_settled());
    wharf.stop();
    assert!(hits.iter().all(|hits| hits.count() > 0), "a fault never struck");
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    assert_no_overwrites(&s3);
    s3
}

#[test]
fn slow_down_is_waited_out() {
    survives(vec![Rule::on(Operation::PutObject, Fault::Error("SlowDown")).next(6)]);
}

#[test]
fn an_early_refusal_that_breaks_the_connection_is_tried_again() {
    survives(vec![Rule::on(Operation::PutObject, Fault::EarlyError("SlowDown")).next(4)]);
}

#[test]
fn internal_errors_are_tried_again() {
    survives(vec![Rule::on(Operation::PutObject, Fault::Error("InternalError")).every(2)]);
}

#[test]
fn a_conflict_with_another_conditional_write_is_tried_again() {
    survives(vec![Rule::on(Operation::PutObject, Fault::Error("ConditionalRequestConflict")).next(3)]);
}

#[test]
fn reset_connections_are_tried_again() {
    survives(vec![
        Rule::on(Operation::PutObject, Fault::Reset { after: 1000 }).next(3),
        Rule::on(Operation::PutObject, Fault::Reset { after: 0 }).every(4),
    ]);
}

#[test]
fn slow_answers_are_waited_for() {
    survives(vec![Rule::on(Operation::PutObject, Fault::StallReply(Duration::from_millis(1500))).next(3)]);
}

#[test]
fn lost_credentials_are_never_final() {
    survives(vec![
        Rule::on(Operation::PutObject, Fault::Error("AccessDenied")).nth(1),
        Rule::on(Operation::PutObject, Fault::Error("ExpiredToken")).lasting(Duration::from_secs(3)),
    ]);
}

#[test]
fn a_missing_bucket_is_waited_for() {
    survives(vec![Rule::on(Operation::PutObject, Fault::Error("NoSuchBucket")).next(2)]);
}

#[test]
fn a_reply_that_was_lost_after_the_write_does_not_double_the_object() {
    let s3 = survives(vec![Rule::on(Operation::PutObject, Fault::LoseReply).every(2)]);
    // The second attempt met its own object and took it for its own.
    assert!(s3.requests().iter().any(|request| request.status == Some(412)), "no second attempt was made");
}

#[test]
fn an_outage_of_the_whole_service_is_waited_out() {
    let mut s3 = s3();
    let place = tail_place(&s3, 2, SMALL);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    writer.write(200).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("the first lines are delivered", 30, || delivered(&s3).lines() >= 200);
    s3.stop();
    writer.write(800).unwrap();
    wharf.wait_until("deliveries fail", 30, || place.metric_at_least("wharf_retries_total", 1.0));
    s3.restart().unwrap();
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= 1000);
    wharf.stop();
    delivered(&s3).assert_each_once(writer.names());
    delivered(&s3).assert_contiguous(0);
}

#[test]
fn somebody_elses_object_is_left_alone_and_the_batch_takes_the_next_number() {
    let s3 = s3();
    s3.place("logs", &format!("{PREFIX}1"), "somebody else's");
    let place = tail_place(&s3, 1, SMALL);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    let mut wharf = place.start().unwrap();
    write_in_steps(&mut writer, 10, 100, &mut wharf, &place);
    let ours = || {
        let mut all = s3.objects();
        all.retain(|object| object.body != "somebody else's");
        all.iter().map(|object| object.body.iter().filter(|byte| **byte == b'\n').count()).sum::<usize>()
    };
    wharf.wait_until("everything is delivered", 60, || ours() >= 1000);
    wharf.stop();
    let foreign = s3.object("logs", &format!("{PREFIX}1")).unwrap();
    assert_eq!(foreign.body, "somebody else's");
    assert_no_overwrites(&s3);
    let keys: Vec<String> = s3.objects().iter().map(|object| object.key.clone()).collect();
    assert!(keys.contains(&format!("{PREFIX}0")) && keys.contains(&format!("{PREFIX}2")), "{keys:?}");
    assert_eq!(ours(), 1000);
}

#[test]
fn an_error_inside_a_200_is_an_error() {
    for performed in [false, true] {
        let s3 = s3();
        let place = tail_place(&s3, 1, SMALL);
        let outputs = archive(1, "max_bytes: 11MB, max_age: 1h", &["multipart_threshold: 5MiB", "part_size: 5MiB"]);
        place.configure(&s3.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
        let mut writer = LogWriter::open(&place.log("app.log"), "a", 4000).unwrap();
        writer.write(3500).unwrap();
        let fault = Fault::ErrorInside200 { code: "InternalError", performed };
        let hits = s3.faults().add(Rule::on(Operation::CompleteMultipartUpload, fault).next(1));
        let mut wharf = place.start().unwrap();
        wharf.wait_until("a large batch is delivered", 60, || delivered(&s3).lines() > 0 && hits.count() > 0);
        wharf.stop();
        let all = delivered(&s3);
        all.assert_each_once(writer.names());
        all.assert_contiguous(0);
        assert!(all.objects.iter().any(|object| object.parts > 1), "no object came in parts");
        assert_no_overwrites(&s3);
        assert_eq!(s3.uploads().len(), 0, "an upload was left behind");
    }
}

#[test]
fn parts_that_fail_are_sent_again() {
    let s3 = s3();
    let place = tail_place(&s3, 1, SMALL);
    let outputs = archive(1, "max_bytes: 16MB, max_age: 1h", &["multipart_threshold: 5MiB", "part_size: 5MiB"]);
    place.configure(&s3.endpoint(), &format!("{}{outputs}", place.tail("app"))).unwrap();
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 4000).unwrap();
    writer.write(5000).unwrap();
    for rule in [
        Rule::on(Operation::CreateMultipartUpload, Fault::Error("SlowDown")).next(1),
        Rule::on(Operation::UploadPart, Fault::Error("InternalError")).nth(2),
        Rule::on(Operation::UploadPart, Fault::Reset { after: 1 << 20 }).nth(4),
        Rule::on(Operation::CompleteMultipartUpload, Fault::LoseReply).next(1),
    ] {
        s3.faults().add(rule);
    }
    let mut wharf = place.start().unwrap();
    wharf.wait_until("a large batch is delivered", 90, || delivered(&s3).lines() > 0);
    wharf.stop();
    let all = delivered(&s3);
    all.assert_each_once(writer.names());
    all.assert_contiguous(0);
    assert_no_overwrites(&s3);
    assert_eq!(s3.uploads().len(), 0, "an upload was left behind");
}
