//! Requests as a guest makes them, over real sockets.

mod addresses;
mod bounds;
mod credentials;
mod exchange;
mod proxy;
mod raw;
mod tls;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tempfile::TempDir;

use super::*;
use crate::capability::aws::Connection;
use crate::capability::bindings::http::Host as _;
use crate::capability::log::GuestLog;
use crate::capability::{Phase, Services};
use crate::config::{AwsConfig, Credential, GrantsConfig, HttpConfig, HttpDestination};
use crate::state::State;
use crate::telemetry::Metrics;

/// An output at work that may send requests to some destinations.
pub(super) struct Output {
    pub(super) caller: Caller,
    pub(super) metrics: Metrics,
    _folder: TempDir,
}

/// What an output is made of, where a test says nothing else.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) http: HttpConfig,
    pub(super) grants: Vec<HttpDestination>,
    pub(super) credentials: Vec<Credential>,
    pub(super) lookup: Option<Arc<dyn Lookup>>,
    pub(super) wire: Option<Arc<dyn Wire>>,
}

impl Setup {
    /// May send requests to these.
    pub(super) fn granted(destinations: &[&str]) -> Self {
        let grants = destinations.iter().map(|text| HttpDestination::parse(text).unwrap()).collect();
        Self { grants, ..Self::default() }
    }

    pub(super) fn start(self) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let (state, _) = State::open(folder.path()).unwrap();
        let metrics = Metrics::new();
        let keys = aws_credential_types::Credentials::new("AKIDEXAMPLE", "secret-key", None, None, "test");
        let aws = Connection::with_credentials(AwsConfig::default(), keys);
        let secrets = Credentials::new(self.credentials.clone(), Arc::clone(&aws));
        let wire: Arc<dyn Wire> = match (self.wire, self.lookup) {
            (Some(wire), _) => wire,
            (None, Some(lookup)) => Network::looking_up_with(self.http.clone(), secrets, lookup),
            (None, None) => Network::new(self.http.clone(), secrets),
        };
        let services = Services::over_wire("live".into(), aws, wire, state, metrics.clone());
        let credentials = self.credentials.iter().map(Credential::granted).collect();
        services.grant(GrantsConfig { http: self.grants, credentials, ..GrantsConfig::default() });
        let mut caller = Caller::new(Arc::clone(&services), GuestLog::new(services, 0, "p".into()));
        caller.phase = Phase::Work;
        Output { caller, metrics, _folder: folder }
    }
}

/// Why a request was refused before anything was sent.
#[track_caller]
pub(super) fn denied(answer: Result<Response, Error>) -> String {
    match answer {
        Err(Error::Host(HostError::Denied(text))) => text,
        other => panic!("not denied: {other:?}"),
    }
}

/// Why there was no answer.
#[track_caller]
pub(super) fn no_answer(answer: Result<Response, Error>) -> String {
    match answer {
        Err(Error::Connection(text)) => text,
        other => panic!("there was an answer: {other:?}"),
    }
}

impl Output {
    pub(super) async fn send(&mut self, request: Request) -> Result<Response, Error> {
        self.caller.send(request, None).await.unwrap()
    }
    pub(super) async fn send_body(
        &mut self,
        request: Request,
        body: impl Into<bytes::Bytes>,
    ) -> Result<Response, Error> {
        let body = body.into();
        let charge = self.caller.bodies.reserve(body.len() as u64).unwrap();
        let body = self.caller.hand_out(Body::new(body, charge)).unwrap();
        self.caller.send(request, Some(body)).await.unwrap()
    }
}

/// A way out by which no answer ever comes.
#[derive(Debug)]
pub(super) struct Never;

impl Wire for Never {
    fn send(&self, _: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>> {
        Box::pin(std::future::pending())
    }
}

/// A request without anything special.
pub(super) fn request(method: &str, url: &str) -> Request {
    Request {
        method: method.into(),
        url: url.into(),
        headers: vec![],
        credential: None,
        timeout_ms: None,
        max_response_bytes: None,
    }
}
