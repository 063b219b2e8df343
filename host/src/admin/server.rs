//! The HTTP side.
//!
//! The server has no users and no passwords: who may read it is the network's affair. A `POST` changes something, so it is
//! answered only over a connection from this machine, whatever address the server listens on. That a browser on this machine is not made to
//! send one by a page from elsewhere: it must be JSON, which such a page may not send without asking, and the `Host` that it names must be
//! an address or `localhost`, which a name that was pointed at this machine is not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{EndAsked, NotEnded, NotNow, Quarantine, Reload, ReloadAsked, ReloadResult, Status};
use crate::telemetry::CONTENT_TYPE;

/// How long open requests may take when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Why the admin server does not run.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address.
    #[error("the admin server cannot listen on {address}: {cause}{}", remedy(.cause))]
    Bind {
        /// `admin.listen`
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The listener broke.
    #[error("the admin server on {address} ended: {cause}")]
    Ended {
        /// Where it listened.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
}

fn remedy(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        std::io::ErrorKind::AddrInUse => "; stop what listens there, or give admin.listen another port",
        std::io::ErrorKind::AddrNotAvailable => "; admin.listen must be an address of this machine",
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege, give admin.listen a higher one",
        _ => "",
    }
}

/// What whoever is on this machine may change; none is turned off.
#[derive(Clone, Default)]
pub struct Doors {
    /// `POST /reload`
    pub reload: Option<Arc<dyn Reload>>,
    /// `POST /quarantine/end`
    pub quarantine: Option<Arc<dyn Quarantine>>,
}

/// An admin server that has its address already.
#[derive(Debug)]
pub struct AdminServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl AdminServer {
    /// Takes the address, so that a start with a wrong one fails at once.
    ///
    /// # Errors
    /// [`AdminError::Bind`].
    pub async fn bind(listen: SocketAddr) -> Result<Self, AdminError> {
        let failed = |cause| AdminError::Bind { address: listen, cause };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it listens: with port 0 in the configuration, the one that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown`.
    ///
    /// # Errors
    /// [`AdminError::Ended`].
    pub async fn run(
        self,
        status: Arc<dyn Status>,
        doors: Doors,
        shutdown: CancellationToken,
    ) -> Result<(), AdminError> {
        let Self { listener, address } = self;
        let stopping = shutdown.clone();
        let service = routes(status, doors, address).into_make_service_with_connect_info::<SocketAddr>();
        let server = axum::serve(listener, service).with_graceful_shutdown(shutdown.cancelled_owned());
        // A client that never ends its request must not hold up the stop.
        let deadline = async {
            stopping.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        tokio::select! {
            ended = server.into_future() => ended.map_err(|cause| AdminError::Ended { address, cause }),
            () = deadline => Ok(()),
        }
    }
}

fn routes(status: Arc<dyn Status>, doors: Doors, address: SocketAddr) -> Router {
    Router::new()
        .route("/reload", post(reload_now).with_state((doors.reload, address)))
        .route("/quarantine/end", post(end_quarantine).with_state((doors.quarantine, address)))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .fallback(|| async {
            let there = "there is GET /health, /ready and /metrics, and POST /reload and /quarantine/end\n";
            (StatusCode::NOT_FOUND, there)
        })
        .with_state(status)
}

async fn health(State(status): State<Arc<dyn Status>>) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(status.health())).into_response()
}

async fn reload_now(
    State((reload, address)): State<(Option<Arc<dyn Reload>>, SocketAddr)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(reload) = reload else {
        return refuse(StatusCode::FORBIDDEN, "reload by the admin server is off (admin.reload)");
    };
    let asked: ReloadAsked = match asked(peer, address, &headers, body, "{} or {\"discard\": [\"NAME\"]}").await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    match reload.reload(asked).await {
        Err(NotNow(why)) => refuse(StatusCode::CONFLICT, &why),
        Ok(reloaded) => {
            let status = match reloaded.result {
                ReloadResult::Applied | ReloadResult::Unchanged => StatusCode::OK,
                ReloadResult::Refused => StatusCode::UNPROCESSABLE_ENTITY,
                ReloadResult::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Json(reloaded)).into_response()
        }
    }
}

async fn end_quarantine(
    State((quarantine, address)): State<(Option<Arc<dyn Quarantine>>, SocketAddr)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(quarantine) = quarantine else {
        return refuse(StatusCode::FORBIDDEN, "ending a quarantine by the admin server is off (admin.end_quarantine)");
    };
    let asked: EndAsked = match asked(peer, address, &headers, body, "{\"output\": \"NAME\"}").await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    match quarantine.end_quarantine(&asked.output) {
        Ok(ended) => Json(ended).into_response(),
        Err(why) => {
            let status = match why {
                NotEnded::Unknown { .. } => StatusCode::NOT_FOUND,
                NotEnded::NotQuarantined(_) | NotEnded::Starting => StatusCode::CONFLICT,
            };
            refuse(status, &why.to_string())
        }
    }
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(serde_json::json!({ "error": why }))).into_response()
}

/// How large the body of a request that changes something may be, bytes.
const LARGEST_ASKED: usize = 64 << 10;

/// What is asked for, where whoever asks may. `wanted` is what the body looks like.
async fn asked<T: DeserializeOwned>(
    peer: SocketAddr,
    address: SocketAddr,
    headers: &HeaderMap,
    body: Body,
    wanted: &str,
) -> Result<T, Response> {
    is_from_here(peer, address, headers).map_err(|why| refuse(StatusCode::FORBIDDEN, why))?;
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(';').next().unwrap_or_default().trim() == "application/json");
    if !is_json {
        let why = format!("send Content-Type: application/json, and {wanted}");
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &why));
    }
    let Ok(body) = axum::body::to_bytes(body, LARGEST_ASKED).await else {
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    };
    if body.trim_ascii().is_empty() {
        return Err(refuse(StatusCode::BAD_REQUEST, &format!("the body is empty: send {wanted}")));
    }
    serde_json::from_slice(&body).map_err(|cause| {
        refuse(StatusCode::BAD_REQUEST, &format!("the body is not what is expected, {wanted}: {cause}"))
    })
}

/// Whether a request comes from this machine, and by no name that somebody else chose.
/// Who comes from the address that the server has is here as well.
fn is_from_here(peer: SocketAddr, address: SocketAddr, headers: &HeaderMap) -> Result<(), &'static str> {
    let (peer, own) = (peer.ip().to_canonical(), address.ip().to_canonical());
    if !(peer.is_loopback() || peer == own) {
        return Err("only whoever is on this machine may change something: ask over 127.0.0.1 or ::1");
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    if address.is_ok() || name.eq_ignore_ascii_case("localhost") {
        Ok(())
    } else {
        Err("the Host header must be an address or localhost")
    }
}

async fn ready(State(status): State<Arc<dyn Status>>) -> Response {
    match status.ready() {
        Ok(()) => (StatusCode::OK, "ready\n").into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

async fn metrics(State(status): State<Arc<dyn Status>>) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], status.metrics()).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use std::pin::Pin;

    use axum::body::to_bytes;
    use axum::http::Request;
    use tower::ServiceExt;

    use super::super::{
        Health, JournalHealth, OutputHealth, Parts, Phase, QuarantineEnded, Reloaded, RetriesHealth, WorkerHealth,
    };
    use super::*;

    /// Where the server listens.
    const OWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 9600);

    struct Fixed {
        ready: Mutex<Result<(), String>>,
        problems: Vec<String>,
    }

    impl Status for Fixed {
        fn health(&self) -> Health {
            Health {
                phase: Phase::Running,
                uptime_seconds: 12.5,
                problems: self.problems.clone(),
                journal: JournalHealth { writable: true, reason: None, disk_bytes: 4096 },
                tenants: vec![],
                outputs: vec![OutputHealth {
                    name: "archive".into(),
                    tenant: None,
                    plugin: "s3".into(),
                    oldest_undelivered_seconds: Some(3.0),
                    queue_bytes: 10,
                    queue_records: 2,
                    workers: vec![WorkerHealth { worker: 0, state: "waiting_for_retry".into() }],
                    quarantine: None,
                    retries: Some(RetriesHealth {
                        batches: 2,
                        next_in_seconds: 1.5,
                        reason: "throttled: slow down".into(),
                    }),
                    last_failure: None,
                }],
                kept: vec![],
                last_reload: None,
            }
        }
        fn ready(&self) -> Result<(), String> {
            self.ready.lock().unwrap().clone()
        }
        fn metrics(&self) -> String {
            "# EOF\n".into()
        }
    }

    fn status(problems: &[&str], ready: Result<(), String>) -> Arc<dyn Status> {
        Arc::new(Fixed { ready: Mutex::new(ready), problems: problems.iter().map(|p| (*p).to_owned()).collect() })
    }

    async fn get(status: Arc<dyn Status>, path: &str) -> (StatusCode, String, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = routes(status, Doors::default(), OWN).oneshot(request).await.unwrap();
        let content_type = response.headers().get("content-type").map(|v| v.to_str().unwrap().to_owned());
        let code = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, content_type.unwrap_or_default(), String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn health_tells_everything_as_json_and_is_200_even_when_degraded() {
        let (code, content_type, body) = get(status(&[], Ok(())), "/health").await;
        assert_eq!((code, content_type.as_str()), (StatusCode::OK, "application/json"));
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["status"], "ok");
        assert_eq!(body["state"], "running");
        assert_eq!(body["outputs"][0]["oldest_undelivered_seconds"], 3.0);
        assert_eq!(body["outputs"][0]["workers"][0]["state"], "waiting_for_retry");
        let retries = serde_json::json!({ "batches": 2, "next_in_seconds": 1.5, "reason": "throttled: slow down" });
        assert_eq!(body["outputs"][0]["retries"], retries);

        let (code, _, body) = get(status(&["plugin s3 is quarantined"], Ok(())), "/health").await;
        assert_eq!(code, StatusCode::OK);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["status"], "degraded");
        assert_eq!(body["problems"][0], "plugin s3 is quarantined");
    }

    #[tokio::test]
    async fn ready_is_503_with_the_reason_while_records_are_not_taken() {
        assert_eq!(get(status(&[], Ok(())), "/ready").await.0, StatusCode::OK);
        let (code, _, body) = get(status(&[], Err("the disk is full".into())), "/ready").await;
        assert_eq!((code, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not ready: the disk is full\n"));
    }

    #[tokio::test]
    async fn metrics_have_the_content_type_of_open_metrics() {
        let (code, content_type, body) = get(status(&[], Ok(())), "/metrics").await;
        assert_eq!((code, content_type.as_str(), body.as_str()), (StatusCode::OK, CONTENT_TYPE, "# EOF\n"));
    }

    #[tokio::test]
    async fn an_unknown_path_says_which_there_are() {
        let (code, _, body) = get(status(&[], Ok(())), "/").await;
        assert_eq!(code, StatusCode::NOT_FOUND);
        assert!(body.contains("/health"));
    }

    struct Asked(Mutex<Vec<ReloadAsked>>);

    impl Reload for Asked {
        fn reload(&self, asked: ReloadAsked) -> Pin<Box<dyn Future<Output = Result<Reloaded, NotNow>> + Send + '_>> {
            Box::pin(async move {
                if asked.discard == ["busy"] {
                    return Err(NotNow("another reload is under way".into()));
                }
                let refused = asked.discard == ["faulty"];
                self.0.lock().unwrap().push(asked);
                Ok(Reloaded {
                    result: if refused { ReloadResult::Refused } else { ReloadResult::Applied },
                    file: "wharf.yaml".into(),
                    trigger: "api".into(),
                    seconds: 0.5,
                    faults: if refused { vec!["wharf.yaml:1:1: wrong".into()] } else { vec![] },
                    undelivered: vec![],
                    outputs: Parts { added: vec!["live".into()], ..Parts::default() },
                    sources: Parts::default(),
                    discarded: vec![],
                    needs_restart: vec![],
                })
            })
        }
    }

    /// Outputs by what becomes of them.
    struct Held;

    impl Quarantine for Held {
        fn end_quarantine(&self, output: &str) -> Result<QuarantineEnded, NotEnded> {
            match output {
                "starting" => Err(NotEnded::Starting),
                "well" => Err(NotEnded::NotQuarantined("well".into())),
                "acme/live" => Ok(QuarantineEnded {
                    output: output.into(),
                    plugin: "own".into(),
                    batches: 3,
                    with: vec!["acme/other".into()],
                }),
                _ => Err(NotEnded::Unknown { output: output.into(), nearest: Some("acme/live".into()) }),
            }
        }
    }

    fn doors() -> Doors {
        Doors { reload: Some(Arc::new(Asked(Mutex::default()))), quarantine: Some(Arc::new(Held)) }
    }

    /// The status of a `POST` from `peer`, and its answer.
    async fn post_to(
        doors: Doors,
        path: &str,
        [peer, host, content_type]: [&str; 3],
        body: &str,
    ) -> (u16, serde_json::Value) {
        let mut request = Request::post(path)
            .header("host", host)
            .header("content-type", content_type)
            .body(Body::from(body.to_owned()))
            .unwrap();
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer.parse().unwrap()));
        let response = routes(status(&[], Ok(())), doors, OWN).oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, serde_json::from_slice(&body).unwrap())
    }

    const JSON: &str = "application/json";
    const HERE: [&str; 3] = ["127.0.0.1:5", "127.0.0.1", JSON];

    #[tokio::test]
    async fn what_changes_something_is_for_whoever_is_on_this_machine_and_for_no_page_of_a_browser() {
        for (peer, host, content_type, code) in [
            ("127.0.0.1:5", "127.0.0.1:9600", JSON, 200),
            ("[::1]:5", "[::1]:9600", JSON, 200),
            ("[::ffff:127.0.0.1]:5", "localhost", "application/json; charset=utf-8", 200),
            ("10.0.0.1:5", "10.0.0.1:9600", JSON, 200),
            ("10.0.0.7:5", "10.0.0.1:9600", JSON, 403),
            ("127.0.0.1:5", "evil.example.com:9600", JSON, 403),
            ("127.0.0.1:5", "", JSON, 403),
            ("127.0.0.1:5", "127.0.0.1", "text/plain", 415),
        ] {
            for (path, body) in [("/reload", "{}"), ("/quarantine/end", "{\"output\": \"acme/live\"}")] {
                let answer = post_to(doors(), path, [peer, host, content_type], body).await;
                assert_eq!(answer.0, code, "{path} {peer} {host} {content_type}: {}", answer.1);
            }
        }
    }

    #[tokio::test]
    async fn a_reload_answers_by_how_it_ended() {
        for (body, code) in [
            ("{}", 200),
            ("{\"discrad\": []}", 400),
            ("{\"discard\": [\"busy\"]}", 409),
            ("{\"discard\": [\"faulty\"]}", 422),
        ] {
            assert_eq!(post_to(doors(), "/reload", HERE, body).await.0, code, "{body}");
        }
        let (_, answer) = post_to(doors(), "/reload", HERE, "{\"discard\": [\"faulty\"]}").await;
        assert_eq!((&answer["result"], &answer["faults"][0]), (&"refused".into(), &"wharf.yaml:1:1: wrong".into()));
    }

    #[tokio::test]
    async fn a_quarantine_that_cannot_be_ended_says_why() {
        for (body, code, why) in [
            ("{\"output\": \"acme/lvie\"}", 404, "there is no output acme/lvie; did you mean acme/live?"),
            ("{\"output\": \"well\"}", 409, "output well is not in quarantine"),
            ("{\"output\": \"starting\"}", 409, "Wharf is starting: its outputs do not run yet"),
            (
                "{}",
                400,
                "the body is not what is expected, {\"output\": \"NAME\"}: missing field `output` at line 1 column 2",
            ),
        ] {
            let (status, answer) = post_to(doors(), "/quarantine/end", HERE, body).await;
            assert_eq!((status, answer["error"].as_str()), (code, Some(why)), "{body}");
        }
        let (_, answer) = post_to(doors(), "/quarantine/end", HERE, "{\"output\": \"acme/live\"}").await;
        let ended = serde_json::json!({ "output": "acme/live", "plugin": "own", "batches": 3, "with": ["acme/other"] });
        assert_eq!(answer, ended);
    }

    #[tokio::test]
    async fn an_empty_body_is_told_what_belongs_there() {
        for (path, wanted) in [
            ("/reload", "the body is empty: send {} or {\"discard\": [\"NAME\"]}"),
            ("/quarantine/end", "the body is empty: send {\"output\": \"NAME\"}"),
        ] {
            for body in ["", " \r\n"] {
                let (status, answer) = post_to(doors(), path, HERE, body).await;
                assert_eq!((status, answer["error"].as_str()), (400, Some(wanted)), "{path}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_turned_off_says_by_which_key() {
        for (path, key) in [("/reload", "(admin.reload)"), ("/quarantine/end", "(admin.end_quarantine)")] {
            let (status, answer) = post_to(Doors::default(), path, HERE, "{}").await;
            assert_eq!(status, 403);
            assert!(answer["error"].as_str().is_some_and(|why| why.ends_with(key)), "{answer}");
        }
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error_with_a_remedy() {
        let first = AdminServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = AdminServer::bind(first.address()).await.unwrap_err().to_string();
        assert!(error.contains("stop what listens there, or give admin.listen another port"), "{error}");
    }

    #[tokio::test]
    async fn the_server_ends_when_it_is_told_though_a_client_keeps_its_connection() {
        let server = AdminServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let _client = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(server.run(status(&[], Ok(())), Doors::default(), shutdown.clone()));
        shutdown.cancel();
        running.await.unwrap().unwrap();
    }
}
