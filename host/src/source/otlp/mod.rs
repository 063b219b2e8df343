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
