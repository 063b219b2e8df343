//! What goes out and what comes back.

use std::sync::Mutex;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use super::*;
use crate::capability::aws::testing::serve;
use crate::capability::{Usage, Watch};

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_its_answer_comes_back() {
    let (url, seen) =
        serve(|_| (StatusCode::ACCEPTED, [("x-id", "7"), ("retry-after", "3")], "taken").into_response()).await;
    let mut output = Setup::granted(&[&url]).start();
    let asked = Request {
        headers: vec![
            ("Content-Type".into(), "application/json".into()),
            ("X-Two".into(), "a".into()),
            ("x-two".into(), "b".into()),
        ],
        ..request("POST", &format!("{url}/v1/logs?app=a%20b"))
    };
    let answer = output.send_body(asked, "{\"a\":1}").await.unwrap();
    assert_eq!((answer.status, &*answer.body, answer.truncated), (202, &b"taken"[..], false));
    assert_eq!(answer.retry_after_ms, Some(3000));
    assert!(answer.headers.contains(&("x-id".into(), "7".into())), "{:?}", answer.headers);

    let seen = seen.lock().unwrap().remove(0);
    assert_eq!((seen.method.as_str(), seen.uri.to_string()), ("POST", "/v1/logs?app=a%20b".to_owned()));
    assert_eq!(&*seen.content, b"{\"a\":1}");
    assert_eq!(seen.header("host"), url.strip_prefix("http://"));
    for (name, value) in
        [("content-type", "application/json"), ("content-length", "7"), ("accept-encoding", "identity")]
    {
        assert_eq!(seen.header(name), Some(value));
    }
    assert_eq!(seen.headers.get_all("x-two").iter().collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (url, seen) = serve(|_| {
        (StatusCode::TEMPORARY_REDIRECT, [("location", "http://169.254.169.254/latest/meta-data/")]).into_response()
    })
    .await;
    let answer = Setup::granted(&[&url]).start().send(request("GET", &url)).await.unwrap();
    assert_eq!(answer.status, 307);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// A way out that keeps what was sent and answers the same each time.
#[derive(Debug, Default)]
struct Script(Mutex<Vec<Outgoing>>);

impl Wire for Script {
    fn send(&self, request: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>> {
        self.0.lock().unwrap().push(request);
        Box::pin(async {
            Ok(Incoming { status: 429, headers: vec![("retry-after".into(), "2".into())], ..Incoming::default() })
        })
    }
}

#[tokio::test]
async fn a_script_can_answer_in_the_place_of_the_network() {
    let script = Arc::new(Script::default());
    let mut output =
        Setup { wire: Some(Arc::clone(&script) as Arc<dyn Wire>), ..Setup::granted(&["https://api.example.com"]) }
            .start();
    let answer = output.send_body(request("PUT", "https://api.example.com/x"), "body").await.unwrap();
    assert_eq!((answer.status, answer.retry_after_ms), (429, Some(2000)));
    let sent = script.0.lock().unwrap().remove(0);
    assert_eq!((sent.method.as_str(), sent.url.path(), sent.body.as_deref()), ("PUT", "/x", Some(&b"body"[..])));
    let refused = output.send(request("PUT", "https://other.example.com/x")).await;
    assert!(matches!(refused, Err(Error::Host(HostError::Denied(_)))), "{refused:?}");
    assert!(script.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_is_none_is_sent_as_none() {
    let (url, seen) = serve(|_| "".into_response()).await;
    let mut output = Setup::granted(&[&url]).start();
    for method in ["GET", "POST", "DELETE"] {
        output.send(request(method, &url)).await.unwrap();
    }
    output.send_body(request("POST", &url), "").await.unwrap();
    let lengths: Vec<Option<String>> =
        seen.lock().unwrap().iter().map(|seen| seen.header("content-length").map(str::to_owned)).collect();
    // RFC 9110, section 8.6: a POST says that its body is empty, a GET has none to speak of.
    assert_eq!(lengths, [None, Some("0".into()), None, Some("0".into())]);
}

#[tokio::test]
async fn nothing_that_is_wrong_or_not_granted_reaches_a_server() {
    let (url, seen) = serve(|_| "".into_response()).await;
    let mut output = Setup::granted(&[&url]).start();
    let with = |name: &str, value: &str| Request { headers: vec![(name.into(), value.into())], ..request("GET", &url) };
    for wrong in [
        with("X-A", "1\r\nHost: evil.example\r\n\r\nGET /second HTTP/1.1"),
        with("X-A\r\nX-B", "1"),
        with("Host", "evil.example"),
        with("Content-Length", "5"),
        with("Transfer-Encoding", "chunked"),
        with("Proxy-Authorization", "Basic x"),
        request("CONNECT", &url),
        request("GET /second HTTP/1.1\r\n", &url),
        request("GET", &format!("{url}/\r\nX-A: 1")),
        request("GET", &format!("{url}#f")),
        request("GET", &url.replace("http://", "http://u:p@")),
    ] {
        let answer = output.send(wrong.clone()).await;
        assert!(matches!(answer, Err(Error::Host(HostError::Invalid(_)))), "{wrong:?}: {answer:?}");
    }
    denied(output.send(request("GET", "https://other.example.com/")).await);
    output.caller.phase = Phase::Configure;
    denied(output.send(request("GET", &url)).await);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn requests_are_counted_by_how_they_ended() {
    let (url, _) = serve(|seen| match seen.uri.path() {
        "/busy" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "/gone" => StatusCode::NOT_FOUND.into_response(),
        _ => "12345".into_response(),
    })
    .await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{gone}");
    let mut output = Setup::granted(&[&url, &nobody]).start();
    output.send_body(request("POST", &url), "1234567").await.unwrap();
    for path in ["/busy", "/gone", "/gone"] {
        output.send(request("GET", &format!("{url}{path}"))).await.unwrap();
    }
    no_answer(output.send(request("GET", &nobody)).await);
    denied(output.send(request("GET", "https://other.example.com/")).await);
    let shown = output.metrics.render();
    for line in [
        "wharf_http_requests_total{output=\"live\",result=\"2xx\"} 1",
        "wharf_http_requests_total{output=\"live\",result=\"4xx\"} 2",
        "wharf_http_requests_total{output=\"live\",result=\"5xx\"} 1",
        "wharf_http_requests_total{output=\"live\",result=\"no_answer\"} 1",
        "wharf_http_requests_total{output=\"live\",result=\"refused\"} 1",
        "wharf_http_request_bytes_total{output=\"live\"} 7",
        "wharf_http_response_bytes_total{output=\"live\"} 5",
        "wharf_http_request_seconds_count{output=\"live\"} 5",
    ] {
        assert!(shown.lines().any(|one| one == line), "{line} is not in {shown}");
    }
}

/// A test's clock, which stands.
#[derive(Debug)]
struct Standing(i64);

impl Watch for Standing {
    fn now_ns(&self) -> i64 {
        self.0
    }
    fn numbered(&self, _: &'static str, _: &str, _: u64) {}
    fn logged(&self, _: &'static str, _: &str, _: &str) {}
    fn used(&self, _: Usage) {}
}

/// The date is RFC 9110's own example, 784111777 seconds after 1970.
#[tokio::test]
async fn a_date_in_retry_after_is_held_against_the_clock_of_whoever_looks_on() {
    let (url, _) = serve(|_| {
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], "").into_response()
    })
    .await;
    let mut output = Setup::granted(&[&url]).start();
    output.caller.services.watched_by(Arc::new(Standing((784_111_777 - 90) * 1_000_000_000)));
    let answer = output.send(request("GET", &url)).await.unwrap();
    assert_eq!(answer.retry_after_ms, Some(90_000));
}
