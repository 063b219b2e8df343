//! Both protocols over real sockets, with clients that nobody here wrote: tonic's for gRPC, reqwest for HTTP.

use std::io::Write as _;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;

use super::super::status::{RETRY_INFO, RetryInfo, Status};
use super::support::*;
use crate::intake::Refused;
use crate::source::testing::eventually;
use crate::source::testing_tls::{tls_client, tls_files};

const PROTOBUF: &str = "application/x-protobuf";

async fn grpc(server: &Server) -> LogsServiceClient<Channel> {
    LogsServiceClient::connect(format!("http://{}", server.address())).await.unwrap()
}

fn bad_request() -> ExportLogsServiceRequest {
    let mut sent = request(vec![record("a"), record("b")]);
    // More than a record may have.
    sent.resource_logs[0].scope_logs[0].log_records[0] = record(&"x".repeat(2 << 20));
    sent
}

struct Answer {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
    let url = format!("http://{}{path}", server.address());
    let mut request = client().post(url).body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.bytes().await.unwrap().to_vec(),
    }
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn full(millis: u64) -> Refused {
    Refused::Full { what: "output archive".into(), retry_after: Duration::from_millis(millis) }
}

/// "OTLP/gRPC Response", "Full Success".
#[tokio::test]
async fn a_call_is_answered_when_its_records_are_durable() {
    let server = Server::grpc(|_| {});
    server.sink.allow(0);
    let mut client = grpc(&server).await;
    let mut call = tokio::spawn(async move { client.export(request(vec![record("one")])).await });
    eventually("a chunk", || (server.sink.handed_in() == 1).then_some(())).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut call).await.is_err(), "it was answered too early");
    server.sink.allow(1);
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.into_inner().partial_success, None);
    assert_eq!(server.sink.lines(), [r#"{"body":"one"}"#]);
    assert_eq!(server.sink.chunks()[0].meta().tag.as_ref(), "otlp.tag");
    server.stop().await;
}

#[tokio::test]
async fn calls_may_be_compressed() {
    let server = Server::grpc(|_| {});
    for encoding in [CompressionEncoding::Gzip, CompressionEncoding::Zstd] {
        grpc(&server).await.send_compressed(encoding).export(request(vec![record("z")])).await.unwrap();
    }
    assert_eq!(server.sink.lines().len(), 2);
    server.stop().await;
}

/// "Partial Success".
#[tokio::test]
async fn records_that_are_not_taken_are_told_in_both_protocols() {
    let server = Server::grpc(|otlp| otlp.max_body_bytes = 4 << 20);
    let response = grpc(&server).await.max_encoding_message_size(8 << 20).export(bad_request()).await.unwrap();
    let partial = response.into_inner().partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 1);
    assert!(partial.error_message.starts_with("record 1 is not taken: it has 20971"), "{}", partial.error_message);
    assert_eq!((server.sink.lines().len(), server.sink.discarded("invalid")), (1, 1));
    server.stop().await;

    let server = Server::http(|otlp| otlp.max_body_bytes = 4 << 20);
    let answer = post(&server, "/v1/logs", &[("content-type", PROTOBUF)], bad_request().encode_to_vec()).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, PROTOBUF));
    let response = ExportLogsServiceResponse::decode(&*answer.body).unwrap();
    assert_eq!(response.partial_success.unwrap().rejected_log_records, 1);
    let json = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[1,{}]}]}]}"#;
    let answer = post(&server, "/v1/logs", &[("content-type", "application/json")], json).await;
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["partialSuccess"]["rejectedLogRecords"], "1", "an int64 is a string in OTLP/JSON");
    assert!(body["partialSuccess"]["errorMessage"].as_str().unwrap().starts_with("record 1 is not taken: "));
    server.stop().await;
}

/// "OTLP/gRPC Throttling": UNAVAILABLE, with RetryInfo.
#[tokio::test]
async fn a_full_queue_is_unavailable_with_a_time_to_come_back() {
    let server = Server::grpc(|_| {});
    server.sink.refuse_next(full(2500));
    let status = grpc(&server).await.export(request(vec![record("one")])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let details = Status::decode(status.details()).unwrap();
    assert_eq!((details.code, details.details[0].type_url.as_str()), (14, RETRY_INFO));
    let delay = RetryInfo::decode(&*details.details[0].value).unwrap().retry_delay.unwrap();
    assert_eq!((delay.seconds, delay.nanos), (2, 500_000_000));
    assert!(server.sink.lines().is_empty());
    assert_eq!(server.sink.refused(), [("queue_full", 1)].into());
    // It comes again.
    grpc(&server).await.export(request(vec![record("one")])).await.unwrap();
    assert_eq!(server.sink.lines().len(), 1);
    server.stop().await;
}

/// "OTLP/HTTP Throttling": 503 with Retry-After. "Failures": "a Protobuf-encoded Status message that describes the problem".
#[tokio::test]
async fn a_full_queue_is_a_503_with_a_time_to_come_back() {
    let server = Server::http(|_| {});
    for (kind, body) in [
        (PROTOBUF, request(vec![record("x")]).encode_to_vec()),
        ("application/json", br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}"#.to_vec()),
    ] {
        server.sink.refuse_next(full(2500));
        let answer = post(&server, "/v1/logs", &[("content-type", kind)], body).await;
        assert_eq!((answer.status, answer.header("retry-after"), answer.header("content-type")), (503, "3", kind));
        let message = match kind {
            PROTOBUF => Status::decode(&*answer.body).unwrap().message,
            _ => serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()["message"].to_string(),
        };
        assert!(message.contains("archive"), "{message}");
    }
    // A disk that fails is told after the chunk was handed in.
    server.sink.fail_next(Refused::Failed("it broke".into()));
    let body = request(vec![record("x")]).encode_to_vec();
    let answer = post(&server, "/v1/logs", &[("content-type", PROTOBUF)], body).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"));
    server.stop().await;
}

/// "OTLP/HTTP Request", "Failures": what is wrong with a request for ever is none of the codes that are tried again.
#[tokio::test]
async fn what_will_never_be_taken_is_not_to_be_tried_again() {
    let server = Server::http(|_| {});
    let small = request(vec![record("x")]).encode_to_vec();
    let big = vec![0; (1 << 20) + 1];
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(&big).unwrap();
    let bomb = bomb.finish().unwrap();
    for (status, path, headers, body) in [
        (404, "/v1/traces", &[("content-type", PROTOBUF)][..], small.clone()),
        (404, "/", &[("content-type", PROTOBUF)], small.clone()),
        (415, "/v1/logs", &[], small.clone()),
        (415, "/v1/logs", &[("content-type", "text/plain")], small.clone()),
        (415, "/v1/logs", &[("content-type", PROTOBUF), ("content-encoding", "br")], small.clone()),
        (400, "/v1/logs", &[("content-type", PROTOBUF), ("content-encoding", "gzip")], small.clone()),
        (400, "/v1/logs", &[("content-type", PROTOBUF)], b"\x0a\x05".to_vec()),
        (400, "/v1/logs", &[("content-type", "application/json")], b"{".to_vec()),
        (413, "/v1/logs", &[("content-type", PROTOBUF)], big.clone()),
        (413, "/v1/logs", &[("content-type", PROTOBUF), ("content-encoding", "gzip")], bomb),
    ] {
        let answer = post(&server, path, headers, body).await;
        assert_eq!(answer.status, status, "{path} {headers:?}");
        if headers.first() == Some(&("content-type", PROTOBUF)) {
            assert_eq!(answer.header("content-type"), PROTOBUF);
            assert!(!Status::decode(&*answer.body).unwrap().message.is_empty());
        }
    }
    let url = format!("http://{}/v1/logs", server.address());
    let answer = client().get(url).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["allow"].to_str().unwrap()), (405, "POST"));
    assert!(server.sink.lines().is_empty());
    server.stop().await;

    let server = Server::grpc(|_| {});
    let status = grpc(&server).await.export(request(vec![record(&"x".repeat(2 << 20))])).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    server.stop().await;
}

#[tokio::test]
async fn json_and_compressed_bodies_are_taken_by_http() {
    let server = Server::http(|_| {});
    let json = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"j"}}]}]}]}"#;
    let answer = post(&server, "/v1/logs", &[("content-type", "application/json; charset=utf-8")], &json[..]).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"{}"[..]));
    let zstd = zstd::encode_all(&json[..], 3).unwrap();
    let headers = [("content-type", "application/json"), ("content-encoding", "zstd")];
    assert_eq!(post(&server, "/v1/logs", &headers, zstd).await.status, 200);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&request(vec![record("g")]).encode_to_vec()).unwrap();
    let headers = [("content-type", PROTOBUF), ("content-encoding", "gzip")];
    let answer = post(&server, "/v1/logs", &headers, gzip.finish().unwrap()).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(server.sink.lines(), [r#"{"body":"j"}"#, r#"{"body":"j"}"#, r#"{"body":"g"}"#]);
    server.stop().await;
}

/// gRPC over HTTP/2, "Responses": a service that is not there is UNIMPLEMENTED, what is no gRPC is 415.
#[tokio::test]
async fn other_services_are_not_there() {
    let server = Server::grpc(|_| {});
    let url = format!("http://{}", server.address());
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let traces = format!("{url}/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    let export = format!("{url}/opentelemetry.proto.collector.logs.v1.LogsService/Export");
    let message = [0, 0, 0, 0, 0];
    for (url, kind, encoding, body, expected) in [
        (&traces, "application/grpc", "identity", &message[..], (200, "12")),
        (&export, "application/grpc+json", "identity", &message, (200, "3")),
        (&export, "application/grpc", "br", &message, (200, "12")),
        (&export, "application/grpc", "identity", &[1, 0, 0, 0, 0], (200, "3")),
        (&export, "application/grpc", "identity", &[0, 0, 0, 0, 1], (200, "3")),
        (&export, "application/grpc", "identity", &[], (200, "3")),
        (&export, "application/json", "identity", &message, (415, "")),
        (&export, "application/grpc+proto", "identity", &message, (200, "")),
    ] {
        let sent = client.post(url).header("content-type", kind).header("grpc-encoding", encoding).body(body.to_vec());
        let answer = sent.send().await.unwrap();
        let status = answer.headers().get("grpc-status").map_or("", |value| value.to_str().unwrap());
        assert_eq!((answer.status().as_u16(), status), expected, "{url} {kind} {encoding} {body:?}");
        if encoding == "br" {
            assert_eq!(answer.headers()["grpc-accept-encoding"], "identity,gzip,zstd");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_does_not_begin_is_closed() {
    let server = Server::grpc(|otlp| otlp.handshake_timeout = Duration::from_millis(100));
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    silent.write_all(b"PRI * HTTP/2").await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(30), silent.read_to_end(&mut Vec::new())).await;
    let _ = read.expect("it stays open");
    server.stop().await;
    let server = Server::http(|otlp| otlp.idle_timeout = Duration::from_millis(100));
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(30), silent.read_to_end(&mut Vec::new())).await;
    let _ = read.expect("it stays open");
    server.stop().await;
}

fn secure_client(certificate: Option<&str>) -> reqwest::Client {
    secure_builder(certificate, &[]).build().unwrap()
}

fn secure_builder(certificate: Option<&str>, protocols: &[&str]) -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls_client(certificate, protocols))
}

#[tokio::test]
async fn both_are_secure_by_tls_and_may_ask_for_certificates() {
    let files = tls_files(true);
    let server = Server::http(|otlp| otlp.tls = Some(files.clone()));
    let url = format!("https://localhost:{}/v1/logs", server.address().port());
    let body = request(vec![record("s")]).encode_to_vec();
    let send = |client: reqwest::Client| client.post(&url).header("content-type", PROTOBUF).body(body.clone()).send();
    assert_eq!(send(secure_client(Some("client"))).await.unwrap().status().as_u16(), 200);
    assert!(send(secure_client(None)).await.is_err());
    assert!(send(secure_client(Some("stranger"))).await.is_err());
    eventually("both are counted", || (server.sink.refused() == [("tls", 2)].into()).then_some(())).await;
    server.stop().await;

    let server = Server::grpc(|otlp| otlp.tls = Some(files));
    let url = format!(
        "https://localhost:{}/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        server.address().port()
    );
    let framed = [&[0][..], &(body.len() as u32).to_be_bytes(), &body].concat();
    let answer = secure_builder(Some("client"), &["h2"]).http2_prior_knowledge().build().unwrap();
    let answer = answer.post(&url).header("content-type", "application/grpc").body(framed);
    let answer = answer.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert_eq!(server.sink.lines(), [r#"{"body":"s"}"#]);
    server.stop().await;
}
