//! What came back from a call of a service instead of success, and which kind of failure that is.

use std::fmt;

use crate::bindings::wharf::output::types as wit;
use crate::{Failure, FailureKind, HostError};

/// A service that the host calls for the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, or what speaks like it.
    S3,
    /// Amazon CloudWatch Logs, or what speaks like it.
    CloudWatchLogs,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S3 => "S3",
            Self::CloudWatchLogs => "CloudWatch Logs",
        })
    }
}

/// A service's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// Who refused.
    pub service: Service,
    /// HTTP status.
    pub status: u16,
    /// The service's error code, where there was one.
    pub code: String,
    /// The service's text.
    pub message: String,
    /// What the service asked us to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// What came back instead of success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The service answered, and refused.
    Service(ServiceError),
    /// No usable answer of this service. What was asked may or may not have happened.
    Connection(Service, String),
    /// No credentials could be had.
    Credentials(String),
    /// The host refused the call.
    Host(HostError),
}

impl Error {
    pub(crate) fn of(service: Service, error: wit::CallError) -> Self {
        match error {
            wit::CallError::Service(e) => Self::Service(ServiceError {
                service,
                status: e.status,
                code: e.code,
                message: e.message,
                retry_after_ms: e.retry_after_ms,
            }),
            wit::CallError::Connection(text) => Self::Connection(service, text),
            wit::CallError::Credentials(text) => Self::Credentials(text),
            wit::CallError::Host(error) => Self::Host(error.into()),
        }
    }

    /// The service's error code, where it answered.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Service(service) => &service.code,
            _ => "",
        }
    }

    /// HTTP status, where the service answered.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Service(service) => Some(service.status),
            _ => None,
        }
    }

    /// Which kind of failure this is, after AWS's lists of error codes: [of S3], [of CloudWatch Logs], and [those that all services
    /// share]. The code decides where it is known, else the status. Only what says that these very bytes can not be taken is final.
    ///
    /// [of S3]: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
    /// [of CloudWatch Logs]: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
    /// [those that all services share]: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/CommonErrors.html
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Service(service) => of_code(&service.code).unwrap_or_else(|| of_status(service.status)),
            Self::Connection(..) => FailureKind::Transient,
            Self::Credentials(_) => FailureKind::Auth,
            Self::Host(HostError::Denied(_) | HostError::Invalid(_)) => FailureKind::Misconfigured,
            Self::Host(HostError::Limit(_) | HostError::Unavailable(_)) => FailureKind::Transient,
        }
    }
}

fn of_code(code: &str) -> Option<FailureKind> {
    if is_throttling(code) {
        Some(FailureKind::Throttled)
    } else if is_transient(code) {
        Some(FailureKind::Transient)
    } else if is_auth(code) {
        Some(FailureKind::Auth)
    } else if is_misconfigured(code) {
        Some(FailureKind::Misconfigured)
    } else {
        matches!(code, "EntityTooLarge").then_some(FailureKind::Rejected)
    }
}

/// Also what AWS's own clients take for throttling, such as `LimitExceededException`.
fn is_throttling(code: &str) -> bool {
    code.starts_with("Throttling")
        || matches!(
            code,
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
                | "TransactionInProgressException"
                | "LimitExceededException"
                | "ServiceQuotaExceededException"
                | "ProvisionedThroughputExceededException"
        )
}

/// BadDigest, IncompleteBody and their like mean that the bytes were damaged on the way, not that they are bad.
fn is_transient(code: &str) -> bool {
    matches!(
        code,
        "InternalError"
            | "InternalFailure"
            | "InternalServerException"
            | "InternalServerError"
            | "RequestTimeout"
            | "RequestTimeoutException"
            | "RequestAbortedException"
            | "MalformedHttpRequestException"
            | "ServiceUnavailableException"
            | "OperationAborted"
            | "OperationAbortedException"
            | "ConflictException"
            | "ConditionalRequestConflict"
            | "InvalidSequenceTokenException"
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
            | "ClientTokenConflict"
    )
}

fn is_auth(code: &str) -> bool {
    code.starts_with("AccessDenied")
        || matches!(
            code,
            "AllAccessDisabled"
                | "AccountProblem"
                | "AuthFailure"
                | "ExpiredToken"
                | "ExpiredTokenException"
                | "TokenRefreshRequired"
                | "InvalidAccessKeyId"
                | "InvalidClientTokenId"
                | "InvalidToken"
                | "InvalidSecurity"
                | "InvalidSignatureException"
                | "IncompleteSignature"
                | "IncompleteSignatureException"
                | "SignatureDoesNotMatch"
                | "RequestTimeTooSkewed"
                | "RequestExpired"
                | "NotAuthorized"
                | "NotSignedUp"
                | "OptInRequired"
                | "MissingAuthenticationToken"
                | "MissingAuthenticationTokenException"
                | "UnrecognizedClient"
                | "UnrecognizedClientException"
                | "UnauthorizedAccess"
        )
}

/// `InvalidParameterException` and its like can also speak of what is sent: a plugin that can tell the two apart does.
fn is_misconfigured(code: &str) -> bool {
    matches!(
        code,
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
            | "UnresolvableGrantByEmailAddress"
            | "ResourceNotFoundException"
            | "InvalidParameterException"
            | "InvalidOperationException"
            | "SerializationException"
            | "ValidationError"
            | "ValidationException"
            | "TooManyTagsException"
            | "UnknownOperationException"
    )
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
            Self::Service(ServiceError { service, status, code, message, .. }) => {
                write!(f, "{service} answered {status}")?;
                if !code.is_empty() {
                    write!(f, " {code}")?;
                }
                if !message.is_empty() {
                    write!(f, " ({message})")?;
                }
                Ok(())
            }
            Self::Connection(service, text) => write!(f, "no answer from {service}: {text}"),
            Self::Credentials(text) => write!(f, "no usable AWS credentials: {text}"),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        let retry_after_ms = match &error {
            Error::Service(service) => service.retry_after_ms,
            _ => None,
        };
        Self { kind, message: error.to_string(), retry_after_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(service: Service, status: u16, code: &str) -> Error {
        Error::Service(ServiceError {
            service,
            status,
            code: code.into(),
            message: String::new(),
            retry_after_ms: None,
        })
    }

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
            assert_eq!(refusal(Service::S3, status, code).kind(), kind, "{status} {code}");
        }
        assert_eq!(Error::Connection(Service::S3, String::new()).kind(), Transient);
        assert_eq!(Error::Credentials(String::new()).kind(), Auth);
    }

    /// Statuses and codes as the pages of PutLogEvents, CreateLogGroup and CommonErrors pair them; those of JSON services come as 400.
    #[test]
    fn each_answer_of_cloudwatch_logs_has_its_kind() {
        use FailureKind::{Auth, Misconfigured, Throttled, Transient};
        for (status, code, kind) in [
            (400, "ThrottlingException", Throttled),
            (400, "LimitExceededException", Throttled),
            (503, "ServiceUnavailable", Throttled),
            (500, "ServiceUnavailableException", Transient),
            (503, "ServiceUnavailableException", Transient),
            (500, "InternalFailure", Transient),
            (400, "OperationAbortedException", Transient),
            (400, "RequestAbortedException", Transient),
            (400, "UnrecognizedClientException", Auth),
            (400, "AccessDeniedException", Auth),
            (403, "AccessDeniedException", Auth),
            (400, "ExpiredTokenException", Auth),
            (403, "IncompleteSignature", Auth),
            (400, "InvalidSignatureException", Auth),
            (400, "MissingAuthenticationTokenException", Auth),
            (400, "RequestExpired", Auth),
            (401, "NotAuthorized", Auth),
            (403, "OptInRequired", Auth),
            (400, "ResourceNotFoundException", Misconfigured),
            (400, "InvalidParameterException", Misconfigured),
            (400, "SerializationException", Misconfigured),
            (400, "ValidationError", Misconfigured),
        ] {
            assert_eq!(refusal(Service::CloudWatchLogs, status, code).kind(), kind, "{status} {code}");
        }
    }

    #[test]
    fn an_error_names_its_service_and_keeps_what_it_asked_to_wait() {
        let refused = Error::Service(ServiceError {
            service: Service::CloudWatchLogs,
            status: 400,
            code: "ThrottlingException".into(),
            message: "Rate exceeded".into(),
            retry_after_ms: Some(1500),
        });
        assert_eq!(refused.to_string(), "CloudWatch Logs answered 400 ThrottlingException (Rate exceeded)");
        assert_eq!(refusal(Service::S3, 503, "SlowDown").to_string(), "S3 answered 503 SlowDown");
        assert_eq!(Error::Connection(Service::S3, "reset".into()).to_string(), "no answer from S3: reset");
        let failure = Failure::from(refused);
        assert_eq!((failure.kind, failure.retry_after_ms), (FailureKind::Throttled, Some(1500)));
    }
}
