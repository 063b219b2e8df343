//! How a record looks: `docs/sources.md` has the table.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::super::door::read;
use super::super::gather::{Gathered, Shape};
use super::super::http::Wire;
use super::support::*;
use crate::config::OtlpFormat;
use crate::source::room::Room;

pub(super) fn gathered(format: OtlpFormat, wire: Wire, request: &[u8]) -> Gathered {
    let shape = Shape { format, tag: "t".into(), tag_from: None, most_bytes: 1 << 20 };
    read(&shape, wire, None, request, 1 << 20, Room::new(1 << 24).hold()).unwrap().0
}

pub(super) fn lines(gathered: &Gathered) -> Vec<String> {
    let bodies = gathered.chunks.iter().flat_map(|chunk| {
        chunk.iter().map(|record| String::from_utf8(record.body.to_vec()).unwrap()).collect::<Vec<_>>()
    });
    bodies.collect()
}

fn written(format: OtlpFormat, record: LogRecord) -> String {
    let gathered = gathered(format, Wire::Protobuf, &request(vec![record]).encode_to_vec());
    assert_eq!(gathered.rejected, None);
    lines(&gathered).remove(0)
}

/// opentelemetry/proto/common/v1/common.proto, "AnyValue".
#[test]
fn every_type_of_value_has_its_json() {
    let array = ArrayValue { values: vec![AnyValue { value: Some(Value::IntValue(1)) }, AnyValue { value: None }] };
    let pairs = KeyValueList { values: vec![pair("k \"", text("v\n")), pair("none", None)] };
    for (value, plain, typed) in [
        (Value::StringValue("é\u{1}".into()), r#""é\u0001""#, r#"{"stringValue":"é\u0001"}"#),
        (Value::BoolValue(true), "true", r#"{"boolValue":true}"#),
        (Value::BoolValue(false), "false", r#"{"boolValue":false}"#),
        (Value::IntValue(i64::MIN), "-9223372036854775808", r#"{"intValue":"-9223372036854775808"}"#),
        (Value::IntValue(0), "0", r#"{"intValue":"0"}"#),
        (Value::DoubleValue(0.1), "0.1", r#"{"doubleValue":0.1}"#),
        (Value::DoubleValue(f64::NAN), r#""NaN""#, r#"{"doubleValue":"NaN"}"#),
        (Value::DoubleValue(f64::INFINITY), r#""Infinity""#, r#"{"doubleValue":"Infinity"}"#),
        (Value::DoubleValue(f64::NEG_INFINITY), r#""-Infinity""#, r#"{"doubleValue":"-Infinity"}"#),
        (Value::BytesValue(vec![255, 0, 1]), r#""/wAB""#, r#"{"bytesValue":"/wAB"}"#),
        (Value::ArrayValue(array), "[1,null]", r#"{"arrayValue":{"values":[{"intValue":"1"},{}]}}"#),
        (
            Value::KvlistValue(pairs),
            r#"{"k \"":"v\n","none":null}"#,
            r#"{"kvlistValue":{"values":[{"key":"k \"","value":{"stringValue":"v\n"}},{"key":"none"}]}}"#,
        ),
        (Value::StringValueStrindex(3), "null", "{}"),
    ] {
        let record = LogRecord { body: any(value), ..LogRecord::default() };
        assert_eq!(written(OtlpFormat::Json, record.clone()), format!("{{\"body\":{plain}}}"));
        let expected = format!("{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{typed}}}]}}]}}");
        assert_eq!(written(OtlpFormat::OtlpJson, record), expected);
    }
}

#[test]
fn every_field_of_a_record_its_resource_and_its_scope_is_there() {
    let record = LogRecord {
        time_unix_nano: 1_544_712_660_300_000_001,
        observed_time_unix_nano: 1_544_712_661_000_000_000,
        severity_number: 9,
        severity_text: "INFO".into(),
        body: text("hello"),
        attributes: vec![pair("a", any(Value::IntValue(1))), pair("a", any(Value::IntValue(2)))],
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: (1..=16).collect(),
        span_id: (1..=8).collect(),
        event_name: "login".into(),
    };
    let resource = Resource {
        attributes: vec![pair("service.name", text("shop"))],
        dropped_attributes_count: 1,
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "lib".into(),
        version: "1.0".into(),
        attributes: vec![pair("s", any(Value::BoolValue(true)))],
        dropped_attributes_count: 2,
    };
    let mut sent = request(vec![record]);
    sent.resource_logs[0].resource = Some(resource);
    sent.resource_logs[0].schema_url = "https://r".into();
    sent.resource_logs[0].scope_logs[0].scope = Some(scope);
    sent.resource_logs[0].scope_logs[0].schema_url = "https://s".into();
    let bytes = sent.encode_to_vec();
    let plain = gathered(OtlpFormat::Json, Wire::Protobuf, &bytes);
    assert_eq!(
        lines(&plain),
        [concat!(
            r#"{"time":"2018-12-13T14:51:00.300000001Z","observed_time":"2018-12-13T14:51:01.000000000Z","severity_number":9,"#,
            r#""severity_text":"INFO","body":"hello","attributes":{"a":1,"a":2},"dropped_attributes_count":3,"flags":1,"#,
            r#""trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"0102030405060708","event_name":"login","#,
            r#""resource":{"attributes":{"service.name":"shop"},"dropped_attributes_count":1,"schema_url":"https://r"},"#,
            r#""scope":{"name":"lib","version":"1.0","attributes":{"s":true},"dropped_attributes_count":2,"schema_url":"https://s"}}"#,
        )]
    );
    let times: Vec<_> = plain.chunks[0].iter().map(|record| record.time_ns).collect();
    assert_eq!(times, [1_544_712_660_300_000_001]);
    let typed = lines(&gathered(OtlpFormat::OtlpJson, Wire::Protobuf, &bytes)).remove(0);
    assert_eq!(
        typed,
        concat!(
            r#"{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}],"droppedAttributesCount":1},"#,
            r#""scopeLogs":[{"scope":{"name":"lib","version":"1.0","attributes":[{"key":"s","value":{"boolValue":true}}],"#,
            r#""droppedAttributesCount":2},"logRecords":[{"timeUnixNano":"1544712660300000001","observedTimeUnixNano":"1544712661000000000","#,
            r#""severityNumber":9,"severityText":"INFO","body":{"stringValue":"hello"},"attributes":[{"key":"a","value":{"intValue":"1"}},"#,
            r#"{"key":"a","value":{"intValue":"2"}}],"droppedAttributesCount":3,"flags":1,"traceId":"0102030405060708090a0b0c0d0e0f10","#,
            r#""spanId":"0102030405060708","eventName":"login"}],"schemaUrl":"https://s"}],"schemaUrl":"https://r"}"#,
        )
    );
    // It is the specification's JSON: another reader of it finds what was sent.
    let read: ResourceLogs = serde_json::from_str(&typed).unwrap();
    assert_eq!(read, sent.resource_logs[0]);
    // And so does ours.
    let again = format!("{{\"resourceLogs\":[{typed}]}}");
    assert_eq!(lines(&gathered(OtlpFormat::OtlpJson, Wire::Json, again.as_bytes())), [typed]);
}

/// opentelemetry/proto/logs/v1/logs.proto, "trace_id": "all-zeros" and other lengths are invalid; "Value of 0 indicates unknown or missing timestamp".
#[test]
fn what_says_nothing_is_left_out() {
    let empty =
        LogRecord { trace_id: vec![0; 16], span_id: vec![1; 4], time_unix_nano: u64::MAX, ..LogRecord::default() };
    assert_eq!(written(OtlpFormat::Json, empty), "{}");
    let observed = LogRecord { observed_time_unix_nano: 5, ..LogRecord::default() };
    let sent = request(vec![observed]).encode_to_vec();
    let times: Vec<_> =
        gathered(OtlpFormat::Json, Wire::Protobuf, &sent).chunks[0].iter().map(|record| record.time_ns).collect();
    assert_eq!(times, [5]);
}

#[test]
fn an_empty_request_is_no_record_and_no_fault() {
    for bytes in [vec![], request(vec![]).encode_to_vec()] {
        let gathered = gathered(OtlpFormat::Json, Wire::Protobuf, &bytes);
        assert!(gathered.chunks.is_empty() && gathered.rejected.is_none());
    }
    let none = ScopeLogs::default().encode_to_vec();
    assert!(none.is_empty());
}
