//! Requests as a guest makes them, over real sockets.

mod exchange;

use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::capability::aws::Connection;
use crate::capability::bindings::http::Host as _;
use crate::capability::log::GuestLog;
use crate::capability::{Phase, Services};
use crate::config::{AwsConfig, Credential, Destination, GrantsConfig, HttpConfig};
use crate::state::State;
use crate::telemetry::Metrics;

/// An output at work that may send requests to some destinations.
pub(super) struct Output {
    pub(super) caller: Caller,
    pub(super) metrics: Metrics,
    _folder: TempDir,
}

/// What an output is made of, where a test says nothing else.
pub(super) struct Setup {
    pub(super) http: HttpConfig,
    pub(super) grants: Vec<Destination>,
    pub(super) credentials: Vec<Credential>,
    pub(super) wire: Option<Arc<dyn Wire>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { http: HttpConfig::default(), grants: vec![], credentials: vec![], wire: None }
    }
}

impl Setup {
    /// May send requests to these.
    pub(super) fn granted(destinations: &[&str]) -> Self {
        Self { grants: destinations.iter().map(|text| Destination::parse(text).unwrap()).collect(), ..Self::default() }
    }

    pub(super) fn start(self) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let (state, _) = State::open(folder.path()).unwrap();
        let metrics = Metrics::new();
        let aws = Connection::for_settings(&AwsConfig::default());
        let wire = self
            .wire
            .unwrap_or_else(|| Network::new(self.http, Credentials::new(self.credentials.clone(), Arc::clone(&aws))));
        let services = Services::over_wire("live".into(), aws, wire, state, metrics.clone());
        let credentials = self.credentials.iter().map(Credential::granted).collect();
        services.grant(GrantsConfig { http: self.grants, credentials, ..GrantsConfig::default() });
        let mut caller = Caller::new(Arc::clone(&services), GuestLog::new(services, 0, "p".into()));
        caller.phase = Phase::Work;
        Output { caller, metrics, _folder: folder }
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
