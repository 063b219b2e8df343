//! What senders and followed files give, and what is kept of files.

use serde::de::IgnoredAny;

use super::run;
use crate::source::fuzzed;

fn is_json(line: &str) {
    let read: Result<IgnoredAny, _> = serde_json::from_str(line);
    read.unwrap_or_else(|e| panic!("{e}: {line}"));
    assert!(line.starts_with('{') && !line.contains('\n'), "{line}");
}

const LOGS: &str = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}],"droppedAttributesCount":1},"schemaUrl":"r",
"scopeLogs":[{"scope":{"name":"lib","version":"1","attributes":[]},"schemaUrl":"s","logRecords":[{"timeUnixNano":"1544712660300000000","observedTimeUnixNano":1,
"severityNumber":10,"severityText":"Information","traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174","flags":1,"eventName":"e","body":{"stringValue":"x"},
"attributes":[{"key":"b","value":{"boolValue":true}},{"key":"i","value":{"intValue":"-10"}},{"key":"d","value":{"doubleValue":637.704}},{"key":"n","value":{"doubleValue":"NaN"}},
{"key":"a","value":{"arrayValue":{"values":[{"bytesValue":"AAE="},{}]}}},{"key":"m","value":{"kvlistValue":{"values":[{"key":"k","value":null}]}}}]},{"body":null}]}]}]}"#;

/// What was read, written as OTLP/JSON, is the same when it is read again.
fn comes_back(lines: Vec<String>) {
    lines.iter().for_each(|line| is_json(line));
    let request = format!("{{\"resourceLogs\":[{}]}}", lines.join(","));
    let (again, rejected) = fuzzed::otlp_json(request.as_bytes(), true).unwrap();
    assert_eq!((again, rejected), (lines, 0));
}

#[test]
fn otlp_json() {
    run(&[LOGS.as_bytes(), b"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}]}]}]}"], |bytes| {
        if let Some((lines, _)) = fuzzed::otlp_json(bytes, true) {
            comes_back(lines);
        }
        if let Some((lines, _)) = fuzzed::otlp_json(bytes, false) {
            lines.iter().for_each(|line| is_json(line));
        }
    });
}

#[test]
fn otlp_protobuf() {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use prost::Message as _;

    // Written by another reader of the same text.
    let without_null = LOGS.replace(",\"value\":null", "").replace("{\"body\":null}", "{}").replace("\"NaN\"", "1.5");
    let request: ExportLogsServiceRequest = serde_json::from_str(&without_null).unwrap();
    run(&[&request.encode_to_vec(), b""], |bytes| {
        if let Some((lines, _)) = fuzzed::otlp_protobuf(bytes, true) {
            comes_back(lines);
        }
        if let Some((lines, _)) = fuzzed::otlp_protobuf(bytes, false) {
            lines.iter().for_each(|line| is_json(line));
        }
    });
}

const MESSAGES: [&[u8]; 6] = [
    b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed",
    b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %%",
    b"<165>1 - - - - - [exampleSDID@32473 iut=\"3\" x=\"\\\"\\]\"][b] An entry",
    b"<34>Oct 11 22:14:15 mymachine su[12]: 'su root' failed",
    b"<13>2026-11-30T10:00:00.5+01:00 host app: hi\0",
    b"<13>Use the BFG!",
];

#[test]
fn syslog_message() {
    run(&MESSAGES, |bytes| {
        if let Some(line) = fuzzed::syslog_message(bytes) {
            is_json(&line);
        }
    });
}

#[test]
fn syslog_framing() {
    run(&[b"5 <1>ab9 <34>1 - -11 <34>1 hello", b"<1>a\n<1>b\0<1>c\n\n", b"3 abc\n2 de"], |bytes| {
        let whole = fuzzed::syslog_frames(bytes, usize::MAX);
        for piece in [1, 3, 7] {
            assert_eq!(fuzzed::syslog_frames(bytes, piece), whole, "in pieces of {piece}");
        }
    });
}

#[test]
fn parse() {
    let lines: [&[u8]; 6] = [
        br#"{"a":1,"time":"2026-11-30T16:32:17.5Z","b":{"c":[1,2,"\u00e9"]}}"#,
        b"{\"time\":1796056337.25}",
        br#"at=info fwd="124.133.52.161 \"x\"" time=1796056337 alone bytes="#,
        b"2016-10-06T00:17:09.669794202Z stdout F log content",
        b"127.0.0.1 [10/Oct/2000:13:55:36 -0700] GET",
        b"\xff\xfe",
    ];
    run(&lines, |bytes| {
        let line: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\n').collect();
        for parsed in fuzzed::parse(&line) {
            is_json(&parsed);
        }
    });
}

#[test]
fn http_json() {
    let corpus: [&[u8]; 3] = [
        b"[{\"b\":1,\"a\":[true,null,-0.5e3]}, {}\n]",
        b"{\"a\":1}\r\n\n {\"b\" : \"\\u00e9\"} \n{}",
        b"{\n \"a\": {}\n}",
    ];
    run(&corpus, |bytes| {
        for lines_of_it in [false, true] {
            let Some(lines) = fuzzed::http(bytes, lines_of_it) else { continue };
            lines.iter().for_each(|line| is_json(line));
            assert_eq!(fuzzed::http(lines.join("\n").as_bytes(), true), Some(lines));
        }
    });
}

#[test]
fn tail_position() {
    let one = br#"{"offset":12,"skipping":true,"first_bytes":12,"first_crc64":77,"at":1796056337,"path":"/var/log/a\"b.log"}"#;
    run(&[one], fuzzed::tail_position);
}
