//! What goes out and what comes back.

use std::sync::Mutex;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use futures_util::future::BoxFuture;

use super::*;
use crate::capability::aws::testing::serve;

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
