//! What a plugin costs beside the same work done natively: `cargo bench -p wharf --bench plugin`. Give a part of a name to run only that.
//!
//! Guest (`guest-plugins/bench`, optimised whatever the profile) and host take turns over the same batch, 16 MiB in a real journal whose
//! files are in the page cache. Figures are CPU time of the process, the best of its rounds, so that a busy machine disturbs less; only
//! those of whole calls are by the clock on the wall. The native loop reads the batch's chunks as the host does for the guest, and does with
//! each record what the guest does.

#![expect(clippy::unwrap_used, reason = "a benchmark whose plugin cannot run has nothing to say")]
#![expect(clippy::panic, reason = "the same")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tempfile::TempDir;
use wharf::capability::Services;
use wharf::config::{Config, Limits};
use wharf::journal::{self, Journal, ReadError};
use wharf::plugin::{Delivery, HostOptions, Outcome, Plugin, PluginHost, PluginSource, Worker, WorkerContext};
use wharf::record::encode::{Chunks, Compression, Encoder, Format, Options, Selection};
use wharf::record::{BodyKind, Chunk, ChunkBuilder, DateFormat, Partitioning, Portion};
use wharf::state::{BatchId, State};
use wharf::telemetry::Metrics;

const CHUNK: usize = 512 * 1024;
/// A batch of a usual size.
const TOTAL: usize = 16 * 1024 * 1024;
const PIECE: usize = 8 * 1024 * 1024;
/// How long a pair takes turns.
const ROUNDS: Duration = Duration::from_millis(1500);
/// Records in a batch of no work.
const FEW: usize = 16;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::new(only).await;
        println!("{:36} {:>10} {:>10} {:>10} {:>8}", "ns a record", "guest", "native", "over", "");
        for bytes in [64, 256, 1024] {
            let records = Records { bytes, kind: BodyKind::Text };
            bench.pair("bytes", records, |chunk| chunk.iter().map(|record| look(record.body)).sum()).await;
            bench
                .pair("bytes and times", records, |chunk| {
                    chunk.iter().map(|record| look(record.body) + (record.time_ns & 0xff) as u64).sum()
                })
                .await;
        }
        let records = Records { bytes: 256, kind: BodyKind::Text };
        let text =
            |chunk: &Chunk| chunk.iter().map(|record| look(String::from_utf8_lossy(record.body).as_bytes())).sum();
        bench.pair("text", records, text).await;
        let records = Records { bytes: 256, kind: BodyKind::Json };
        bench.pair("json", records, json).await;
        for kind in [BodyKind::Text, BodyKind::Json] {
            let records = Records { bytes: 256, kind };
            bench.encode("encode", records, Format::JsonLines, Compression::None).await;
            bench.encode("encode array", records, Format::JsonArray, Compression::None).await;
            bench.encode("encode gzip", records, Format::JsonLines, Compression::Gzip(2)).await;
        }
        println!();
        bench.start().await;
        bench.nothing().await;
    });
}

/// As little as can be done with a body so that it has to be there: what the guest does.
fn look(body: &[u8]) -> u64 {
    let ends = body.first().zip(body.last());
    body.len() as u64 + ends.map_or(0, |(first, last)| u64::from(*first) + u64::from(*last))
}

#[derive(Deserialize)]
struct Event<'a> {
    level: &'a str,
    n: u64,
}

fn json(chunk: &Chunk) -> u64 {
    let event = |body| serde_json::from_slice::<Event>(body).unwrap();
    chunk.iter().map(|record| event(record.body)).map(|event| look(event.level.as_bytes()) + event.n).sum()
}

/// Records of one size.
#[derive(Debug, Clone, Copy)]
struct Records {
    bytes: usize,
    kind: BodyKind,
}

impl Records {
    fn body(self, n: usize) -> String {
        let begin = match self.kind {
            BodyKind::Text => format!("10.0.{}.{} - - GET /api/v1/items/{n} 200 ", n % 256, n % 200),
            BodyKind::Json => format!(r#"{{"level":"info","n":{n},"log":""#),
        };
        let end = if self.kind == BodyKind::Json { r#""}"# } else { "" };
        let fill = self.bytes.saturating_sub(begin.len() + end.len());
        format!("{begin}{}{end}", "x".repeat(fill))
    }
}

/// A host with one output.
struct Bench {
    plugin: Plugin,
    journal: Journal,
    services: Arc<Services>,
    only: String,
    _dir: TempDir,
}

impl Bench {
    async fn new(only: String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let limits = journal::Options { segment_bytes: 64 << 20, max_bytes: None, reserve_bytes: 0 };
        let (journal, _) = Journal::open(&dir.path().join("journal"), &dir.path().join("quarantine"), limits).unwrap();
        journal.start(Box::new(|_| {}));
        let (state, _) = State::open(dir.path()).unwrap();
        let config = "sources: { in: { type: stdin } }\noutputs: { bench: { plugin: s3, match: \"*\" } }\n";
        let config = Config::parse(config, "bench.yaml".as_ref(), &|_| None).unwrap();
        let services = Services::new(&config.outputs[0], &config, state, Metrics::new()).await.unwrap();
        let host = PluginHost::new(HostOptions::new(None, Limits::default(), 4)).unwrap();
        let plugin = host.load(&PluginSource::File(component(dir.path()))).await.unwrap();
        Self { plugin, journal, services, only, _dir: dir }
    }

    async fn worker(&self) -> Worker {
        let context = WorkerContext {
            output: "bench".into(),
            worker: 0,
            hostname: "host".into(),
            config: r#"{"url":"https://logs.example.com/v1","compression":"gzip"}"#.into(),
            services: Arc::clone(&self.services),
        };
        self.plugin.start(context).await.unwrap().0
    }

    /// A batch of `total` bytes, whose tag says what the plugin does with it.
    async fn batch(&self, tag: &str, records: Records, total: usize) -> Delivery {
        let mut portions = Vec::new();
        let mut time = 1_796_056_337_123_456_789;
        let mut numbers = 0..total.div_ceil(records.bytes);
        while !numbers.is_empty() {
            let mut builder = ChunkBuilder::arrived(records.kind, tag.into(), 0);
            for n in numbers.by_ref().take(CHUNK / records.bytes) {
                builder.push(time, records.body(n).as_bytes());
                time += 1_000_003;
            }
            let chunk = builder.finish().unwrap();
            let meta = Arc::clone(chunk.meta());
            portions.push(Portion::whole(self.journal.append(chunk).await.unwrap().unwrap(), meta));
        }
        let partitioning = Arc::new(Partitioning::new(&[]));
        Delivery {
            id: BatchId([7; 16]),
            attempt: 1,
            portions: portions.into(),
            partitioning,
            journal: self.journal.clone(),
        }
    }

    /// The guest's work on a batch, and the same natively, in turns.
    async fn turns(&self, name: &str, records: Records, mut native: impl FnMut(&Delivery) -> u64) {
        let kind = if records.kind == BodyKind::Text { "text" } else { "json" };
        let title = format!("{name}, {} B {kind}", records.bytes);
        if !title.contains(&self.only) {
            return;
        }
        let delivery = self.batch(name, records, TOTAL).await;
        let mut worker = self.worker().await;
        let (mut guest_best, mut native_best) = (Duration::MAX, Duration::MAX);
        let until = Instant::now() + ROUNDS;
        while Instant::now() < until {
            let start = cpu();
            worker = delivered(worker, delivery.clone()).await;
            guest_best = guest_best.min(cpu() - start);
            let start = cpu();
            black_box(native(&delivery));
            native_best = native_best.min(cpu() - start);
        }
        let count: u32 = delivery.portions.iter().map(Portion::records).sum();
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(count);
        let (guest, native) = (each(guest_best), each(native_best));
        let percent = (guest / native - 1.0) * 100.0;
        println!("{title:36} {guest:10.1} {native:10.1} {:10.1} {percent:6.1} %", guest - native);
        let ids: Vec<_> = delivery.portions.iter().map(|portion| portion.id).collect();
        self.journal.release(&ids);
    }

    async fn pair(&self, name: &str, records: Records, chunk: impl Fn(&Chunk) -> u64) {
        let native = |delivery: &Delivery| {
            delivery.portions.iter().map(|portion| chunk(&delivery.journal.read_portion(portion).unwrap())).sum()
        };
        self.turns(name, records, native).await;
    }

    async fn encode(&self, name: &str, records: Records, format: Format, compression: Compression) {
        let options = Options {
            format,
            date_key: Some("date".into()),
            date_format: DateFormat::Iso8601,
            log_key: None,
            compression,
        };
        let native = |delivery: &Delivery| {
            let mut encoder = Encoder::new(Stored(delivery.clone()), Selection::All, options.clone());
            let mut bytes = 0;
            while let Some(piece) = encoder.next(PIECE).unwrap() {
                bytes += black_box(piece).len() as u64;
            }
            bytes
        };
        self.turns(name, records, native).await;
    }

    /// From nothing to a worker that could take a batch.
    async fn start(&self) {
        self.times("start of a worker", async || {
            let start = Instant::now();
            let worker = self.worker().await;
            let taken = start.elapsed();
            worker.close().await;
            taken
        })
        .await;
    }

    /// A batch that the plugin does not look at.
    async fn nothing(&self) {
        let records = Records { bytes: 256, kind: BodyKind::Text };
        let delivery = self.batch("nothing", records, FEW * records.bytes).await;
        let mut worker = Some(self.worker().await);
        self.times("deliver that does nothing", async || {
            let start = Instant::now();
            worker = Some(delivered(worker.take().unwrap(), delivery.clone()).await);
            start.elapsed()
        })
        .await;
    }

    async fn times(&self, title: &str, mut once: impl AsyncFnMut() -> Duration) {
        if !title.contains(&self.only) {
            return;
        }
        let mut times = Vec::new();
        let until = Instant::now() + ROUNDS;
        while Instant::now() < until {
            times.push(once().await.as_nanos() as f64 / 1000.0);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
        println!("{title:36} best {:.1} µs, median {:.1} µs, 90 % {:.1} µs", at(0.0), at(0.5), at(0.9));
    }
}

/// CPU time that this process has used, all threads.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

async fn delivered(worker: Worker, delivery: Delivery) -> Worker {
    match worker.deliver(delivery).await {
        (Outcome::Delivered { .. }, Some(worker)) => worker,
        (outcome, _) => panic!("{outcome:?}"),
    }
}

/// A batch's chunks, read as the host reads them.
struct Stored(Delivery);

impl Chunks for Stored {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.0.portions.len()
    }
    fn records(&self, n: usize) -> u32 {
        self.0.portions.get(n).map_or(0, Portion::records)
    }
    fn chunk(&mut self, n: usize) -> Result<Chunk, ReadError> {
        self.0.journal.read_portion(&self.0.portions[n])
    }
}

/// Builds the plugin, or finds it built.
fn component(dir: &Path) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // `target/<profile>/build/<package>/out`: guests have one folder for all profiles.
    let profile = Path::new(env!("OUT_DIR")).ancestors().find(|folder| folder.ends_with("build")).unwrap();
    let target = profile.parent().and_then(Path::parent).unwrap().join("guests");
    wharf_guest_build::build_for_benches(root, dir, &target).unwrap().remove(0)
}
