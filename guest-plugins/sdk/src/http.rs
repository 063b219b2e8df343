//! HTTP and HTTPS destinations. The host resolves names, connects, speaks TLS, adds credentials, and holds the connections; each call is
//! one attempt, and nothing is retried or followed behind the plugin's back.
//!
//! ```no_run
//! # fn deliver(batch: &wharf_plugin::Batch) -> Result<wharf_plugin::Report, wharf_plugin::Failure> {
//! use wharf_plugin::{Encoding, Report, http};
//!
//! let mut pieces = batch.encode(&Encoding::json_lines()).pieces()?;
//! while let Some(body) = pieces.next(4 << 20)? {
//!     http::post("https://ingest.example.com/v1/logs")
//!         .header("content-type", "application/x-ndjson")
//!         .credential("ingest")
//!         .body(&body)
//!         .send()?
//!         .error_for_status()?;
//! }
//! Ok(Report::all_delivered())
//! # }
//! ```
//!
//! # Which answer is which failure
//!
//! [`Response::error_for_status`] sorts answers as destinations of logs mean them. Sections are those of RFC 9110 where no other RFC is named.
//!
//! | status | failure | why |
//! |---|---|---|
//! | 2xx (15.3) | none | taken |
//! | 3xx (15.4) | `misconfigured` | the URL is not, or no longer, the right one; no redirect is followed |
//! | 400 (15.5.1), 413 (15.5.14), 422 (15.5.21), other 4xx (15.5) | `rejected` | what is in this batch will be refused again: it becomes dead letters, which are kept and can be sent again |
//! | 401 (15.5.2), 403 (15.5.4), 407 (15.5.8), 511 (RFC 6585, 6) | `auth` | the credential, the server's or the proxy's; somebody will mend it |
//! | 402, 404, 405, 406, 410, 411, 412, 414, 415, 417, 426, 428, 431, 451, 501, 505 | `misconfigured` | the same for every batch: path, method, headers, account |
//! | 408 (15.5.9), 409 (15.5.10), 421 (15.5.20), 423 (RFC 4918, 11.3), 425 (RFC 8470, 5.2), 5xx (15.6) | `transient` | it may work next time |
//! | 429 (RFC 6585, 4) | `throttled` | the destination as a whole is asked less |
//!
//! What `Retry-After` asks for (10.2.3) comes along. Where a destination means something else by a status (some take 409 for "is there
//! already", some give 400 for a single bad record), look at [`Response::status`] first.

use std::fmt;
use std::time::Duration;

use crate::bindings::wharf::output::http as wit;
use crate::{Body, Failure, FailureKind, HostError};

/// Longest piece of an answer's body that a failure shows, bytes.
const SHOWN_BYTES: usize = 300;

/// A request that is being made.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request<'a> {
    request: wit::Request,
    content: Option<Content<'a>>,
}

/// What a request carries.
#[derive(Debug)]
pub enum Content<'a> {
    /// Bytes that stay in the host.
    Body(&'a Body),
    /// Bytes of the plugin's own.
    Bytes(Vec<u8>),
}

impl<'a> From<&'a Body> for Content<'a> {
    fn from(body: &'a Body) -> Self {
        Self::Body(body)
    }
}
impl From<Vec<u8>> for Content<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
impl From<&[u8]> for Content<'_> {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}
impl From<String> for Content<'_> {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}
impl From<&str> for Content<'_> {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// A `GET` request. The URL is absolute; its scheme, host and port must be granted, so name them in [`Plan::http`](crate::Plan::http): [`destination`]
/// takes them out of a URL.
pub fn get<'a>(url: impl Into<String>) -> Request<'a> {
    request("GET", url)
}
/// A `POST` request.
pub fn post<'a>(url: impl Into<String>) -> Request<'a> {
    request("POST", url)
}
/// A `PUT` request.
pub fn put<'a>(url: impl Into<String>) -> Request<'a> {
    request("PUT", url)
}
/// A `PATCH` request.
pub fn patch<'a>(url: impl Into<String>) -> Request<'a> {
    request("PATCH", url)
}
/// A `DELETE` request.
pub fn delete<'a>(url: impl Into<String>) -> Request<'a> {
    request("DELETE", url)
}
/// A request with any method but `CONNECT` and `TRACE`, in upper case.
pub fn request<'a>(method: impl Into<String>, url: impl Into<String>) -> Request<'a> {
    let request = wit::Request {
        method: method.into(),
        url: url.into(),
        headers: vec![],
        credential: None,
        timeout_ms: None,
        max_response_bytes: None,
    };
    Request { request, content: None }
}

impl<'a> Request<'a> {
    /// Adds a header; one name may be there more than once. `host`, `content-length` and those of the connection are the host's.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.headers.push((name.into(), value.into()));
        self
    }
    /// Names a credential that the operator has configured and granted; the host adds it. Name it in
    /// [`Plan::credentials`](crate::Plan::credentials) too. Takes an `Option` as well, as a configuration has it.
    pub fn credential<'n>(mut self, name: impl Into<Option<&'n str>>) -> Self {
        self.request.credential = name.into().map(str::to_owned);
        self
    }
    /// For the whole exchange. What is longer than the host's own limit is that.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout_ms = Some(u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
        self
    }
    /// How much of the answer's body is wanted: 64 KiB where nothing is said, at most 1 MiB.
    pub fn max_response_bytes(mut self, bytes: u32) -> Self {
        self.request.max_response_bytes = Some(bytes);
        self
    }
    /// What the request carries: a [`Body`], or bytes or text of the plugin's own.
    pub fn body(mut self, content: impl Into<Content<'a>>) -> Self {
        self.content = Some(content.into());
        self
    }
    /// Carries a value as JSON, and says so in `content-type`.
    ///
    /// # Errors
    /// Where the value cannot be written as JSON: a map whose keys are no texts, say.
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Result<Self, Failure> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| Failure::misconfigured(format!("writing a request's body as JSON: {error}")))?;
        Ok(self.header("content-type", "application/json").body(bytes))
    }

    /// Sends it and waits for the answer, whatever its status is.
    ///
    /// # Errors
    /// See [`Error`]: there is no answer.
    pub fn send(self) -> Result<Response, Error> {
        let asked = format!("{} {}", self.request.method, shown(&self.request.url));
        let own;
        let body = match &self.content {
            None => None,
            Some(Content::Body(body)) => Some(*body),
            Some(Content::Bytes(bytes)) => {
                own = Body::from_bytes(bytes)?;
                Some(&own)
            }
        };
        let answer = wit::send(&self.request, body.map(Body::wit)).map_err(Error::from)?;
        Ok(Response {
            asked,
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
            truncated: answer.truncated,
            retry_after_ms: answer.retry_after_ms,
        })
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Method, scheme, host and port, for messages.
    asked: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    truncated: bool,
    retry_after_ms: Option<u64>,
}

impl Response {
    /// An answer that nobody gave, for tests. Header names in lower case.
    #[must_use]
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let retry_after_ms = None;
        Self { asked: "the destination".into(), status, headers, body: body.into(), truncated: false, retry_after_ms }
    }
    /// The same, with what `Retry-After` says.
    #[must_use]
    pub fn retrying_after(mut self, milliseconds: u64) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }
    /// Whether the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
    /// The first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
    /// All headers, names in lower case.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }
    /// The body, as far as it was wanted.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }
    /// The body as text; what is no UTF-8 is U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    /// The body, read as JSON.
    ///
    /// # Errors
    /// Transient: an answer that makes no sense may make some next time.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let cut = if self.truncated { ", which was cut: ask for more with max_response_bytes" } else { "" };
            Failure::transient(format!(
                "{}: the answer's body{cut} is not the JSON that is expected: {error}",
                self.asked
            ))
        })
    }
    /// There was more of the body than was wanted.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.truncated
    }
    /// What `Retry-After` says, in milliseconds from now.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    /// The answer, where its status is a success.
    ///
    /// # Errors
    /// A failure of the kind that the [table](self) gives, with the beginning of the answer's body.
    pub fn error_for_status(self) -> Result<Self, Failure> {
        match kind(self.status) {
            None => Ok(self),
            Some(kind) => Err(self.into_failure(kind)),
        }
    }

    /// The answer as a failure of a kind, for a plugin that knows better.
    #[must_use]
    pub fn into_failure(self, kind: FailureKind) -> Failure {
        let text = self.text();
        let text = text.trim();
        let told = match text.get(..text.floor_boundary(SHOWN_BYTES)) {
            Some("") | None => String::new(),
            Some(part) if part.len() < text.len() => format!(": {part}…"),
            Some(part) => format!(": {part}"),
        };
        let location = self.header("location").filter(|_| (300..400).contains(&self.status));
        let to = location.map(|location| format!(" (to {location})")).unwrap_or_default();
        let message = format!("{} answered {}{to}{told}", self.asked, self.status);
        Failure { retry_after_ms: self.retry_after_ms, ..Failure::new(kind, message) }
    }
}

/// `str::floor_char_boundary`, which Rust 1.85 does not have.
trait FloorBoundary {
    fn floor_boundary(&self, most: usize) -> usize;
}

impl FloorBoundary for str {
    fn floor_boundary(&self, most: usize) -> usize {
        (0..=most.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}

/// The kind of failure that a status is; none is a success.
fn kind(status: u16) -> Option<FailureKind> {
    Some(match status {
        200..=299 => return None,
        429 => FailureKind::Throttled,
        408 | 409 | 421 | 423 | 425 => FailureKind::Transient,
        401 | 403 | 407 | 511 => FailureKind::Auth,
        402 | 404..=406 | 410..=412 | 414 | 415 | 417 | 426 | 428 | 431 | 451 | 501 | 505 => FailureKind::Misconfigured,
        300..=399 => FailureKind::Misconfigured,
        400..=499 => FailureKind::Rejected,
        _ => FailureKind::Transient,
    })
}

/// Scheme, host and port of a URL, as [`Plan::http`](crate::Plan::http) wants them; `https://api.example.com/v1` gives `https://api.example.com`.
///
/// # Errors
/// What is wrong with it, for a [`ConfigFault`](crate::ConfigFault).
pub fn destination(url: &str) -> Result<String, String> {
    let form = "write an absolute URL, as in https://api.example.com/v1/logs";
    let (scheme, rest) = url.split_once("://").ok_or_else(|| form.to_owned())?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(form.to_owned());
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a URL has no user and password here: name a credential that Wharf's configuration has".to_owned());
    }
    if authority.is_empty() || authority.contains(char::is_whitespace) {
        return Err(form.to_owned());
    }
    Ok(format!("{}://{authority}", scheme.to_ascii_lowercase()))
}

/// What of a URL may be shown: a path or a query may have secrets in it.
fn shown(url: &str) -> String {
    destination(url).unwrap_or_else(|_| "(no URL)".to_owned())
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Connection refused, reset, timed out, TLS, no such name. What was asked may or may not have happened.
    Connection(String),
    /// The credential could not be had.
    Credentials(String),
    /// The host refused the call. Nothing was sent.
    Host(HostError),
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::Connection(text) => Self::Connection(text),
            wit::Error::Credentials(text) => Self::Credentials(text),
            wit::Error::Host(error) => Self::Host(error.into()),
        }
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(text) => write!(f, "no answer from {text}"),
            Self::Credentials(text) => f.write_str(text),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Connection(_) => Self::transient(error.to_string()),
            Error::Credentials(_) => Self::new(FailureKind::Auth, error.to_string()),
            Error::Host(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the module's documentation, by the RFCs that it names.
    #[test]
    fn each_status_has_its_kind() {
        use FailureKind::{Auth, Misconfigured, Rejected, Throttled, Transient};
        for (statuses, expected) in [
            (&[200, 201, 202, 204, 206, 299][..], None),
            (&[300, 301, 302, 303, 304, 307, 308], Some(Misconfigured)),
            (&[400, 413, 422, 418, 416, 424, 499], Some(Rejected)),
            (&[401, 403, 407, 511], Some(Auth)),
            (&[402, 404, 405, 406, 410, 411, 412, 414, 415, 417, 426, 428, 431, 451, 501, 505], Some(Misconfigured)),
            (&[408, 409, 421, 423, 425, 500, 502, 503, 504, 507, 508, 520, 599], Some(Transient)),
            (&[429], Some(Throttled)),
        ] {
            for status in statuses {
                let failed = Response::new(*status, &[], "").error_for_status().err();
                assert_eq!(failed.map(|failure| failure.kind), expected, "{status}");
            }
        }
    }

    #[test]
    fn a_failure_says_what_came_back_and_how_long_to_wait() {
        let refused = Response::new(503, &[], " busy \n").retrying_after(1500).error_for_status().unwrap_err();
        assert_eq!(
            (refused.message.as_str(), refused.retry_after_ms),
            ("the destination answered 503: busy", Some(1500))
        );
        let empty = Response::new(404, &[], "").error_for_status().unwrap_err();
        assert_eq!(empty.message, "the destination answered 404");
        let moved = Response::new(301, &[("location", "https://b.example/")], "").error_for_status().unwrap_err();
        assert_eq!(moved.message, "the destination answered 301 (to https://b.example/)");
        let long = Response::new(400, &[], "é".repeat(1000)).error_for_status().unwrap_err();
        assert_eq!(long.message, format!("the destination answered 400: {}…", "é".repeat(150)));
    }

    #[test]
    fn an_answer_gives_its_headers_and_its_body() {
        let answer = Response::new(200, &[("x-id", "7"), ("x-id", "8")], r#"{"accepted":3}"#);
        assert_eq!((answer.header("X-Id"), answer.header("x-no")), (Some("7"), None));
        #[derive(serde::Deserialize)]
        struct Taken {
            accepted: u32,
        }
        assert_eq!(answer.json::<Taken>().map(|taken| taken.accepted), Ok(3));
        let nonsense = Response { truncated: true, ..Response::new(200, &[], "{\"acc") }.json::<Taken>().err();
        let nonsense = nonsense.map(|failure| (failure.kind, failure.message.contains("max_response_bytes")));
        assert_eq!(nonsense, Some((FailureKind::Transient, true)));
    }

    #[test]
    fn a_destination_is_scheme_host_and_port_of_a_url() {
        for (url, expected) in [
            ("https://api.example.com/v1?x=1", Some("https://api.example.com")),
            ("HTTP://a.example:8080", Some("http://a.example:8080")),
            ("https://a.example?q", Some("https://a.example")),
            ("https://[::1]:9/x", Some("https://[::1]:9")),
            ("https://u:p@a.example/", None),
            ("ftp://a.example", None),
            ("/path", None),
            ("https://", None),
            ("https:///x", None),
        ] {
            assert_eq!(destination(url).ok().as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn an_error_without_an_answer_has_its_kind() {
        for (error, kind, message) in [
            (
                Error::Connection("https://a.example: reset".into()),
                FailureKind::Transient,
                "no answer from https://a.example: reset",
            ),
            (
                Error::Credentials("credential x cannot be used".into()),
                FailureKind::Auth,
                "credential x cannot be used",
            ),
            (Error::Host(HostError::Denied("no".into())), FailureKind::Misconfigured, "not granted: no"),
        ] {
            let failure = Failure::from(error);
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
        }
    }
}
