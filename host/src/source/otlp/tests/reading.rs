//! Requests that are odd, and how much of them is taken.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;

use super::super::denied::Denied;
use super::super::door::read;
use super::super::gather::{Gathered, Shape};
use super::super::http::Wire;
use super::mapping::{gathered, lines};
use super::support::*;
use crate::config::OtlpFormat;
use crate::source::room::Room;

fn json(records: &str) -> Gathered {
    let request = format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{records}]}}]}}]}}");
    gathered(OtlpFormat::Json, Wire::Json, request.as_bytes())
}

fn one(record: &str) -> String {
    let gathered = json(record);
    assert_eq!(gathered.rejected, None);
    lines(&gathered).remove(0)
}

fn denied(wire: Wire, request: &[u8]) -> Denied {
    let shape = Shape { format: OtlpFormat::Json, tag: "t".into(), tag_from: None, most_bytes: 1 << 20 };
    read(&shape, wire, None, request, 1 << 20, Room::new(1 << 24).hold()).unwrap_err()
}

/// opentelemetry-proto, examples/logs.json.
#[test]
fn the_example_of_the_specification_is_taken() {
    let example = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"my.service"}}]},
        "scopeLogs":[{"scope":{"name":"my.library","version":"1.0.0","attributes":[{"key":"my.scope.attribute","value":{"stringValue":"some scope attribute"}}]},
        "logRecords":[{"timeUnixNano":"1544712660300000000","observedTimeUnixNano":"1544712660300000000","severityNumber":10,"severityText":"Information",
        "traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","body":{"stringValue":"Example log record"},"attributes":[
        {"key":"string.attribute","value":{"stringValue":"some string"}},{"key":"boolean.attribute","value":{"boolValue":true}},
        {"key":"int.attribute","value":{"intValue":"10"}},{"key":"double.attribute","value":{"doubleValue":637.704}},
        {"key":"array.attribute","value":{"arrayValue":{"values":[{"stringValue":"many"},{"stringValue":"values"}]}}},
        {"key":"map.attribute","value":{"kvlistValue":{"values":[{"key":"some.map.key","value":{"stringValue":"some value"}}]}}}]}]}]}]}"#;
    assert_eq!(
        lines(&gathered(OtlpFormat::Json, Wire::Json, example.as_bytes())),
        [concat!(
            r#"{"time":"2018-12-13T14:51:00.300000000Z","observed_time":"2018-12-13T14:51:00.300000000Z","severity_number":10,"#,
            r#""severity_text":"Information","body":"Example log record","attributes":{"string.attribute":"some string","#,
            r#""boolean.attribute":true,"int.attribute":10,"double.attribute":637.704,"array.attribute":["many","values"],"#,
            r#""map.attribute":{"some.map.key":"some value"}},"trace_id":"5b8efff798038103d269b633813fc60c","span_id":"eee19b7ec3c1b174","#,
            r#""resource":{"attributes":{"service.name":"my.service"}},"#,
            r#""scope":{"name":"my.library","version":"1.0.0","attributes":{"my.scope.attribute":"some scope attribute"}}}"#,
        )]
    );
}

/// "JSON Protobuf Encoding": "receivers MUST ignore unknown fields"; integers of 64 bits are strings or numbers; JSON of Protocol Buffers: null is the
/// default, bytes are base64 of either alphabet, numbers may be strings.
#[test]
fn json_is_read_as_widely_as_the_specification_has_it() {
    assert_eq!(one(r#"{"body":{"stringValue":"x","new":[1]},"new":{"a":null}}"#), r#"{"body":"x"}"#);
    assert_eq!(one(r#"{"timeUnixNano":1}"#), r#"{"time":"1970-01-01T00:00:00.000000001Z"}"#);
    assert_eq!(
        one(r#"{"timeUnixNano":"1","severityText":null,"body":null,"attributes":null}"#),
        r#"{"time":"1970-01-01T00:00:00.000000001Z"}"#
    );
    assert_eq!(one(r#"{"body":{"intValue":-7}}"#), r#"{"body":-7}"#);
    assert_eq!(one(r#"{"body":{"intValue":1e3}}"#), r#"{"body":1000}"#);
    assert_eq!(one(r#"{"body":{"doubleValue":"-Infinity"}}"#), r#"{"body":"-Infinity"}"#);
    assert_eq!(one(r#"{"body":{"doubleValue":3}}"#), r#"{"body":3.0}"#);
    assert_eq!(one(r#"{"body":{"bytesValue":"_wAB"}}"#), r#"{"body":"/wAB"}"#);
    assert_eq!(one(r#"{"body":{"bytesValue":"/w"}}"#), r#"{"body":"/w=="}"#);
    assert_eq!(one(r#"{"body":{}}"#), r#"{"body":null}"#);
    assert_eq!(one(r#"{"body":{"arrayValue":{}}}"#), r#"{"body":[]}"#);
    assert_eq!(one(r#"{"attributes":[{"key":"k"}]}"#), r#"{"attributes":{"k":null}}"#);
}

/// "Partial Success": what is taken is taken, and how many are not is told.
#[test]
fn a_record_that_is_none_costs_only_itself() {
    let deep = format!("{{\"body\":{}{}}}", "{\"arrayValue\":{\"values\":[".repeat(60), "]}}".repeat(60));
    for bad in [
        "3",
        r#"{"timeUnixNano":"x"}"#,
        r#"{"timeUnixNano":-1}"#,
        r#"{"severityNumber":"SEVERITY_NUMBER_INFO"}"#,
        r#"{"severityNumber":3000000000}"#,
        r#"{"traceId":"5g"}"#,
        r#"{"body":"text"}"#,
        r#"{"body":{"intValue":1.5}}"#,
        r#"{"body":{"intValue":"9223372036854775808"}}"#,
        r#"{"body":{"doubleValue":"1x"}}"#,
        r#"{"body":{"bytesValue":"!"}}"#,
        &deep,
    ] {
        let gathered = json(&format!(r#"{{"body":{{"stringValue":"a"}}}},{bad},{{"body":{{"stringValue":"b"}}}}"#));
        assert_eq!(lines(&gathered), [r#"{"body":"a"}"#, r#"{"body":"b"}"#], "{bad}");
        let rejected = gathered.rejected.unwrap();
        assert_eq!(rejected.records, 1, "{bad}");
        assert!(rejected.message().starts_with("record 2 is not taken: "), "{}", rejected.message());
    }
}

#[test]
fn what_is_wrong_with_a_record_is_said_with_its_field() {
    for (bad, why) in [
        (r#"{"traceId":"zz"}"#, "record 1 is not taken: traceId: \"zz\" is no id in hex"),
        (
            r#"{"attributes":[{"key":"k","value":{"intValue":"x"}}]}"#,
            "record 1 is not taken: attributes[0].value.intValue: ",
        ),
        (r#"{"body":"text"}"#, "record 1 is not taken: body: "),
    ] {
        let said = json(bad).rejected.unwrap().message();
        assert!(said.starts_with(why) && said.contains(" at line 1 column "), "{said}");
        assert!(said.ends_with(" of the record"), "{said}");
    }
}

#[test]
fn a_record_of_protocol_buffers_that_is_none_costs_only_itself() {
    let mut bytes = request(vec![record("a"), record("#bad#"), record("b")]).encode_to_vec();
    let at = memchr::memmem::find(&bytes, b"#bad#").unwrap();
    bytes[at] = 0xff;
    let some = gathered(OtlpFormat::Json, Wire::Protobuf, &bytes);
    assert_eq!(lines(&some), [r#"{"body":"a"}"#, r#"{"body":"b"}"#]);
    assert!(some.rejected.unwrap().message().starts_with("record 2 is not taken: "));

    let mut deep = AnyValue { value: Some(Value::IntValue(1)) };
    for _ in 0..200 {
        deep = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![deep] })) };
    }
    let deep = LogRecord { body: Some(deep), ..LogRecord::default() };
    let some = gathered(OtlpFormat::Json, Wire::Protobuf, &request(vec![deep, record("b")]).encode_to_vec());
    assert_eq!((lines(&some).len(), some.rejected.unwrap().records), (1, 1));
}

/// Protocol Buffers, "Updating a message type": unknown fields of every wire type are passed over; a message that comes twice is merged; fields
/// may come in any order.
#[test]
fn protocol_buffers_are_read_as_widely_as_they_may_be_written() {
    let record = record("x").encode_to_vec();
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let attribute = |key: &str| field(1, &[field(1, key.as_bytes()), field(2, &field(1, b"v"))].concat());
    // An unknown varint, fixed64, bytes, group and fixed32, all of field 15.
    let unknown =
        [&[0x78, 1, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0x7a, 1, 7, 0x7b, 0x08, 1, 0x7c, 0x7d, 0, 0, 0, 0][..]].concat();
    let scope_logs = [field(2, &record), unknown.clone(), field(1, &field(1, b"lib"))].concat();
    let resource_logs =
        [field(2, &scope_logs), field(1, &attribute("a")), unknown.clone(), field(1, &attribute("b"))].concat();
    let request = [unknown, field(1, &resource_logs)].concat();
    assert_eq!(
        lines(&gathered(OtlpFormat::Json, Wire::Protobuf, &request)),
        [r#"{"body":"x","resource":{"attributes":{"a":"v","b":"v"}},"scope":{"name":"lib"}}"#]
    );
}

#[test]
fn what_is_no_request_is_refused_whole() {
    for (wire, bytes) in [
        (Wire::Json, &b""[..]),
        (Wire::Json, b"[]"),
        (Wire::Json, b"{\"resourceLogs\":3}"),
        (Wire::Json, b"{\"resourceLogs\":[{}]"),
        (Wire::Json, b"{\"resourceLogs\":[]}\xff"),
        (Wire::Protobuf, b"\x0a"),
        (Wire::Protobuf, b"\x0a\x05\x0a"),
        (Wire::Protobuf, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (Wire::Protobuf, b"\x0a\x02\x0a\x05"),
        (Wire::Protobuf, b"{}"),
        (Wire::Protobuf, b"\x00\x00"),
    ] {
        assert!(matches!(denied(wire, bytes), Denied::Malformed(_)), "{bytes:?}");
    }
}

#[test]
fn a_resource_that_every_record_repeats_does_not_fill_the_memory() {
    let mut sent = request(vec![LogRecord::default(); 10_000]);
    sent.resource_logs[0] = of_service(&"s".repeat(10_000), vec![LogRecord::default(); 10_000]);
    assert!(matches!(denied(Wire::Protobuf, &sent.encode_to_vec()), Denied::TooLargeAsJson(1_048_576)));
}

#[test]
fn an_attribute_of_the_resource_may_be_the_tag() {
    let shape = Shape {
        format: OtlpFormat::Json,
        tag: "own".into(),
        tag_from: Some("service.name".into()),
        most_bytes: 1 << 20,
    };
    let long = "l".repeat(256);
    let services = ["shop", "with blank", "", "shop", &long];
    let resource_logs = services.iter().map(|service| of_service(service, vec![record(service)])).collect();
    let sent = opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest { resource_logs };
    let (gathered, _) =
        read(&shape, Wire::Protobuf, None, &sent.encode_to_vec(), 1 << 20, Room::new(1 << 24).hold()).unwrap();
    let tags: Vec<_> = gathered.chunks.iter().map(|chunk| (&*chunk.meta().tag, chunk.meta().records)).collect();
    assert_eq!(tags, [("shop", 2), ("own", 3)]);
}
