//! PutLogEvents.

use serde_json::{Value, json};

use super::*;
use crate::Operation;
use crate::logs::{Event, Undocumented};

const INVALID: &str = "InvalidParameterException";

#[test]
fn a_call_holds_1048576_bytes_with_26_for_each_event() {
    let (logs, client) = server();
    // 4 x (262,118 + 26) = 1,048,576
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[262_118; 4]))), "ok");
    let (_, code, message) = client.refused("PutLogEvents", &put_of(&sized(&[262_118, 262_118, 262_118, 262_119])));
    assert_eq!(code, INVALID);
    assert!(message.contains("1048577 bytes exceeds limit of 1048576"), "{message}");
    assert_eq!(logs.totals().calls, 1);
    assert_eq!(logs.totals().bytes, 1_048_576);
    assert!((logs.totals().fill() - 1.0).abs() < 1e-9);
}

#[test]
fn an_event_alone_holds_1048550_bytes() {
    let (_logs, client) = server();
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[1_048_550]))), "ok");
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[1_048_551]))), INVALID);
}

#[test]
fn bytes_are_those_of_utf_8() {
    let (logs, client) = server();
    let message = |times: usize| put_of(&json!([{ "timestamp": NOW, "message": "😀".repeat(times) }]));
    // (1,048,576 - 26) / 4 = 262,137.5
    assert_eq!(client.code("PutLogEvents", &message(262_137)), "ok");
    assert_eq!(client.code("PutLogEvents", &message(262_138)), INVALID);
    assert_eq!(logs.requests()[1].bytes, 262_137 * 4 + 26);
}

#[test]
fn the_limit_of_an_event_can_be_that_of_before_april_2025() {
    let undocumented = Undocumented { max_event_bytes: 262_144, ..Undocumented::default() };
    let (_logs, client) = server_with(Options { undocumented, ..Options::default() });
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[262_118]))), "ok");
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[262_119]))), INVALID);
}

#[test]
fn a_call_holds_1_to_10000_events() {
    let (logs, client) = server();
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[1; 10_000]))), "ok");
    assert_eq!(client.code("PutLogEvents", &put_of(&sized(&[1; 10_001]))), INVALID);
    assert_eq!(client.code("PutLogEvents", &put_of(&json!([]))), INVALID);
    let absent = json!({ "logGroupName": "g", "logStreamName": "s" });
    assert_eq!(client.code("PutLogEvents", &absent), INVALID);
    assert_eq!(logs.events("g", "s").len(), 10_000);
}

#[test]
fn a_message_has_a_character_and_a_time_is_not_negative() {
    let (_logs, client) = server();
    let event = |time: i64, message: &str| put_of(&json!([{ "timestamp": time, "message": message }]));
    assert_eq!(client.code("PutLogEvents", &event(NOW, "x")), "ok");
    assert_eq!(client.code("PutLogEvents", &event(NOW, "")), INVALID);
    // 1970 is too old, which is no error of the call.
    assert_eq!(client.code("PutLogEvents", &event(0, "x")), "ok");
    assert_eq!(client.code("PutLogEvents", &event(-1, "x")), INVALID);
    assert_eq!(client.code("PutLogEvents", &put_of(&json!([{ "timestamp": NOW }]))), INVALID);
    assert_eq!(client.code("PutLogEvents", &put_of(&json!([{ "message": "x" }]))), INVALID);
}

#[test]
fn events_are_in_the_order_of_their_times() {
    let (logs, client) = server();
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW - 1, NOW, NOW, NOW + 1]))), "ok");
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW, NOW - 1]))), INVALID);
    // Another call may be about earlier events.
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW - 2]))), "ok");
    let times: Vec<i64> = logs.events("g", "s").iter().map(|event| event.timestamp).collect();
    assert_eq!(times, [NOW - 1, NOW, NOW, NOW + 1, NOW - 2], "the direct view keeps the order of arrival");
}

#[test]
fn a_call_spans_24_hours() {
    let (_logs, client) = server();
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW - DAY, NOW]))), "ok");
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW - DAY - 1, NOW]))), INVALID);
}

#[test]
fn the_span_is_that_of_the_valid_events() {
    let (logs, client) = server();
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW - 20 * DAY, NOW, NOW + 3 * HOUR])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "tooOldLogEventEndIndex": 1, "tooNewLogEventStartIndex": 2 }));
    assert_eq!(logs.events("g", "s"), [Event { timestamp: NOW, message: format!("at {NOW}") }]);
}

#[test]
fn events_older_than_14_days_are_rejected_and_the_others_taken() {
    let (logs, client) = server();
    let oldest = NOW - 14 * DAY;
    let answer = client.ok("PutLogEvents", &put_of(&at(&[oldest - 2, oldest - 1, oldest, oldest + 1])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "tooOldLogEventEndIndex": 2 }), "one past the last");
    assert_eq!(logs.events("g", "s").len(), 2);
}

#[test]
fn events_more_than_2_hours_ahead_are_rejected_and_the_others_taken() {
    let (logs, client) = server();
    let last = NOW + 2 * HOUR;
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW, last, last + 1, last + 2])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "tooNewLogEventStartIndex": 2 }), "the first of them");
    assert_eq!(logs.events("g", "s").len(), 2);
}

#[test]
fn events_past_the_retention_are_rejected_and_the_others_taken() {
    let (logs, client) = server();
    client.ok("PutRetentionPolicy", &json!({ "logGroupName": "g", "retentionInDays": 3 }));
    let oldest = NOW - 3 * DAY;
    let answer = client.ok("PutLogEvents", &put_of(&at(&[oldest - 1, oldest])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "expiredLogEventEndIndex": 1 }));
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW - 15 * DAY, oldest - 1])));
    assert_eq!(
        answer["rejectedLogEventsInfo"],
        json!({ "tooOldLogEventEndIndex": 1, "expiredLogEventEndIndex": 2 }),
        "a call whose events are all rejected is none that fails"
    );
    client.ok("DeleteRetentionPolicy", &json!({ "logGroupName": "g" }));
    let answer = client.ok("PutLogEvents", &put_of(&at(&[oldest - 1])));
    assert_eq!(answer["rejectedLogEventsInfo"], Value::Null);
    assert_eq!(logs.events("g", "s").len(), 2);
}

#[test]
fn the_age_of_events_is_told_by_a_clock_that_can_be_moved() {
    let (logs, client) = server();
    logs.clock().advance(std::time::Duration::from_secs(15 * 86_400));
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "tooOldLogEventEndIndex": 1 }));
}

#[test]
fn what_aws_does_not_say_can_be_chosen() {
    let undocumented = Undocumented {
        existence_first: true,
        both_old_indexes: false,
        all_violations: false,
        ..Undocumented::default()
    };
    let (_logs, client) = server_with(Options { undocumented, ..Options::default() });
    client.ok("PutRetentionPolicy", &json!({ "logGroupName": "g", "retentionInDays": 3 }));
    let answer = client.ok("PutLogEvents", &put_of(&at(&[NOW - 15 * DAY, NOW - 4 * DAY])));
    assert_eq!(answer["rejectedLogEventsInfo"], json!({ "expiredLogEventEndIndex": 2 }));
    let mut put = put_of(&json!([{ "timestamp": -1, "message": "" }]));
    let (_, _, message) = client.refused("PutLogEvents", &put);
    assert!(message.starts_with("1 validation error detected"), "{message}");
    put["logStreamName"] = json!("missing");
    assert_eq!(client.code("PutLogEvents", &put), "ResourceNotFoundException");

    let (_logs, client) = server();
    assert_eq!(client.code("PutLogEvents", &put), INVALID);
    let (_, _, message) = client.refused("PutLogEvents", &put);
    assert!(message.starts_with("2 validation errors detected"), "{message}");
}

#[test]
fn a_sequence_token_is_ignored() {
    let (_logs, client) = server();
    let mut put = put_of(&at(&[NOW]));
    for token in ["1", "49590302938902343487", "stale"] {
        put["sequenceToken"] = json!(token);
        assert_eq!(client.code("PutLogEvents", &put), "ok");
    }
}

#[test]
fn group_and_stream_must_be_there() {
    let (_logs, client) = server();
    let put =
        |group: &str, stream: &str| json!({ "logGroupName": group, "logStreamName": stream, "logEvents": at(&[NOW]) });
    let (_, code, message) = client.refused("PutLogEvents", &put("g2", "s"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("ResourceNotFoundException", "The specified log group does not exist.")
    );
    let (_, code, message) = client.refused("PutLogEvents", &put("g", "s2"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("ResourceNotFoundException", "The specified log stream does not exist.")
    );
}

#[test]
fn what_aws_does_not_know_is_refused() {
    let (_logs, client) = server();
    for body in [
        r#"{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":1,"message":"x","level":"info"}]}"#,
        r#"{"logGroupName":"g","logStreamName":"s","logEvents":[],"dryRun":true}"#,
        r#"{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":"1","message":"x"}]}"#,
        r#"{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":1.5,"message":"x"}]}"#,
        r#"{"logGroupName":"g","#,
        "",
    ] {
        let (status, content) = client.call_text("PutLogEvents", body);
        assert_eq!((status, &content["__type"]), (400, &json!("SerializationException")), "{body}");
    }
    assert_eq!(client.code("PutLogEvent", &json!({})), "UnknownOperationException");
}

#[test]
fn messages_are_kept_as_they_were_sent() {
    let (logs, client) = server();
    let messages = ["plain", "\u{0}\u{1}\n\t\"\\/", "ü 😀 \u{2028}", "{\"a\": [1, null]}", " "];
    let events: Value = messages.iter().map(|message| json!({ "timestamp": NOW, "message": message })).collect();
    client.ok("PutLogEvents", &put_of(&events));
    let kept: Vec<String> = logs.events("g", "s").into_iter().map(|event| event.message).collect();
    assert_eq!(kept, messages);
    let read = client.ok("GetLogEvents", &json!({ "logGroupName": "g", "logStreamName": "s", "startFromHead": true }));
    let read: Vec<&str> = read["events"].as_array().unwrap().iter().map(|e| e["message"].as_str().unwrap()).collect();
    assert_eq!(read, messages);
}

#[test]
fn the_format_of_embedded_metrics_is_on_record() {
    let (logs, mut client) = server();
    client.headers.push(("x-amzn-logs-format".into(), "json/emf".into()));
    client.ok("PutLogEvents", &put_of(&at(&[NOW])));
    assert_eq!(logs.calls("g", "s")[0].log_format.as_deref(), Some("json/emf"));
}

#[test]
fn an_entity_that_is_wrong_is_named_and_the_events_are_taken() {
    let (logs, client) = server();
    let attributes =
        |count: usize| (0..count).map(|n| (format!("a{n}"), json!("x"))).collect::<serde_json::Map<_, _>>();
    let key = json!({ "Type": "Service", "Name": "shop", "Environment": "prod" });
    for (entity, error) in [
        (json!({ "keyAttributes": key, "attributes": attributes(10) }), None),
        (json!({ "keyAttributes": key, "attributes": attributes(11) }), Some("InvalidAttributes")),
        (json!({ "keyAttributes": key, "attributes": { "a": "x".repeat(512) } }), None),
        (json!({ "keyAttributes": key, "attributes": { "a": "x".repeat(513) } }), Some("InvalidAttributes")),
        (json!({ "keyAttributes": { "Type": "Service" } }), Some("InvalidKeyAttributes")),
        (json!({ "keyAttributes": { "Type": "Service", "Host": "a" } }), Some("InvalidKeyAttributes")),
        (
            json!({ "keyAttributes": { "Type": "Resource", "ResourceType": "a", "Identifier": "b", "Name": "c", "Environment": "d" } }),
            Some("InvalidKeyAttributes"),
        ),
        (json!({ "keyAttributes": { "Type": "Shop", "Name": "a" } }), Some("InvalidTypeValue")),
        (json!({ "keyAttributes": { "Identifier": "a", "Name": "a" } }), Some("MissingRequiredFields")),
        (json!({}), Some("MissingRequiredFields")),
    ] {
        let mut put = put_of(&at(&[NOW]));
        put["entity"] = entity.clone();
        let answer = client.ok("PutLogEvents", &put);
        assert_eq!(answer["rejectedEntityInfo"]["errorType"].as_str(), error, "{entity}");
        assert_eq!(logs.accepted().last().unwrap().entity.is_some(), error.is_none());
    }
    assert_eq!(logs.events("g", "s").len(), 10);
}

#[test]
fn more_calls_a_second_than_allowed_are_throttled() {
    let (logs, client) = server();
    // One at once, and the next in three hours.
    logs.set_rate(Operation::PutLogEvents, Some(0.0001));
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW]))), "ok");
    let (status, code, message) = client.refused("PutLogEvents", &put_of(&at(&[NOW])));
    assert_eq!((status, code.as_str(), message.as_str()), (400, "ThrottlingException", "Rate exceeded"));
    logs.set_rate(Operation::PutLogEvents, None);
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW]))), "ok");
}

#[test]
fn events_can_be_counted_and_dropped() {
    let (logs, client) = server_with(Options { discard: true, ..Options::default() });
    client.ok("PutLogEvents", &put_of(&sized(&[1; 5000])));
    client.ok("PutLogEvents", &put_of(&sized(&[1; 10_000])));
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW, NOW - 1]))), INVALID, "the rules hold all the same");
    let totals = logs.totals();
    assert_eq!((totals.calls, totals.events, totals.bytes), (2, 15_000, 15_000 * 27));
    assert!((totals.fill() - 0.75).abs() < 1e-9);
    assert_eq!(logs.groups()[0].streams[0].events, 15_000);
    assert!(logs.events("g", "s").is_empty());
}
