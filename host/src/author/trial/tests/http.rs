//! HTTP on a scripted wire.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::case::Case;
use super::super::wire::{HttpWire, Notes, Scripts};
use crate::capability::bindings::http::Error;
use crate::capability::http::{Addresses, Incoming, Outgoing, Wire as _};

fn wire(answers: &str) -> (HttpWire, Arc<Notes>) {
    let text = format!("records: []\nanswers:\n  http: {answers}\n");
    let case = Case::parse(&text, Path::new("t.yaml"), &|_| None).unwrap();
    let notes = Arc::new(Notes::new(0));
    (HttpWire::new(Arc::clone(&notes), Arc::new(Scripts::new(&case.answers))), notes)
}

fn post(url: &str, body: &'static [u8]) -> Outgoing {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    Outgoing {
        method: http::Method::POST,
        url: url.parse().unwrap(),
        headers,
        credential: Some("api".into()),
        body: Some(Bytes::from_static(body)),
        timeout: Duration::from_secs(7),
        max_response_bytes: 10,
        addresses: Addresses::default(),
    }
}

fn calls(notes: &Notes) -> Vec<Value> {
    notes.heard().calls.into_iter().map(|call| Value::Object(call.said)).collect()
}

#[tokio::test]
async fn answers_come_in_their_order_and_the_last_one_stays() {
    let (wire, notes) = wire(
        "[{ status: 429, headers: { Retry-After: 2 } }, reset, timeout, no-credentials, { status: 200, body: { rejected: [0] } }]",
    );
    let mut answers = vec![];
    for _ in 0..6 {
        answers.push(wire.send(post("https://api.example.com/v1/logs", b"{\"a\":1}")).await);
    }
    let [throttled, reset, timeout, credentials, last, again] = answers.try_into().unwrap();
    let throttled: Incoming = throttled.unwrap();
    assert_eq!((throttled.status, throttled.headers), (429, vec![("retry-after".into(), "2".into())]));
    assert!(
        matches!(reset, Err(Error::Connection(text)) if text == "https://api.example.com: connection reset by peer")
    );
    assert!(
        matches!(timeout, Err(Error::Connection(text)) if text == "https://api.example.com gave no answer within 7s")
    );
    assert!(matches!(credentials, Err(Error::Credentials(_))));
    for answer in [last.unwrap(), again.unwrap()] {
        // `{"rejected":[0]}` is 16 bytes, of which the request wants 10.
        assert_eq!((answer.status, answer.body.as_slice(), answer.truncated), (200, &b"{\"rejected"[..], true));
    }
    let expected = |answer: &str| {
        json!({
            "http": "POST https://api.example.com/v1/logs", "credential": "api",
            "headers": { "content-type": "application/json" }, "body": "{\"a\":1}", "answer": answer,
        })
    };
    let words = ["429", "reset", "timeout", "no-credentials", "ok", "ok"];
    assert_eq!(calls(&notes), words.map(expected));
}

#[tokio::test]
async fn each_request_line_may_have_answers_of_its_own() {
    let (wire, _) = wire("{ \"POST https://auth.test/…\": { body: { token: t } }, \"POST …/v1/…\": [503, ok] }");
    let status = async |url| wire.send(post(url, b"")).await.unwrap().status;
    assert_eq!(status("https://api.test/v1/logs").await, 503);
    assert_eq!(wire.send(post("https://auth.test/token", b"")).await.unwrap().body, b"{\"token\":\"");
    assert_eq!(status("https://api.test/v1/logs").await, 200);
    assert_eq!(status("https://elsewhere.test/").await, 200);
}
