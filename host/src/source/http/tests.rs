//! Requests over real sockets.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
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

fn http(listen: SocketAddr, max_body_bytes: u64) -> HttpSourceConfig {
    HttpSourceConfig {
        listen,
        max_body_bytes,
        header_timeout: LONG,
        idle_timeout: LONG,
        max_connections: 1024,
        tokens: vec![],
    }
}

fn config(http: HttpSourceConfig) -> SourceConfig {
    SourceConfig { name: "web".into(), tenant: None, parse: None, tag: "web.tag".into(), kind: SourceKind::Http(http) }
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

struct Client(TcpStream);

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

    async fn request(&mut self, method: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut request = format!("{method} /any/path?x=1 HTTP/1.1\r\nHost: wharf\r\n");
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
        (vec![TEXT, "Content-Encoding: br"], b"x".to_vec(), 415, "send gzip, zstd, or none"),
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
    for method in ["GET", "PUT", "DELETE"] {
        let answer = Client::connect(server.address).await.request(method, &[], b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    }
    let answer = server.post(&[TEXT, "Content-Encoding: br"], "x").await;
    assert_eq!(answer.header("accept-encoding"), Some("gzip, zstd, identity"));
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
async fn connections_past_the_limit_wait_until_one_ends() {
    let server = Server::start_with(|http| http.max_connections = 1);
    let mut first = Client::connect(server.address).await;
    assert_eq!(first.request("POST", &[TEXT], b"one").await.status, 200);
    let mut second = Client::connect(server.address).await;
    second.0.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nthree").await.unwrap();
    assert_eq!(first.request("POST", &[TEXT], b"two").await.status, 200);
    assert!(second.0.try_read(&mut [0; 1]).is_err(), "answered past the limit");
    drop(first);
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(server.sink.lines(), ["one", "two", "three"]);
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
    server.stop().await;
}

/// Tokens, and whose the records are that come with them.
mod tokens {
    use super::*;
    use crate::config::{HttpToken, Secret, SecretSource};

    const ACME: &str = "acme-token-0123456789";
    const OWN: &str = "own-token-0123456789";

    fn given(token: &str, tenant: Option<&str>) -> HttpToken {
        HttpToken { token: SecretSource::Given(Secret::new(token)), tenant: tenant.map(Arc::from) }
    }

    fn server(tokens: Vec<HttpToken>) -> Server {
        Server::start_with(|http| http.tokens = tokens)
    }

    fn with(token: &str) -> String {
        format!("Authorization: Bearer {token}")
    }

    #[tokio::test]
    async fn records_are_those_of_the_tenant_whose_token_a_request_carries() {
        let server = server(vec![given(ACME, Some("acme")), given(OWN, None)]);
        assert_eq!(server.post(&[&with(ACME)], "a").await.status, 200);
        assert_eq!(server.post(&[&with(OWN)], "b").await.status, 200);
        // RFC 9110, 11.1: the scheme's name is the same in any case.
        assert_eq!(server.post(&[&format!("authorization: BEARER  {ACME}")], "c").await.status, 200);
        let line = |tenant: Option<&str>, text: &str| (tenant.map(str::to_owned), vec![text.to_owned()]);
        assert_eq!(server.sink.by_tenant(), [line(Some("acme"), "a"), line(None, "b"), line(Some("acme"), "c")]);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_token_that_two_tenants_have_in_their_files_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        let of_file = |name: &str, tenant: &str| {
            std::fs::write(dir.path().join(name), "the-same-long-token-of-both\n").unwrap();
            HttpToken { token: SecretSource::File(dir.path().join(name)), tenant: Some(tenant.into()) }
        };
        let server = server(vec![of_file("a", "acme"), of_file("b", "globex"), of_file("c", "acme")]);
        assert_eq!(server.post(&[&with("the-same-long-token-of-both")], "x").await.status, 401);
        assert!(server.sink.chunks().is_empty());
        // One that a tenant has twice is that tenant's.
        std::fs::write(dir.path().join("b"), "another-long-token-of-globex\n").unwrap();
        let server = self::server(vec![of_file("a", "acme"), of_file("c", "acme")]);
        assert_eq!(server.post(&[&with("the-same-long-token-of-both")], "x").await.status, 200);
    }

    /// RFC 6750, section 3 and 3.1: a request without a token is told the scheme alone, one with a wrong token `invalid_token`.
    #[tokio::test]
    async fn a_request_without_a_known_token_is_refused_and_told_how_to_send_one() {
        let server = server(vec![given(ACME, Some("acme"))]);
        let others = [format!("{ACME}x"), ACME[..ACME.len() - 1].to_owned(), ACME.to_uppercase()].map(|it| with(&it));
        let (needed, invalid) = ("Bearer realm=\"wharf\"", "Bearer realm=\"wharf\", error=\"invalid_token\"");
        let both = [with(ACME), with(OWN)];
        for (headers, challenge) in [
            (vec![], needed),
            (vec!["Authorization: Basic YWNtZTphY21l"], needed),
            (vec!["Authorization: Bearer "], needed),
            (vec!["Authorization: Bearer"], needed),
            // Which one counts is for nobody to guess.
            (both.iter().map(String::as_str).collect(), needed),
            (vec![&others[0]], invalid),
            (vec![&others[1]], invalid),
            (vec![&others[2]], invalid),
        ] {
            let answer = server.post(&headers, "x").await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{headers:?}");
            assert!(!answer.error().contains(ACME));
        }
        // Nor does it learn what would be taken.
        let answer = Client::connect(server.address).await.request("GET", &[], b"").await;
        assert_eq!(answer.status, 401);
        assert_eq!(server.sink.refused()["auth"], 9);
        assert!(server.sink.chunks().is_empty());
        server.stop().await;
    }

    #[tokio::test]
    async fn a_token_that_is_replaced_in_its_file_is_known_soon() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token = HttpToken { token: SecretSource::File(file.clone()), tenant: Some("acme".into()) };
        // A file that is not there yet keeps nobody from starting.
        let server = server(vec![token, given(OWN, None)]);
        assert_eq!(server.post(&[&with("first-0123456789abc")], "x").await.status, 401);
        for token in ["first-0123456789abc", "second-0123456789ab"] {
            std::fs::write(&file, format!("{token}\n")).unwrap();
            let deadline = std::time::Instant::now() + Duration::from_secs(30);
            while server.post(&[&with(token)], token).await.status != 200 {
                assert!(std::time::Instant::now() < deadline, "{token} is never known");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        assert_eq!(server.post(&[&with("first-0123456789abc")], "x").await.status, 401);
        assert_eq!(server.post(&[&with(OWN)], "x").await.status, 200);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_tenant_at_its_limit_is_told_so_and_when_to_come_again() {
        let server = server(vec![given(ACME, Some("acme"))]);
        let at = crate::intake::AtLimit {
            tenant: "acme".into(),
            limit: crate::intake::Limit::IngestBytes,
            most: 1_000_000,
            current: 900_000,
            requested: 200_000,
            retry_after: Duration::from_millis(1_100),
        };
        server.sink.refuse_next(Refused::AtLimit(Box::new(at)));
        let answer = server.post(&[&with(ACME)], "x").await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
        let said = "tenant acme is at its limit: limits.ingest.bytes allows 1 MB at once, 900 KB of it are used, and 200 KB more were to come; \
                    nothing of this request was taken, send it again";
        assert_eq!(answer.error(), said);
        assert_eq!(server.sink.refused()["tenant_ingest"], 1);
        assert_eq!(server.post(&[&with(ACME)], "x").await.status, 200);
        server.stop().await;
    }
}
