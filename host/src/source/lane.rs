//! A source's chunks on their way to the disk, in order.
//!
//! Several are under way at once, so that reading, syncing and delivering overlap; how many is bounded by bytes. A chunk that
//! could not be made durable is handed in again, with all behind it that could not either: their order stays.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::sink::{Durable, Sink};
use crate::intake::Refused;
use crate::record::Chunk;

/// Most bytes of bodies that a source has under way. Enough for several chunks of 1 MiB to share one sync.
pub(crate) const MAX_UNDER_WAY: u64 = 8 << 20;

/// How long to wait where a refusal does not say.
const PAUSE: Duration = Duration::from_secs(1);

/// Wharf is stopping: nothing more is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopping;

/// The chunks of one source that are not durable yet.
pub(crate) struct Lane {
    source: Arc<str>,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
    under_way: VecDeque<UnderWay>,
    bytes: u64,
}

struct UnderWay {
    /// Kept to be handed in again; the clone shares the bodies.
    chunk: Chunk,
    durable: Durable,
}

impl Lane {
    pub(crate) fn new(source: Arc<str>, sink: Arc<dyn Sink>, shutdown: CancellationToken) -> Self {
        Self { source, sink, shutdown, under_way: VecDeque::new(), bytes: 0 }
    }

    /// Hands a chunk in behind all earlier ones; waits where too much is under way or the intake has no room.
    pub(crate) async fn hand_in(&mut self, chunk: Chunk) -> Result<(), Stopping> {
        let bytes = chunk.meta().body_bytes;
        while !self.under_way.is_empty() && self.bytes + bytes > MAX_UNDER_WAY {
            self.settle_oldest().await?;
        }
        self.start(chunk).await?;
        self.reap().await
    }

    /// Lets go of what is durable already, without waiting for what is not.
    pub(crate) async fn reap(&mut self) -> Result<(), Stopping> {
        while let Some(mut oldest) = self.under_way.pop_front() {
            match (&mut oldest.durable).now_or_never() {
                Some(outcome) => self.settle(oldest.chunk, outcome).await?,
                None => {
                    self.under_way.push_front(oldest);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits until everything is durable.
    pub(crate) async fn drain(&mut self) -> Result<(), Stopping> {
        while !self.under_way.is_empty() {
            self.settle_oldest().await?;
        }
        Ok(())
    }

    async fn start(&mut self, chunk: Chunk) -> Result<(), Stopping> {
        loop {
            let answer = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Err(Stopping),
                answer = self.sink.enqueue(chunk.clone()) => answer,
            };
            match answer {
                Ok(durable) => {
                    self.bytes += chunk.meta().body_bytes;
                    self.under_way.push_back(UnderWay { chunk, durable });
                    return Ok(());
                }
                Err(refused) => self.pause(&refused).await?,
            }
        }
    }

    async fn settle_oldest(&mut self) -> Result<(), Stopping> {
        let Some(oldest) = self.under_way.pop_front() else { return Ok(()) };
        let outcome = oldest.durable.await;
        self.settle(oldest.chunk, outcome).await
    }

    async fn settle(&mut self, chunk: Chunk, outcome: Result<(), Refused>) -> Result<(), Stopping> {
        let Err(refused) = outcome else {
            self.bytes -= chunk.meta().body_bytes;
            return Ok(());
        };
        // The journal writes one stream, so those behind have nearly always failed too. Should a later one have made it, its
        // position did as well, and a stop before the next chunk repeats it: a record twice, rather than one lost.
        let mut again = vec![chunk];
        for later in std::mem::take(&mut self.under_way) {
            if later.durable.await.is_err() {
                again.push(later.chunk);
            }
        }
        self.bytes = 0;
        self.pause(&refused).await?;
        for chunk in again {
            self.start(chunk).await?;
        }
        Ok(())
    }

    async fn pause(&mut self, refused: &Refused) -> Result<(), Stopping> {
        let pause = match refused {
            Refused::Stopping => return Err(Stopping),
            refused => refused.retry_after().unwrap_or(PAUSE),
        };
        warn!(source = %self.source, "records could not be kept: {refused}; they are handed in again in {pause:?}");
        tokio::select! {
            () = self.shutdown.cancelled() => Err(Stopping),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }
}
