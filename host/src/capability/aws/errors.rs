//! What the SDK reports, as WIT's `call-error`: did the service answer, was there no answer, or were there no credentials.

use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::http::Headers;

use crate::capability::bindings::types::{CallError as Error, HostError, ServiceError};
use crate::capability::escape::cut;
use crate::causes;

/// Longest text that goes to the guest, bytes.
const TEXT_BYTES: usize = 4096;

/// Sorts an SDK error.
pub(crate) fn sort<E>(error: SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    match &error {
        // A success whose text makes no sense: what was asked may have happened.
        SdkError::ServiceError(answer) if answer.err().code().is_none() && answer.raw().status().is_success() => {
            Error::Connection(chain(&error))
        }
        SdkError::ServiceError(answer) => {
            let (refusal, raw) = (answer.err(), answer.raw());
            Error::Service(ServiceError {
                status: raw.status().as_u16(),
                code: refusal.code().map(text).unwrap_or_default(),
                message: refusal.message().map(text).unwrap_or_default(),
                retry_after_ms: retry_after_ms(raw.headers()),
            })
        }
        SdkError::ConstructionFailure(_) => {
            let chain = chain(&error);
            if chain.to_ascii_lowercase().contains("region") {
                Error::Host(HostError::Unavailable(format!(
                    "no AWS region is known: set aws.region in the configuration, or AWS_REGION ({chain})"
                )))
            } else {
                Error::Host(HostError::Invalid(chain))
            }
        }
        SdkError::ResponseError(answer) if is_refusal(answer.raw().status().as_u16()) => {
            // A refusal whose text could not be read (a proxy's HTML page) is still one.
            Error::Service(ServiceError {
                status: answer.raw().status().as_u16(),
                code: String::new(),
                message: chain(&error),
                retry_after_ms: retry_after_ms(answer.raw().headers()),
            })
        }
        _ if caused_by_credentials(&error) => Error::Credentials(chain(&error)),
        _ => Error::Connection(chain(&error)),
    }
}

/// The HTTP status of an answer that is no success; none where there was no answer.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Service(answer) => Some(answer.status),
        _ => None,
    }
}

fn is_refusal(status: u16) -> bool {
    status >= 300
}

fn caused_by_credentials(error: &(dyn StdError + 'static)) -> bool {
    causes::causes(error).any(|cause| cause.is::<CredentialsError>())
}

/// An error with its causes.
fn chain(error: &(dyn StdError + 'static)) -> String {
    text(&causes::chain(error))
}

fn text(text: &str) -> String {
    cut(text, TEXT_BYTES).to_owned()
}

/// What the service asked for: `x-amz-retry-after` in milliseconds, or `Retry-After` in seconds (RFC 9110, section 10.2.3; its
/// other form, a date, is not used by AWS).
fn retry_after_ms(headers: &Headers) -> Option<u64> {
    let number = |name: &str| headers.get(name).and_then(|value| value.trim().parse::<u64>().ok());
    number("x-amz-retry-after").or_else(|| number("retry-after").map(|seconds| seconds.saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let mut all = Headers::new();
        for (name, value) in headers {
            all.insert(*name, *value);
        }
        retry_after_ms(&all)
    }

    #[test]
    fn the_service_says_how_long_to_wait_in_seconds_or_milliseconds() {
        assert_eq!(after(&[("retry-after", "3")]), Some(3000));
        assert_eq!(after(&[("x-amz-retry-after", "250")]), Some(250));
        assert_eq!(after(&[("retry-after", "3"), ("x-amz-retry-after", "250")]), Some(250));
        assert_eq!(after(&[("retry-after", "-1")]), None);
        assert_eq!(after(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), None);
        assert_eq!(after(&[("retry-after", "18446744073709551615")]), Some(u64::MAX));
        assert_eq!(after(&[]), None);
    }
}
