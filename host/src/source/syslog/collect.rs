//! Messages on their way to chunks: those that were read, and text of those that could not be.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::message::Reading;
use crate::config::{SourceConfig, SyslogConfig};
use crate::record::{BodyKind, Chunk, ChunkBuilder, now_ns};
use crate::source::lane::{Lane, Stopping};
use crate::source::sink::Sink;

/// Chunks close at this size.
const CHUNK_BYTES: u64 = 512 << 10;

/// What all listeners of a source share.
pub(super) struct Door {
    pub(super) name: Arc<str>,
    tag: Arc<str>,
    reading: Reading,
    pub(super) most_bytes: usize,
    pub(super) handshake_timeout: Duration,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) shutdown: CancellationToken,
}

impl Door {
    pub(super) fn new(
        source: &SourceConfig,
        syslog: &SyslogConfig,
        sink: Arc<dyn Sink>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            name: source.name.clone(),
            tag: source.tag.clone(),
            reading: Reading { zone: syslog.time_zone.clone() },
            most_bytes: usize::try_from(syslog.max_message_bytes).unwrap_or(usize::MAX),
            handshake_timeout: syslog.handshake_timeout,
            idle_timeout: syslog.idle_timeout,
            sink,
            shutdown,
        }
    }
}

/// What one connection, or one socket of datagrams, has in hand.
pub(super) struct Collect {
    door: Arc<Door>,
    lane: Lane,
    json: ChunkBuilder,
    text: ChunkBuilder,
    scratch: Vec<u8>,
    unparsed: u64,
    cut: u64,
}

impl Collect {
    pub(super) fn new(door: &Arc<Door>) -> Self {
        let lane = Lane::new(door.name.clone(), Arc::clone(&door.sink), door.shutdown.clone());
        let (json, text) = builders(&door.tag);
        Self { door: Arc::clone(door), lane, json, text, scratch: Vec::new(), unparsed: 0, cut: 0 }
    }

    /// Adds a message. An empty one is none.
    pub(super) fn add(&mut self, message: &[u8], is_cut: bool) {
        self.cut += u64::from(is_cut);
        if message.iter().all(|byte| matches!(byte, b'\r' | b'\0' | b'\n')) {
            return;
        }
        let arrival_ns = now_ns();
        let now = Timestamp::from_nanosecond(arrival_ns.into()).unwrap_or(Timestamp::UNIX_EPOCH);
        match self.door.reading.read(message, now, &mut self.scratch) {
            Some(time_ns) => {
                self.json.push(time_ns.unwrap_or(arrival_ns), &self.scratch);
            }
            None => {
                self.unparsed += 1;
                if memchr::memchr(b'\n', message).is_none() {
                    self.text.push(arrival_ns, message.strip_suffix(b"\r").unwrap_or(message));
                } else {
                    // A record is a line.
                    let spaced: Vec<u8> = message.iter().map(|b| if *b == b'\n' { b' ' } else { *b }).collect();
                    self.text.push(arrival_ns, &spaced);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.json.is_empty() && self.text.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.json.body_bytes() + self.text.body_bytes() >= CHUNK_BYTES
    }

    /// Hands in what is there; waits where there is no room.
    pub(super) async fn hand_in(&mut self) -> Result<(), Stopping> {
        for chunk in self.take() {
            self.lane.hand_in(chunk).await?;
        }
        Ok(())
    }

    /// Lets go of what is durable.
    pub(super) async fn reap(&mut self) -> Result<(), Stopping> {
        self.lane.reap().await
    }

    /// At the end: what is in hand is handed in where there is room at once, and waited for.
    pub(super) async fn finish(mut self) {
        for chunk in self.take() {
            let records = u64::from(chunk.meta().records);
            let durable = match self.door.sink.try_enqueue(chunk) {
                Ok(durable) => durable.await,
                Err(refused) => Err(refused),
            };
            if durable.is_err() {
                self.door.sink.count_discarded(&self.door.name, "stopped", records);
            }
        }
        let _ = self.lane.drain().await;
    }

    fn take(&mut self) -> impl Iterator<Item = Chunk> + use<> {
        let (json, text) = builders(&self.door.tag);
        let chunks = [std::mem::replace(&mut self.json, json), std::mem::replace(&mut self.text, text)];
        let (name, sink) = (&self.door.name, &self.door.sink);
        for (count, counted) in [(std::mem::take(&mut self.unparsed), true), (std::mem::take(&mut self.cut), false)] {
            match (count, counted) {
                (0, _) => {}
                (count, true) => sink.count_unparsed(name, "format", count),
                (count, false) => sink.count_discarded(name, "message_too_long", count),
            }
        }
        chunks.into_iter().filter_map(ChunkBuilder::finish)
    }
}

fn builders(tag: &Arc<str>) -> (ChunkBuilder, ChunkBuilder) {
    (ChunkBuilder::new(BodyKind::Json, tag.clone()), ChunkBuilder::new(BodyKind::Text, tag.clone()))
}
