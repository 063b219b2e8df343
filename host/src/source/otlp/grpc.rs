//! OTLP/gRPC: `LogsService/Export`, a call with one message each way.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. Its frames are read here, so that a message is held against the same limits as a
//! request by HTTP before and after it is decompressed; answers that are no success are written by tonic.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use prost::Message as _;

use super::denied::Denied;
use super::door::{Door, encoding};
use super::gather::Rejected;
use super::http::Wire;
use super::listen::Answer;
use super::status::{self, response};

/// The one method that is there.
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// "Length-Prefixed-Message → Compressed-Flag Message-Length Message"
const PREFIX: usize = 5;

/// Answers a call.
pub(super) async fn answer(door: &Door, request: Request<Incoming>) -> Response<Answer> {
    // "If Content-Type does not begin with "application/grpc", gRPC servers SHOULD respond with HTTP status of 415".
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !kind.starts_with(b"application/grpc") || request.method() != Method::POST {
        door.refused(&Denied::ContentType(String::from_utf8_lossy(kind).into_owned()));
        let mut response = Response::new(Answer::of(Bytes::new()));
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    match take(door, request).await {
        Ok(rejected) => {
            let message = response(rejected.as_ref(), Wire::Protobuf);
            let mut body = Vec::with_capacity(PREFIX + message.len());
            body.push(0);
            body.extend_from_slice(&(message.len() as u32).to_be_bytes());
            body.extend_from_slice(&message);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let mut response = Response::new(Answer::with_trailers(Bytes::from(body), trailers));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            response
        }
        Err(denied) => {
            door.refused(&denied);
            let details = status::Status::of(&denied);
            let details = if details.details.is_empty() { Vec::new() } else { details.encode_to_vec() };
            let answer = tonic::Status::with_details(denied.grpc(), denied.to_string(), Bytes::from(details));
            let mut response: Response<Answer> = answer.into_http();
            if let Denied::Encoding(_) = denied {
                // "Compression": the error names the encodings that are known.
                response.headers_mut().insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip,zstd"));
            }
            response
        }
    }
}

async fn take(door: &Door, request: Request<Incoming>) -> Result<Option<Rejected>, Denied> {
    let (head, body) = request.into_parts();
    if head.uri.path() != EXPORT {
        return Err(Denied::Path { path: head.uri.path().to_owned(), taken: EXPORT });
    }
    if let Some(kind) = other_codec(&head.headers) {
        return Err(Denied::ContentType(kind));
    }
    let name = head.headers.get("grpc-encoding").map_or("identity", |name| name.to_str().unwrap_or("?"));
    let encoding = encoding(name)?;
    let (bytes, held) = door.bytes(body, PREFIX as u64).await?;
    let Some((&[flag, a, b, c, d], message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(Denied::Malformed("there is no message".to_owned()));
    };
    if u32::from_be_bytes([a, b, c, d]) as usize != message.len() {
        return Err(Denied::Malformed("there should be one whole message, and nothing behind it".to_owned()));
    }
    let encoding = match (flag, encoding) {
        (0, _) => None,
        (1, Some(encoding)) => Some(encoding),
        _ => return Err(Denied::Malformed("its compressed flag does not fit its grpc-encoding".to_owned())),
    };
    door.take(Wire::Protobuf, encoding, bytes, PREFIX, held).await
}

/// A content type of messages that are not those of Protocol Buffers: `application/grpc+json`.
fn other_codec(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let codec = kind.split(';').next()?.trim().strip_prefix("application/grpc")?;
    (!matches!(codec, "" | "+proto")).then(|| kind.to_owned())
}
