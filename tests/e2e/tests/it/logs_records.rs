//! What becomes of a record: which message is sent of it, and which records cannot be sent.

use serde_json::{Value, json};
use wharf_e2e::Logged;
use wharf_local_aws::logs::rules::{EVENT_OVERHEAD_BYTES, MAX_CALL_BYTES};

use crate::logs_support::{
    GROUP, MAKE_GROUPS, assert_no_rule_was_broken, counted, http_place, letters, live, logs, output, post,
    post_objects, wait_settled,
};

const TO_S: [&str; 3] = ["log_group_name: /e2e", "log_stream_name: s", MAKE_GROUPS];
/// The largest message: with its 26 bytes it fills a call.
const MOST: usize = MAX_CALL_BYTES - EVENT_OVERHEAD_BYTES;

fn to_s(more: &[&'static str]) -> Vec<&'static str> {
    TO_S.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_keys_value_is_sent_whatever_its_type_and_records_without_it_are_dead_letters() {
    let logs = logs();
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 50ms", &to_s(&["log_key: msg"])));
    // The middle column is what stands in the request, byte for byte.
    let body = r#"{"msg":"plain"}
{"msg":12.50}
{"msg":-1e3}
{"msg":true}
{"msg":false}
{"msg":null}
{"msg":{"b":1,"a":["x",null]}}
{"msg":["x",{"y":2}]}
{"msg":"NUL \u0000 quote \" slash \/ line\nend \ud83d\ude00"}
{"msg":"{\"a\":1}","other":1}
{"ms":"a shorter key","m":1}
{"msgs":"a longer key","msg ":2,"Msg":3}
{"inner":{"msg":"not at the top"}}
{}
{"msg":""}
"#;
    post(to, "application/x-ndjson", body.as_bytes());
    wait_settled(&mut wharf, &place, 15);
    assert_eq!(place.metric("wharf_delivered_records_total", &[]), Some(10.0));
    assert_eq!(place.metric("wharf_rejected_records_total", &["reason=\"rejected\""]), Some(5.0));
    wharf.stop();
    let expected = [
        "plain",
        "12.50",
        "-1e3",
        "true",
        "false",
        "null",
        r#"{"b":1,"a":["x",null]}"#,
        r#"["x",{"y":2}]"#,
        "NUL \0 quote \" slash / line\nend 😀",
        r#"{"a":1}"#,
    ];
    assert_eq!(Logged::of(&logs, GROUP).messages("s"), expected);
    let no_key = "the record has no key `msg`".to_owned();
    let expected: Vec<(String, String)> = [
        (r#"{"inner":{"msg":"not at the top"}}"#, no_key.clone()),
        (r#"{"ms":"a shorter key","m":1}"#, no_key.clone()),
        (r#"{"msg":""}"#, "the message is empty, and CloudWatch Logs takes none of no length".to_owned()),
        (r#"{"msgs":"a longer key","msg ":2,"Msg":3}"#, no_key.clone()),
        ("{}", no_key),
    ]
    .map(|(body, reason)| (body.to_owned(), reason))
    .to_vec();
    assert_eq!(letters(&place, "live"), expected);
    assert_no_rule_was_broken(&logs);
}

#[test]
fn lines_with_nul_and_without_utf_8_arrive_as_text_and_as_json() {
    let logs = logs();
    let outputs = format!(
        "{}{}",
        live(1, "max_age: 50ms", &to_s(&["log_key: log"])),
        output("whole", 1, "max_age: 50ms", &["log_group_name: /whole", "log_stream_name: s", MAKE_GROUPS])
    );
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &outputs);
    post(to, "text/plain", b"a\0b\n\xff\xfe\ncut \xf0\x9f\x98\n\t\"q\" \\ \xf0\x9f\x98\x80\n\x01\x7f\xc2\x85\n");
    wait_settled(&mut wharf, &place, 10);
    wharf.stop();
    let lines = ["a\0b", "\u{fffd}\u{fffd}", "cut \u{fffd}", "\t\"q\" \\ 😀", "\u{1}\u{7f}\u{85}"];
    assert_eq!(Logged::of(&logs, GROUP).messages("s"), lines);
    let whole = Logged::of(&logs, "/whole");
    let values: Vec<Value> = whole.messages("s").into_iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(values, lines.map(|line| json!({ "log": line })));
    assert_no_rule_was_broken(&logs);
}

#[test]
fn records_in_the_embedded_metric_format_are_sent_whole_and_announced() {
    let logs = logs();
    let outputs = format!(
        "{}{}",
        live(1, "max_age: 50ms", &to_s(&["log_format: json/emf"])),
        output("plain", 1, "max_age: 50ms", &["log_group_name: /plain", "log_stream_name: s", MAKE_GROUPS])
    );
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &outputs);
    // As in AWS's specification of the format.
    let record = r#"{"_aws":{"Timestamp":1574109732004,"CloudWatchMetrics":[{"Namespace":"lambda-function-metrics","Dimensions":[["functionVersion"]],"Metrics":[{"Name":"time","Unit":"Milliseconds","StorageResolution":60}]}]},"functionVersion":"$LATEST","time":100,"requestId":"989ffbf8-9ace-4817-a57c-e4dd734019ee"}"#;
    post(to, "application/json", record.as_bytes());
    wait_settled(&mut wharf, &place, 2);
    wharf.stop();
    for (group, format) in [(GROUP, Some("json/emf")), ("/plain", None)] {
        let calls = logs.calls(group, "s");
        assert_eq!(calls.iter().map(|call| call.log_format.as_deref()).collect::<Vec<_>>(), [format], "{group}");
        assert_eq!(Logged::of(&logs, group).messages("s"), [record]);
    }
    assert_no_rule_was_broken(&logs);
}

/// The three choices side by side, each in its own group: what they make of the same messages.
#[test]
fn a_message_at_the_limit_is_sent_whole_and_one_over_it_by_choice() {
    let logs = logs();
    let choices = ["split", "truncate", "dead_letter"];
    let mut outputs = "outputs:\n".to_owned();
    for choice in choices {
        let (group, oversized) = (format!("log_group_name: /{choice}"), format!("oversized: {choice}"));
        let name = choice.replace('_', "-");
        outputs += &output(
            &name,
            1,
            "max_age: 200ms",
            &[&group, "log_stream_name: s", MAKE_GROUPS, "log_key: log", &oversized],
        );
    }
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &outputs);
    let exact = "x".repeat(MOST);
    let over = format!("{}yz", "x".repeat(MOST - 1));
    assert_eq!((exact.len(), over.len()), (1_048_550, 1_048_551));
    // Four bytes each, behind three: no multiple of four is a place to cut.
    let wide = format!("abc{}", "😀".repeat(MOST / 4 + 50));
    let huge = "0123456789".repeat(250_000);
    // `before` and `after` show that what stands beside a large one is not harmed.
    let sent = ["before", &exact, &over, &wide, &huge, "after"];
    for message in sent {
        post_objects(to, &[json!({ "log": message })]);
    }
    wait_settled(&mut wharf, &place, 18);
    for (choice, output) in choices.map(|choice| (choice, format!("output=\"{}\"", choice.replace('_', "-")))) {
        assert_eq!(counted(&place, "oversized_records", &[&output, &format!("action=\"{choice}\"")]), 3, "{choice}");
        let rejected = if choice == "dead_letter" { 3.0 } else { 0.0 };
        assert_eq!(place.metric("wharf_rejected_records_total", &[&output]), Some(rejected), "{choice}");
    }
    wharf.stop();
    assert_no_rule_was_broken(&logs);

    let read = |choice: &str| Logged::of(&logs, &format!("/{choice}")).streams.remove("s").unwrap();
    let messages = |choice: &str| read(choice).into_iter().map(|event| event.message).collect::<Vec<_>>();

    assert_eq!(messages("dead_letter"), ["before", exact.as_str(), "after"]);
    let dead = letters(&place, "dead-letter");
    let bodies: Vec<Value> = dead.iter().map(|(body, _)| serde_json::from_str(body).unwrap()).collect();
    for message in [&over, &wide, &huge] {
        assert!(bodies.contains(&json!({ "log": message })), "a dead letter is not as it was sent");
    }
    let said = format!("the message has {} bytes, and CloudWatch Logs takes 1048550", over.len());
    assert!(
        dead.iter().any(|(_, reason)| *reason == said),
        "{:?}",
        dead.iter().map(|dead| &dead.1).collect::<Vec<_>>()
    );

    let truncated = messages("truncate");
    assert_eq!(truncated.len(), 6);
    for (message, whole) in truncated.iter().zip(sent) {
        if whole.len() <= MOST {
            assert_eq!(message, whole);
            continue;
        }
        let (kept, mark) = message.split_once(" [truncated: ").unwrap();
        assert!(whole.starts_with(kept));
        let cut = whole.len() - kept.len();
        assert_eq!(mark, format!("{cut} bytes cut off]"));
        // As much as goes in, but for the character at the cut, and for room for a longer number in the mark.
        let least = MOST - 3 - (whole.len().to_string().len() - cut.to_string().len());
        assert!((least..=MOST).contains(&message.len()), "{} bytes", message.len());
    }

    let split = messages("split");
    let mut rest = split.iter();
    for whole in sent {
        if whole.len() <= MOST {
            assert_eq!(rest.next().map(String::as_str), Some(whole));
            continue;
        }
        let of = whole.len().div_ceil(MOST - 11);
        let mut put_together = String::new();
        for part in 1..=of {
            let message = rest.next().unwrap();
            assert!(message.len() <= MOST, "{} bytes", message.len());
            put_together += message.strip_prefix(&format!("[part {part}/{of}] ")).unwrap();
        }
        assert!(put_together == whole, "the parts are not the whole");
    }
    assert_eq!(rest.next(), None);
    // 2,500,000 bytes are three parts, the others two; all of one record have one time.
    assert_eq!(split.len(), 3 + 2 + 2 + 3);
    let mut times: Vec<i64> = read("split").iter().map(|event| event.timestamp).collect();
    times.dedup();
    assert!(times.len() <= sent.len(), "parts of one record have several times");
}

#[test]
fn a_cut_lies_in_no_escape_of_a_whole_record() {
    let logs = logs();
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 200ms", &TO_S));
    let newlines = json!({ "log": "\n".repeat(MOST) }).to_string();
    let shifted = json!({ "og": "\n".repeat(MOST) }).to_string();
    let pairs = format!("{{\"log\":\"{}\"}}", r"\ud83d\ude00".repeat(MOST / 12 + 20));
    for record in [&newlines, &shifted, &pairs] {
        post(to, "application/json", record.as_bytes());
    }
    wait_settled(&mut wharf, &place, 3);
    wharf.stop();
    let parts: Vec<String> = Logged::of(&logs, GROUP)
        .messages("s")
        .into_iter()
        .map(|part| part.split_once("] ").unwrap().1.to_owned())
        .collect();
    assert!(parts.concat() == [newlines, shifted, pairs].concat(), "the parts are not the whole");
    for part in parts {
        let slashes = part.len() - part.trim_end_matches('\\').len();
        assert_eq!(slashes % 2, 0, "a part ends within an escape: {:?}", part.get(part.len() - 10..));
        assert!(!part.starts_with("\\ude00"), "a part begins within a pair");
    }
    assert_no_rule_was_broken(&logs);
}
