//! Log records by OTLP, from the SDKs of OpenTelemetry, its Collector, and whatever else speaks it: by gRPC, and by HTTP with bodies of
//! Protocol Buffers or JSON.
//!
//! <https://opentelemetry.io/docs/specs/otlp/> (1.x); comments name its sections. `docs/sources.md` says how a record looks as JSON.
//!
//! A request is answered when all of its records are durable. One of its records that is none costs only itself, and is told as a partial success;
//! what keeps the whole request from being taken is told so that senders try again exactly where that helps.
//!
//! Pure, over bytes: [`protobuf`] and [`json`] read requests, [`gather`] makes chunks of their records, [`record`] and [`value`] write them. Around
//! them: [`listen`] takes connections, [`http`] and [`grpc`] are the two ways to ask and to answer, [`door`] is what they share.

mod denied;
mod door;
mod gather;
mod grpc;
mod http;
mod json;
mod listen;
mod protobuf;
mod record;
mod status;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub(super) use self::denied::REFUSALS;
use self::door::Door;
use super::places::Places;
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{OtlpConfig, SourceConfig};

/// Starts listening.
pub(super) fn spawn(
    source: &SourceConfig,
    otlp: &OtlpConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let ears = listen::Ears::open(&source.name, otlp)?;
    let address = ears.address();
    let places = Places::new(source.name.clone(), Arc::clone(&sink), otlp.max_connections);
    let door = Arc::new(Door::new(source, otlp, sink, shutdown));
    let mut running = Running::new(source.name.clone(), async move {
        ears.serve(door, places).await;
        SourceEnded::Stopped
    });
    running.address = address;
    Ok(running)
}

/// Requests as [`crate::fuzz`] has them read: the records, as OTLP/JSON or in the other format, and how many were none.
#[cfg(test)]
pub(super) mod fuzzed {
    use super::door::read;
    use super::gather::Shape;
    use super::http::Wire;
    use crate::config::OtlpFormat;
    use crate::source::room::Room;

    fn of(wire: Wire, bytes: &[u8], as_otlp: bool) -> Option<(Vec<String>, u64)> {
        let format = if as_otlp { OtlpFormat::OtlpJson } else { OtlpFormat::Json };
        let shape = Shape { format, tag: "t".into(), tag_from: None, most_bytes: 8 << 20 };
        let held = Room::new(16 << 20).hold();
        let (gathered, _) = read(&shape, wire, None, bytes, 1 << 20, held).ok()?;
        let records =
            gathered.chunks.iter().flat_map(|chunk| chunk.iter().map(|r| r.body.to_vec()).collect::<Vec<_>>());
        let lines = records.map(|body| String::from_utf8(body).unwrap()).collect();
        Some((lines, gathered.rejected.map_or(0, |rejected| rejected.records)))
    }

    pub(crate) fn json(bytes: &[u8], as_otlp: bool) -> Option<(Vec<String>, u64)> {
        of(Wire::Json, bytes, as_otlp)
    }

    pub(crate) fn protobuf(bytes: &[u8], as_otlp: bool) -> Option<(Vec<String>, u64)> {
        of(Wire::Protobuf, bytes, as_otlp)
    }
}
