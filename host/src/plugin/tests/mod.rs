//! Real components in a real host, with a real journal and state behind them.

mod built_in;
mod hostile;
mod http;
mod loading;
mod misbehaving;
pub(crate) mod odd;
mod recycle;
mod signed;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tempfile::TempDir;

use super::{Delivery, HostOptions, Outcome, Plugin, PluginHost, PluginSource, Worker, WorkerContext};
use crate::capability::Services;
use crate::capability::aws::Connection;
use crate::config::{AwsConfig, GrantsConfig, Limit, Limits, S3Grant};
use crate::journal::{self, Journal};
use crate::record::{BodyKind, ChunkBuilder, ChunkId, PartitionKey, Partitioning, Portion};
use crate::state::{BatchId, BatchRow, State};
use crate::telemetry::Metrics;

/// Memory of a store in these tests.
const MEMORY: u64 = 16 << 20;

/// The component that misbehaves, built once.
pub(crate) fn component() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // `target/<profile>/build/<package>/out`: guests have one folder for all profiles.
        let profile = Path::new(env!("OUT_DIR")).ancestors().find(|folder| folder.ends_with("build")).unwrap();
        let target = profile.parent().and_then(Path::parent).unwrap().join("guests");
        let built = wharf_guest_build::build_for_tests(root, dir.path(), &target).unwrap();
        (dir, built[0].clone())
    });
    path
}

/// Options with a cache that all tests share, so that the component is compiled once.
pub(crate) fn options() -> HostOptions {
    HostOptions::new(Some(component().with_file_name("cache")), Limits::default(), 4)
        .with(Limit::Memory, MEMORY)
        .with(Limit::CpuPerCall, 500)
        .with(Limit::DeliverTimeout, 60_000)
}

/// An output's surroundings.
struct Bench {
    plugin: Plugin,
    journal: Journal,
    state: State,
    metrics: Metrics,
    services: Arc<Services>,
    output: Arc<str>,
    _dir: Arc<TempDir>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(options(), AwsConfig::default()).await
    }

    async fn with(options: HostOptions, aws: AwsConfig) -> Self {
        let host = PluginHost::new(options).unwrap();
        let plugin = host.load(&PluginSource::File(component().to_owned())).await.unwrap();
        Self::with_plugin(plugin, aws).await
    }

    async fn with_plugin(plugin: Plugin, aws: AwsConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let limits = journal::Options { segment_bytes: 1 << 20, max_bytes: None, reserve_bytes: 0 };
        let (journal, _) = Journal::open(&dir.path().join("journal"), &dir.path().join("quarantine"), limits).unwrap();
        journal.start(Box::new(|_| {}));
        let (state, _) = State::open(dir.path()).unwrap();
        let metrics = Metrics::new();
        let credentials = aws_credential_types::Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
        let connection = Connection::with_credentials(aws, credentials);
        let services = Services::over("archive".into(), connection, state.clone(), metrics.clone());
        Self { plugin, journal, state, metrics, services, output: "archive".into(), _dir: Arc::new(dir) }
    }

    /// Another output with the same rooms.
    fn beside(&self, services: Arc<Services>, plugin: Plugin) -> Self {
        Self {
            plugin,
            journal: self.journal.clone(),
            state: self.state.clone(),
            metrics: self.metrics.clone(),
            output: Arc::clone(services.output()),
            services,
            _dir: Arc::clone(&self._dir),
        }
    }

    fn context(&self, config: &str) -> WorkerContext {
        WorkerContext {
            output: Arc::clone(&self.output),
            worker: 0,
            hostname: "host".into(),
            config: config.into(),
            services: Arc::clone(&self.services),
        }
    }

    async fn worker(&self) -> Worker {
        let (worker, plan) = self.plugin.start(self.context("{}")).await.unwrap();
        self.services.grant(GrantsConfig { s3: plan.s3, ..GrantsConfig::default() });
        worker
    }

    /// A closed batch of one chunk, whose tag says what the component is to do with it.
    async fn batch(&self, tag: &str, lines: &[&str]) -> Delivery {
        self.batch_of(tag, &[lines]).await
    }

    async fn batch_of(&self, tag: &str, chunks: &[&[&str]]) -> Delivery {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut found = Vec::new();
        let mut time = 1_000;
        for lines in chunks {
            let mut builder = ChunkBuilder::new(BodyKind::Text, tag.into());
            for line in *lines {
                builder.push(time, line.as_bytes());
                time += 1;
            }
            let chunk = builder.finish().unwrap();
            let meta = Arc::clone(chunk.meta());
            let id = self.journal.append(chunk).await.unwrap().unwrap();
            found.push(Portion::whole(id, meta));
        }
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let first = found.first().map_or(ChunkId(0), |portion| portion.id);
        let last = found.last().map_or(ChunkId(0), |portion| portion.id);
        let row = BatchRow {
            id: BatchId(id),
            output: Arc::clone(&self.output),
            partition: "".into(),
            number,
            first,
            last,
            records: found.iter().map(|portion| u64::from(portion.records())).sum(),
            bytes: found.iter().map(Portion::body_bytes).sum(),
            closed_ns: 0,
        };
        self.state.close_batch(&row, &[]).unwrap();
        let partitioning = Arc::new(Partitioning::new(&[PartitionKey::Tag]));
        Delivery { id: row.id, attempt: 1, portions: found.into(), partitioning, journal: self.journal.clone() }
    }

    /// A batch of one partition of these JSON records: that of the first chunk's route of this number.
    async fn partition(&self, tag: &str, chunks: &[&[&str]], keys: &[PartitionKey], route: usize) -> Delivery {
        let partitioning = Arc::new(Partitioning::new(keys));
        let (mut portions, mut partition) = (Vec::new(), None);
        let mut time = 1_000;
        for objects in chunks {
            let mut builder = ChunkBuilder::new(BodyKind::Json, tag.into());
            for object in *objects {
                builder.push(time, object.as_bytes());
                time += 1;
            }
            let chunk = builder.finish().unwrap();
            let routes = partitioning.routes(&"archive".into(), &chunk);
            let wanted = partition.get_or_insert_with(|| routes[route].partition.clone()).clone();
            let chunk = chunk.with_routes(routes);
            let meta = Arc::clone(chunk.meta());
            let id = self.journal.append(chunk).await.unwrap().unwrap();
            let of_it = Portion::each(id, &meta).filter(|(route, _)| route.partition == wanted);
            portions.extend(of_it.map(|(_, portion)| portion));
        }
        Delivery {
            id: BatchId([9; 16]),
            attempt: 1,
            portions: portions.into(),
            partitioning,
            journal: self.journal.clone(),
        }
    }

    /// What becomes of a batch with this tag, and of the next one: on the same worker if it lives, else on a fresh store.
    async fn outcome(&self, tag: &str) -> Outcome {
        let (outcome, worker) = self.worker().await.deliver(self.batch(tag, &["a", "b", "c"]).await).await;
        assert_eq!(worker.is_none(), matches!(outcome, Outcome::Died(_)), "{outcome:?}");
        let next = match worker {
            Some(worker) => worker,
            None => self.worker().await,
        };
        let (after, worker) = next.deliver(self.batch("ok", &["a"]).await).await;
        assert_eq!(after, Outcome::Delivered { rejected: vec![] }, "the batch after {tag}");
        worker.unwrap().close().await;
        outcome
    }
}

fn grant(bucket: &str, prefix: &str) -> S3Grant {
    S3Grant { bucket: bucket.into(), key_prefix: prefix.into() }
}
