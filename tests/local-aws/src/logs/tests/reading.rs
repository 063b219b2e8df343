//! GetLogEvents and FilterLogEvents.

use serde_json::{Value, json};

use super::*;

fn messages(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["message"].as_str().unwrap()).collect()
}

fn numbered(count: usize, size: usize) -> Value {
    let message = |n: usize| format!("{n}{}", "x".repeat(size.saturating_sub(n.to_string().len())));
    let events = (0..count).map(|n| json!({ "timestamp": NOW + n as i64, "message": message(n) }));
    events.collect()
}

fn get(client: &Client, more: &Value) -> Value {
    let mut input = json!({ "logGroupName": "g", "logStreamName": "s" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.ok("GetLogEvents", &input)
}

#[test]
fn a_stream_is_read_by_pages_until_the_token_stays_the_same() {
    let (_logs, client) = server();
    client.ok("PutLogEvents", &put_of(&numbered(25, 1)));
    let mut read = Vec::new();
    let mut page = get(&client, &json!({ "startFromHead": true, "limit": 10 }));
    let mut pages = 1;
    loop {
        read.extend(messages(&page).into_iter().map(str::to_owned));
        let token = page["nextForwardToken"].clone();
        page = get(&client, &json!({ "startFromHead": true, "limit": 10, "nextToken": token }));
        if page["nextForwardToken"] == token {
            break;
        }
        pages += 1;
    }
    assert!(messages(&page).is_empty());
    assert_eq!(pages, 3);
    assert_eq!(read, (0..25).map(|n| n.to_string()).collect::<Vec<_>>());

    // What comes later is behind the same token.
    let end = page["nextForwardToken"].clone();
    client.ok("PutLogEvents", &put_of(&json!([{ "timestamp": NOW + 100, "message": "late" }])));
    assert_eq!(messages(&get(&client, &json!({ "startFromHead": true, "nextToken": end }))), ["late"]);
}

#[test]
fn a_stream_is_read_backwards_from_its_end() {
    let (_logs, client) = server();
    client.ok("PutLogEvents", &put_of(&numbered(25, 1)));
    let last = get(&client, &json!({ "limit": 3 }));
    assert_eq!(messages(&last), ["22", "23", "24"]);
    let before = get(&client, &json!({ "limit": 3, "nextToken": last["nextBackwardToken"] }));
    assert_eq!(messages(&before), ["19", "20", "21"]);
    let again = get(&client, &json!({ "limit": 3, "nextToken": before["nextForwardToken"] }));
    assert_eq!(messages(&again), ["22", "23", "24"]);
    let first = get(&client, &json!({ "startFromHead": true, "limit": 1 }));
    let nothing = get(&client, &json!({ "nextToken": first["nextBackwardToken"] }));
    assert!(messages(&nothing).is_empty());
    assert_eq!(nothing["nextBackwardToken"], first["nextBackwardToken"]);
}

#[test]
fn events_are_read_in_the_order_of_their_times_then_of_their_arrival() {
    let (_logs, client) = server();
    for (time, message) in [(2, "b1"), (1, "a"), (2, "b2"), (3, "c")] {
        client.ok("PutLogEvents", &put_of(&json!([{ "timestamp": NOW + time, "message": message }])));
    }
    assert_eq!(messages(&get(&client, &json!({}))), ["a", "b1", "b2", "c"]);
}

#[test]
fn a_page_holds_a_megabyte() {
    let (_logs, client) = server();
    // 3 x (400,000 + 26) is more, 2 x is not.
    for _ in 0..2 {
        client.ok("PutLogEvents", &put_of(&numbered(2, 400_000)));
    }
    assert_eq!(messages(&get(&client, &json!({ "startFromHead": true }))).len(), 2);
    let filtered = client.ok("FilterLogEvents", &json!({ "logGroupName": "g" }));
    assert_eq!(messages(&filtered).len(), 2);
    let rest = client.ok("FilterLogEvents", &json!({ "logGroupName": "g", "nextToken": filtered["nextToken"] }));
    assert_eq!(messages(&rest).len(), 2);
    assert!(rest.get("nextToken").is_none());
}

#[test]
fn a_page_holds_10000_events() {
    let (_logs, client) = server();
    client.ok("PutLogEvents", &put_of(&numbered(9_999, 1)));
    client.ok("PutLogEvents", &put_of(&numbered(2, 1)));
    assert_eq!(messages(&get(&client, &json!({ "startFromHead": true }))).len(), 10_000);
    for operation in ["GetLogEvents", "FilterLogEvents"] {
        let mut input = json!({ "logGroupName": "g", "limit": 10_001 });
        if operation == "GetLogEvents" {
            input["logStreamName"] = json!("s");
        }
        assert_eq!(client.code(operation, &input), "InvalidParameterException");
        input["limit"] = json!(10_000);
        assert_eq!(client.code(operation, &input), "ok");
    }
}

#[test]
fn the_end_of_a_range_is_outside_for_a_stream_and_inside_for_a_group() {
    let (_logs, client) = server();
    client.ok("PutLogEvents", &put_of(&numbered(5, 1)));
    let range = json!({ "startTime": NOW + 1, "endTime": NOW + 3 });
    assert_eq!(messages(&get(&client, &range)), ["1", "2"]);
    let input = json!({ "logGroupName": "g", "startTime": NOW + 1, "endTime": NOW + 3 });
    assert_eq!(messages(&client.ok("FilterLogEvents", &input)), ["1", "2", "3"]);
}

#[test]
fn a_group_is_filtered_over_its_streams_by_terms() {
    let (_logs, client) = server();
    for (stream, offset) in [("web-1", 0), ("web-2", 1), ("db", 2)] {
        client.ok("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": stream }));
        let events: Value = ["ERROR one", "info", "ERROR two"]
            .iter()
            .enumerate()
            .map(|(n, message)| json!({ "timestamp": NOW + 10 * n as i64 + offset, "message": format!("{message} {stream}") }))
            .collect();
        client.ok("PutLogEvents", &json!({ "logGroupName": "g", "logStreamName": stream, "logEvents": events }));
    }
    let filter = |more: Value| {
        let mut input = json!({ "logGroupIdentifier": "arn:aws:logs:us-east-1:123456789012:log-group:g" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.ok("FilterLogEvents", &input)
    };
    let errors = filter(json!({ "filterPattern": "ERROR", "logStreamNamePrefix": "web" }));
    assert_eq!(messages(&errors), ["ERROR one web-1", "ERROR one web-2", "ERROR two web-1", "ERROR two web-2"]);
    assert_eq!(errors["events"][1]["logStreamName"], "web-2");
    let page = filter(json!({ "filterPattern": "ERROR", "limit": 4 }));
    assert_eq!(messages(&page).len(), 4);
    let rest = filter(json!({ "filterPattern": "ERROR", "limit": 4, "nextToken": page["nextToken"] }));
    assert_eq!(messages(&rest), ["ERROR two web-2", "ERROR two db"]);
    assert!(rest.get("nextToken").is_none());
    assert_eq!(messages(&filter(json!({ "logStreamNames": ["db"], "filterPattern": "-ERROR" }))), ["info db"]);
    let both = json!({ "logGroupName": "g", "logStreamNames": ["db"], "logStreamNamePrefix": "d" });
    assert_eq!(client.code("FilterLogEvents", &both), "InvalidParameterException");
}

#[test]
fn a_token_that_was_never_given_is_refused() {
    let (_logs, client) = server();
    for token in ["x", "f/", "f/1", "z/00000000000000000000000000000000000000000000000000000000"] {
        let input = json!({ "logGroupName": "g", "logStreamName": "s", "nextToken": token });
        assert_eq!(client.code("GetLogEvents", &input), "InvalidParameterException", "{token}");
    }
    let input = json!({ "logGroupName": "g", "nextToken": "soon" });
    assert_eq!(client.code("FilterLogEvents", &input), "InvalidParameterException");
}
