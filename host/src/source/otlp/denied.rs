//! Why a request is not taken, and what that is in both protocols.
//!
//! "Failures" of OTLP/gRPC and of OTLP/HTTP say which answers make a sender try again. Pressure is `UNAVAILABLE` with `RetryInfo`, and 503 with
//! `Retry-After`: 429 is as good by the specification, but some senders try again only after a 5xx.

use std::time::Duration;

use axum::http::StatusCode;
use tonic::Code;

use crate::intake::Refused;

/// Why nothing of a request was taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    /// Another path, or another method of gRPC.
    #[error("there is no {path} here; logs are taken at {taken}, and nothing else is")]
    Path {
        /// What was asked for.
        path: String,
        /// What is there, by the same protocol.
        taken: &'static str,
    },
    /// Not a POST.
    #[error("logs are taken by POST")]
    Method,
    /// A content type that is not known.
    #[error("content type {0:?} is not known here; send application/x-protobuf or application/json")]
    ContentType(String),
    /// A content encoding that is not known.
    #[error("the encoding {0:?} is not known here; send gzip, zstd, or none")]
    Encoding(String),
    /// Bytes beyond the limit.
    #[error("the request{} has more than {limit} bytes; raise max_body_size here, or send smaller batches", if *.decompressed { ", decompressed," } else { "" })]
    TooLarge {
        /// The limit.
        limit: u64,
        /// Whether it was within the limit as it was sent.
        decompressed: bool,
    },
    /// Its records beyond the limit.
    #[error(
        "its records have, as JSON, more than {0} bytes (a multiple of max_body_size); raise that here, or send smaller batches"
    )]
    TooLargeAsJson(u64),
    /// Records beyond what the journal could ever hold.
    #[error(
        "its records take {bytes} bytes in the journal, which may hold {limit} in all (journal.max_size); send smaller batches"
    )]
    NeverFits {
        /// What they take.
        bytes: u64,
        /// What there is.
        limit: u64,
    },
    /// What is no request.
    #[error("this is no ExportLogsServiceRequest: {0}")]
    Malformed(String),
    /// Compressed bytes that cannot be decompressed.
    #[error("the request is not {encoding}: {cause}")]
    Compressed {
        /// gzip or zstd
        encoding: &'static str,
        /// The decompressor's words.
        cause: String,
    },
    /// The connection broke inside the request.
    #[error("the request could not be read: {0}")]
    Body(String),
    /// The request did not come.
    #[error("the request did not go on for {0:?}")]
    Slow(Duration),
    /// Too many bytes of requests in memory.
    #[error("too many requests are in hand; try again")]
    Busy,
    /// The intake refuses.
    #[error("{0}; send the request again")]
    Refused(Refused),
    /// A fault of ours.
    #[error("a fault in Wharf: {0}")]
    Fault(String),
}

/// Every reason for which a request is refused, or a connection is.
pub(crate) const REFUSALS: [&str; 16] = [
    "queue_full",
    "journal_full",
    "disk_full",
    "journal_failed",
    "stopping",
    "tenant_ingest",
    "tenant_journal",
    "busy",
    "too_large",
    "bad_request",
    "unsupported_type",
    "method",
    "path",
    "tls",
    "slow",
    "fault",
];

impl From<Refused> for Denied {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge { bytes, limit } => Self::NeverFits { bytes, limit },
            refused => Self::Refused(refused),
        }
    }
}

impl Denied {
    /// Its kind, as `wharf_source_refused_requests_total` has it: one of [`REFUSALS`].
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Path { .. } => "path",
            Self::Method => "method",
            Self::ContentType(_) | Self::Encoding(_) => "unsupported_type",
            Self::TooLarge { .. } | Self::TooLargeAsJson(_) | Self::NeverFits { .. } => "too_large",
            Self::Malformed(_) | Self::Compressed { .. } | Self::Body(_) => "bad_request",
            Self::Slow(_) => "slow",
            Self::Busy => "busy",
            Self::Refused(refused) => refused.reason(),
            Self::Fault(_) => "fault",
        }
    }

    /// "Failures" of OTLP/HTTP: 429, 502, 503 and 504 are tried again, all others are not.
    pub(crate) fn http(&self) -> StatusCode {
        match self {
            Self::Path { .. } => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) | Self::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } | Self::TooLargeAsJson(_) | Self::NeverFits { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Malformed(_) | Self::Compressed { .. } | Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            // The tenant's own limit: another tenant is taken.
            Self::Refused(Refused::AtLimit(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy | Self::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fault(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// "Failures" of OTLP/gRPC: CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE and DATA_LOSS are tried again, RESOURCE_EXHAUSTED only
    /// with `RetryInfo` (some senders do it without). So what will never be taken is none of them.
    pub(crate) fn grpc(&self) -> Code {
        match self {
            Self::Path { .. } | Self::Method | Self::Encoding(_) => Code::Unimplemented,
            Self::TooLarge { .. }
            | Self::TooLargeAsJson(_)
            | Self::NeverFits { .. }
            | Self::ContentType(_)
            | Self::Malformed(_)
            | Self::Compressed { .. } => Code::InvalidArgument,
            Self::Slow(_) => Code::DeadlineExceeded,
            Self::Refused(Refused::AtLimit(_)) => Code::ResourceExhausted,
            Self::Body(_) | Self::Busy | Self::Refused(_) => Code::Unavailable,
            Self::Fault(_) => Code::Internal,
        }
    }

    /// When a sender may try again, where it should.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy => Some(Duration::from_secs(1)),
            Self::Refused(refused) => Some(refused.retry_after().unwrap_or(Duration::from_secs(5))),
            _ => None,
        }
    }

    /// Whether the rest of the request is still on its way.
    pub(crate) fn leaves_a_rest(&self) -> bool {
        matches!(self, Self::Slow(_) | Self::TooLarge { .. } | Self::Busy)
    }
}
