//! What all connections of a source share: the limits, and the way in.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::denied::Denied;
use super::gather::{AS_JSON, Gather, Gathered, Rejected, Shape};
use super::http::Wire;
use super::{json, protobuf};
use crate::config::{OtlpConfig, SourceConfig};
use crate::intake::Refused;
use crate::record::now_ns;
use crate::source::compressed::{Compression, Unfit};
use crate::source::room::{Held, Room};
use crate::source::sink::Sink;

/// Requests up to this size are read on the spot; larger ones would hold up others.
const READ_ON_THE_SPOT: usize = 32 << 10;

/// No `max_body_size` goes beyond this: a request is one chunk, and that has an end.
const LARGEST: u64 = 1 << 30;

/// How many requests of the largest size may be in memory at once, each as it was sent, decompressed, and as JSON.
const LARGEST_AT_ONCE: u64 = 16;

/// How long a request may make no progress.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the bytes of a request are compressed; none is not at all.
pub(super) type Encoding = Option<Compression>;

/// The encoding of this name, as `Content-Encoding` and `grpc-encoding` have it.
pub(super) fn encoding(name: &str) -> Result<Encoding, Denied> {
    match name.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(None),
        "gzip" | "x-gzip" => Ok(Some(Compression::Gzip)),
        "zstd" => Ok(Some(Compression::Zstd)),
        other => Err(Denied::Encoding(other.to_owned())),
    }
}

pub(super) struct Door {
    pub(super) name: Arc<str>,
    shape: Arc<Shape>,
    pub(super) limit: u64,
    room: Room,
    pub(super) handshake_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) shutdown: CancellationToken,
}

impl Door {
    pub(super) fn new(
        source: &SourceConfig,
        otlp: &OtlpConfig,
        sink: Arc<dyn Sink>,
        shutdown: CancellationToken,
    ) -> Self {
        let limit = otlp.max_body_bytes.min(LARGEST);
        let shape = Shape {
            format: otlp.format,
            tag: source.tag.clone(),
            tag_from: otlp.tag_from.clone(),
            most_bytes: (limit * AS_JSON as u64).max(1 << 20),
        };
        Self {
            name: source.name.clone(),
            shape: Arc::new(shape),
            limit,
            room: Room::new((limit * LARGEST_AT_ONCE).max(32 << 20)),
            handshake_timeout: otlp.handshake_timeout,
            idle_timeout: otlp.idle_timeout,
            sink,
            shutdown,
        }
    }

    /// Reads a request's bytes, of which `around` are not its message.
    pub(super) async fn bytes(&self, body: Incoming, around: u64) -> Result<(Vec<u8>, Held), Denied> {
        if self.shutdown.is_cancelled() {
            return Err(Denied::Refused(Refused::Stopping));
        }
        let most = self.limit + around;
        let too_large = Denied::TooLarge { limit: self.limit, decompressed: false };
        let announced = hyper::body::Body::size_hint(&body).exact();
        if announced.is_some_and(|announced| announced > most) {
            return Err(too_large);
        }
        let mut held = self.room.hold();
        // What is announced has not come yet: memory is taken as bytes come, a good part of it ahead.
        let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(1 << 20) as usize);
        let mut frames = axum::body::Body::new(body).into_data_stream();
        loop {
            let frame: Bytes = match tokio::time::timeout(PATIENCE, frames.next()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(e))) => return Err(Denied::Body(e.to_string())),
                Ok(None) => return Ok((bytes, held)),
                Err(_) => return Err(Denied::Slow(PATIENCE)),
            };
            if (bytes.len() + frame.len()) as u64 > most {
                return Err(too_large);
            }
            held.add(frame.len() as u64).map_err(|_| Denied::Busy)?;
            bytes.extend_from_slice(&frame);
        }
    }

    /// Takes a request. Ends when all of its records are durable, and gives those that are none.
    pub(super) async fn take(
        &self,
        wire: Wire,
        encoding: Encoding,
        bytes: Vec<u8>,
        skip: usize,
        held: Held,
    ) -> Result<Option<Rejected>, Denied> {
        let (shape, limit, on_the_spot) = (Arc::clone(&self.shape), self.limit, bytes.len() <= READ_ON_THE_SPOT);
        let read = move || read(&shape, wire, encoding, bytes.get(skip..).unwrap_or_default(), limit, held);
        // Held until the chunks are durable: they are in memory as long.
        let (gathered, _held) = if on_the_spot && encoding.is_none() {
            read()?
        } else {
            tokio::task::spawn_blocking(read).await.map_err(|fault| Denied::Fault(fault.to_string()))??
        };
        let mut under_way = Vec::with_capacity(gathered.chunks.len());
        for chunk in gathered.chunks {
            under_way.push(self.sink.try_enqueue(chunk)?);
        }
        for durable in under_way {
            durable.await?;
        }
        if let Some(rejected) = &gathered.rejected {
            debug!(source = %self.name, "a request was taken but for some records: {}", rejected.message());
            self.sink.count_discarded(&self.name, "invalid", rejected.records);
        }
        Ok(gathered.rejected)
    }

    /// A request, or a connection, is refused.
    pub(super) fn refused(&self, denied: &Denied) {
        debug!(source = %self.name, "a request was not taken: {denied}");
        self.sink.count_refused(&self.name, denied.reason());
    }
}

/// Reads a request, within limits. Computes for a while where it is large.
pub(crate) fn read(
    shape: &Shape,
    wire: Wire,
    encoding: Option<Compression>,
    bytes: &[u8],
    limit: u64,
    mut held: Held,
) -> Result<(Gathered, Held), Denied> {
    let decompressed = encoding.map(|compression| {
        compression.undo(bytes, limit, &mut held).map_err(|unfit| match unfit {
            Unfit::TooLarge => Denied::TooLarge { limit, decompressed: true },
            Unfit::Broken(cause) => Denied::Compressed { encoding: compression.name(), cause: cause.to_string() },
            Unfit::NoRoom => Denied::Busy,
        })
    });
    let decompressed = decompressed.transpose()?;
    let bytes = decompressed.as_deref().unwrap_or(bytes);
    let mut gather = Gather::new(shape, &mut held, now_ns());
    match wire {
        Wire::Protobuf => protobuf::read(bytes, &mut gather)?,
        Wire::Json => json::read(bytes, &mut gather)?,
    }
    let gathered = gather.finish();
    Ok((gathered, held))
}
