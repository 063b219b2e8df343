//! A component that sends its batch by HTTP, from WebAssembly to a real socket and back.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::*;
use crate::capability::aws::testing::{Seen, serve};
use crate::config::HttpDestination;
use crate::plugin::{Failure, FailureKind};

/// What becomes of a batch that is posted to a server which answers so, and what the server saw.
async fn posted(granted: bool, answers: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> (Outcome, Vec<Seen>) {
    let (url, seen) = serve(answers).await;
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    if granted {
        let http = vec![HttpDestination::parse(&url).unwrap()];
        bench.services.grant(GrantsConfig { http, ..GrantsConfig::default() });
    }
    let batch = bench.batch(&format!("post {url}/v1"), &["a", "b"]).await;
    let (outcome, worker) = worker.deliver(batch).await;
    worker.unwrap().close().await;
    let seen = seen.lock().unwrap().clone();
    (outcome, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_arrives_in_its_envelope() {
    let (outcome, seen) = posted(true, |_| StatusCode::OK.into_response()).await;
    assert_eq!(outcome, Outcome::Delivered { rejected: vec![] });
    assert_eq!((seen.len(), seen[0].uri.path(), &*seen[0].content), (1, "/v1", &b"[a\nb\n]"[..]));
    assert_eq!(seen[0].header("content-type"), Some("text/plain"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_asks_for_reaches_the_schedule() {
    let answer = |_: &Seen| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "2")], "slow down").into_response();
    let (outcome, seen) = posted(true, answer).await;
    let Outcome::Failed(Failure { kind, message, retry_after }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((kind, retry_after), (FailureKind::Throttled, Some(Duration::from_secs(2))));
    assert!(
        message.starts_with("POST http://127.0.0.1:") && message.ends_with(" answered 429: slow down"),
        "{message}"
    );
    assert_eq!(seen.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_waits_for_a_person() {
    let (outcome, seen) = posted(false, |_| StatusCode::OK.into_response()).await;
    let Outcome::Failed(Failure { kind, message, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(kind, FailureKind::Misconfigured);
    assert!(message.contains("is not granted to output archive"), "{message}");
    assert!(seen.is_empty());
}
