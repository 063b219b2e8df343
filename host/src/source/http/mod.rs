//! Records by HTTP: `POST` to any path.
//!
//! A request is all or nothing: its records are one chunk, `200` means that the chunk is on the disk, and after every other
//! answer nothing of it is kept. Where the source has tokens, a request carries one of them, and its records are of the tenant that the
//! token is for. `docs/sources.md` has the content types and answers.

mod answer;
mod body;
mod connections;
mod json;
mod records;
#[cfg(test)]
mod tests;
mod tokens;

use std::net::TcpListener;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Request};
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

pub(super) use self::answer::REFUSALS;
use self::answer::{Denied, accepted};
use self::body::Encoding;
use self::connections::Limits;
pub(crate) use self::json::Scanner;
use self::records::Format;
use self::tokens::Tokens;
use super::places::Places;
use super::room::{Held, Room};
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{HttpSourceConfig, SourceConfig};
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
    let failed = |cause| SourceError::Listen { source_name: name.clone(), address: http.listen, cause };
    let listener = TcpListener::bind(http.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let limit = http.max_body_bytes.min(LARGEST);
    let limits = Limits { head: http.header_timeout, idle: http.idle_timeout };
    let places = Places::new(name.clone(), Arc::clone(&sink), http.max_connections);
    let door = Arc::new(Door {
        name: name.clone(),
        tag: source.tag.clone(),
        limit,
        room: Room::new(limit * LARGEST_AT_ONCE),
        tokens: Tokens::new(&name, &http.tokens, &sink),
        sink,
        shutdown,
    });
    info!(source = %name, "listening on {address}");
    let mut running = Running::new(name, async move {
        connections::serve(listener, places, door, limits).await;
        SourceEnded::Stopped
    });
    running.address = Some(address);
    Ok(running)
}

struct Door {
    name: Arc<str>,
    tag: Arc<str>,
    limit: u64,
    room: Room,
    tokens: Option<Tokens>,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
}

async fn answer_to(door: &Door, request: Request<Body>) -> Response {
    match door.take(request).await {
        Ok(records) => accepted(records),
        Err(denied) => {
            debug!(source = %door.name, "a request was not taken: {denied}");
            door.sink.count_refused(&door.name, denied.reason());
            if let Denied::Record(_) = denied {
                door.sink.count_discarded(&door.name, "invalid", 1);
            }
            denied.into_response()
        }
    }
}

impl Door {
    /// Takes a request's records; how many they were.
    async fn take(&self, request: Request<Body>) -> Result<u32, Denied> {
        let (head, body) = request.into_parts();
        // Before anything else: whoever may not send learns nothing of what would be taken.
        let sink = match &self.tokens {
            None => Arc::clone(&self.sink),
            Some(tokens) => tokens.sink_for(&head.headers).await?,
        };
        if head.method != Method::POST {
            return Err(Denied::Method);
        }
        let format = format(&head.headers)?;
        let encoding = Encoding::of(&head.headers)?;
        if self.shutdown.is_cancelled() {
            return Err(Denied::Refused(Refused::Stopping));
        }
        let mut held = self.room.hold();
        let bytes = body::read(body, &head.headers, self.limit, &mut held).await?;
        // Held until the chunk is durable: it is in memory as long.
        let (chunk, _held) = self.chunk(format, encoding, bytes, held).await?;
        let Some(chunk) = chunk else { return Ok(0) };
        let records = chunk.meta().records;
        let durable = sink.try_enqueue(chunk)?;
        durable.await?;
        Ok(records)
    }

    async fn chunk(
        &self,
        format: Format,
        encoding: Encoding,
        bytes: Vec<u8>,
        mut held: Held,
    ) -> Result<(Option<Chunk>, Held), Denied> {
        let (tag, limit, on_the_spot) = (self.tag.clone(), self.limit, bytes.len() <= READ_ON_THE_SPOT);
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
