//! The HTTP side.
//!
//! The server has no users and no passwords: who may read it is the network's affair. `POST /reload` changes something, so it is
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
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{NotNow, Reload, ReloadAsked, ReloadResult, Status};
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
        reload: Option<Arc<dyn Reload>>,
        shutdown: CancellationToken,
    ) -> Result<(), AdminError> {
        let Self { listener, address } = self;
        let stopping = shutdown.clone();
        let service = routes(status, reload, address).into_make_service_with_connect_info::<SocketAddr>();
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

fn routes(status: Arc<dyn Status>, reload: Option<Arc<dyn Reload>>, address: SocketAddr) -> Router {
    Router::new()
        .route("/reload", post(reload_now).with_state((reload, address)))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is GET /health, /ready and /metrics, and POST /reload\n") })
        .with_state(status)
}

async fn health(State(status): State<Arc<dyn Status>>) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(status.health())).into_response()
}

/// How large a body of `POST /reload` may be, bytes.
const LARGEST_ASKED: usize = 64 << 10;

async fn reload_now(
    State((reload, address)): State<(Option<Arc<dyn Reload>>, SocketAddr)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let refuse = |status: StatusCode, why: &str| (status, Json(serde_json::json!({ "error": why }))).into_response();
    let Some(reload) = reload else {
        return refuse(StatusCode::FORBIDDEN, "reload by the admin server is off (admin.reload)");
    };
    if let Err(why) = is_from_here(peer, address, &headers) {
        return refuse(StatusCode::FORBIDDEN, why);
    }
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(';').next().unwrap_or_default().trim() == "application/json");
    if !is_json {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send Content-Type: application/json, and {} or {\"discard\": [\"NAME\"]}",
        );
    }
    let Ok(body) = axum::body::to_bytes(body, LARGEST_ASKED).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    };
    let asked: ReloadAsked = match body.trim_ascii() {
        b"" => ReloadAsked::default(),
        body => match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(cause) => {
                return refuse(StatusCode::BAD_REQUEST, &format!("the body is not what is expected: {cause}"));
            }
        },
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

/// Whether a request comes from this machine, and by no name that somebody else chose.
/// Who comes from the address that the server has is here as well.
fn is_from_here(peer: SocketAddr, address: SocketAddr, headers: &HeaderMap) -> Result<(), &'static str> {
    let (peer, own) = (peer.ip().to_canonical(), address.ip().to_canonical());
    if !(peer.is_loopback() || peer == own) {
        return Err("only whoever is on this machine may reload: ask over 127.0.0.1 or ::1");
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

    use super::super::{Health, JournalHealth, OutputHealth, Parts, Phase, Reloaded, RetriesHealth, WorkerHealth};
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
        let response = routes(status, None, OWN).oneshot(request).await.unwrap();
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

    /// The status of `POST /reload` from `peer`, and its answer.
    async fn reload(peer: &str, host: &str, content_type: &str, body: &str) -> (u16, serde_json::Value) {
        let mut request = Request::post("/reload")
            .header("host", host)
            .header("content-type", content_type)
            .body(Body::from(body.to_owned()))
            .unwrap();
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer.parse().unwrap()));
        let asked = Arc::new(Asked(Mutex::default()));
        let response = routes(status(&[], Ok(())), Some(asked), OWN).oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_reload_is_for_whoever_is_on_this_machine_and_for_no_page_of_a_browser() {
        const JSON: &str = "application/json";
        for (peer, host, content_type, body, code) in [
            ("127.0.0.1:5", "127.0.0.1:9600", JSON, "{}", 200),
            ("[::1]:5", "[::1]:9600", JSON, "", 200),
            ("[::ffff:127.0.0.1]:5", "localhost", "application/json; charset=utf-8", "{}", 200),
            ("10.0.0.1:5", "10.0.0.1:9600", JSON, "{}", 200),
            ("10.0.0.7:5", "10.0.0.1:9600", JSON, "{}", 403),
            ("127.0.0.1:5", "evil.example.com:9600", JSON, "{}", 403),
            ("127.0.0.1:5", "", JSON, "{}", 403),
            ("127.0.0.1:5", "127.0.0.1", "text/plain", "{}", 415),
            ("127.0.0.1:5", "127.0.0.1", JSON, "{\"discrad\": []}", 400),
            ("127.0.0.1:5", "127.0.0.1", JSON, "{\"discard\": [\"busy\"]}", 409),
            ("127.0.0.1:5", "127.0.0.1", JSON, "{\"discard\": [\"faulty\"]}", 422),
        ] {
            assert_eq!(reload(peer, host, content_type, body).await.0, code, "{peer} {host} {content_type} {body}");
        }
        let (_, answer) = reload("127.0.0.1:5", "127.0.0.1", JSON, "{\"discard\": [\"faulty\"]}").await;
        assert_eq!((&answer["result"], &answer["faults"][0]), (&"refused".into(), &"wharf.yaml:1:1: wrong".into()));
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
        let running = tokio::spawn(server.run(status(&[], Ok(())), None, shutdown.clone()));
        shutdown.cancel();
        running.await.unwrap().unwrap();
    }
}
