//! What came back instead of success, and which kind of failure that is.

use std::fmt;

use crate::bindings::wharf::output::types as wit;
use crate::{FailureKind, HostError};

/// S3's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// HTTP status.
    pub status: u16,
    /// S3's error code, where there was one.
    pub code: String,
    /// S3's text.
    pub message: String,
    /// What S3 asked us to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// What came back instead of success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// S3 answered, and refused.
    Service(ServiceError),
    /// No usable answer. The write may or may not have happened.
    Connection(String),
    /// No credentials could be had.
    Credentials(String),
    /// The host refused the call.
    Host(HostError),
}

impl Error {
    /// S3's error code, where S3 answered.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Service(service) => &service.code,
            _ => "",
        }
    }

    /// HTTP status, where S3 answered.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Service(service) => Some(service.status),
            _ => None,
        }
    }

    /// Which kind of failure this is, after S3's list of error codes
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>). The code decides where it is known, else
    /// the status. Only what says that these very bytes can not be taken is final.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Service(service) => of_code(&service.code).unwrap_or_else(|| of_status(service.status)),
            Self::Connection(_) => FailureKind::Transient,
            Self::Credentials(_) => FailureKind::Auth,
            Self::Host(HostError::Denied(_) | HostError::Invalid(_)) => FailureKind::Misconfigured,
            Self::Host(HostError::Limit(_) | HostError::Unavailable(_)) => FailureKind::Transient,
        }
    }
}

fn of_code(code: &str) -> Option<FailureKind> {
    Some(match code {
        "SlowDown"
        | "ServiceUnavailable"
        | "TooManyRequests"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "ThrottledException"
        | "EC2ThrottledException"
        | "PriorRequestNotComplete"
        | "TransactionInProgressException" => FailureKind::Throttled,
        throttling if throttling.starts_with("Throttling") => FailureKind::Throttled,

        // BadDigest, IncompleteBody and their like mean that the bytes were damaged on the way, not that they are bad.
        "InternalError"
        | "RequestTimeout"
        | "RequestTimeoutException"
        | "OperationAborted"
        | "ConditionalRequestConflict"
        | "NoSuchKey"
        | "NoSuchUpload"
        | "BadDigest"
        | "InvalidDigest"
        | "XAmzContentSHA256Mismatch"
        | "XAmzContentChecksumMismatch"
        | "IncompleteBody"
        | "InvalidPart"
        | "InvalidPartOrder"
        | "MalformedXML"
        | "PreconditionFailed"
        | "ClientTokenConflict" => FailureKind::Transient,

        "AccessDenied"
        | "AllAccessDisabled"
        | "AccountProblem"
        | "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "TokenRefreshRequired"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidToken"
        | "InvalidSecurity"
        | "SignatureDoesNotMatch"
        | "RequestTimeTooSkewed"
        | "RequestExpired"
        | "NotSignedUp"
        | "MissingAuthenticationToken"
        | "UnrecognizedClientException"
        | "UnauthorizedAccess" => FailureKind::Auth,

        "EntityTooLarge" => FailureKind::Rejected,

        "NoSuchBucket"
        | "InvalidBucketName"
        | "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "TemporaryRedirect"
        | "Redirect"
        | "IllegalLocationConstraintException"
        | "InvalidArgument"
        | "InvalidRequest"
        | "InvalidStorageClass"
        | "InvalidTag"
        | "KeyTooLongError"
        | "MetadataTooLarge"
        | "InvalidEncryptionAlgorithmError"
        | "KMS.NotFoundException"
        | "KMS.DisabledException"
        | "KMS.KMSInvalidStateException"
        | "AccessControlListNotSupported"
        | "InvalidBucketState"
        | "BucketHasLegalHold"
        | "NotImplemented"
        | "MethodNotAllowed"
        | "UnexpectedContent"
        | "EntityTooSmall"
        | "UnresolvableGrantByEmailAddress" => FailureKind::Misconfigured,
        _ => return None,
    })
}

fn of_status(status: u16) -> FailureKind {
    match status {
        429 | 503 => FailureKind::Throttled,
        401 | 403 => FailureKind::Auth,
        301 | 302 | 307 | 308 | 400 | 404 | 405 | 501 => FailureKind::Misconfigured,
        413 => FailureKind::Rejected,
        // 408, 409, 5xx, and what no rule speaks of: trying again loses nothing.
        _ => FailureKind::Transient,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(ServiceError { status, code, message, .. }) => {
                write!(f, "S3 answered {status}")?;
                if !code.is_empty() {
                    write!(f, " {code}")?;
                }
                if !message.is_empty() {
                    write!(f, " ({message})")?;
                }
                Ok(())
            }
            Self::Connection(text) => write!(f, "no answer from S3: {text}"),
            Self::Credentials(text) => write!(f, "no usable AWS credentials: {text}"),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::CallError> for Error {
    fn from(error: wit::CallError) -> Self {
        match error {
            wit::CallError::Service(e) => Self::Service(ServiceError {
                status: e.status,
                code: e.code,
                message: e.message,
                retry_after_ms: e.retry_after_ms,
            }),
            wit::CallError::Connection(text) => Self::Connection(text),
            wit::CallError::Credentials(text) => Self::Credentials(text),
            wit::CallError::Host(error) => Self::Host(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statuses and codes as S3's page of error responses pairs them.
    #[test]
    fn each_answer_of_s3_has_its_kind() {
        use FailureKind::{Auth, Misconfigured, Rejected, Throttled, Transient};
        for (status, code, kind) in [
            (503, "SlowDown", Throttled),
            (503, "", Throttled),
            (429, "", Throttled),
            (400, "ThrottlingException", Throttled),
            (400, "RequestLimitExceeded", Throttled),
            (500, "InternalError", Transient),
            (500, "", Transient),
            (502, "", Transient),
            (504, "", Transient),
            (200, "InternalError", Transient),
            (400, "RequestTimeout", Transient),
            (400, "BadDigest", Transient),
            (409, "ConditionalRequestConflict", Transient),
            (409, "OperationAborted", Transient),
            (404, "NoSuchUpload", Transient),
            (404, "NoSuchKey", Transient),
            (0, "", Transient),
            (401, "", Auth),
            (403, "", Auth),
            (403, "AccessDenied", Auth),
            (400, "ExpiredToken", Auth),
            (403, "InvalidAccessKeyId", Auth),
            (403, "SignatureDoesNotMatch", Auth),
            (403, "RequestTimeTooSkewed", Auth),
            (404, "NoSuchBucket", Misconfigured),
            (400, "AuthorizationHeaderMalformed", Misconfigured),
            (301, "PermanentRedirect", Misconfigured),
            (400, "InvalidArgument", Misconfigured),
            (400, "KeyTooLongError", Misconfigured),
            (400, "InvalidStorageClass", Misconfigured),
            (400, "SomethingNew", Misconfigured),
            (501, "NotImplemented", Misconfigured),
            (400, "EntityTooLarge", Rejected),
        ] {
            let error = Error::Service(ServiceError {
                status,
                code: code.into(),
                message: String::new(),
                retry_after_ms: None,
            });
            assert_eq!(error.kind(), kind, "{status} {code}");
        }
        assert_eq!(Error::Connection(String::new()).kind(), Transient);
        assert_eq!(Error::Credentials(String::new()).kind(), Auth);
    }
}
