//! What a sender is told.

use std::time::Duration;

use axum::Json;
use axum::http::header::{ACCEPT_ENCODING, ALLOW, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::places::{GIVEN_UP, GivenUp};
use super::records::BadRecord;
use crate::intake::Refused;

/// Why a request was not taken. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    /// No token, or none that is known.
    #[error("{0}; send one that is known here as Authorization: Bearer …")]
    Unauthorized(Unauthorized),
    /// Not a POST.
    #[error("records are taken by POST")]
    Method,
    /// A header that may be there once.
    #[error("there is more than one {0} header; send one")]
    Twice(&'static str),
    /// RFC 9112, section 3.2.
    #[error("there is no Host header; HTTP/1.1 has one in every request")]
    NoHost,
    /// RFC 9112, section 6.1.
    #[error("transfer encoding {0:?} is not known here; send chunked, or a Content-Length")]
    TransferEncoding(String),
    /// A content type that is not known.
    #[error(
        "content type {0:?} is not known here; send application/json (an object or an array of objects), \
             application/x-ndjson (an object a line), application/msgpack or text/plain (a text a line)"
    )]
    ContentType(String),
    /// A content encoding that is not known.
    #[error("content encoding {0:?} is not known here; send one of gzip, zstd and deflate, or none")]
    ContentEncoding(String),
    /// One upon another.
    #[error("there is more than one content encoding, {0:?}; send one of gzip, zstd and deflate, or none")]
    ContentEncodings(String),
    /// A tag that is none.
    #[error(
        "the tag that the {from} says {what}; a tag has 1 to 255 bytes of UTF-8, none of them a blank or a control character"
    )]
    Tag {
        /// `path`, or a header.
        from: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A body beyond the limit.
    #[error("the body{} is larger than {limit} bytes (max_body_size); send it in parts", if *.decompressed { ", decompressed," } else { "" })]
    TooLarge {
        /// The limit.
        limit: u64,
        /// Whether it was within the limit as it was sent.
        decompressed: bool,
    },
    /// Records beyond what the journal could ever hold.
    #[error(
        "the records of this request take {bytes} bytes in the journal, which may hold {limit} in all (journal.max_size); send them in parts"
    )]
    NeverFits {
        /// What they take.
        bytes: u64,
        /// What there is.
        limit: u64,
    },
    /// A record that is none.
    #[error("{0}; nothing of this request was taken")]
    Record(#[from] BadRecord),
    /// Compressed bytes that cannot be decompressed.
    #[error("the body is not {encoding}: {cause}")]
    Encoded {
        /// gzip or zstd
        encoding: &'static str,
        /// The decompressor's words.
        cause: String,
    },
    /// The connection broke inside the body.
    #[error("the body could not be read: {0}")]
    Body(String),
    /// The body did not come.
    #[error("the body did not go on for {0:?}")]
    Slow(Duration),
    /// Too many bytes of requests in memory.
    #[error("too many requests are in hand; try again")]
    Busy,
    /// Another connection has the place of this one.
    #[error(transparent)]
    GivenUp(#[from] GivenUp),
    /// The intake refuses.
    #[error("{0}; nothing of this request was taken, send it again")]
    Refused(Refused),
    /// A fault of ours.
    #[error("a fault in Wharf: {0}")]
    Fault(String),
}

/// What is wrong with a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unauthorized {
    #[error("a token is needed")]
    NoToken,
    /// Which of them counts is for nobody to guess.
    #[error("there is more than one Authorization header")]
    Several,
    #[error("the token is not known")]
    Unknown,
}

/// Every reason for which a request is refused.
pub(crate) const REFUSALS: [&str; 17] = [
    GIVEN_UP,
    "tls",
    "tenant_journal",
    "tenant_ingest",
    "auth",
    "queue_full",
    "journal_full",
    "disk_full",
    "journal_failed",
    "stopping",
    "busy",
    "too_large",
    "bad_request",
    "unsupported_type",
    "method",
    "slow",
    "fault",
];

/// What the intake refuses, for a sender: what could never be taken is not worth sending again.
impl From<Refused> for Denied {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge { bytes, limit } => Self::NeverFits { bytes, limit },
            refused => Self::Refused(refused),
        }
    }
}

impl Denied {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) | Self::ContentEncoding(_) | Self::ContentEncodings(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::TooLarge { .. } | Self::NeverFits { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Twice(_)
            | Self::NoHost
            | Self::Tag { .. }
            | Self::Record(_)
            | Self::Encoded { .. }
            | Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::TransferEncoding(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            // The sender's own doing: a load balancer is not to take the host for a sick one, and other senders' way from them.
            Self::Refused(Refused::AtLimit(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy | Self::GivenUp(_) | Self::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fault(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Its kind, as `wharf_source_refused_requests_total` has it: one of [`REFUSALS`].
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Unauthorized(_) => "auth",
            Self::Method => "method",
            Self::ContentType(_) | Self::ContentEncoding(_) | Self::ContentEncodings(_) => "unsupported_type",
            Self::TooLarge { .. } | Self::NeverFits { .. } => "too_large",
            Self::Twice(_)
            | Self::NoHost
            | Self::TransferEncoding(_)
            | Self::Tag { .. }
            | Self::Record(_)
            | Self::Encoded { .. }
            | Self::Body(_) => "bad_request",
            Self::Slow(_) => "slow",
            Self::Busy => "busy",
            Self::GivenUp(_) => GIVEN_UP,
            Self::Refused(refused) => refused.reason(),
            Self::Fault(_) => "fault",
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            // RFC 6750, section 3: a request without a token is told nothing but that it needs one.
            Self::Unauthorized(Unauthorized::NoToken | Unauthorized::Several) => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"wharf\"")))
            }
            Self::Unauthorized(Unauthorized::Unknown) => {
                let challenge = "Bearer realm=\"wharf\", error=\"invalid_token\"";
                Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
            }
            Self::Method => Some((ALLOW, HeaderValue::from_static("POST"))),
            // RFC 9110, 15.5.16: this is how a server says that it was the encoding.
            Self::ContentEncoding(_) | Self::ContentEncodings(_) => {
                Some((ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd, deflate, identity")))
            }
            Self::Busy | Self::GivenUp(_) => Some((RETRY_AFTER, HeaderValue::from_static("1"))),
            Self::Refused(refused) => {
                let after = refused.retry_after().unwrap_or(Duration::from_secs(5));
                // Whole seconds, rounded up: never sooner than was said.
                let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                Some((RETRY_AFTER, HeaderValue::from(seconds.max(1))))
            }
            // The rest of the body is still on its way.
            Self::Slow(_) | Self::TooLarge { .. } | Self::TransferEncoding(_) => {
                Some((CONNECTION, HeaderValue::from_static("close")))
            }
            _ => None,
        }
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(json!({ "error": self.to_string() }))).into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// All records of a request are durable.
pub(crate) fn accepted(records: u32) -> Response {
    Json(json!({ "accepted": records })).into_response()
}

/// Whether requests are taken, for whoever asks before sending any: a load balancer, a sender's own check.
pub(crate) fn health(refused: Option<Refused>) -> Response {
    match refused {
        None => Json(json!({ "status": "ok" })).into_response(),
        Some(refused) => {
            let mut response = Json(json!({ "status": refused.to_string() })).into_response();
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        }
    }
}
