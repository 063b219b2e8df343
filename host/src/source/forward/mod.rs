//! Records by the Fluentd forward protocol, from Fluentd, Fluent Bit, the container engines' drivers, and the `fluent-logger` libraries.
//!
//! <https://github.com/fluent/fluentd/wiki/Forward-Protocol-Specification-v1>, and what version 1.5 and Fluent Bit added; comments name its
//! sections. By TCP, TLS and Unix sockets. `docs/sources.md` says how MessagePack becomes JSON.
//!
//! A sender that asks for it (`chunk`) is answered when its events are durable. While they are not, because a queue or the disk is full,
//! nothing more is read from its connection, and nothing is answered: that is how this protocol pushes back. A message is all or nothing;
//! after one that is none the connection is closed.
//!
//! Pure, over bytes: [`msgpack`] (what it looks like), [`message`] (what it means), [`json`] and [`time`] (what it becomes), [`handshake`]. Around
//! them: [`listen`] takes connections, [`connection`] reads one, [`gather`] makes chunks of what came.

mod connection;
mod door;
mod fault;
mod gather;
mod handshake;
mod json;
mod listen;
mod message;
mod msgpack;
#[cfg(test)]
mod tests;
mod time;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::door::Door;
pub(super) use self::fault::{Fault, REFUSALS};
pub(super) use self::json::Records;
pub(super) use self::message::{Events, entries};
use super::places::Places;
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{ForwardConfig, SourceConfig};

/// Starts listening.
pub(super) fn spawn(
    source: &SourceConfig,
    forward: &ForwardConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let ears = listen::Ears::open(&source.name, forward)?;
    let address = ears.address();
    let places = Places::new(source.name.clone(), Arc::clone(&sink), forward.max_connections);
    let door = Arc::new(Door::new(source, forward, sink, shutdown));
    let mut running = Running::new(source.name.clone(), async move {
        ears.serve(door, places).await;
        SourceEnded::Stopped
    });
    running.address = address;
    Ok(running)
}
