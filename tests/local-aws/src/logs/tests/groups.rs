//! Groups, streams, retention, tags.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

const INVALID: &str = "InvalidParameterException";
const THERE: &str = "ResourceAlreadyExistsException";
const GONE: &str = "ResourceNotFoundException";

#[test]
fn names_of_groups_are_what_the_guidelines_say() {
    let (_logs, client) = server();
    let longest = "a".repeat(512);
    for (name, code) in [
        ("/aws/lambda/x", "ok"),
        ("a.b-c_d/e#F0", "ok"),
        (longest.as_str(), "ok"),
        (&format!("{longest}a"), INVALID),
        ("", INVALID),
        ("a b", INVALID),
        ("a:b", INVALID),
        ("ü", INVALID),
        ("aws/x", INVALID),
    ] {
        assert_eq!(client.code("CreateLogGroup", &json!({ "logGroupName": name })), code, "{name}");
    }
    assert_eq!(client.code("CreateLogGroup", &json!({})), INVALID);
    assert_eq!(client.code("CreateLogGroup", &json!({ "logGroupName": "a.b-c_d/e#F0" })), THERE);
}

#[test]
fn names_of_streams_are_what_the_guidelines_say() {
    let (_logs, client) = server();
    let longest = "ü".repeat(512);
    for (name, code) in [
        ("host ü/[1] {$x}", "ok"),
        (longest.as_str(), "ok"),
        (&format!("{longest}a"), INVALID),
        ("", INVALID),
        ("a:b", INVALID),
        ("a*", INVALID),
    ] {
        let input = json!({ "logGroupName": "g", "logStreamName": name });
        assert_eq!(client.code("CreateLogStream", &input), code, "{name}");
    }
    assert_eq!(client.code("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": "s" })), THERE);
    assert_eq!(client.code("CreateLogStream", &json!({ "logGroupName": "g2", "logStreamName": "s" })), GONE);
}

#[test]
fn a_group_has_one_of_four_classes_and_keeps_what_it_was_made_with() {
    let (logs, client) = server();
    for class in ["STANDARD", "INFREQUENT_ACCESS", "DELIVERY", "ESSENTIALS"] {
        let input =
            json!({ "logGroupName": class, "logGroupClass": class, "kmsKeyId": "k", "tags": { "team": "a b" } });
        client.ok("CreateLogGroup", &input);
        let group = logs.groups().into_iter().find(|group| group.name == class).unwrap();
        assert_eq!((group.class.as_str(), group.kms_key_id.as_deref()), (class, Some("k")));
        assert_eq!(group.tags, BTreeMap::from([("team".into(), "a b".into())]));
    }
    assert_eq!(client.code("CreateLogGroup", &json!({ "logGroupName": "x", "logGroupClass": "CHEAP" })), INVALID);
    assert_eq!(logs.groups().last().unwrap().name, "g", "nothing was made");
    let listed = client.ok("DescribeLogGroups", &json!({ "logGroupClass": "ESSENTIALS" }));
    let arn = "arn:aws:logs:us-east-1:123456789012:log-group:ESSENTIALS";
    assert_eq!(listed["logGroups"][0]["logGroupArn"], arn);
    assert_eq!(listed["logGroups"][0]["arn"], format!("{arn}:*"));
    assert_eq!(listed["logGroups"].as_array().unwrap().len(), 1);
}

#[test]
fn retention_is_one_of_the_days_that_there_are() {
    let (logs, client) = server();
    // https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
    let days =
        [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653];
    let put = |group: &str, days: i64| json!({ "logGroupName": group, "retentionInDays": days });
    for days in days {
        client.ok("PutRetentionPolicy", &put("g", days));
        assert_eq!(logs.groups()[0].retention_days, Some(days));
    }
    for wrong in [-1, 0, 2, 10, 31, 366, 3654] {
        assert_eq!(client.code("PutRetentionPolicy", &put("g", wrong)), INVALID, "{wrong}");
    }
    assert_eq!(client.code("PutRetentionPolicy", &put("g2", 7)), GONE);
    assert_eq!(client.code("PutRetentionPolicy", &json!({ "logGroupName": "g" })), INVALID);
    client.ok("DeleteRetentionPolicy", &json!({ "logGroupName": "g" }));
    assert_eq!(logs.groups()[0].retention_days, None);
}

#[test]
fn tags_are_added_replaced_and_taken_away() {
    let (_logs, client) = server();
    let arn = "arn:aws:logs:us-east-1:123456789012:log-group:g";
    let list = || client.ok("ListTagsForResource", &json!({ "resourceArn": arn }))["tags"].clone();
    client.ok("TagResource", &json!({ "resourceArn": arn, "tags": { "a": "1", "b": "2" } }));
    client.ok("TagResource", &json!({ "resourceArn": arn, "tags": { "b": "3", "c": "" } }));
    assert_eq!(list(), json!({ "a": "1", "b": "3", "c": "" }));
    client.ok("UntagResource", &json!({ "resourceArn": arn, "tagKeys": ["a", "z"] }));
    assert_eq!(list(), json!({ "b": "3", "c": "" }));
    assert_eq!(client.ok("ListTagsLogGroup", &json!({ "logGroupName": "g" }))["tags"], list());

    let tags = |count: usize| (0..count).map(|n| (format!("t{n}"), json!("x"))).collect::<serde_json::Map<_, _>>();
    let tag = |tags: serde_json::Value| client.code("TagResource", &json!({ "resourceArn": arn, "tags": tags }));
    assert_eq!(tag(json!(tags(48))), "ok", "50 in all");
    assert_eq!(tag(json!({ "one": "more" })), "TooManyTagsException");
    assert_eq!(tag(json!(tags(51))), INVALID);
    assert_eq!(tag(json!({})), INVALID);
    assert_eq!(tag(json!({ "t0": "x".repeat(256) })), "ok");
    assert_eq!(tag(json!({ "t0": "x".repeat(257) })), INVALID);
    assert_eq!(tag(json!({ "k".repeat(129): "x" })), INVALID);
    assert_eq!(tag(json!({ "t0": "a&b" })), INVALID);
    assert_eq!(tag(json!({ "aws:x": "y" })), INVALID);
    let with_star = json!({ "resourceArn": format!("{arn}:*") });
    assert_eq!(client.code("ListTagsForResource", &with_star), INVALID, "tagging knows ARNs without :* only");
    assert_eq!(client.code("ListTagsForResource", &json!({ "resourceArn": arn.replace(":g", ":g2") })), GONE);
}

#[test]
fn what_is_deleted_is_gone_and_can_be_made_again() {
    let (logs, client) = server();
    client.ok("PutLogEvents", &put_of(&at(&[NOW])));
    let stream = json!({ "logGroupName": "g", "logStreamName": "s" });
    client.ok("DeleteLogStream", &stream);
    assert_eq!(client.code("DeleteLogStream", &stream), GONE);
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW]))), GONE);
    client.ok("CreateLogStream", &stream);
    assert!(logs.events("g", "s").is_empty());
    assert_eq!(logs.accepted().len(), 1, "what was accepted once stays on record");
    client.ok("DeleteLogGroup", &json!({ "logGroupName": "g" }));
    assert_eq!(client.code("DeleteLogGroup", &json!({ "logGroupName": "g" })), GONE);
    client.ok("CreateLogGroup", &json!({ "logGroupName": "g", "deletionProtectionEnabled": true }));
    assert_eq!(client.code("DeleteLogGroup", &json!({ "logGroupName": "g" })), "ValidationException");
}

#[test]
fn there_are_only_so_many_groups() {
    let (_logs, client) = server_with(Options { max_groups: 2, ..Options::default() });
    assert_eq!(client.code("CreateLogGroup", &json!({ "logGroupName": "second" })), "ok");
    assert_eq!(client.code("CreateLogGroup", &json!({ "logGroupName": "third" })), "LimitExceededException");
}

#[test]
fn groups_are_listed_by_pages_of_50() {
    let (logs, client) = server();
    for number in 0..60 {
        logs.place_group(&format!("many/{number:02}")).unwrap();
    }
    let page = client.ok("DescribeLogGroups", &json!({ "logGroupNamePrefix": "many/" }));
    assert_eq!(page["logGroups"].as_array().unwrap().len(), 50);
    let rest =
        client.ok("DescribeLogGroups", &json!({ "logGroupNamePrefix": "many/", "nextToken": page["nextToken"] }));
    assert_eq!(rest["logGroups"].as_array().unwrap().len(), 10);
    assert_eq!(rest["logGroups"][0]["logGroupName"], "many/50");
    assert!(rest.get("nextToken").is_none());
    assert_eq!(client.code("DescribeLogGroups", &json!({ "limit": 50 })), "ok");
    assert_eq!(client.code("DescribeLogGroups", &json!({ "limit": 51 })), INVALID);
    assert_eq!(client.code("DescribeLogGroups", &json!({ "limit": 0 })), INVALID);
    let both = json!({ "logGroupNamePrefix": "many/", "logGroupNamePattern": "any" });
    assert_eq!(client.code("DescribeLogGroups", &both), INVALID);
    let pattern = client.ok("DescribeLogGroups", &json!({ "logGroupNamePattern": "y/0" }));
    assert_eq!(pattern["logGroups"].as_array().unwrap().len(), 10);
}

#[test]
fn streams_are_listed_by_name_or_by_their_last_event() {
    let (_logs, client) = server();
    for (stream, time) in [("s2", NOW - 5), ("s1", NOW + 5)] {
        client.ok("CreateLogStream", &json!({ "logGroupName": "g", "logStreamName": stream }));
        let put = json!({ "logGroupName": "g", "logStreamName": stream, "logEvents": at(&[time - 1, time]) });
        client.ok("PutLogEvents", &put);
    }
    let names = |more: serde_json::Value| {
        let mut input = json!({ "logGroupName": "g" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let listed = client.ok("DescribeLogStreams", &input);
        let streams = listed["logStreams"].as_array().unwrap().iter();
        (streams.map(|s| s["logStreamName"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), listed)
    };
    assert_eq!(names(json!({})).0, ["s", "s1", "s2"]);
    assert_eq!(names(json!({ "orderBy": "LastEventTime", "descending": true })).0, ["s1", "s2", "s"]);
    let (page, listed) = names(json!({ "limit": 2 }));
    assert_eq!(page, ["s", "s1"]);
    let (page, listed) = names(json!({ "limit": 2, "nextToken": listed["nextToken"] }));
    assert_eq!(page, ["s2"]);
    assert!(listed.get("nextToken").is_none());
    let described = &listed["logStreams"][0];
    assert_eq!(
        (&described["firstEventTimestamp"], &described["lastEventTimestamp"]),
        (&json!(NOW - 6), &json!(NOW - 5))
    );
    assert_eq!(described["storedBytes"], 0);

    let by_time = json!({ "logGroupName": "g", "logStreamNamePrefix": "s", "orderBy": "LastEventTime" });
    assert_eq!(client.code("DescribeLogStreams", &by_time), INVALID);
    assert_eq!(client.code("DescribeLogStreams", &json!({ "logGroupName": "g", "limit": 51 })), INVALID);
    assert_eq!(client.code("DescribeLogStreams", &json!({ "logGroupName": "g2" })), GONE);
    assert_eq!(client.code("DescribeLogStreams", &json!({})), INVALID);
}
