//! The host's side of CloudWatch Logs over real sockets, against a server that answers what a test wants.

mod errors;
mod messages;
mod requests;
mod signature;
mod strict;

use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::capability::aws::Connection;
use crate::capability::aws::testing::{Seen, serve};
use crate::capability::bindings::cloudwatch_logs::{Host as _, HostEvents as _};
use crate::capability::bindings::types::ServiceError;
use crate::capability::log::GuestLog;
use crate::capability::{Phase, Services};
use crate::config::{AwsConfig, GrantsConfig, LogGroupGrant};
use crate::journal::{self, Journal};
use crate::record::{BodyKind, ChunkBuilder, Partitioning, Portion};
use crate::state::{BatchId, State};
use crate::telemetry::Metrics;

/// Records, each a time and a body, that make a chunk.
type OfOneKind<'a> = (BodyKind, &'a [(i64, &'a [u8])]);

/// A guest at work, granted `/app` and `/web/*`, and the server that its calls reach.
struct Bench {
    caller: Caller,
    journal: Journal,
    seen: Arc<Mutex<Vec<Seen>>>,
    _dir: TempDir,
}

impl Bench {
    async fn new(answers: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        let (endpoint, seen) = serve(answers).await;
        Self::at(AwsConfig { endpoint: Some(endpoint), ..AwsConfig::default() }, seen)
    }

    fn at(aws: AwsConfig, seen: Arc<Mutex<Vec<Seen>>>) -> Self {
        let credentials = Credentials::new("AKIDEXAMPLE", signature::SECRET, None, None, "test");
        Self::over(Connection::with_credentials(aws, credentials), seen)
    }

    fn over(connection: Arc<Connection>, seen: Arc<Mutex<Vec<Seen>>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let limits = journal::Options { segment_bytes: 1 << 20, max_bytes: None, reserve_bytes: 0 };
        let (journal, _) = Journal::open(&dir.path().join("journal"), &dir.path().join("quarantine"), limits).unwrap();
        journal.start(Box::new(|_| {}));
        let (state, _) = State::open(dir.path()).unwrap();
        let services = Services::over("live".into(), connection, state, Metrics::new());
        let group = |name: &str| LogGroupGrant { log_group: name.into() };
        services
            .grant(GrantsConfig { cloudwatch_logs: vec![group("/app"), group("/web/*")], ..GrantsConfig::default() });
        let mut caller = Caller::new(Arc::clone(&services), GuestLog::new(services, 0, "p".into()));
        caller.phase = Phase::Work;
        Self { caller, journal, seen, _dir: dir }
    }

    /// A batch of these chunks, each a kind and its records.
    async fn batch(&mut self, chunks: &[OfOneKind<'_>]) -> Resource<Batch> {
        let mut found = Vec::new();
        for (kind, records) in chunks {
            let mut builder = ChunkBuilder::new(*kind, "app".into());
            for (time_ns, body) in *records {
                assert!(builder.push(*time_ns, body));
            }
            let chunk = builder.finish().unwrap();
            let meta = Arc::clone(chunk.meta());
            found.push(Portion::whole(self.journal.append(chunk).await.unwrap().unwrap(), meta));
        }
        let together = Arc::new(Partitioning::new(&[]));
        let batch = Batch::new(BatchId([1; 16]), 1, found.into(), together, self.journal.clone());
        self.caller.hand_out(batch).unwrap()
    }

    /// All records of these chunks as events.
    async fn events(&mut self, log_key: Option<&str>, chunks: &[OfOneKind<'_>]) -> Resource<Events> {
        let batch = self.batch(chunks).await;
        let events = self.caller.prepare(borrow(&batch), Selection::All, log_key.map(str::to_owned)).await;
        self.caller.table.delete(batch).unwrap();
        events.unwrap().unwrap()
    }

    /// Lines as events, a millisecond apart.
    async fn lines(&mut self, lines: &[&str]) -> Resource<Events> {
        let records: Vec<(i64, &[u8])> = (1..).zip(lines).map(|(n, line)| (n * 1_000_000, line.as_bytes())).collect();
        self.events(Some("log"), &[(BodyKind::Text, &records)]).await
    }

    async fn sizes(&mut self, events: &Resource<Events>, first: u32, count: u32) -> Vec<u32> {
        self.caller.sizes(borrow(events), first, count).await.unwrap().unwrap()
    }

    async fn put(&mut self, events: &Resource<Events>, what: Put) -> Result<Accepted, Error> {
        self.caller.put_log_events(borrow(events), what).await.unwrap()
    }

    /// One event, put.
    async fn put_one(&mut self) -> Result<Accepted, Error> {
        let events = self.lines(&["line"]).await;
        self.put(&events, order(&[0])).await
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn only_request(&self) -> Seen {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }
}

fn borrow<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

/// A put of these events into `/app`.
fn order(order: &[u32]) -> Put {
    Put {
        log_group: "/app".into(),
        log_stream: "host".into(),
        order: order.to_vec(),
        pieces: vec![],
        log_format: None,
        entity: None,
    }
}

fn answer(text: &'static str) -> Response {
    ([("content-type", "application/x-amz-json-1.1")], text).into_response()
}

fn ok() -> Response {
    answer("{}")
}

fn refusal(status: u16, code: &str) -> Response {
    let document = serde_json::json!({ "__type": code, "message": "told so" }).to_string();
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/x-amz-json-1.1")], document).into_response()
}

fn json(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.content).unwrap()
}

/// The events of a request: time and message.
fn sent(seen: &Seen) -> Vec<(i64, String)> {
    let request = json(seen);
    let events = request["logEvents"].as_array().unwrap().iter();
    events.map(|event| (event["timestamp"].as_i64().unwrap(), event["message"].as_str().unwrap().to_owned())).collect()
}

fn service<T: std::fmt::Debug>(answer: Result<T, Error>) -> ServiceError {
    match answer {
        Err(Error::Service(error)) => error,
        other => panic!("no refusal of the service: {other:?}"),
    }
}

fn invalid<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Host(HostError::Invalid(text))) => text,
        other => panic!("not invalid: {other:?}"),
    }
}
