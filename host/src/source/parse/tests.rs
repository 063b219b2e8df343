//! Lines, and what becomes of them.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::formats::{Parsed, Parser};
use super::*;
use crate::config::{ParseFormat, TimeFormat};
use crate::source::testing::FakeSink;

fn config(format: ParseFormat, time_key: Option<&str>, time_format: TimeFormat) -> ParseConfig {
    ParseConfig {
        format,
        time_key: time_key.map(str::to_owned),
        time_format,
        time_zone: TimeZone::UTC,
        keep_time_key: false,
    }
}

fn regex(pattern: &str) -> ParseFormat {
    ParseFormat::Regex(regex::bytes::Regex::new(pattern).unwrap())
}

fn parsed(config: &ParseConfig, line: &[u8]) -> (String, Parsed) {
    let mut out = Vec::new();
    let parsed = Parser::new(config).parse(line, &mut out);
    (String::from_utf8(out).unwrap(), parsed)
}

fn object(config: &ParseConfig, line: &str) -> String {
    let (text, parsed) = parsed(config, line.as_bytes());
    assert!(matches!(parsed, Parsed::Object(_)), "{line}: {parsed:?}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    text
}

fn is_text(config: &ParseConfig, line: &str) {
    assert_eq!(parsed(config, line.as_bytes()).1, Parsed::Text, "{line}");
}

#[test]
fn an_object_of_json_stays_as_it_is_written() {
    let json = config(ParseFormat::Json, None, TimeFormat::Auto);
    assert_eq!(object(&json, r#" {"b":1.0, "a":[1e40]} "#), r#"{"b":1.0, "a":[1e40]}"#);
    for line in ["", "x", "[1]", "1", "{\"a\":1} x", "{\"a\":", "{'a':1}"] {
        is_text(&json, line);
    }
    assert_eq!(parsed(&json, b"{\"a\":\"\xff\"}").1, Parsed::Text);
}

#[test]
fn the_key_of_the_time_leaves_the_record_or_stays() {
    let mut json = config(ParseFormat::Json, Some("ts"), TimeFormat::Auto);
    let line = br#"{"a":1,"ts":"2026-11-30T16:32:17.5Z","b":{"ts":2}}"#;
    let time = Parsed::Object(Some(1_796_056_337_500_000_000));
    assert_eq!(parsed(&json, line), (r#"{"a":1,"b":{"ts":2}}"#.to_owned(), time));
    json.keep_time_key = true;
    assert_eq!(parsed(&json, line), (String::from_utf8(line.to_vec()).unwrap(), time));
    assert_eq!(parsed(&json, b"{}"), ("{}".to_owned(), Parsed::Object(None)));
    assert_eq!(parsed(&json, br#"{"ts":"soon"}"#), (r#"{"ts":"soon"}"#.to_owned(), Parsed::Timeless));
    assert_eq!(parsed(&json, br#"{"ts":null}"#).1, Parsed::Timeless);
}

#[test]
fn times_are_read_by_their_format() {
    let epoch = |unit| TimeFormat::Epoch(unit);
    let pattern = |text: &str| TimeFormat::Pattern(text.to_owned());
    for (format, text, expected) in [
        (TimeFormat::Auto, "1796056337.123456789", Some(1_796_056_337_123_456_789)),
        (TimeFormat::Auto, "2026-11-30T17:32:17+01:00", Some(1_796_056_337_000_000_000)),
        (TimeFormat::Auto, "2026-11-30 16:32:17", Some(1_796_056_337_000_000_000)),
        (TimeFormat::Auto, "-1.5", Some(-1_500_000_000)),
        (TimeFormat::Auto, "1.796056337e9", Some(1_796_056_337_000_000_000)),
        (TimeFormat::Auto, "99999999999999", None),
        (TimeFormat::Auto, "x", None),
        (TimeFormat::Auto, "NaN", None),
        (epoch(1_000_000), "1796056337123", Some(1_796_056_337_123_000_000)),
        (epoch(1), "7", Some(7)),
        (pattern("%d/%b/%Y:%H:%M:%S %z"), "30/Nov/2026:17:32:17 +0100", Some(1_796_056_337_000_000_000)),
        (pattern("%Y-%m-%d %H:%M:%S%.f"), "2026-11-30 16:32:17.25", Some(1_796_056_337_250_000_000)),
        (pattern("%Y-%m-%d %H:%M:%S"), "2026-11-30", None),
    ] {
        assert_eq!(time::read(&format, &TimeZone::UTC, text), expected, "{format:?} {text}");
    }
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    assert_eq!(time::read(&TimeFormat::Auto, &berlin, "2026-11-30 17:32:17"), Some(1_796_056_337_000_000_000));
}

#[test]
fn named_groups_are_the_keys_of_a_regular_expression() {
    // A line of the common log format, from Apache's documentation.
    let format = regex(
        r#"^(?<host>\S+) \S+ (?<user>\S+) \[(?<time>[^\]]+)\] "(?<request>[^"]*)" (?<status>\d+) (?<size>\d+|-)(?<none>x)?$"#,
    );
    let config = config(format, Some("time"), TimeFormat::Pattern("%d/%b/%Y:%H:%M:%S %z".into()));
    let line = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    assert_eq!(
        parsed(&config, line.as_bytes()),
        (
            r#"{"host":"127.0.0.1","user":"frank","request":"GET /apache_pb.gif HTTP/1.0","status":"200","size":"2326"}"#.to_owned(),
            Parsed::Object(Some(971_211_336_000_000_000))
        )
    );
    is_text(&config, "something else");
}

#[test]
fn logfmt_has_bare_and_quoted_values_and_keys_alone() {
    let logfmt = config(ParseFormat::Logfmt, None, TimeFormat::Auto);
    // From https://brandur.org/logfmt.
    assert_eq!(
        object(&logfmt, r#"at=info method=GET path=/ host=mutelight.org fwd="124.133.52.161" status=200 bytes=1653"#),
        r#"{"at":"info","method":"GET","path":"/","host":"mutelight.org","fwd":"124.133.52.161","status":"200","bytes":"1653"}"#
    );
    assert_eq!(
        object(&logfmt, r#"a="x \"y\" \\ \n" b= c  d=e=f"#),
        r#"{"a":"x \"y\" \\ \n","b":"","c":true,"d":"e=f"}"#
    );
    for line in ["", "just words", "=x", "a=\"x", "a=\"x\"y", "\"a\"=1"] {
        is_text(&logfmt, line);
    }
}

/// kubelet, pkg/kubelet/kuberuntime/logs/logs.go, "parseCRILog": its examples.
#[test]
fn lines_of_container_runtimes_are_taken() {
    let cri = config(ParseFormat::Cri, Some("time"), TimeFormat::Auto);
    assert_eq!(
        parsed(&cri, b"2016-10-06T00:17:09.669794202Z stdout P log content 1"),
        (
            r#"{"stream":"stdout","logtag":"P","log":"log content 1"}"#.to_owned(),
            Parsed::Object(Some(1_475_713_029_669_794_202))
        )
    );
    assert_eq!(
        object(&cri, "2016-10-06T00:17:09.669794203Z stderr F "),
        r#"{"stream":"stderr","logtag":"F","log":""}"#
    );
    for line in ["", "2016-10-06T00:17:09Z stdin F x", "2016-10-06T00:17:09Z stdout X x", "a b"] {
        is_text(&cri, line);
    }
}

#[tokio::test]
async fn what_does_not_parse_goes_on_as_text_and_is_counted() {
    let fake = FakeSink::new();
    let config = config(ParseFormat::Json, Some("t"), TimeFormat::Epoch(1));
    let sink = Parsing::new("app".into(), Arc::new(config), false, Arc::new(fake.clone()));
    let mut chunk = ChunkBuilder::arrived(BodyKind::Text, "tag".into(), 5);
    for line in [&b"{\"t\":7,\"a\":1}"[..], b"plain", b"{\"t\":\"x\"}", b"{}"] {
        chunk.push(5, line);
    }
    let position = Position { source: "app".into(), key: "k".into(), value: vec![1] };
    chunk.position(position);
    sink.enqueue(chunk.finish().unwrap()).await.unwrap().await.unwrap();
    assert_eq!(fake.kinds(), [BodyKind::Json, BodyKind::Text]);
    assert_eq!(fake.lines(), ["{\"a\":1}", "{\"t\":\"x\"}", "{}", "plain"]);
    assert_eq!(fake.unparsed(), [("format", 1), ("time", 1)].into());
    let times: Vec<_> = fake.chunks()[0].iter().map(|record| record.time_ns).collect();
    assert_eq!(times, [7, 5, 5]);
    let positions: Vec<_> = fake.chunks().iter().map(|chunk| chunk.meta().positions.len()).collect();
    assert_eq!(positions, [0, 1], "the position is with the last chunk");
}

#[tokio::test]
async fn a_refusal_comes_through() {
    let fake = FakeSink::new();
    let config = config(ParseFormat::Json, None, TimeFormat::Auto);
    let sink = Parsing::new("app".into(), Arc::new(config), false, Arc::new(fake.clone()));
    let mut chunk = ChunkBuilder::new(BodyKind::Text, "tag".into());
    chunk.push(1, b"{}");
    let chunk = chunk.finish().unwrap();
    fake.refuse_next(Refused::Stopping);
    assert_eq!(sink.try_enqueue(chunk.clone()).unwrap().await.unwrap_err().reason(), "stopping");
    fake.refuse_next(Refused::Stopping);
    assert!(sink.enqueue(chunk).await.is_err());
    assert!(fake.lines().is_empty());
}

#[test]
fn what_is_parsed_takes_the_place_of_the_line_in_a_record_that_says_more() {
    let cri = config(ParseFormat::Cri, Some("time"), TimeFormat::Auto);
    let records = [
        r#"{"file":"/a\",\"log\":\"b","kubernetes":{"pod_name":"p"},"log":"2026-11-30T16:32:17.5Z stdout F say \"hi\""}"#,
        r#"{"file":"/a","log":"no such line"}"#,
        r#"{"log":"2026-11-30T16:32:17.5Z stderr F x"}"#,
    ];
    let mut builder = ChunkBuilder::new(BodyKind::Json, "t".into());
    for record in records {
        builder.push(7, record.as_bytes());
    }
    let split = parse(&cri, &builder.finish().unwrap());
    assert_eq!((split.chunks.len(), split.without_format, split.without_time), (1, 1, 0));
    let found: Vec<_> =
        split.chunks[0].iter().map(|it| (it.time_ns, String::from_utf8(it.body.to_vec()).unwrap())).collect();
    let time = 1_796_056_337_500_000_000;
    assert_eq!(found[1], (7, records[1].to_owned()));
    assert_eq!((found[0].0, found[2].0), (time, time));
    let read = |n: usize| serde_json::from_str::<serde_json::Value>(&found[n].1).unwrap();
    assert_eq!(read(0)["file"], r#"/a","log":"b"#);
    assert_eq!((&read(0)["kubernetes"]["pod_name"], &read(0)["log"]), (&"p".into(), &r#"say "hi""#.into()));
    assert_eq!((&read(2)["stream"], &read(2)["log"]), (&"stderr".into(), &"x".into()));
    // An object without keys, behind others and alone.
    let json = config(ParseFormat::Json, None, TimeFormat::Auto);
    let mut builder = ChunkBuilder::new(BodyKind::Json, "t".into());
    for record in [r#"{"file":"/a","log":"{}"}"#, r#"{"log":"{}"}"#] {
        builder.push(7, record.as_bytes());
    }
    let split = parse(&json, &builder.finish().unwrap());
    let bodies: Vec<&[u8]> = split.chunks[0].iter().map(|it| it.body).collect();
    assert_eq!(bodies, [&br#"{"file":"/a"}"#[..], b"{}"]);
}
