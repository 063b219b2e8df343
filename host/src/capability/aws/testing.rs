//! A server on a real socket that answers what a test wants, and tells what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes as Content;
use axum::extract::{DefaultBodyLimit, State as With};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

type Answers = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

#[derive(Clone)]
struct Server {
    answers: Answers,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Starts one. Gives its URL, and where the requests are noted.
pub(crate) async fn serve(
    answers: impl Fn(&Seen) -> Response + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let server = Server { answers: Arc::new(answers), seen: Arc::default() };
    let seen = Arc::clone(&server.seen);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().fallback(answer).layer(DefaultBodyLimit::disable()).with_state(server);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (endpoint, seen)
}

async fn answer(
    With(server): With<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    content: Content,
) -> Response {
    let seen = Seen { method, uri, headers, content };
    let response = (server.answers)(&seen);
    server.seen.lock().unwrap().push(seen);
    response
}
