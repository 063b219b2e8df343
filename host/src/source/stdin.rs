//! Standard input, until its end: each line is a record, the last one also without its end.
//!
//! What was read cannot be read again, so a stop hands in what is in hand before it ends.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::lane::{Lane, Stopping};
use super::lines::{Each, Longest, take_lines};
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{LongLines, SourceConfig};
use crate::record::{BodyKind, Chunk, ChunkBuilder, now_ns};

/// A chunk closes at this size, or when there is nothing more to read.
const CHUNK_BYTES: usize = 1 << 20;

/// The longest line; the rest of a longer one is skipped.
const MAX_LINE: usize = 1 << 20;

/// As much as a pipe holds.
const BLOCK_BYTES: usize = 64 << 10;

/// How long more is waited for, so that a trickle becomes chunks of more than a line.
const PACE: Duration = Duration::from_millis(5);

/// Starts reading.
pub(super) fn spawn(
    source: &SourceConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    read(io::stdin(), source, sink, shutdown)
}

fn read(
    mut input: impl Read + Send + 'static,
    source: &SourceConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let name = source.name.clone();
    let (blocks, incoming) = mpsc::channel(2);
    let read = move || {
        loop {
            let mut block = vec![0; BLOCK_BYTES];
            let outcome = match input.read(&mut block) {
                Ok(0) => break,
                Ok(n) => {
                    block.truncate(n);
                    Ok(block)
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => Err(e),
            };
            let failed = outcome.is_err();
            if blocks.blocking_send(outcome).is_err() || failed {
                break;
            }
        }
    };
    // A thread of its own, which a stop leaves behind: a read of a terminal cannot be called off.
    std::thread::Builder::new()
        .name(format!("stdin {name}"))
        .spawn(read)
        .map_err(|cause| SourceError::Thread { source_name: name.clone(), cause })?;
    let lines = Lines {
        tag: source.tag.clone(),
        lane: Lane::new(name.clone(), sink.clone(), shutdown.clone()),
        name: name.clone(),
        sink,
        incoming,
        unfinished: Vec::new(),
        skipping: false,
    };
    Ok(Running::new(name, lines.run(shutdown)))
}

struct Lines {
    name: Arc<str>,
    tag: Arc<str>,
    sink: Arc<dyn Sink>,
    lane: Lane,
    incoming: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// What was read and is in no chunk yet.
    unfinished: Vec<u8>,
    skipping: bool,
}

impl Lines {
    async fn run(mut self, shutdown: CancellationToken) -> SourceEnded {
        loop {
            let block = tokio::select! {
                biased;
                () = shutdown.cancelled() => return self.stop().await,
                block = self.incoming.recv() => block,
            };
            match block {
                Some(Ok(block)) => {
                    self.unfinished.extend_from_slice(&block);
                    let failed = self.gather().await;
                    let chunk = self.take(false);
                    if self.hand_in(chunk).await.is_err() {
                        return self.stop().await;
                    }
                    if let Some(e) = failed {
                        return self.fail(&e).await;
                    }
                }
                Some(Err(e)) => return self.fail(&e).await,
                None => {
                    let chunk = self.take(true);
                    if self.hand_in(chunk).await.is_err() || self.lane.drain().await.is_err() {
                        return self.stop().await;
                    }
                    return SourceEnded::Finished;
                }
            }
        }
    }

    /// Adds what comes at once.
    async fn gather(&mut self) -> Option<io::Error> {
        while self.unfinished.len() < CHUNK_BYTES {
            match tokio::time::timeout(PACE, self.incoming.recv()).await {
                Ok(Some(Ok(block))) => self.unfinished.extend_from_slice(&block),
                Ok(Some(Err(e))) => return Some(e),
                Ok(None) | Err(_) => break,
            }
        }
        None
    }

    /// Takes the lines out of what was read; at the end of the input also one without its end.
    fn take(&mut self, end: bool) -> Option<Chunk> {
        let mut chunk = ChunkBuilder::new(BodyKind::Text, self.tag.clone());
        let mut each = Each { chunk: &mut chunk, time_ns: now_ns() };
        let longest = Longest { bytes: MAX_LINE, longer: LongLines::Truncate };
        let taken = take_lines(&mut each, &self.unfinished, longest, self.skipping);
        self.unfinished.drain(..taken.bytes);
        self.skipping = taken.skipping;
        if taken.cut > 0 {
            warn!(source = %self.name, "{} lines are longer than {MAX_LINE} bytes and were cut there", taken.cut);
            self.sink.count_discarded(&self.name, "line_too_long", taken.cut);
        }
        if end && !self.unfinished.is_empty() {
            chunk.push(now_ns(), &self.unfinished);
            self.unfinished.clear();
        }
        chunk.finish()
    }

    async fn hand_in(&mut self, chunk: Option<Chunk>) -> Result<(), Stopping> {
        let Some(chunk) = chunk else { return Ok(()) };
        let records = u64::from(chunk.meta().records);
        let handed_in = self.lane.hand_in(chunk.clone()).await;
        if handed_in.is_err() {
            self.hand_in_last(chunk, records).await;
        }
        handed_in
    }

    async fn fail(mut self, error: &io::Error) -> SourceEnded {
        let chunk = self.take(true);
        if self.hand_in(chunk).await.is_err() || self.lane.drain().await.is_err() {
            return self.stop().await;
        }
        SourceEnded::Failed(format!("reading standard input failed: {error}"))
    }

    async fn stop(mut self) -> SourceEnded {
        self.incoming.close();
        while let Ok(Ok(block)) = self.incoming.try_recv() {
            self.unfinished.extend_from_slice(&block);
        }
        if let Some(chunk) = self.take(true) {
            let records = u64::from(chunk.meta().records);
            self.hand_in_last(chunk, records).await;
        }
        // What could not be made durable was warned of.
        let _ = self.lane.drain().await;
        SourceEnded::Stopped
    }

    /// Hands in while stopping: without waiting for room.
    async fn hand_in_last(&mut self, chunk: Chunk, records: u64) {
        let refused = match self.sink.try_enqueue(chunk) {
            Ok(durable) => durable.await.err(),
            Err(refused) => Some(refused),
        };
        if let Some(refused) = refused {
            warn!(source = %self.name, "{records} records that were read are lost by the stop: {refused}");
            self.sink.count_discarded(&self.name, "stopped", records);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::config::SourceKind;
    use crate::intake::Refused;
    use crate::source::testing::FakeSink;

    fn start(input: impl Read + Send + 'static, sink: &Arc<FakeSink>, shutdown: &CancellationToken) -> Running {
        let source =
            SourceConfig { name: "in".into(), tenant: None, parse: None, tag: "in".into(), kind: SourceKind::Stdin };
        read(input, &source, Arc::new(sink.clone()), shutdown.clone()).unwrap()
    }

    #[tokio::test]
    async fn every_line_is_a_record_also_the_last_one_without_its_end() {
        let sink = FakeSink::new();
        let running = start(io::Cursor::new("one\r\n\n{\"a\":1}\nlast"), &sink, &CancellationToken::new());
        assert_eq!(running.ended().await, SourceEnded::Finished);
        assert_eq!(sink.lines(), ["one", "", "{\"a\":1}", "last"]);
        assert!(sink.kinds().iter().all(|kind| *kind == BodyKind::Text));
    }

    #[tokio::test]
    async fn an_empty_input_ends_without_a_record() {
        let sink = FakeSink::new();
        assert_eq!(start(io::empty(), &sink, &CancellationToken::new()).ended().await, SourceEnded::Finished);
        assert_eq!(sink.handed_in(), 0);
    }

    #[tokio::test]
    async fn much_input_comes_whole_and_in_order() {
        let sink = FakeSink::new();
        let expected: Vec<String> = (0..200_000).map(|n| format!("line {n} {}", "x".repeat(n % 60))).collect();
        let input = expected.join("\n");
        assert_eq!(
            start(io::Cursor::new(input), &sink, &CancellationToken::new()).ended().await,
            SourceEnded::Finished
        );
        assert!(sink.lines() == expected);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_cut_and_counted() {
        let sink = FakeSink::new();
        let input = format!("a\n{}\nb\n", "x".repeat(3 << 20));
        assert_eq!(
            start(io::Cursor::new(input), &sink, &CancellationToken::new()).ended().await,
            SourceEnded::Finished
        );
        let lengths: Vec<usize> = sink.lines().iter().map(String::len).collect();
        assert_eq!(lengths, [1, 1 << 20, 1]);
        assert_eq!(sink.discarded("line_too_long"), 1);
    }

    #[tokio::test]
    async fn a_stop_hands_in_what_was_read() {
        let sink = FakeSink::new();
        let (mut writer, input) = UnixStream::pair().unwrap();
        let shutdown = CancellationToken::new();
        let running = start(input, &sink, &shutdown);
        writer.write_all(b"one\ntwo").unwrap();
        sink.wait_for(1).await;
        shutdown.cancel();
        assert_eq!(running.ended().await, SourceEnded::Stopped);
        assert_eq!(sink.lines(), ["one", "two"]);
    }

    #[tokio::test]
    async fn a_stop_that_finds_no_room_counts_what_is_lost() {
        let sink = FakeSink::new();
        let (mut writer, input) = UnixStream::pair().unwrap();
        let shutdown = CancellationToken::new();
        let running = start(input, &sink, &shutdown);
        writer.write_all(b"one\ntwo").unwrap();
        sink.wait_for(1).await;
        sink.refuse_next(Refused::DiskFull { retry_after: Duration::from_secs(1) });
        shutdown.cancel();
        assert_eq!(running.ended().await, SourceEnded::Stopped);
        assert_eq!((sink.lines().len(), sink.discarded("stopped")), (1, 1));
    }
}
