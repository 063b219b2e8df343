//! Requests over real sockets.

mod places;
mod secured;
mod senders;
mod tokens;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::config::{HttpSourceConfig, SourceConfig, SourceKind};
use crate::intake::Refused;
use crate::record::BodyKind;
use crate::source::testing::{FakeSink, eventually};
use crate::source::{Running, SourceEnded, SourceError, spawn_into};

struct Server {
    running: Running,
    shutdown: CancellationToken,
    address: SocketAddr,
    sink: Arc<FakeSink>,
}

const LONG: Duration = Duration::from_secs(3600);

/// On a port of its own, with no end in time that a test does not ask for.
fn http(listen: SocketAddr, max_body_bytes: u64) -> HttpSourceConfig {
    HttpSourceConfig { max_body_bytes, header_timeout: LONG, idle_timeout: LONG, ..HttpSourceConfig::of(listen) }
}

fn config(http: HttpSourceConfig) -> SourceConfig {
    let kind = SourceKind::Http(Box::new(http));
    SourceConfig { name: "web".into(), tenant: None, parse: None, tag: "web.tag".into(), kind }
}

impl Server {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(change: impl FnOnce(&mut HttpSourceConfig)) -> Self {
        let (sink, shutdown) = (FakeSink::new(), CancellationToken::new());
        let mut http = http("127.0.0.1:0".parse().unwrap(), 1 << 20);
        change(&mut http);
        let source = config(http);
        let running = spawn_into(&source, Arc::new(sink.clone()), shutdown.clone()).unwrap();
        let address = running.address().unwrap();
        Self { running, shutdown, address, sink }
    }

    /// One request on a connection of its own.
    async fn post(&self, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        Client::connect(self.address).await.request("POST", headers, body.as_ref()).await
    }

    async fn stop(self) {
        self.shutdown.cancel();
        assert_eq!(self.running.ended().await, SourceEnded::Stopped);
    }
}

struct Client<S = TcpStream>(S);

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
    fn error(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["error"].as_str().unwrap().to_owned()
    }
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn request(&mut self, method: &str, headers: &[&str], body: &[u8]) -> Answer {
        self.request_at("/any/path?x=1", method, headers, body).await
    }

    async fn request_at(&mut self, path: &str, method: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: wharf\r\n");
        for header in headers {
            request += &format!("{header}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n", body.len());
        self.0.write_all(request.as_bytes()).await.unwrap();
        // A server that has answered already need not read it.
        let _ = self.0.write_all(body).await;
        self.answer().await
    }

    /// Sends the beginning of a request.
    async fn begin(&mut self) {
        self.0.write_all(b"POST / HTTP/1.1\r\nHost: wha").await.unwrap();
    }

    /// Waits until the other end closes the connection without an answer.
    async fn closed(&mut self) {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), self.0.read_to_end(&mut bytes)).await;
        // A reset is as good as an end.
        let _ = read.expect("the connection stays open");
        assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    }

    async fn answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        let (head, length) = loop {
            assert!(self.0.read_buf(&mut bytes).await.unwrap() > 0, "closed: {}", String::from_utf8_lossy(&bytes));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, _)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
                break (head.to_owned(), length.parse::<usize>().unwrap());
            }
        };
        while bytes.len() < head.len() + 4 + length {
            assert!(self.0.read_buf(&mut bytes).await.unwrap() > 0);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = String::from_utf8(bytes.split_off(head.len() + 4)).unwrap();
        Answer { status, head, body }
    }
}

const JSON: &str = "Content-Type: application/json; charset=utf-8";
const NDJSON: &str = "Content-Type: application/x-ndjson";
const TEXT: &str = "Content-Type: text/plain";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn every_content_type_is_taken_as_what_it_says() {
    let server = Server::start();
    for (headers, body, accepted) in [
        (vec![JSON], "{\"a\": 1.0}", 1),
        (vec![JSON], "[{\"b\":1},\n{\"c\":\n2}]", 2),
        (vec![NDJSON], "{\"d\":1}\n{\"e\":2}\n", 2),
        (vec!["content-type: application/jsonlines"], "{\"f\":1}", 1),
        (vec![TEXT], "plain\n\nlines", 3),
        (vec![], "without a type\n", 1),
        (vec![JSON], "[]", 0),
        (vec![TEXT], "", 0),
    ] {
        let answer = server.post(&headers, body).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, format!("{{\"accepted\":{accepted}}}").as_str()),
            "{body}"
        );
    }
    let expected = [
        "{\"a\": 1.0}",
        "{\"b\":1}",
        "{\"c\":2}",
        "{\"d\":1}",
        "{\"e\":2}",
        "{\"f\":1}",
        "plain",
        "",
        "lines",
        "without a type",
    ];
    assert_eq!(server.sink.lines(), expected);
    let kinds = server.sink.kinds();
    assert_eq!(kinds, [[BodyKind::Json; 4].as_slice(), &[BodyKind::Text; 2]].concat());
    assert!(server.sink.chunks().iter().all(|chunk| &*chunk.meta().tag == "web.tag"));
    server.stop().await;
}

#[tokio::test]
async fn compressed_bodies_are_taken() {
    let server = Server::start();
    let lines = "{\"a\":1}\n".repeat(10_000);
    let answer = server.post(&[NDJSON, "Content-Encoding: gzip"], gzip(lines.as_bytes())).await;
    assert_eq!(answer.body, "{\"accepted\":10000}");
    let zstd = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    let answer = server.post(&[NDJSON, "Content-Encoding: zstd"], zstd).await;
    assert_eq!(answer.body, "{\"accepted\":10000}");
    assert_eq!(server.sink.lines().len(), 20_000);
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_and_nothing_of_the_request_is_taken() {
    let server = Server::start();
    let big = " ".repeat((1 << 20) + 1);
    for (headers, body, status, says) in [
        (vec![NDJSON], b"{}\n{\"a\":nope}\n".to_vec(), 400, "record 2, byte 8 of the body: a value should be here"),
        (vec![JSON], b"[{},7]".to_vec(), 400, "record 2, byte 4"),
        (vec![JSON], vec![], 400, "the body is empty"),
        (vec![TEXT, "Content-Encoding: gzip"], b"no gzip".to_vec(), 400, "not gzip"),
        (vec![TEXT, "Content-Encoding: br"], b"x".to_vec(), 415, "send one of gzip, zstd and deflate, or none"),
        (vec![JSON, NDJSON], b"{}".to_vec(), 400, "more than one Content-Type header"),
        (vec!["Content-Type: application/x-www-form-urlencoded"], b"a=b".to_vec(), 415, "application/x-ndjson"),
        (vec![TEXT], big.clone().into_bytes(), 413, "larger than 1048576 bytes"),
        (vec![TEXT, "Content-Encoding: gzip"], gzip(big.as_bytes()), 413, "decompressed, is larger"),
    ] {
        let answer = server.post(&headers, body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.error().contains(says), "{answer:?}");
    }
    assert_eq!(server.sink.handed_in(), 0);
    assert_eq!(server.sink.discarded("invalid"), 3);
    let refused = [("bad_request", 5), ("too_large", 2), ("unsupported_type", 2)];
    assert_eq!(server.sink.refused(), refused.into());
    server.stop().await;
}

#[tokio::test]
async fn other_methods_are_told_which_one_is_taken() {
    let server = Server::start();
    // The last is how a browser asks for a page of another site (CORS): it hears of nothing that it might do.
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let headers = ["Origin: https://example.com", "Access-Control-Request-Method: POST"];
        let answer = Client::connect(server.address).await.request(method, &headers, b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
        assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "{answer:?}");
    }
    let answer = server.post(&[TEXT, "Content-Encoding: br"], "x").await;
    assert_eq!(answer.header("accept-encoding"), Some("gzip, zstd, deflate, identity"));
    server.stop().await;
}

#[tokio::test]
async fn a_body_without_a_length_is_held_to_the_limit() {
    let server = Server::start();
    let mut client = Client::connect(server.address).await;
    let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.0.write_all(head.as_bytes()).await.unwrap();
    let part = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
    for _ in 0..17 {
        let _ = client.0.write_all(&part).await;
    }
    assert_eq!(client.answer().await.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn no_room_is_503_with_the_time_to_wait() {
    let server = Server::start();
    for (refused, after) in [
        (Refused::Full { what: "output x".into(), retry_after: Duration::from_millis(1500) }, "2"),
        (Refused::DiskFull { retry_after: Duration::ZERO }, "1"),
    ] {
        server.sink.refuse_next(refused.clone());
        let answer = server.post(&[TEXT], "x").await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some(after)));
        assert!(answer.error().contains(&refused.to_string()));
        // Also when that comes out only later.
        server.sink.fail_next(refused);
        assert_eq!(server.post(&[TEXT], "x").await.status, 503);
    }
    assert!(server.sink.chunks().is_empty());
    assert_eq!(server.sink.refused(), [("disk_full", 2), ("queue_full", 2)].into());
    assert_eq!(server.post(&[TEXT], "x").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_the_journal_could_never_hold_is_413_and_not_to_be_sent_again_as_it_is() {
    let server = Server::start();
    server.sink.fail_next(Refused::TooLarge { bytes: 600_000, limit: 524_288 });
    let answer = server.post(&[TEXT], "x").await;
    assert_eq!((answer.status, answer.header("retry-after")), (413, None));
    assert_eq!(
        answer.error(),
        "the records of this request take 600000 bytes in the journal, which may hold 524288 in all (journal.max_size); send them in parts"
    );
    assert_eq!(server.sink.refused(), [("too_large", 1)].into());
    server.stop().await;
}

#[tokio::test]
async fn the_answer_waits_until_the_records_are_durable_also_when_stopping() {
    let server = Server::start();
    server.sink.allow(0);
    let mut client = Client::connect(server.address).await;
    client.0.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nline").await.unwrap();
    eventually("the chunk is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    server.shutdown.cancel();
    assert!(client.0.try_read(&mut [0; 1]).is_err(), "answered before the record was durable");
    server.sink.allow(1);
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(server.running.ended().await, SourceEnded::Stopped);
    assert_eq!(server.sink.lines(), ["line"]);
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_many_connections_are_served() {
    let server = Server::start();
    let clients = (0..50).map(|n| {
        let address = server.address;
        tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            for request in 0..20 {
                let answer = client.request("POST", &[TEXT], format!("{n}-{request}").as_bytes()).await;
                assert_eq!(answer.status, 200);
                // A mistake does not end the connection.
                assert_eq!(client.request("POST", &[JSON], b"{").await.status, 400);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let mut lines = server.sink.lines();
    lines.sort();
    let mut expected: Vec<String> =
        (0..50).flat_map(|n| (0..20).map(move |request| format!("{n}-{request}"))).collect();
    expected.sort();
    assert_eq!(lines, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_closes_its_connection_and_no_other() {
    let server = Server::start_with(|http| http.header_timeout = Duration::from_millis(50));
    let mut idle = Client::connect(server.address).await;
    assert_eq!(idle.request("POST", &[TEXT], b"one").await.status, 200);
    let mut half = Client::connect(server.address).await;
    half.begin().await;
    half.closed().await;
    // Longer than `header_timeout` without a request: that is no head.
    assert_eq!(idle.request("POST", &[TEXT], b"two").await.status, 200);
    // Also where there was a whole request before.
    idle.begin().await;
    idle.closed().await;
    assert_eq!(server.sink.lines(), ["one", "two"]);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let server = Server::start_with(|http| http.idle_timeout = Duration::from_secs(2));
    Client::connect(server.address).await.closed().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.request("POST", &[TEXT], b"one").await.status, 200);
    client.closed().await;
    server.stop().await;
}

#[tokio::test]
async fn the_time_outs_do_not_count_while_a_request_waits_for_the_disk() {
    let moment = Duration::from_secs(2);
    let server = Server::start_with(|http| (http.header_timeout, http.idle_timeout) = (moment, moment));
    server.sink.allow(0);
    let mut waiting = Client::connect(server.address).await;
    waiting.0.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nline").await.unwrap();
    eventually("the chunk is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    Client::connect(server.address).await.closed().await;
    server.sink.allow(1);
    assert_eq!(waiting.answer().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_stop_waits_neither_for_idle_connections_nor_for_half_a_head() {
    let server = Server::start();
    let mut idle = Client::connect(server.address).await;
    assert_eq!(idle.request("POST", &[TEXT], b"one").await.status, 200);
    let mut half = Client::connect(server.address).await;
    half.begin().await;
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.stop()).await;
    assert!(stopped.is_ok(), "the stop waits");
    half.closed().await;
}

#[tokio::test]
async fn an_address_in_use_is_an_error_at_the_start() {
    let server = Server::start();
    let source = config(http(server.address, 1000));
    let error = spawn_into(&source, Arc::new(FakeSink::new()), CancellationToken::new()).unwrap_err();
    assert!(matches!(&error, SourceError::Listen { .. }));
    assert!(error.to_string().contains(&format!("listening on {} failed", server.address)), "{error}");
    assert!(error.to_string().contains("; something else listens there: stop it, or take another port"), "{error}");
    server.stop().await;
    // RFC 5737: nobody's address.
    let source = config(http(SocketAddr::from(([192, 0, 2, 1], 80)), 1000));
    let error = spawn_into(&source, Arc::new(FakeSink::new()), CancellationToken::new()).unwrap_err();
    assert!(error.to_string().contains("; 192.0.2.1 is no address of this machine: "), "{error}");
}

/// RFC 9112, sections 3.2 and 6.1: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a Host header
/// field", and "SHOULD respond with 501" to a transfer coding that it does not understand.
#[tokio::test]
async fn what_the_protocol_wants_of_a_request_is_asked_for() {
    let server = Server::start();
    for (head, status, said) in [
        (
            "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
            400,
            "there is no Host header; HTTP/1.1 has one in every request",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\n\r\nx",
            400,
            "there is more than one Host header; send one",
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            501,
            "transfer encoding \"gzip, chunked\" is not known here; send chunked, or a Content-Length",
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Encoding: zstd\r\nContent-Length: 1\r\n\r\nx",
            415,
            "there is more than one content encoding, \"gzip, zstd\"; send one of gzip, zstd and deflate, or none",
        ),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            400,
            "the body could not be read: error reading a body from connection: Invalid chunk size line",
        ),
    ] {
        let mut client = Client::connect(server.address).await;
        client.0.write_all(head.as_bytes()).await.unwrap();
        let answer = client.answer().await;
        assert!(answer.status == status && answer.error().starts_with(said), "{answer:?}");
    }
    assert!(server.sink.chunks().is_empty());
    let mut old = Client::connect(server.address).await;
    old.0.write_all(b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
    assert_eq!(old.answer().await.status, 200, "HTTP/1.0 knows no Host");
    server.stop().await;
}
