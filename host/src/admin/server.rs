//! The HTTP side.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Status;
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
    pub async fn run(self, status: Arc<dyn Status>, shutdown: CancellationToken) -> Result<(), AdminError> {
        let Self { listener, address } = self;
        let stopping = shutdown.clone();
        let server = axum::serve(listener, routes(status)).with_graceful_shutdown(shutdown.cancelled_owned());
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

/// Binds and answers until `shutdown`.
///
/// # Errors
/// See [`AdminError`].
pub async fn serve(listen: SocketAddr, status: Arc<dyn Status>, shutdown: CancellationToken) -> Result<(), AdminError> {
    AdminServer::bind(listen).await?.run(status, shutdown).await
}

fn routes(status: Arc<dyn Status>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is GET /health, /ready and /metrics\n") })
        .with_state(status)
}

async fn health(State(status): State<Arc<dyn Status>>) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(status.health())).into_response()
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

    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::super::{Health, JournalHealth, OutputHealth, Phase, RetriesHealth, WorkerHealth};
    use super::*;

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
        let response = routes(status).oneshot(request).await.unwrap();
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
        let running = tokio::spawn(server.run(status(&[], Ok(())), shutdown.clone()));
        shutdown.cancel();
        running.await.unwrap().unwrap();
    }
}
