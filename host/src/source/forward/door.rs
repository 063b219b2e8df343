//! What all connections of a source share: the way in, the limits, and what is logged of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::fault::Fault;
use super::json::Records;
use crate::config::{ForwardConfig, ForwardSecurity, ForwardTag, SourceConfig};
use crate::intake::Refused;
use crate::record::Chunk;
use crate::source::places::{GivenUp, Place};
use crate::source::room::{Held, Room};
use crate::source::sink::{Durable, Sink};

/// No `max_message_size` goes beyond this: a message is one chunk, and that has an end.
const LARGEST: u64 = 1 << 30;

/// How many messages of the largest size may be in memory at once: one as it was sent, decompressed, and twice as JSON.
const LARGEST_AT_ONCE: u64 = 4;

/// With a small `max_message_size`, what chunks under way take is more than messages.
const LEAST_ROOM: u64 = 32 << 20;

/// How long to wait where a refusal does not say.
const PAUSE: Duration = Duration::from_secs(1);

/// For each reason, a line in so long a time.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct Door {
    pub(crate) name: Arc<str>,
    tag: Arc<str>,
    /// Before tags that are sent; none where the source's own takes their place.
    prefix: Option<String>,
    pub(crate) records: Records,
    pub(crate) security: Option<ForwardSecurity>,
    /// Whether several tenants send here.
    is_shared: bool,
    pub(crate) most_bytes: usize,
    pub(crate) handshake_timeout: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) room: Room,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) shutdown: CancellationToken,
    lines: Lines,
}

/// JSON is a little larger than MessagePack, and much larger only where it is made to be. Small messages may.
fn most_json(most_bytes: u64) -> usize {
    usize::try_from(most_bytes.saturating_mul(2).max(1 << 20)).unwrap_or(usize::MAX)
}

impl Door {
    pub(crate) fn new(
        source: &SourceConfig,
        forward: &ForwardConfig,
        sink: Arc<dyn Sink>,
        shutdown: CancellationToken,
    ) -> Self {
        let most_bytes = forward.max_message_bytes.min(LARGEST);
        Self {
            name: source.name.clone(),
            tag: source.tag.clone(),
            prefix: match &forward.tag {
                ForwardTag::Sent { prefix } => Some(prefix.clone()),
                ForwardTag::OfSource => None,
            },
            records: Records::new(forward.metadata_key.as_deref(), most_json(most_bytes)),
            security: forward.security.clone(),
            is_shared: source.senders().len() > 1,
            most_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX),
            handshake_timeout: forward.handshake_timeout,
            idle_timeout: forward.idle_timeout,
            room: Room::new((most_bytes * LARGEST_AT_ONCE).max(LEAST_ROOM)),
            sink,
            shutdown,
            lines: Lines::default(),
        }
    }

    /// A connection has a place. Until it has said who sends, it may be closed where another one needs its place.
    pub(crate) fn begins(&self, place: &Place) {
        if self.security.is_some() {
            place.waits();
        }
    }

    /// It is known who sends. Where several tenants do, connections of the one that has the most may go on being closed, if they are idle.
    /// Else none is: a sender that asks for no acknowledgement would lose what it sends just then, to the gain of none but itself.
    pub(crate) fn greeted(&self, place: &Place, tenant: Option<&Arc<str>>) -> Result<(), GivenUp> {
        place.is_of(tenant);
        place.stays()
    }

    /// Nothing is in hand on a connection of somebody known.
    pub(crate) fn is_idle(&self, place: &Place, inside_message_since: Option<Instant>) {
        match inside_message_since {
            Some(since) if self.is_shared => place.receives(since),
            None if self.is_shared => place.waits(),
            _ => {}
        }
    }

    /// Room for what a sender sends. Where several tenants do, a message that is still coming may be given up for one of another.
    pub(crate) fn room_of(&self, tenant: Option<&Arc<str>>) -> Held {
        if self.is_shared { self.room.hold_for(tenant) } else { self.room.hold() }
    }

    /// The tag of records that were sent with this one. An empty tag matches no output: then it is the source's.
    pub(crate) fn tag(&self, sent: &str) -> Arc<str> {
        match &self.prefix {
            None => self.tag.clone(),
            Some(prefix) if prefix.is_empty() && sent.is_empty() => self.tag.clone(),
            Some(prefix) if prefix.is_empty() => sent.into(),
            Some(prefix) => format!("{prefix}{sent}").into(),
        }
    }

    /// Hands a chunk in. Waits where there is no room for it, and hands it in again where the disk fails it: it ends with the chunk
    /// durable, with Wharf's stop, or with the chunk being larger than the journal may be.
    ///
    /// `sink` is the source's, or that of the tenant who sends.
    pub(crate) async fn hand_in(&self, sink: &Arc<dyn Sink>, chunk: Chunk) -> Result<Durable, Refused> {
        let way = || Way { name: self.name.clone(), sink: Arc::clone(sink), shutdown: self.shutdown.clone() };
        let durable = match sink.try_enqueue(chunk.clone()) {
            Ok(durable) => durable,
            Err(refused) => {
                self.waits(&refused)?;
                way().wait_in(&chunk).await?
            }
        };
        Ok(Box::pin(way().until_durable(chunk, durable)))
    }

    /// Counts that something has to wait, and says so.
    fn waits(&self, refused: &Refused) -> Result<(), Refused> {
        if matches!(refused, Refused::TooLarge { .. }) {
            // Counted where the connection is closed for it.
            return Err(refused.clone());
        }
        self.sink.count_refused(&self.name, refused.reason());
        if matches!(refused, Refused::Stopping) {
            return Err(Refused::Stopping);
        }
        self.lines.say(refused.reason(), |left_out| {
            warn!(source = %self.name, left_out, "{refused}: its senders wait, and nothing more is read from them");
        });
        Ok(())
    }

    /// A connection is closed for a fault.
    pub(crate) fn refused(&self, peer: &str, fault: &Fault) {
        let reason = fault.reason();
        self.sink.count_refused(&self.name, reason);
        self.lines.say(reason, |left_out| {
            warn!(source = %self.name, peer, reason, left_out, "a connection is closed: {fault}");
        });
    }
}

/// The way to the disk, for what outlives a call.
struct Way {
    name: Arc<str>,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
}

impl Way {
    async fn until_durable(self, chunk: Chunk, mut durable: Durable) -> Result<(), Refused> {
        loop {
            match durable.await {
                Ok(()) => return Ok(()),
                Err(refused @ (Refused::Stopping | Refused::TooLarge { .. })) => return Err(refused),
                Err(refused) => self.sink.count_refused(&self.name, refused.reason()),
            }
            durable = self.wait_in(&chunk).await?;
        }
    }

    async fn wait_in(&self, chunk: &Chunk) -> Result<Durable, Refused> {
        loop {
            let taken = self.shutdown.run_until_cancelled(self.sink.enqueue(chunk.clone())).await;
            let pause = match taken.unwrap_or(Err(Refused::Stopping)) {
                Ok(durable) => return Ok(durable),
                Err(refused @ (Refused::Stopping | Refused::TooLarge { .. })) => return Err(refused),
                Err(refused) => refused.retry_after().unwrap_or(PAUSE),
            };
            if self.shutdown.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Err(Refused::Stopping);
            }
        }
    }
}

/// Lines of the log, each reason now and then: a sender that tries again and again must not fill the disk with it.
#[derive(Default)]
struct Lines {
    said: Mutex<HashMap<&'static str, (Instant, u64)>>,
}

impl Lines {
    /// Says it, with how many lines for this reason were left out before; or leaves it out.
    fn say(&self, reason: &'static str, line: impl FnOnce(u64)) {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = match said.get_mut(reason) {
            Some((last, left_out)) if now.duration_since(*last) < LINE_EVERY => {
                *left_out += 1;
                return;
            }
            Some((_, left_out)) => *left_out,
            None => 0,
        };
        said.insert(reason, (now, 0));
        drop(said);
        line(left_out);
    }
}
