//! OTLP/HTTP: `POST /v1/logs`, with Protocol Buffers or JSON.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};

use super::denied::Denied;
use super::door::{Door, Encoding, encoding};
use super::gather::Rejected;
use super::listen::Answer;
use super::status::{Status, response};

/// "OTLP/HTTP Request": "The default URL path for requests that carry log data is /v1/logs".
pub(super) const PATH: &str = "/v1/logs";

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Protobuf,
    Json,
}

impl Wire {
    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        })
    }

    fn of(headers: &HeaderMap) -> Result<Self, Denied> {
        let mut values = headers.get_all(CONTENT_TYPE).iter();
        let value =
            values.next().map_or_else(String::new, |value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        if values.next().is_some() {
            return Err(Denied::ContentType("more than one".to_owned()));
        }
        let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-protobuf" => Ok(Self::Protobuf),
            "application/json" => Ok(Self::Json),
            _ => Err(Denied::ContentType(kind)),
        }
    }
}

/// Answers a request.
pub(super) async fn answer(door: &Door, request: Request<Incoming>) -> Response<Answer> {
    let wire = Wire::of(request.headers());
    match take(door, request).await {
        Ok((wire, rejected)) => {
            let body = response(rejected.as_ref(), wire);
            with(StatusCode::OK, wire, body)
        }
        Err(denied) => {
            door.refused(&denied);
            // "The server MUST use the same Content-Type in the response as it received in the request": where that is neither, JSON can be read by people.
            let wire = wire.unwrap_or(Wire::Json);
            let mut response = with(denied.http(), wire, Status::of(&denied).written(wire));
            let headers = response.headers_mut();
            if let Denied::Method = denied {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            if let Some(after) = denied.retry_after() {
                // Whole seconds, rounded up: never sooner than was said.
                let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
            }
            if denied.leaves_a_rest() {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    }
}

fn with(status: StatusCode, wire: Wire, body: Vec<u8>) -> Response<Answer> {
    let mut response = Response::new(Answer::of(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, wire.content_type());
    response
}

async fn take(door: &Door, request: Request<Incoming>) -> Result<(Wire, Option<Rejected>), Denied> {
    let (head, body) = request.into_parts();
    if head.uri.path() != PATH {
        return Err(Denied::Path { path: head.uri.path().to_owned(), taken: PATH });
    }
    if head.method != Method::POST {
        return Err(Denied::Method);
    }
    let wire = Wire::of(&head.headers)?;
    let encoding = encoding_of(&head.headers)?;
    let (bytes, held) = door.bytes(body, 0).await?;
    let rejected = door.take(wire, encoding, bytes, 0, held).await?;
    Ok((wire, rejected))
}

fn encoding_of(headers: &HeaderMap) -> Result<Encoding, Denied> {
    let mut found = None;
    for value in headers.get_all(CONTENT_ENCODING) {
        let name = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match (encoding(&name)?, found) {
            (None, _) => {}
            (next, None) => found = next,
            (Some(_), Some(_)) => return Err(Denied::Encoding("several".to_owned())),
        }
    }
    Ok(found)
}
