//! Faults on demand.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::{Fault, Operation, Reject, Rule, Vanish};

const PUT: Operation = Operation::PutLogEvents;

/// What a call with one fault in force gives, and the next one.
fn codes_with(fault: Fault) -> [String; 2] {
    let (logs, client) = server();
    logs.faults().add(Rule::on(PUT, fault).next(1));
    [(); 2].map(|()| client.code("PutLogEvents", &put_of(&at(&[NOW]))))
}

#[test]
fn errors_have_the_status_and_the_form_of_the_protocol() {
    for (code, status) in [
        ("ThrottlingException", 400),
        ("UnrecognizedClientException", 400),
        ("ExpiredTokenException", 400),
        ("AccessDeniedException", 400),
        ("ServiceUnavailableException", 503),
        ("InternalFailure", 500),
    ] {
        let (logs, client) = server();
        let hits = logs.faults().add(Rule::on(PUT, Fault::Error(code)).nth(2));
        client.ok("PutLogEvents", &put_of(&at(&[NOW])));
        let refused = client.refused("PutLogEvents", &put_of(&at(&[NOW])));
        assert_eq!((refused.0, refused.1.as_str()), (status, code));
        client.ok("PutLogEvents", &put_of(&at(&[NOW])));
        assert_eq!((hits.count(), logs.events("g", "s").len()), (1, 2), "nothing was stored by it");
        assert!(logs.refused().is_empty(), "a fault that was asked for is nobody's mistake");
    }
}

#[test]
fn a_stream_or_a_group_vanishes_in_mid_run() {
    for what in [Vanish::Stream, Vanish::Group] {
        let (logs, client) = server();
        client.ok("PutLogEvents", &put_of(&at(&[NOW])));
        logs.faults().add(Rule::on(PUT, Fault::Vanish(what)).next(1).key("g:s"));
        assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW]))), "ResourceNotFoundException");
        let again = client.code("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": "s" }));
        assert_eq!(again, if what == Vanish::Stream { "ok" } else { "ResourceNotFoundException" });
        assert_eq!(logs.accepted().len(), 1);
    }
}

#[test]
fn a_reply_can_be_lost_after_the_events_were_stored() {
    let (logs, client) = server();
    logs.faults().add(Rule::on(PUT, Fault::LoseReply).next(1));
    assert!(client.raw("PutLogEvents", &put_of(&at(&[NOW])).to_string()).is_ok_and(|answer| answer.is_empty()));
    client.ok("PutLogEvents", &put_of(&at(&[NOW])));
    assert_eq!(logs.events("g", "s").len(), 2, "twice, which is what a client makes of it that sends again");
    assert_eq!(logs.requests()[1].status, None);
}

#[test]
fn a_reply_can_end_before_its_length() {
    let (logs, client) = server();
    logs.faults().add(Rule::on(PUT, Fault::PartialReply { bytes: 10 }).next(1));
    let answer = client.raw("PutLogEvents", &put_of(&at(&[NOW])).to_string()).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.len() <= 10 && body.len() < length, "{} of {length}", body.len());
    assert_eq!(logs.events("g", "s").len(), 1);
}

#[test]
fn a_connection_can_be_reset_with_nothing_done() {
    let (logs, client) = server();
    logs.faults().add(Rule::on(PUT, Fault::Reset { after: 100_000 }).next(1));
    let put = put_of(&sized(&[1_000_000])).to_string();
    assert!(client.raw("PutLogEvents", &put).is_err(), "a reset is an error, where an orderly end is none");
    assert!(logs.events("g", "s").is_empty());
    client.ok("PutLogEvents", &put_of(&sized(&[1_000_000])));
    assert_eq!(logs.events("g", "s").len(), 1);
}

#[test]
fn faults_can_be_for_one_stream_before_and_after_the_body_is_read() {
    let (logs, client) = server();
    logs.faults().add(Rule::on(PUT, Fault::EarlyError("ThrottlingException")).key("other"));
    logs.faults().add(Rule::on(PUT, Fault::EarlyError("ServiceUnavailableException")).nth(2));
    let codes = [(); 3].map(|()| client.code("PutLogEvents", &put_of(&at(&[NOW]))));
    assert_eq!(codes, ["ok", "ServiceUnavailableException", "ok"]);
    assert_eq!(logs.events("g", "s").len(), 2);
}

#[test]
fn creating_a_stream_can_be_slow() {
    let (logs, client) = server();
    let wait = Duration::from_millis(80);
    logs.faults().add(Rule::on(Operation::CreateLogStream, Fault::Stall(wait)).key("g:slow"));
    let create = |name: &str| client.ok("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": name }));
    let began = Instant::now();
    create("slow");
    assert!(began.elapsed() >= wait, "a stall is at least as long as it was asked to be");
    assert_eq!(logs.groups()[0].streams.len(), 2);
}

#[test]
fn events_can_be_rejected_on_demand() {
    let (logs, client) = server();
    let reject = Reject { too_old: 1, expired: 2, too_new: 1, entity: Some("EntitySizeTooLarge") };
    logs.faults().add(Rule::on(PUT, Fault::Reject(reject)).next(1));
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW, NOW + 1, NOW + 2, NOW + 3])));
    assert_eq!(
        answer["rejectedLogEventsInfo"],
        json!({ "tooOldLogEventEndIndex": 1, "expiredLogEventEndIndex": 2, "tooNewLogEventStartIndex": 3 })
    );
    assert_eq!(answer["rejectedEntityInfo"]["errorType"], "EntitySizeTooLarge");
    let kept: Vec<i64> = logs.events("g", "s").iter().map(|event| event.timestamp).collect();
    assert_eq!(kept, [NOW + 2]);
}

#[test]
fn a_fault_for_the_next_call_leaves_the_one_after_alone() {
    assert_eq!(codes_with(Fault::Error("ThrottlingException")), ["ThrottlingException", "ok"]);
    assert_eq!(codes_with(Fault::Stall(Duration::from_millis(1))), ["ok", "ok"]);
}

#[test]
fn the_server_comes_back_on_its_port_with_what_it_had() {
    let (mut logs, client) = server();
    client.ok("PutLogEvents", &put_of(&at(&[NOW])));
    let endpoint = logs.endpoint();
    logs.stop();
    assert!(client.raw("PutLogEvents", "{}").is_err());
    logs.restart().unwrap();
    assert_eq!(logs.endpoint(), endpoint);
    client.ok("PutLogEvents", &put_of(&at(&[NOW + 1])));
    assert_eq!(logs.events("g", "s").len(), 2);
}
