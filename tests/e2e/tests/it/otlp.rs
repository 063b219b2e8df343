//! OTLP, from the SDKs of OpenTelemetry for Python and for JavaScript, by each way that they have of sending.
//!
//! `WHARF_OTLP_RECORDS` says how many records each of them sends (20,000 by default; the issue's number is 100,000).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use wharf_e2e::{Place, free_port, http, script, tools};
use wharf_local_aws::S3;

use crate::senders::{Sending, content, has_node, names, survives_five_kills};
use crate::support::{archive, delivered, s3};

const BATCH: &str = "max_bytes: 2MB, max_age: 500ms";

fn records() -> u64 {
    std::env::var("WHARF_OTLP_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

/// Ways to send.
const WAYS: [(Language, &str); 5] = [
    (Language::Python, "grpc"),
    (Language::Python, "http"),
    (Language::JavaScript, "grpc"),
    (Language::JavaScript, "proto"),
    (Language::JavaScript, "http"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
}

/// A place that takes records on two free ports, into an `archive` on `s3`.
fn otlp_place(s3: &S3, more: &str) -> (Place, u16, u16) {
    let (place, grpc, http) = (Place::new().unwrap(), free_port().unwrap(), free_port().unwrap());
    let source = format!(
        "sources:\n  otlp:\n    type: otlp\n    grpc: {{ listen: \"127.0.0.1:{grpc}\" }}\n    http: {{ listen: \"127.0.0.1:{http}\" }}\n{more}"
    );
    place.configure(&s3.endpoint(), &format!("{source}{}", archive(2, BATCH, &[]))).unwrap();
    (place, grpc, http)
}

/// Each record is as it was sent.
fn assert_content(s3: &S3) {
    for record in content(s3) {
        let n = record["attributes"]["n"].as_u64().unwrap();
        let prefix = record["body"].as_str().unwrap().split('-').next().unwrap();
        assert_eq!(record["body"], format!("{prefix}-{n:08} the quick brown fox"));
        let attributes = &record["attributes"];
        assert_eq!(attributes["half"].as_f64(), Some(n as f64 / 2.0), "{record}");
        assert_eq!(attributes["even"], n.is_multiple_of(2), "{record}");
        assert_eq!(attributes["words"], json!(["a", "é"]), "{record}");
        assert_eq!((&record["severity_number"], &record["severity_text"]), (&json!(9), &json!("INFO")), "{record}");
        assert_eq!(record["resource"]["attributes"]["service.name"], "shop", "{record}");
        assert_eq!(record["scope"], json!({ "name": "e2e", "version": "1.0" }), "{record}");
    }
}

#[test]
fn everything_that_the_sdks_send_arrives_once() {
    if !has_node("everything_that_the_sdks_send_arrives_once") {
        return;
    }
    let s3 = s3();
    let (place, grpc, http) = otlp_place(&s3, "");
    let mut wharf = place.start().unwrap();
    let count = records();
    let mut expected = Vec::new();
    for (number, (language, protocol)) in WAYS.into_iter().enumerate() {
        let prefix = format!("w{number}");
        let port = if protocol == "grpc" { grpc } else { http };
        let mut sending = start(&place, language, protocol, port, &prefix, count);
        wharf.wait_until("all is acknowledged", 120, || sending.acked().len() as u64 == count);
        sending.end();
        expected.extend(names(&prefix, count));
    }
    let all = expected.len();
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= all);
    assert_eq!(place.metric("wharf_source_accepted_records_total", &["source=\"otlp\""]), Some(all as f64));
    wharf.stop();
    let delivered = delivered(&s3);
    delivered.assert_each_once(expected);
    delivered.assert_contiguous(0);
    assert_content(&s3);
}

#[test]
fn what_an_sdk_heard_as_taken_survives_five_kills() {
    if !has_node("what_an_sdk_heard_as_taken_survives_five_kills") {
        return;
    }
    let count = records();
    for (language, protocol) in WAYS {
        // CI has less time: one way by each protocol, each in another language.
        if count < 100_000
            && !matches!((language, protocol), (Language::Python, "grpc") | (Language::JavaScript, "http"))
        {
            continue;
        }
        let s3 = s3();
        let (place, grpc, http) = otlp_place(&s3, "");
        let port = if protocol == "grpc" { grpc } else { http };
        let who = format!("{language:?} {protocol}");
        survives_five_kills(&s3, &place, (count, 180), &who, || start(&place, language, protocol, port, "k", count));
        assert_content(&s3);
    }
}

#[test]
fn curl_sends_the_example_of_the_specification_and_it_comes_out_as_otlp_json() {
    let s3 = s3();
    let (place, _, port) = otlp_place(&s3, "    format: otlp_json\n    tag_from: service.name\n");
    let mut wharf = place.start().unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    wharf.wait_until("records are taken", 30, || http::get(to, "/").is_ok());
    let one = r#"{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"1544712660300000000","body":{"stringValue":"c-00000000 hello"},"traceId":"5b8efff798038103d269b633813fc60c"}]}]}"#;
    let answer = Command::new("curl")
        .args(["-sS", "-i", "-H", "Content-Type: application/json", "-d", &format!("{{\"resourceLogs\":[{one}]}}")])
        .arg(format!("http://127.0.0.1:{port}/v1/logs"))
        .output()
        .unwrap();
    let answer = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{}"), "{answer}");
    wharf.stop();
    let object = s3.objects().remove(0);
    let line: Value = serde_json::from_slice(&object.body).unwrap();
    let mut sent: Value = serde_json::from_str(one).unwrap();
    sent["date"] = line["date"].clone();
    assert_eq!(line, sent);
    assert!(line["date"].as_str().unwrap().starts_with("2018-12-13T14:51:00.3"), "{line}");
}

fn start(place: &Place, language: Language, protocol: &str, port: u16, prefix: &str, count: u64) -> Sending {
    Sending::start(place, prefix, |acked| match language {
        Language::Python => {
            let mut command = Command::new(tools::venv().unwrap().join("bin/python"));
            command.arg(script("otlp_send.py").unwrap());
            command.args([protocol, &port.to_string(), prefix, &count.to_string()]).arg(acked);
            command
        }
        Language::JavaScript => {
            let options =
                json!({ "protocol": protocol, "port": port, "prefix": prefix, "count": count, "acked": acked });
            let mut command = Command::new("node");
            command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("node/otlp_send.js")).arg(options.to_string());
            command.env("NODE_PATH", tools::node_modules().unwrap());
            command
        }
    })
}
