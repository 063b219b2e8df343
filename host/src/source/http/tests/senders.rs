//! What other senders need: their formats, a tag that they say, a path to look at first.

use super::*;
use crate::config::HttpTag;

const MSGPACK: &str = "Content-Type: application/msgpack";

/// Worked by hand from the MessagePack specification. 1,700,000,000 is 0x6553f100.
fn events() -> Vec<u8> {
    let with_time = [&[0x92, 0xce, 0x65, 0x53, 0xf1, 0x00, 0x81, 0xa1, b'a', 0x01][..]];
    // An EventTime of one second and five nanoseconds more, with metadata: as Fluent Bit sends since 2.1.
    let with_metadata = [
        &[0x92, 0x92, 0xd7, 0x00, 0x65, 0x53, 0xf1, 0x01, 0x00, 0x00, 0x00, 0x05, 0x81, 0xa1, b'm', 0x02][..],
        &[0x81, 0xa1, b'b', 0xa1, b'x'][..],
    ];
    let alone = [&[0x81, 0xa1, b'c', 0xc3][..]];
    [&with_time[..], &with_metadata[..], &alone[..]].concat().concat()
}

#[tokio::test]
async fn message_pack_of_fluent_bit_is_taken_with_its_times() {
    let server = Server::start();
    let answer = server.post(&[MSGPACK], events()).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"accepted\":3}"));
    let answer = server.post(&["Content-Type: application/x-msgpack", "Content-Encoding: gzip"], gzip(&events())).await;
    assert_eq!(answer.status, 200);
    let expected = ["{\"a\":1}", "{\"b\":\"x\",\"metadata\":{\"m\":2}}", "{\"c\":true}"];
    assert_eq!(server.sink.lines(), [expected, expected].concat());
    let chunks = server.sink.chunks();
    let times: Vec<i64> = chunks[0].iter().map(|record| record.time_ns).collect();
    assert_eq!(times[..2], [1_700_000_000_000_000_000, 1_700_000_001_000_000_005]);
    // The third has none, and is of now.
    assert!(times[2] > 1_764_000_000_000_000_000);
    assert_eq!(server.sink.kinds(), [BodyKind::Json; 2]);
    server.stop().await;
}

#[tokio::test]
async fn message_pack_that_is_none_is_said_with_its_place_and_not_taken() {
    let server = Server::start();
    let deep = [vec![0x81, 0xa1, b'a'], vec![0x91; 200], vec![0x00]].concat();
    for (body, says) in [
        (vec![0xc1], "record 1, byte 0 of the body: 0xc1 begins no MessagePack value"),
        ([events(), vec![0x07]].concat(), "record 4, byte 35 of the body: an entry is [time, record]"),
        (events()[..25].to_vec(), "record 2, byte"),
        (b"{\"a\":1}".to_vec(), "record 1, byte 0 of the body: an entry is [time, record]"),
        (deep, "record 1, byte 0 of the body: it is nested more than 128 deep"),
        // A bin that JSON needs six bytes a byte for, and base64 would need less.
        (vec![0x81, 0xa1, b'a', 0xc6, 0xff, 0xff, 0xff, 0xff], "record 1, byte"),
    ] {
        let answer = server.post(&[MSGPACK], body).await;
        assert_eq!(answer.status, 400);
        assert!(answer.error().starts_with(says), "{answer:?}");
    }
    assert_eq!(server.sink.handed_in(), 0);
    server.stop().await;
}

/// RFC 9110, 8.4.1.2: `deflate` is the zlib format of RFC 1950. What Python's `zlib.compress(b"one\\ntwo\\n", 9)` gives.
#[tokio::test]
async fn deflate_is_what_vector_calls_zlib() {
    let server = Server::start();
    let bytes = hex::decode("78dacbcf4be52a29cfe702000d2f02b1").unwrap();
    let answer = server.post(&[TEXT, "Content-Encoding: deflate"], bytes).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(server.sink.lines(), ["one", "two"]);
    server.stop().await;
}

#[tokio::test]
async fn a_path_or_a_header_says_the_tag_where_that_is_asked_for() {
    for (from, path, headers, expected) in [
        (HttpTag::OfSource, "/a/b", vec!["X-Tag: c"], "web.tag"),
        (HttpTag::Path { prefix: "edge.".into() }, "/a/b?c=d", vec![], "edge.a.b"),
        (HttpTag::Header { name: "x-tag".into(), prefix: String::new() }, "/a/b", vec!["X-Tag: c.d"], "c.d"),
    ] {
        let server = Server::start_with(|http| http.tag = from);
        let answer = Client::connect(server.address).await.request_at(path, "POST", &headers, b"x").await;
        assert_eq!(answer.status, 200);
        assert_eq!(&*server.sink.chunks()[0].meta().tag, expected);
        server.stop().await;
    }
    let server = Server::start_with(|http| http.tag = HttpTag::Path { prefix: String::new() });
    let answer = Client::connect(server.address).await.request_at("/a%20b", "POST", &[], b"x").await;
    assert_eq!(answer.status, 400);
    assert!(answer.error().starts_with("the tag that the path says has a blank"), "{answer:?}");
    assert_eq!((server.sink.handed_in(), server.sink.refused()), (0, [("bad_request", 1)].into()));
    server.stop().await;
}

#[tokio::test]
async fn a_look_at_the_health_path_needs_no_token_and_tells_whether_requests_are_taken() {
    let server = Server::start_with(|http| http.tokens = vec![super::tokens::given(super::tokens::ACME, None)]);
    let mut client = Client::connect(server.address).await;
    for method in ["GET", "HEAD"] {
        let answer = Client::connect(server.address).await.head_at("/health", method).await;
        assert_eq!(answer, 200, "{method}");
    }
    let answer = client.request_at("/health", "GET", &[], b"").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"status\":\"ok\"}"));
    server.sink.refuse_next(Refused::DiskFull { retry_after: Duration::ZERO });
    let answer = client.request_at("/health?from=lb", "GET", &[], b"").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.body, "{\"status\":\"the disk that holds the data directory is full\"}");
    // Records are taken at any path, and only with a token.
    for (path, method) in [("/health", "POST"), ("/other", "GET")] {
        let answer = Client::connect(server.address).await.request_at(path, method, &[], b"").await;
        assert_eq!(answer.status, 401, "{method} {path}");
    }
    assert_eq!(server.sink.refused(), [("auth", 2)].into());
    server.stop().await;

    let server = Server::start_with(|http| http.health_path = None);
    assert_eq!(Client::connect(server.address).await.request_at("/health", "GET", &[], b"").await.status, 405);
    server.stop().await;
}

impl Client {
    /// Asks, and gives the answer's status, whether it has a body or not.
    async fn head_at(&mut self, path: &str, method: &str) -> u16 {
        self.0.write_all(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            assert!(self.0.read_buf(&mut bytes).await.unwrap() > 0);
        }
        String::from_utf8_lossy(&bytes).split(' ').nth(1).unwrap().parse().unwrap()
    }
}
