//! The destination itself: takes requests, tells of them, answers by its rules.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::answer::Answer;
use super::records;
use crate::cli::{Ended, counted, print};

/// Most bytes of a request.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// How it answers.
#[derive(Debug)]
pub(super) struct Rules {
    /// In this order, the last for ever. At least one.
    pub(super) answers: Vec<Answer>,
    /// Texts that a record may not contain.
    pub(super) rejected: Vec<String>,
    /// The bearer token that requests must have.
    pub(super) token: Option<String>,
    /// Where records are kept.
    pub(super) out: Option<File>,
    /// Whether records are printed.
    pub(super) show: bool,
}

/// What came of it all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) requests: usize,
    pub(super) taken: usize,
    pub(super) rejected: usize,
}

/// A destination that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Destination {
    address: SocketAddr,
    shared: Arc<Mutex<Inner>>,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
}

#[derive(Debug)]
struct Inner {
    rules: Rules,
    totals: Totals,
}

/// One record that is not taken, as the answer says it.
#[derive(Debug, Serialize)]
struct Rejected {
    index: usize,
    reason: String,
}

/// Opens the file that records are appended to.
pub(super) fn open(path: &Path) -> Result<File, Ended> {
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|cause| Ended::Failed(format!("dev-http cannot write to {}: {cause}", path.display())))
}

impl Destination {
    /// Listens and answers. Must be called inside a tokio runtime.
    pub(super) async fn start(listen: SocketAddr, rules: Rules) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Inner { rules, totals: Totals::default() }));
        let app = Router::new()
            .fallback(take)
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address, shared, server })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What came so far.
    pub(super) fn totals(&self) -> Totals {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).totals
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Answers one request and tells of it.
async fn take(
    State(shared): State<Arc<Mutex<Inner>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut inner = shared.lock().unwrap_or_else(PoisonError::into_inner);
    inner.totals.requests += 1;
    let answered = inner.answer(&headers, &body);
    // The reader of our output may have gone; the destination stays one.
    let _ = print(&format!("{method} {uri}  {} -> {}\n", answered.told, answered.response.status().as_u16()));
    if inner.rules.show {
        let _ = print(&(shown(&headers) + &answered.shown));
    }
    answered.response
}

/// Headers, but those that every request has. What may be a secret is there with its length alone.
fn shown(headers: &HeaderMap) -> String {
    let usual = [header::HOST, header::CONTENT_LENGTH, header::ACCEPT, header::ACCEPT_ENCODING, header::USER_AGENT];
    let one = |(name, value): (&HeaderName, &HeaderValue)| {
        let is_secret = ["authorization", "cookie", "key", "secret", "token", "signature"]
            .iter()
            .any(|word| name.as_str().contains(word) && name.as_str() != "idempotency-key");
        let value = match is_secret {
            true => format!("({} bytes)", value.len()),
            false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        };
        format!("  {name}: {value}\n")
    };
    headers.iter().filter(|(name, _)| !usual.contains(name)).map(one).collect()
}

struct Answered {
    response: Response,
    /// What came, in words.
    told: String,
    /// The records, one a line.
    shown: String,
}

impl Inner {
    fn answer(&mut self, headers: &HeaderMap, body: &[u8]) -> Answered {
        let plain = |status: StatusCode, why: String| Answered {
            response: (status, format!("{why}\n")).into_response(),
            told: why,
            shown: String::new(),
        };
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if let Some(token) = &self.rules.token
            && header(header::AUTHORIZATION) != format!("Bearer {token}")
        {
            return plain(StatusCode::UNAUTHORIZED, "without the token".into());
        }
        let records = match records::decoded(body, header(header::CONTENT_ENCODING)) {
            Ok(decoded) => records::apart(&decoded),
            Err(why) => return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, why),
        };
        let told = format!("{}, {} bytes", counted(records.len(), "record", "records"), body.len());
        let shown = records.iter().map(|record| format!("  {record}\n")).collect();
        let answer = match self.rules.answers.len() {
            0 | 1 => self.rules.answers.first().cloned(),
            _ => Some(self.rules.answers.remove(0)),
        };
        let Some(answer) = answer else { return plain(StatusCode::OK, told) };
        let mut response = answer.body;
        let mut told = told;
        if answer.status.is_success() {
            let rejected = self.rejected(&records);
            if !rejected.is_empty() {
                told += &format!(", {} rejected", rejected.len());
                response = serde_json::json!({ "rejected": rejected }).to_string();
            }
            if let Err(cause) = self.keep(&records, &rejected) {
                return plain(StatusCode::INSUFFICIENT_STORAGE, format!("the records cannot be kept: {cause}"));
            }
        }
        let headers: HeaderMap = answer.headers.into_iter().collect();
        let json = serde_json::from_str::<serde::de::IgnoredAny>(&response).is_ok();
        let kind = if json { "application/json" } else { "text/plain; charset=utf-8" };
        Answered {
            response: (answer.status, [(header::CONTENT_TYPE, kind)], headers, response).into_response(),
            told,
            shown,
        }
    }

    /// The records that contain what they must not.
    fn rejected(&self, records: &[String]) -> Vec<Rejected> {
        let one = |(index, record): (usize, &String)| {
            let text = self.rules.rejected.iter().find(|text| record.contains(text.as_str()))?;
            Some(Rejected { index, reason: format!("it contains `{text}`") })
        };
        records.iter().enumerate().filter_map(one).collect()
    }

    /// Keeps and counts what is taken.
    fn keep(&mut self, records: &[String], rejected: &[Rejected]) -> std::io::Result<()> {
        let refused: BTreeSet<usize> = rejected.iter().map(|one| one.index).collect();
        let taken = records.iter().enumerate().filter(|(index, _)| !refused.contains(index));
        if let Some(out) = &mut self.rules.out {
            let lines: String = taken.map(|(_, record)| format!("{record}\n")).collect();
            out.write_all(lines.as_bytes())?;
        }
        self.totals.taken += records.len() - rejected.len();
        self.totals.rejected += rejected.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(answers: &[&str]) -> Rules {
        let answers = answers.iter().map(|answer| answer.parse().unwrap()).collect();
        Rules { answers, rejected: vec![], token: None, out: None, show: false }
    }

    /// What it answers to JSON lines: status, header `retry-after`, body.
    async fn post(to: &Destination, body: &str, headers: &[(&str, &str)]) -> (u16, Option<String>, String) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(to.address()).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "POST /v1 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let retry_after = head.lines().find_map(|line| line.strip_prefix("retry-after: ")).map(str::to_owned);
        (head[9..12].parse().unwrap(), retry_after, body.to_owned())
    }

    async fn start(rules: Rules) -> Destination {
        Destination::start("127.0.0.1:0".parse().unwrap(), rules).await.unwrap()
    }

    #[tokio::test]
    async fn answers_come_in_their_order_and_the_last_one_stays() {
        let destination = start(rules(&["429;retry-after=2", "503", "200;body={}"])).await;
        assert_eq!(post(&destination, "{}", &[]).await, (429, Some("2".into()), String::new()));
        assert_eq!(post(&destination, "{}", &[]).await.0, 503);
        assert_eq!(post(&destination, "{}", &[]).await, (200, None, "{}".into()));
        assert_eq!(post(&destination, "{}\n{}", &[]).await.0, 200);
        assert_eq!(destination.totals(), Totals { requests: 4, taken: 3, rejected: 0 });
    }

    #[test]
    fn headers_are_shown_and_secrets_are_not() {
        let headers = HeaderMap::from_iter(
            [("host", "h"), ("idempotency-key", "k1"), ("x-api-key", "hush"), ("authorization", "Bearer hush")]
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())),
        );
        let text = shown(&headers);
        let lines: std::collections::BTreeSet<&str> = text.lines().collect();
        assert_eq!(lines, ["  authorization: (11 bytes)", "  idempotency-key: k1", "  x-api-key: (4 bytes)"].into());
    }

    #[tokio::test]
    async fn records_with_a_text_are_rejected_and_the_others_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        let out = Some(open(&file).unwrap());
        let destination = start(Rules { rejected: vec!["bad".into()], out, ..rules(&["200"]) }).await;
        let (status, _, body) = post(&destination, "[{\"a\":1},{\"a\":\"bad\"},{\"a\":3}]", &[]).await;
        assert_eq!((status, body.as_str()), (200, "{\"rejected\":[{\"index\":1,\"reason\":\"it contains `bad`\"}]}"));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{\"a\":1}\n{\"a\":3}\n");
        assert_eq!(destination.totals(), Totals { requests: 1, taken: 2, rejected: 1 });
    }

    #[tokio::test]
    async fn who_has_not_the_token_and_who_cannot_be_read_is_sent_away() {
        let destination = start(Rules { token: Some("t".into()), ..rules(&["200"]) }).await;
        let token = ("authorization", "Bearer t");
        assert_eq!(post(&destination, "{}", &[]).await.0, 401);
        assert_eq!(post(&destination, "{}", &[("authorization", "Bearer x")]).await.0, 401);
        assert_eq!(post(&destination, "{}", &[token]).await.0, 200);
        assert_eq!(post(&destination, "x", &[token, ("content-encoding", "gzip")]).await.0, 415);
        assert_eq!(destination.totals().taken, 1);
    }
}
