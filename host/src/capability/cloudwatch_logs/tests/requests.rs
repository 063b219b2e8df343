//! What arrives at the service, and what its answers become.

use axum::http::Method;

use super::*;
use crate::capability::bindings::cloudwatch_logs::{Entity, Piece};

fn piece(event: u32, offset: u32, length: u32, before: &str, after: &str) -> Piece {
    Piece { event, offset, length, before: before.into(), after: after.into() }
}

#[tokio::test]
async fn events_are_put_in_one_signed_request_as_the_service_documents_it() {
    let mut bench = Bench::new(|_| ok()).await;
    let events = bench.lines(&["first \"quoted\"\t\\", "zweite Zeile 😀", "\u{1b}[31m\0"]).await;
    let accepted = bench.put(&events, order(&[0, 1, 2])).await.unwrap();
    assert_eq!(
        (accepted.too_new_start, accepted.too_old_end, accepted.expired_end, accepted.rejected_entity),
        (None, None, None, None)
    );
    let seen = bench.only_request();
    assert_eq!((&seen.method, seen.uri.path()), (&Method::POST, "/"));
    assert_eq!(seen.header("x-amz-target"), Some("Logs_20140328.PutLogEvents"));
    assert_eq!(seen.header("content-type"), Some("application/x-amz-json-1.1"));
    assert_eq!(seen.header("content-length"), Some(seen.content.len().to_string().as_str()));
    assert_eq!(seen.header("x-amzn-logs-format"), None);
    assert_eq!(
        json(&seen),
        serde_json::json!({
            "logGroupName": "/app",
            "logStreamName": "host",
            "logEvents": [
                { "timestamp": 1, "message": "first \"quoted\"\t\\" },
                { "timestamp": 2, "message": "zweite Zeile 😀" },
                { "timestamp": 3, "message": "\u{1b}[31m\0" },
            ],
        })
    );
    assert!(signature::holds(&seen), "{seen:?}");
    let changed = Seen { content: seen.content.iter().rev().copied().collect(), ..seen };
    assert!(!signature::holds(&changed), "the content is no part of the signature");
}

#[tokio::test]
async fn format_and_entity_are_sent_and_signed() {
    let mut bench = Bench::new(|_| ok()).await;
    let events = bench.lines(&["{}"]).await;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let entity = Entity {
        key_attributes: vec![pair("Type", "Service"), pair("Name", "web \"1\"")],
        attributes: vec![pair("PlatformType", "Generic")],
    };
    bench.put(&events, Put { log_format: Some("json/emf".into()), entity: Some(entity), ..order(&[0]) }).await.unwrap();
    let seen = bench.only_request();
    assert_eq!(seen.header("x-amzn-logs-format"), Some("json/emf"));
    assert_eq!(
        json(&seen)["entity"],
        serde_json::json!({
            "keyAttributes": { "Type": "Service", "Name": "web \"1\"" },
            "attributes": { "PlatformType": "Generic" },
        })
    );
    assert!(signature::holds(&seen), "{seen:?}");
}

#[tokio::test]
async fn every_index_of_rejected_events_comes_back_and_why_an_entity_was_rejected() {
    let mut bench = Bench::new(|_| {
        answer(
            r#"{"rejectedLogEventsInfo":{"tooNewLogEventStartIndex":5,"tooOldLogEventEndIndex":2,"expiredLogEventEndIndex":1},
               "rejectedEntityInfo":{"errorType":"InvalidTypeValue"},"nextSequenceToken":"49"}"#,
        )
    })
    .await;
    let accepted = bench.put_one().await.unwrap();
    assert_eq!((accepted.too_new_start, accepted.too_old_end, accepted.expired_end), (Some(5), Some(2), Some(1)));
    assert_eq!(accepted.rejected_entity.as_deref(), Some("InvalidTypeValue"));

    let mut bench = Bench::new(|_| answer(r#"{"rejectedLogEventsInfo":{"tooNewLogEventStartIndex":0}}"#)).await;
    let accepted = bench.put_one().await.unwrap();
    assert_eq!((accepted.too_new_start, accepted.too_old_end, accepted.expired_end), (Some(0), None, None));
}

#[tokio::test]
async fn any_order_over_any_chunks_is_sent_as_it_is_asked_for() {
    let mut bench = Bench::new(|_| ok()).await;
    // Thirty chunks, more than are kept.
    let bodies: Vec<Vec<u8>> = (0..90).map(|n| format!("line {n}").into_bytes()).collect();
    let records: Vec<(i64, &[u8])> =
        (0..90).map(|n| (n * 1_000_000, bodies[usize::try_from(n).unwrap()].as_slice())).collect();
    let chunks: Vec<OfOneKind<'_>> = records.chunks(3).map(|three| (BodyKind::Text, three)).collect();
    let events = bench.events(Some("log"), &chunks).await;
    // 37 has no factor in common with 90, so that this goes through all of them once.
    let numbers: Vec<u32> = (0..90).map(|n| n * 37 % 90).collect();
    bench.put(&events, order(&numbers)).await.unwrap();
    let expected: Vec<_> = numbers.iter().map(|n| (i64::from(*n), format!("line {n}"))).collect();
    assert_eq!(sent(&bench.only_request()), expected);
}

#[tokio::test]
async fn a_selection_numbers_its_events_from_0() {
    let mut bench = Bench::new(|_| ok()).await;
    let records: [(i64, &[u8]); 5] =
        [(0, b"a"), (1_000_000, b"b"), (2_000_000, b"c"), (3_000_000, b"d"), (4_000_000, b"e")];
    for (select, expected) in
        [(Selection::All, "abcde"), (Selection::Range((1, 3)), "bcd"), (Selection::Indexes(vec![0, 3, 4]), "ade")]
    {
        let batch = bench.batch(&[(BodyKind::Text, &records[..2]), (BodyKind::Text, &records[2..])]).await;
        let events = bench.caller.prepare(batch, select, Some("log".into())).await.unwrap().unwrap();
        let count = bench.caller.count(borrow(&events)).await.unwrap();
        assert_eq!(count as usize, expected.len());
        bench.put(&events, order(&(0..count).collect::<Vec<_>>())).await.unwrap();
        let last = bench.requests().pop().unwrap();
        assert_eq!(sent(&last).into_iter().map(|(_, message)| message).collect::<String>(), expected);
        invalid(bench.put(&events, order(&[count])).await);
    }
    let batch = bench.batch(&[(BodyKind::Text, &records)]).await;
    let past = bench.caller.prepare(batch, Selection::Range((3, 3)), None).await.unwrap();
    assert!(matches!(past, Err(HostError::Invalid(_))));
}

#[tokio::test]
async fn pieces_are_sent_between_what_stands_before_and_behind_them() {
    let mut bench = Bench::new(|_| ok()).await;
    let events = bench.lines(&["0123456789", "a😀\"b"]).await;
    let pieces = vec![
        piece(0, 0, 4, "", "[cut]"),
        piece(0, 4, 6, "\"", ""),
        piece(1, 1, 4, "<", ">"),
        piece(1, 7, 0, "", "x"),
        piece(0, 9, 1, "", ""),
    ];
    bench.put(&events, Put { pieces, ..order(&[2, 3, 0, 4, 5, 1, 6]) }).await.unwrap();
    let expected =
        [(1, "0123[cut]"), (1, "\"456789"), (1, "0123456789"), (2, "<😀>"), (2, "x"), (2, "a😀\"b"), (1, "9")];
    let expected: Vec<_> = expected.iter().map(|(time, message)| (*time, (*message).to_owned())).collect();
    assert_eq!(sent(&bench.only_request()), expected);
}

#[tokio::test]
async fn what_cannot_be_sent_is_named_and_reaches_no_network() {
    let mut bench = Bench::new(|_| ok()).await;
    let events = bench.lines(&["0123456789", "a😀b"]).await;
    let with = |piece: Piece| Put { pieces: vec![piece], ..order(&[2]) };
    for (what, told) in [
        (order(&[]), "0 events"),
        (order(&[0; 10_001]), "10001 events"),
        (order(&[2]), "order names 2, and there are 2 events and behind them 0 pieces"),
        (order(&[u32::MAX]), "4294967295"),
        (with(piece(2, 0, 1, "", "")), "no event 2"),
        (with(piece(0, 0, 11, "", "")), "which has 10"),
        (with(piece(0, 11, 0, "", "")), "which has 10"),
        (with(piece(0, u32::MAX, u32::MAX, "", "")), "which has 10"),
        (with(piece(1, 2, 3, "", "")), "inside a character"),
        (with(piece(1, 0, 3, "", "")), "inside a character"),
        (Put { log_stream: "a:b".into(), ..order(&[0]) }, "log stream"),
        (Put { log_group: "a b".into(), ..order(&[0]) }, "log group"),
        (Put { log_format: Some("json\r\nx-y: z".into()), ..order(&[0]) }, "log-format"),
        (
            Put {
                entity: Some(Entity { key_attributes: vec![("k".into(), "v".repeat(40_000))], attributes: vec![] }),
                ..order(&[0])
            },
            "40001 bytes",
        ),
    ] {
        let text = invalid(bench.put(&events, what).await);
        assert!(text.contains(told), "{text} does not say {told}");
    }
    let none = bench.events(Some("no such key"), &[(BodyKind::Json, &[(0, b"{}")])]).await;
    assert!(invalid(bench.put(&none, order(&[0])).await).contains("event 0 has no message"));
    assert!(bench.requests().is_empty());
}

#[tokio::test]
async fn a_request_may_have_as_many_bytes_as_the_service_takes_and_not_one_more() {
    let mut bench = Bench::new(|_| ok()).await;
    // 1,048,576 with 26 bytes for each event, as AWS counts: two events leave 1,048,524. A NUL takes six bytes of JSON.
    let half = "\0".repeat(524_262);
    let events = bench.lines(&[&half, &half, ""]).await;
    bench.put(&events, order(&[0, 1])).await.unwrap();
    let seen = bench.only_request();
    assert_eq!(sent(&seen), [(1, half.clone()), (2, half)]);
    assert!(signature::holds(&seen));
    let text = invalid(bench.put(&events, order(&[0, 1, 2])).await);
    assert!(text.contains("1048602 bytes") && text.contains("1048576"), "{text}");
    let longer = Put { pieces: vec![piece(1, 0, 524_262, "", "x")], ..order(&[0, 3]) };
    assert!(invalid(bench.put(&events, longer).await).contains("1048577 bytes"));
}

#[tokio::test]
async fn groups_streams_and_retention_are_asked_for_by_their_documented_names() {
    let mut bench = Bench::new(|_| ok()).await;
    let tags = vec![("team".to_owned(), "a b".to_owned())];
    let class = Some("INFREQUENT_ACCESS".to_owned());
    bench.caller.create_log_group("/web/1".into(), class, tags, Some("key-1".into())).await.unwrap().unwrap();
    bench.caller.create_log_group("/app".into(), None, vec![], None).await.unwrap().unwrap();
    bench.caller.create_log_stream("/app".into(), "host/1".into()).await.unwrap().unwrap();
    bench.caller.put_retention_policy("/app".into(), 30).await.unwrap().unwrap();
    let expected = [
        (
            "CreateLogGroup",
            serde_json::json!({
                "logGroupName": "/web/1", "logGroupClass": "INFREQUENT_ACCESS", "tags": { "team": "a b" }, "kmsKeyId": "key-1"
            }),
        ),
        ("CreateLogGroup", serde_json::json!({ "logGroupName": "/app" })),
        ("CreateLogStream", serde_json::json!({ "logGroupName": "/app", "logStreamName": "host/1" })),
        ("PutRetentionPolicy", serde_json::json!({ "logGroupName": "/app", "retentionInDays": 30 })),
    ];
    let requests = bench.requests();
    assert_eq!(requests.len(), expected.len());
    for (seen, (operation, content)) in requests.iter().zip(expected) {
        assert_eq!(seen.header("x-amz-target"), Some(format!("Logs_20140328.{operation}").as_str()));
        assert_eq!(json(seen), content);
        assert!(signature::holds(seen));
    }
}

#[tokio::test]
async fn what_was_not_granted_never_reaches_the_network() {
    let mut bench = Bench::new(|_| ok()).await;
    let denied = |answer: &Result<(), Error>| matches!(answer, Err(Error::Host(HostError::Denied(_))));
    let events = bench.lines(&["line"]).await;
    for group in ["/apple", "/ap", "/web", "/other", "web/1"] {
        let put = bench.put(&events, Put { log_group: group.into(), ..order(&[0]) }).await.map(|_| ());
        assert!(denied(&put), "{group}: {put:?}");
        assert!(denied(&bench.caller.create_log_group(group.into(), None, vec![], None).await.unwrap()), "{group}");
        assert!(denied(&bench.caller.create_log_stream(group.into(), "s".into()).await.unwrap()), "{group}");
        assert!(denied(&bench.caller.put_retention_policy(group.into(), 1).await.unwrap()), "{group}");
    }
    bench.caller.phase = Phase::Configure;
    assert!(denied(&bench.put(&events, order(&[0])).await.map(|_| ())));
    assert!(bench.requests().is_empty());
}
