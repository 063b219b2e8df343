//! Records by HTTP: `POST` to any path, with TLS or without.
//!
//! A request is all or nothing: its records are one chunk, `200` means that the chunk is on the disk, and after every other
//! answer nothing of it is kept. Where the source has tokens, a request carries one of them, and its records are of the tenant that the
//! token is for. `docs/sources.md` has the content types and answers.
//!
//! [`connections`] takes connections; [`tokens`] says whose a request is, [`tag`] which tag its records have; [`body`], [`json`] and [`records`] make a
//! chunk of it; [`answer`] is what the sender is told.

mod answer;
mod body;
mod connections;
mod json;
mod records;
mod tag;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Version};
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

pub(super) use self::answer::REFUSALS;
use self::answer::{Denied, accepted, health};
use self::body::Encoding;
use self::connections::{Ear, Limits};
pub(crate) use self::json::Scanner;
use self::records::Format;
use self::tokens::Tokens;
use super::places::{Place, Places};
use super::room::{Held, Room};
use super::secured::{acceptor, listen};
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{HttpSourceConfig, HttpTag, SourceConfig};
use crate::fair;
use crate::intake::Refused;
use crate::record::{Chunk, now_ns};

/// Bodies up to this size are read on the spot; larger ones would hold up other requests.
const READ_ON_THE_SPOT: usize = 64 << 10;

/// No `max_body_bytes` goes beyond this: a request is one chunk, and that has an end.
const LARGEST: u64 = 1 << 30;

/// How many bodies of the largest size may be in memory at once.
const LARGEST_AT_ONCE: u64 = 4;

/// Starts listening.
pub(super) fn spawn(
    source: &SourceConfig,
    http: &HttpSourceConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let name = source.name.clone();
    let tls = http.tls.as_ref().map(|tls| acceptor(&name, tls, Some(b"http/1.1"))).transpose()?;
    let (listener, address) = listen(&name, http.listen)?;
    let limit = http.max_body_bytes.min(LARGEST);
    let limits = Limits { handshake: http.handshake_timeout, head: http.header_timeout, idle: http.idle_timeout };
    let places = Places::new(name.clone(), Arc::clone(&sink), http.max_connections);
    let door = Arc::new(Door {
        name: name.clone(),
        tag: source.tag.clone(),
        tag_from: http.tag.clone(),
        health_path: http.health_path.clone(),
        limit,
        room: Room::new(limit * LARGEST_AT_ONCE),
        tokens: Tokens::new(&name, &http.tokens, &sink),
        sink,
        shutdown,
    });
    info!(source = %name, tls = tls.is_some(), "listening on {address}");
    let ear = Ear { listener, tls, places, limits };
    let mut running = Running::new(name, async move {
        connections::serve(ear, door).await;
        SourceEnded::Stopped
    });
    running.address = Some(address);
    Ok(running)
}

struct Door {
    name: Arc<str>,
    tag: Arc<str>,
    tag_from: HttpTag,
    health_path: Option<String>,
    limit: u64,
    room: Room,
    tokens: Option<Tokens>,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
}

async fn answer_to(door: &Door, place: &Place, request: Request<Body>) -> Response {
    let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_look && door.health_path.as_deref() == Some(request.uri().path()) {
        return health(if door.shutdown.is_cancelled() { Some(Refused::Stopping) } else { door.sink.refuses() });
    }
    match door.take(place, request).await {
        Ok(records) => accepted(records),
        Err(denied) => {
            debug!(source = %door.name, "a request was not taken: {denied}");
            // The other way round it was counted where it was decided.
            if !matches!(denied, Denied::GivenUp(_)) {
                door.sink.count_refused(&door.name, denied.reason());
            }
            if let Denied::Record(_) = denied {
                door.sink.count_discarded(&door.name, "invalid", 1);
            }
            denied.into_response()
        }
    }
}

impl Door {
    /// Takes a request's records; how many they were.
    async fn take(&self, place: &Place, request: Request<Body>) -> Result<u32, Denied> {
        let (head, body) = request.into_parts();
        // Before anything else: whoever may not send learns nothing of what would be taken.
        let (sink, mut held) = match &self.tokens {
            None => (Arc::clone(&self.sink), self.room.hold()),
            Some(tokens) => {
                let sender = tokens.sender(&head.headers).await?;
                place.is_of(sender.tenant.as_ref());
                (sender.sink, self.room.hold_for(sender.tenant.as_ref()))
            }
        };
        if head.method != Method::POST {
            return Err(Denied::Method);
        }
        well_framed(&head)?;
        let tag = tag::tag(&self.tag_from, &self.tag, &head)?;
        let format = format(&head.headers)?;
        let encoding = Encoding::of(&head.headers)?;
        if self.shutdown.is_cancelled() {
            return Err(Denied::Refused(Refused::Stopping));
        }
        let bytes = body::read(body, &head.headers, self.limit, &mut held).await?;
        // Held until the chunk is durable: it is in memory as long.
        place.stays()?;
        let (chunk, _held) = self.chunk(tag, format, encoding, bytes, held).await?;
        let Some(chunk) = chunk else { return Ok(0) };
        let records = chunk.meta().records;
        let durable = sink.try_enqueue(chunk)?;
        durable.await?;
        Ok(records)
    }

    async fn chunk(
        &self,
        tag: Arc<str>,
        format: Format,
        encoding: Encoding,
        bytes: Vec<u8>,
        mut held: Held,
    ) -> Result<(Option<Chunk>, Held), Denied> {
        let (limit, on_the_spot) = (self.limit, bytes.len() <= READ_ON_THE_SPOT);
        let read = move || {
            let bytes = body::decompress(encoding, bytes, limit, &mut held)?;
            Ok((records::read(format, &tag, now_ns(), &bytes)?, held))
        };
        if on_the_spot && encoding == Encoding::Identity {
            return read();
        }
        fair::job(read).await.map_err(|fault| Denied::Fault(fault.to_string()))?
    }
}

/// What the protocol asks of every request, and its library does not.
fn well_framed(head: &Parts) -> Result<(), Denied> {
    let mut hosts = head.headers.get_all(HOST).iter();
    if hosts.next().is_none() && head.version == Version::HTTP_11 {
        return Err(Denied::NoHost);
    }
    if hosts.next().is_some() {
        return Err(Denied::Twice("Host"));
    }
    // Other codings would be there undone.
    let codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    match codings.map(|value| String::from_utf8_lossy(value.as_bytes())).find(|it| !it.eq_ignore_ascii_case("chunked"))
    {
        Some(coding) => Err(Denied::TransferEncoding(coding.into_owned())),
        None => Ok(()),
    }
}

/// How the headers say that the body is to be read.
fn format(headers: &HeaderMap) -> Result<Format, Denied> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = values.next() else { return Ok(Format::Text) };
    // Which of them counts is for nobody to guess: what is before us may have read the other one.
    if values.next().is_some() {
        return Err(Denied::Twice("Content-Type"));
    }
    let value = String::from_utf8_lossy(value.as_bytes());
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => Ok(Format::Json),
        "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonl"
        | "application/x-jsonlines"
        | "application/jsonlines"
        | "application/json-lines"
        | "application/x-jsonl" => Ok(Format::JsonLines),
        "application/msgpack" | "application/x-msgpack" | "application/vnd.msgpack" => Ok(Format::MessagePack),
        "text/plain" | "" => Ok(Format::Text),
        _ => Err(Denied::ContentType(kind)),
    }
}

/// A body as [`crate::fuzz`] has it read: its records, where all of it is good.
#[cfg(test)]
pub(crate) fn fuzzed(body: &[u8], is_lines: bool) -> Option<Vec<String>> {
    let format = if is_lines { Format::JsonLines } else { Format::Json };
    let chunk = records::read(format, &"t".into(), 1, body).ok()?;
    let bodies = chunk.iter().flat_map(|chunk| chunk.iter().map(|r| r.body.to_vec()).collect::<Vec<_>>());
    Some(bodies.map(|body| String::from_utf8(body).unwrap()).collect())
}
