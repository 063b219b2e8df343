//! The rooms around an output, all real, with a component that misbehaves as a batch's tag says.

mod endings;
mod idle;
mod order;
mod poison;
mod replacing;
mod retries;
mod schedule;
mod stopping;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{Destinations, Output, OutputHandle, OutputSetup, Quarantines, STORE_IDLE, WorkerState};
use crate::capability::Services;
use crate::capability::aws::Connection;
use crate::config::{AwsConfig, Limit, OnQuarantine, RetryConfig};
use crate::dead_letter::{DeadLetters, Filter, StoredLetter};
use crate::journal::{self, Journal};
use crate::plugin::tests::{component, options};
use crate::plugin::{HostOptions, Plugin, PluginHost, PluginSource, WorkerContext};
use crate::queue::{BatchLimits, Ledger, Queue, QueueOptions, WhenFull};
use crate::record::{BodyKind, ChunkBuilder, PartitionKey};
use crate::state::State;
use crate::telemetry::Metrics;

/// Waits that cost a test nothing.
const QUICK: RetryConfig = RetryConfig {
    max_age: Duration::from_secs(3600),
    initial: Duration::from_millis(1),
    max: Duration::from_millis(20),
};
/// After a failure nothing is tried again while the test lasts.
const NEVER_AGAIN: RetryConfig = RetryConfig {
    max_age: Duration::from_secs(24 * 3600),
    initial: Duration::from_secs(3600),
    max: Duration::from_secs(3600),
};
/// A batch's first failure is its last.
const NO_SECOND_CHANCE: RetryConfig = RetryConfig { max_age: Duration::ZERO, ..QUICK };

/// The component, loaded once for all tests.
async fn plugin() -> Plugin {
    static LOADED: OnceCell<(PluginHost, Plugin)> = OnceCell::const_new();
    let load = async || {
        let limits = options().with(Limit::CpuPerCall, 300);
        let host = PluginHost::new(HostOptions { workers: 64, ..limits });
        let host = host.unwrap();
        let plugin = host.load(&PluginSource::File(component().to_owned())).await.unwrap();
        (host, plugin)
    };
    LOADED.get_or_init(load).await.1.clone()
}

/// Polls until it is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A data directory.
struct Place {
    dir: TempDir,
}

/// Everything between the intake and the destination.
struct Wharf {
    state: State,
    journal: Journal,
    queues: Vec<Queue>,
    dead_letters: DeadLetters,
    metrics: Metrics,
    destinations: Destinations,
    quarantines: Quarantines,
    on_quarantine: OnQuarantine,
    store_idle: Duration,
    running: Vec<Output>,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// The rooms, with a queue for each of these outputs, whose batches close at so many records. No worker is at work yet.
    async fn open(&self, outputs: &[&str], batch_records: u64) -> Wharf {
        self.open_as(outputs, batch_records, |options| options).await
    }

    /// The same, with other settings for the queues.
    async fn open_as(
        &self,
        outputs: &[&str],
        batch_records: u64,
        other: impl Fn(QueueOptions) -> QueueOptions,
    ) -> Wharf {
        let data_dir = self.dir.path();
        let metrics = Metrics::new();
        let mut state = State::open(data_dir);
        // What ran here before may still be letting go of it.
        until("the state can be opened", || {
            if state.is_err() {
                state = State::open(data_dir);
            }
            state.is_ok()
        })
        .await;
        let (state, _) = state.unwrap();
        let limits = journal::Options { segment_bytes: 64 << 10, max_bytes: None, reserve_bytes: 0 };
        let (journal, recovery) =
            Journal::open(&data_dir.join("journal"), &data_dir.join("quarantine"), limits).unwrap();
        let ledger = Ledger::new(journal.clone(), state.clone(), metrics.clone());
        let options = outputs.iter().map(|output| QueueOptions {
            output: (*output).into(),
            partition_by: vec![PartitionKey::Tag],
            in_order: false,
            limits: BatchLimits {
                max_bytes: u64::MAX,
                max_records: batch_records,
                max_age: Duration::from_secs(3600),
                record_overhead: 0,
            },
            max_bytes: None,
            when_full: WhenFull::Block,
        });
        let (queues, _) = ledger.restore(&recovery, options.map(other).collect()).unwrap();
        journal.start(Box::new(move |group| ledger.committed(group)));
        let dead_letters = DeadLetters::open(data_dir);
        Wharf {
            state,
            journal,
            queues,
            dead_letters,
            metrics,
            destinations: Destinations::default(),
            store_idle: STORE_IDLE,
            quarantines: Quarantines::default(),
            on_quarantine: OnQuarantine::Hold,
            running: vec![],
        }
    }

    /// One output, `archive`, where each chunk is a batch, and batches of a tag go in order.
    async fn in_order(&self) -> Wharf {
        self.open_as(&["archive"], 1, |options| QueueOptions { in_order: true, ..options }).await
    }

    /// One output, `archive`, where each chunk is a batch.
    async fn archive(&self) -> Wharf {
        self.open(&["archive"], 1).await
    }

    fn segments(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.dir.path().join("journal")).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
    }

    /// Changes one bit on the disk, in the only place where this text stands.
    fn damage(&self, text: &str) {
        let mut found = 0;
        for path in self.segments() {
            let mut bytes = std::fs::read(&path).unwrap();
            while let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
                bytes[at] ^= 1;
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).unwrap();
                found += 1;
            }
        }
        assert_eq!(found, 1, "{text}");
    }
}

impl Wharf {
    fn queue(&self, output: &str) -> &Queue {
        self.queues.iter().find(|queue| **queue.output() == *output).unwrap()
    }

    /// Takes a chunk in for an output; the tag says what becomes of its batch. Times count up from 1,000 ns.
    async fn put_for(&self, output: &str, tag: &str, lines: &[&str]) {
        let mut builder = ChunkBuilder::new(BodyKind::Text, tag.into());
        for (time, line) in (1_000..).zip(lines) {
            assert!(builder.push(time, line.as_bytes()));
        }
        let chunk = builder.finish().unwrap();
        let routes = self.queue(output).routes(&chunk);
        let chunk = chunk.with_routes(routes);
        self.journal.append(chunk).await.unwrap().unwrap();
    }

    /// The same with JSON records, which may be shared out to several partitions.
    async fn put_json(&self, output: &str, tag: &str, objects: &[&str]) {
        let mut builder = ChunkBuilder::new(BodyKind::Json, tag.into());
        for (time, object) in (1_000..).zip(objects) {
            assert!(builder.push(time, object.as_bytes()));
        }
        let chunk = builder.finish().unwrap();
        let routes = self.queue(output).routes(&chunk);
        self.journal.append(chunk.with_routes(routes)).await.unwrap().unwrap();
    }

    async fn put(&self, tag: &str, lines: &[&str]) {
        self.put_for("archive", tag, lines).await;
    }

    /// Starts an output's worker.
    async fn start_with(&mut self, output: &str, destination: &str, config: &str, retry: RetryConfig) -> OutputHandle {
        self.start_workers(1, output, destination, config, retry).await
    }

    async fn start_workers(
        &mut self,
        workers: u32,
        output: &str,
        destination: &str,
        config: &str,
        retry: RetryConfig,
    ) -> OutputHandle {
        let started = Output::start(self.setup(workers, output, destination, config, retry).await);
        let handle = started.handle();
        self.running.push(started);
        handle
    }

    /// Lets others take over from the first output's workers.
    async fn replace(&mut self, workers: u32, destination: &str, retry: RetryConfig) -> OutputHandle {
        let setup = self.setup(workers, "archive", destination, "{}", retry).await;
        self.running[0].replace(setup);
        self.running[0].handle()
    }

    async fn setup(
        &mut self,
        workers: u32,
        output: &str,
        destination: &str,
        config: &str,
        retry: RetryConfig,
    ) -> OutputSetup {
        let credentials = aws_credential_types::Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
        let connection = Connection::with_credentials(AwsConfig::default(), credentials);
        let services = Services::over(output.into(), connection, self.state.clone(), self.metrics.clone());
        OutputSetup {
            plugin: plugin().await,
            context: WorkerContext {
                output: output.into(),
                worker: 0,
                hostname: "host".into(),
                config: config.into(),
                services,
            },
            workers,
            queue: self.queue(output).clone(),
            retry,
            quarantines: self.quarantines.clone(),
            on_quarantine: self.on_quarantine,
            destination: self.destinations.get(None, destination),
            journal: self.journal.clone(),
            dead_letters: self.dead_letters.clone(),
            metrics: self.metrics.clone(),
            store_idle: self.store_idle,
        }
    }

    async fn start(&mut self, retry: RetryConfig) -> OutputHandle {
        self.start_with("archive", "there", "{}", retry).await
    }

    /// Stops as a whole Wharf does. Gives the records that stay.
    async fn stop(self, give_up: &CancellationToken) -> u64 {
        let mut left = 0;
        for output in self.running {
            left += output.stop(give_up).await;
        }
        self.journal.close();
        left
    }

    /// The value of a counter; 0 where nothing was counted.
    fn count(&self, series: &str) -> u64 {
        let text = self.metrics.render();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }

    fn delivered(&self) -> u64 {
        self.count(r#"wharf_delivered_records_total{output="archive"}"#)
    }

    fn rejected(&self, reason: &str) -> u64 {
        self.count(&format!(r#"wharf_rejected_records_total{{output="archive",reason="{reason}"}}"#))
    }

    fn damaged(&self) -> u64 {
        self.count(r#"wharf_dropped_records_total{output="archive",reason="damaged"}"#)
    }

    fn retries(&self, output: &str, kind: &str) -> u64 {
        self.count(&format!(r#"wharf_retries_total{{output="{output}",kind="{kind}"}}"#))
    }

    fn stores_lost(&self, reason: &str) -> u64 {
        self.count(&format!(r#"wharf_worker_restarts_total{{output="archive",reason="{reason}"}}"#))
    }

    fn abandoned(&self, tag: &str) -> u64 {
        self.count(&format!(r#"wharf_plugin_abandoned_total{{output="archive",tag="{tag}"}}"#))
    }

    fn letters(&self) -> Vec<StoredLetter> {
        let files = self.dead_letters.list(&Filter::new(None, None).unwrap()).unwrap();
        files.iter().flat_map(|file| file.letters().unwrap()).map(Result::unwrap).collect()
    }

    /// Number, body and reason of each dead letter, in the order of their bodies.
    fn told(&self) -> Vec<(u64, String, String)> {
        let told = |letter: StoredLetter| (letter.record, String::from_utf8(letter.body).unwrap(), letter.reason);
        let mut all: Vec<_> = self.letters().into_iter().map(told).collect();
        all.sort_by(|a, b| a.1.cmp(&b.1));
        all
    }
}
