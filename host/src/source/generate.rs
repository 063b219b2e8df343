//! Made-up records for trials: lines with a counter, so that each can be told apart and missed.
//!
//! The next number is the source's position: a restart goes on where the durable records end, and `count` is over all runs.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::lane::{Lane, Stopping};
use super::sink::Sink;
use super::{Running, SourceEnded};
use crate::config::{GenerateConfig, SourceConfig};
use crate::record::{BodyKind, Chunk, ChunkBuilder, Position, now_ns};

/// The position's key.
const KEY: &str = "next";

/// Chunks close at this size.
const CHUNK_BYTES: u64 = 1 << 20;

/// How often records are made where there is a rate.
const TICK: Duration = Duration::from_millis(10);

/// Starts making records up.
pub(super) fn spawn(
    source: &SourceConfig,
    generate: &GenerateConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Running {
    let name = source.name.clone();
    let next = first(&*sink, &name);
    let maker = Maker { name: name.clone(), tag: source.tag.clone(), record_bytes: generate.record_bytes, next };
    let lane = Lane::new(name.clone(), sink, shutdown.clone());
    let (rate, count) = (generate.rate, generate.count);
    Running::new(name, async move { run(maker, lane, rate, count, shutdown).await })
}

/// The number to go on with.
fn first(sink: &dyn Sink, name: &str) -> u64 {
    let Some(position) = sink.positions(name).into_iter().find(|position| position.key == KEY) else { return 1 };
    let next = std::str::from_utf8(&position.value).ok().and_then(|text| text.parse().ok());
    next.unwrap_or_else(|| {
        warn!(source = %name, "the position {:?} is no number: counting begins anew", position.value.escape_ascii().to_string());
        1
    })
}

async fn run(
    mut maker: Maker,
    mut lane: Lane,
    rate: Option<u64>,
    count: Option<u64>,
    shutdown: CancellationToken,
) -> SourceEnded {
    let made = make_all(&mut maker, &mut lane, rate, count, &shutdown).await;
    let drained = lane.drain().await;
    if made.and(drained).is_ok() { SourceEnded::Finished } else { SourceEnded::Stopped }
}

async fn make_all(
    maker: &mut Maker,
    lane: &mut Lane,
    rate: Option<u64>,
    count: Option<u64>,
    shutdown: &CancellationToken,
) -> Result<(), Stopping> {
    let in_a_chunk = (CHUNK_BYTES / maker.record_bytes.max(1)).clamp(1, 100_000);
    let mut due = rate.map(Due::new);
    loop {
        let left = count.map_or(u64::MAX, |count| (count + 1).saturating_sub(maker.next));
        if left == 0 {
            return Ok(());
        }
        if shutdown.is_cancelled() {
            return Err(Stopping);
        }
        let now = due.as_mut().map_or(u64::MAX, |due| due.take(in_a_chunk.min(left)));
        match maker.make(in_a_chunk.min(left).min(now)) {
            Some(chunk) => {
                lane.hand_in(chunk).await?;
                // Making is all computing: others must get their turn.
                tokio::task::yield_now().await;
            }
            None => tokio::select! {
                () = shutdown.cancelled() => return Err(Stopping),
                () = tokio::time::sleep(TICK) => lane.reap().await?,
            },
        }
    }
}

/// How many records a rate allows.
struct Due {
    rate: u64,
    since: Instant,
    taken: u64,
}

impl Due {
    fn new(rate: u64) -> Self {
        Self { rate, since: Instant::now(), taken: 0 }
    }

    /// As many as are due by now, at most `most`. What could not be made for a second or longer is not made up for.
    fn take(&mut self, most: u64) -> u64 {
        let due = |since: Instant, rate: u64| (since.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u64;
        let mut allowed = due(self.since, self.rate).saturating_sub(self.taken);
        if allowed > self.rate.saturating_mul(2) {
            (self.since, self.taken) = (Instant::now(), 0);
            allowed = self.rate;
        }
        let taken = allowed.min(most);
        self.taken += taken;
        taken
    }
}

struct Maker {
    name: Arc<str>,
    tag: Arc<str>,
    record_bytes: u64,
    next: u64,
}

impl Maker {
    fn make(&mut self, records: u64) -> Option<Chunk> {
        let mut chunk = ChunkBuilder::new(BodyKind::Text, self.tag.clone());
        let now = now_ns();
        let record_bytes = usize::try_from(self.record_bytes).unwrap_or(usize::MAX).min(CHUNK_BYTES as usize);
        let mut body = Vec::new();
        for _ in 0..records {
            body.truncate(0);
            // Writing into memory does not fail.
            let _ = write!(body, "generate {} {:012} ", self.name, self.next);
            while body.len() < record_bytes {
                let missing = record_bytes - body.len();
                body.extend_from_slice(FILLING.get(..missing.min(FILLING.len())).unwrap_or_default());
            }
            chunk.push(now, &body);
            self.next += 1;
        }
        if records > 0 {
            let value = self.next.to_string().into_bytes();
            chunk.position(Position { source: self.name.clone(), key: KEY.to_owned(), value });
        }
        chunk.finish()
    }
}

/// What records are filled up with: text that compresses neither very well nor not at all.
const FILLING: &[u8] = b"the quick brown fox jumps over the lazy dog 0123456789 GET /index.html 200 1532 \
a ship in harbour is safe, but that is not what ships are built for; ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceKind;
    use crate::source::testing::FakeSink;

    fn start(generate: GenerateConfig, sink: &Arc<FakeSink>, shutdown: &CancellationToken) -> Running {
        let source = SourceConfig {
            name: "gen".into(),
            tenant: None,
            tag: "t".into(),
            kind: SourceKind::Generate(generate.clone()),
        };
        spawn(&source, &generate, Arc::new(sink.clone()), shutdown.clone())
    }

    #[tokio::test]
    async fn each_number_comes_once_and_the_source_ends_at_its_count() {
        let sink = FakeSink::new();
        let generate = GenerateConfig { rate: None, count: Some(25_000), record_bytes: 100 };
        assert_eq!(start(generate.clone(), &sink, &CancellationToken::new()).ended().await, SourceEnded::Finished);
        let lines = sink.lines();
        assert_eq!(lines.len(), 25_000);
        for (line, n) in lines.iter().zip(1..) {
            assert!(line.starts_with(&format!("generate gen {n:012} ")), "{line}");
            assert_eq!(line.len(), 100);
        }
        // Started again, it has nothing to do.
        let again = FakeSink::from_positions(sink.kept_positions());
        assert_eq!(start(generate, &again, &CancellationToken::new()).ended().await, SourceEnded::Finished);
        assert!(again.lines().is_empty());
    }

    #[tokio::test]
    async fn a_restart_goes_on_behind_the_last_durable_record() {
        let sink = FakeSink::new();
        sink.allow(2);
        let generate = GenerateConfig { rate: None, count: Some(60_000), record_bytes: 100 };
        let shutdown = CancellationToken::new();
        let running = start(generate.clone(), &sink, &shutdown);
        let first = sink.wait_for(20_000).await.len();
        // As a kill: what is not durable is gone with the process.
        drop(running);
        let again = FakeSink::from_positions(sink.kept_positions());
        assert_eq!(start(generate, &again, &CancellationToken::new()).ended().await, SourceEnded::Finished);
        let lines = again.lines();
        assert_eq!(first + lines.len(), 60_000);
        assert!(lines[0].starts_with(&format!("generate gen {:012} ", first + 1)));
    }

    #[tokio::test]
    async fn a_stop_ends_it_with_everything_durable() {
        let sink = FakeSink::new();
        let shutdown = CancellationToken::new();
        let generate = GenerateConfig { rate: Some(1000), count: None, record_bytes: 10 };
        let running = start(generate, &sink, &shutdown);
        sink.wait_for(20).await;
        shutdown.cancel();
        assert_eq!(running.ended().await, SourceEnded::Stopped);
        assert_eq!(sink.handed_in(), sink.chunks().len() as u64);
    }

    #[test]
    fn a_rate_allows_what_its_time_gives_and_no_burst_after_a_long_wait() {
        let mut due = Due { rate: 100, since: Instant::now() - Duration::from_millis(500), taken: 0 };
        assert_eq!(due.take(10), 10);
        let rest = due.take(1_000_000);
        assert!((40..100).contains(&rest), "{rest}");
        let mut due = Due { rate: 100, since: Instant::now() - Duration::from_secs(3600), taken: 0 };
        assert_eq!(due.take(1_000_000), 100);
    }
}
