//! Refusals, in the words and with the status of the AWS JSON protocol.
//! <https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html#operation-error-serialization>

use bytes::Bytes;
use hyper::http::{HeaderValue, Response, StatusCode, header};
use s3s::Body;
use serde::Serialize;

use crate::exchange::Answer;
use crate::signature::Forged;

/// The content type of requests and answers.
pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.1";

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// Refused, or done.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterException", message)
    }
    pub(crate) fn no_group() -> Self {
        Self::new("ResourceNotFoundException", "The specified log group does not exist.")
    }
    pub(crate) fn no_stream() -> Self {
        Self::new("ResourceNotFoundException", "The specified log stream does not exist.")
    }
    pub(crate) fn answer(&self) -> Answer {
        refusal(self.code, &self.message)
    }
}

impl From<Forged> for Failure {
    fn from(forged: Forged) -> Self {
        match forged {
            Forged::Missing => Self::new("MissingAuthenticationTokenException", "Missing Authentication Token"),
            Forged::Malformed(why) => Self::new("IncompleteSignatureException", why),
            Forged::UnknownKey(_) => {
                Self::new("UnrecognizedClientException", "The security token included in the request is invalid.")
            }
            Forged::Skewed(time) => Self::new(
                "InvalidSignatureException",
                format!("Signature expired or not yet current: {time} is more than 5 min. from now"),
            ),
            Forged::Scope(why) => Self::new("InvalidSignatureException", why),
            Forged::Wrong => Self::new(
                "InvalidSignatureException",
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.",
            ),
        }
    }
}

/// The answer to a fault.
pub(crate) fn refuse(code: &str) -> Answer {
    let message = match code {
        "ThrottlingException" => "Rate exceeded".to_owned(),
        "ExpiredTokenException" => "The security token included in the request is expired".to_owned(),
        "UnrecognizedClientException" => "The security token included in the request is invalid.".to_owned(),
        "ServiceUnavailableException" => "The service cannot complete the request.".to_owned(),
        _ => format!("{code}, as a fault demands"),
    };
    refusal(code, &message)
}

fn refusal(code: &str, message: &str) -> Answer {
    #[derive(Serialize)]
    struct Refusal<'a> {
        #[serde(rename = "__type")]
        code: &'a str,
        message: &'a str,
    }
    let status = match code {
        "ServiceUnavailableException" | "ServiceUnavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "InternalFailure" | "InternalServerException" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    let mut response = reply(&Refusal { code, message })?;
    *response.status_mut() = status;
    Ok(response)
}

/// An answer of JSON.
pub(crate) fn reply(value: &impl Serialize) -> Answer {
    let bytes = Bytes::from(serde_json::to_vec(value)?);
    Ok(json(bytes))
}

/// An answer without content: the protocol has an empty body for it.
pub(crate) fn nothing() -> Answer {
    Ok(json(Bytes::new()))
}

fn json(bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}
