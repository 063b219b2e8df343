//! Runs a test: real batches to a real worker, and the real decisions about what comes after a failure, but no waiting.
//!
//! One worker takes the batches one after the other, each to its end. Chance is left out: each wait is the longest that it could be.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use super::batches::{self, ClosedBatch};
use super::case::{Case, OUTPUT, as_test};
use super::transcript::{Attempted, BatchTold, Ended, Transcript};
use super::wire::notes::Moment;
use super::wire::{self, AwsObserver, HttpObserver, HttpWire, Notes, Scripts};
use crate::capability::aws::Connection;
use crate::capability::http::{Credentials, Network, Wire};
use crate::capability::{Services, Watch as _};
use crate::config::{
    AwsConfig, Credential, Fault, GrantedCredential, GrantsConfig, HttpConfig, HttpDestination, LogGroupGrant,
    check_plugin_config,
};
use crate::journal::{self, Journal};
use crate::output::decision::{self, Next, Tried};
use crate::output::{PluginHealth, Quarantines, Verdict};
use crate::plugin::{Delivery, Outcome, Plan, Plugin, StartError, Worker, WorkerContext};
use crate::state::{BatchId, Change, State};
use crate::telemetry::Metrics;

/// The share of chance in a wait: all of it.
const NO_CHANCE: f64 = 1.0;
/// Rows of storage that a transcript tells.
const MOST_ROWS: usize = 10_000;

/// Runs a test with its plugin.
///
/// # Errors
/// Where the host itself is in trouble, such as its disk.
pub(crate) async fn drive(case: &Case, plugin: &Plugin, outside: &Outside) -> Result<Transcript, String> {
    match configured(case, plugin).await? {
        Configured::Faults(faults) => Ok(Transcript::of_faults(faults)),
        Configured::Plan { plan, config } => Drive::new(case, plugin, plan, config, outside).await?.run().await,
    }
}

/// What is on the other side.
#[derive(Debug, Clone)]
pub(crate) enum Outside {
    /// What the test scripts.
    Scripted,
    /// The services themselves.
    Real(Box<AwsConfig>),
}

enum Configured {
    Faults(Vec<Fault>),
    Plan { plan: Plan, config: Arc<str> },
}

/// Asks the component about its configuration, as `wharf validate` does.
async fn configured(case: &Case, plugin: &Plugin) -> Result<Configured, String> {
    let check = check_plugin_config(&case.output, &plugin.descriptor().config_schema);
    let mut faults: Vec<Fault> = check.faults.iter().cloned().map(as_test).collect();
    // What the schema refuses is left out, so that the component's own faults come along.
    let Some(config) = check.config() else { return Ok(Configured::Faults(faults)) };
    let config: Arc<str> = config.to_string().into();
    match plugin.start(context(case, &config, Services::detached(OUTPUT.into()))).await {
        Ok((worker, plan)) => {
            worker.close().await;
            if faults.is_empty() {
                return Ok(Configured::Plan { plan, config });
            }
        }
        Err(StartError::Config { faults: found, .. }) => {
            let placed = found.into_iter().filter_map(|f| check.fault_of_component(&case.output, &f.path, f.message));
            faults.extend(placed.map(as_test));
        }
        Err(StartError::Died { output, death }) if faults.is_empty() => {
            // Nobody else shows what it said of it.
            let log: String = death.last_log.iter().map(|line| format!("\n    log: {line}")).collect();
            return Err(format!("{}{log}", StartError::Died { output, death }));
        }
        Err(StartError::Died { .. }) => {}
    }
    faults.sort_by_key(|fault| fault.place);
    Ok(Configured::Faults(faults))
}

fn context(case: &Case, config: &Arc<str>, services: Arc<Services>) -> WorkerContext {
    WorkerContext {
        output: OUTPUT.into(),
        worker: 0,
        hostname: Arc::clone(&case.hostname),
        config: Arc::clone(config),
        services,
    }
}

/// The rooms around the worker, all real, in a folder that goes with them.
struct Rooms {
    journal: Journal,
    state: State,
    metrics: Metrics,
    _folder: TempDir,
}

fn open(folder: TempDir) -> Result<Rooms, String> {
    let path: &Path = folder.path();
    let limits = journal::Options { segment_bytes: 16 << 20, max_bytes: None, reserve_bytes: 0 };
    let (journal, _) = Journal::open(&path.join("journal"), &path.join("quarantine"), limits).map_err(said)?;
    journal.start(Box::new(|_| {}));
    let (state, _) = State::open(path).map_err(said)?;
    Ok(Rooms { journal, state, metrics: Metrics::new(), _folder: folder })
}

pub(super) fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// One test on its way.
struct Drive<'a> {
    case: &'a Case,
    plugin: &'a Plugin,
    plan: Plan,
    context: WorkerContext,
    rooms: Rooms,
    notes: Arc<Notes>,
    /// None where the services themselves answer.
    scripts: Option<Arc<Scripts>>,
    health: PluginHealth,
    /// Batches have the same names each time; where they meet a real destination they must not.
    fixed_ids: bool,
    seat: Option<Seat>,
    /// Attempts over the whole test.
    attempts: u32,
}

struct Seat {
    worker: Worker,
    batches: u64,
}

impl<'a> Drive<'a> {
    async fn new(
        case: &'a Case,
        plugin: &'a Plugin,
        plan: Plan,
        config: Arc<str>,
        outside: &Outside,
    ) -> Result<Self, String> {
        let opened = tokio::task::spawn_blocking(|| open(tempfile::tempdir().map_err(said)?));
        let rooms = opened.await.map_err(said)??;
        let grants = match &case.grants {
            Some(grants) => grants.clone(),
            None => asked_for(&plan, &case.credentials)?,
        };
        let (notes, scripts, aws, http): (_, _, _, Arc<dyn Wire>) = match outside {
            Outside::Scripted => {
                let notes = Arc::new(Notes::new(case.now_ns));
                let scripts = Arc::new(Scripts::new(&case.answers));
                let buckets = grants.s3.iter().chain(&plan.s3).map(|grant| grant.bucket.clone()).collect();
                let named = || plan.log_groups.iter().filter(|name| !name.ends_with('*')).cloned().collect();
                let log_groups = case.given.log_groups.clone().unwrap_or_else(named);
                let aws = wire::connection(case, &notes, &scripts, buckets, log_groups)?;
                (Arc::clone(&notes), Some(Arc::clone(&scripts)), aws, Arc::new(HttpWire::new(notes, scripts)))
            }
            Outside::Real(aws) => {
                let notes = Arc::new(Notes::of_now());
                let observer = AwsObserver::new(Arc::clone(&notes));
                let aws = Connection::observed(aws, |client| observer.before(client)).await;
                let credentials = Credentials::new(case.credentials.clone(), Arc::clone(&aws));
                let network = Network::new(HttpConfig::default(), credentials);
                (Arc::clone(&notes), None, aws, Arc::new(HttpObserver::new(network, notes)))
            }
        };
        let services = Services::over_wire(OUTPUT.into(), aws, http, rooms.state.clone(), rooms.metrics.clone());
        services.watched_by(Arc::clone(&notes) as _);
        services.grant(grants);
        let context = context(case, &config, services);
        Ok(Self {
            case,
            plugin,
            plan,
            context,
            rooms,
            notes,
            scripts,
            health: Quarantines::default().join(plugin.digest(), OUTPUT.into()),
            fixed_ids: matches!(outside, Outside::Scripted),
            seat: None,
            attempts: 0,
        })
    }

    async fn run(mut self) -> Result<Transcript, String> {
        self.given()?;
        let mut told = vec![];
        for (number, batch) in (1..).zip(batches::closed(self.case, &self.plan, &self.rooms.journal).await?) {
            told.push(self.batch(number, batch).await?);
        }
        self.notes.begin(Moment::default());
        if let Some(seat) = self.seat.take() {
            seat.worker.close().await;
        }
        let storage = self.storage()?;
        let metrics = own_series(&self.rooms.metrics.render());
        self.rooms.journal.close();
        let unused = self.scripts.map(|scripts| scripts.unused()).unwrap_or_default();
        Ok(Transcript { unused, ..Transcript::of(self.notes.heard(), told, storage, metrics) })
    }

    /// What is there before.
    fn given(&self) -> Result<(), String> {
        let set = |(key, value): (&String, &String)| Change::Set(key.clone(), value.clone().into_bytes());
        let changes: Vec<Change> = self.case.given.storage.iter().map(set).collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.rooms.state.apply(OUTPUT, &changes).map(|_| ()).map_err(said)
    }

    /// The plugin's rows that are there now.
    fn storage(&self) -> Result<BTreeMap<String, String>, String> {
        let rows = self.rooms.state.list(OUTPUT, "", None, MOST_ROWS).map_err(said)?;
        Ok(rows.into_iter().map(|(key, value)| (key, String::from_utf8_lossy(&value).into_owned())).collect())
    }

    /// One batch to its end.
    async fn batch(&mut self, number: usize, batch: ClosedBatch) -> Result<BatchTold, String> {
        let id = if self.fixed_ids { (number as u128).to_be_bytes() } else { rand::random() };
        let row = batch.row(BatchId(id), number, self.notes.now_ns());
        self.rooms.state.close_batch(&row, &[]).map_err(said)?;
        let mut told = BatchTold {
            id: row.id.to_string(),
            tag: batch.portions.first().map(|portion| portion.meta.tag.to_string()).unwrap_or_default(),
            records: batch.records,
            attempts: vec![],
            ended: Ended::Waiting,
        };
        let mut job = Job { number, attempt: 1, closed_ns: row.closed_ns, ..Job::default() };
        let delivery = Delivery {
            id: row.id,
            attempt: 1,
            portions: batch.portions.into(),
            partitioning: batch.partitioning,
            journal: self.rooms.journal.clone(),
        };
        let settles = loop {
            let (attempted, ended) = self.attempt(&mut job, &delivery).await?;
            told.attempts.push(attempted);
            match ended {
                Some(ended) => {
                    told.ended = ended;
                    break true;
                }
                None if told.attempts.len() >= self.case.attempts as usize => break false,
                None => {}
            }
        };
        if settles {
            self.rooms.state.settle_batch(OUTPUT, row.id, &[]).map_err(said)?;
        }
        Ok(told)
    }

    /// One attempt, and how the batch ended where it did.
    async fn attempt(&mut self, job: &mut Job, delivery: &Delivery) -> Result<(Attempted, Option<Ended>), String> {
        self.attempts += 1;
        self.notes.begin(Moment { batch: job.number, attempt: job.attempt });
        // A batch that ended a store gets a fresh one, so that the next death tells something.
        if job.deaths > 0
            && let Some(used) = self.seat.take_if(|seat| seat.batches > 0)
        {
            used.worker.close().await;
        }
        let seat = match self.seat.take() {
            Some(seat) => seat,
            None => Seat { worker: self.start().await?, batches: 0 },
        };
        let fresh = seat.batches == 0;
        let batches = seat.batches + 1;
        let now = Delivery { attempt: job.attempt, ..delivery.clone() };
        let (outcome, worker) = seat.worker.deliver(now).await;
        self.seat = worker.map(|worker| Seat { worker, batches });
        let told = Attempted::of(&outcome);
        let random = NO_CHANCE;
        job.attempt += 1;
        let next = match outcome {
            Outcome::Delivered { rejected } => {
                self.health.delivered();
                return Ok((told, Some(Ended::Delivered(rejected))));
            }
            Outcome::Failed(failure) => {
                job.failures += 1;
                decision::after_failure(&failure, self.tried(job), &self.case.output.retry, random)
            }
            Outcome::Died(death) => {
                job.failures += 1;
                job.deaths += 1;
                let verdict = death.cause.blames_the_batch().then(|| {
                    job.fresh_deaths += u32::from(fresh);
                    self.health.died(job.fresh_deaths, Instant::now())
                });
                if verdict == Some(Verdict::Hold) {
                    return Ok((told, Some(Ended::Quarantined)));
                }
                decision::after_death(&death, verdict, self.tried(job), &self.case.output.retry, random)
            }
        };
        match next {
            Next::Dead { failure, reason, abandon } => {
                if abandon {
                    self.abandon(delivery, job).await?;
                }
                Ok((told, Some(Ended::Dead { failure, reason })))
            }
            Next::Again(wait) => {
                self.notes.wait(wait);
                self.restart().await;
                Ok((Attempted { wait: Some(wait), ..told }, None))
            }
        }
    }

    /// Whether the test has Wharf restart here. What a restart leaves is the disk.
    async fn restart(&mut self) {
        if self.case.restart_after.contains(&self.attempts) {
            // A restart closes nothing in order: the store is just gone.
            self.seat = None;
        }
    }

    async fn abandon(&mut self, delivery: &Delivery, job: &Job) -> Result<(), String> {
        let (worker, batches) = match self.seat.take() {
            Some(seat) => (seat.worker, seat.batches),
            None => (self.start().await?, 0),
        };
        let delivery = Delivery { attempt: job.attempt.saturating_sub(1), ..delivery.clone() };
        self.seat = worker.abandon(delivery).await.map(|worker| Seat { worker, batches });
        Ok(())
    }

    async fn start(&mut self) -> Result<Worker, String> {
        self.plugin.start(self.context.clone()).await.map(|(worker, _)| worker).map_err(said)
    }

    fn tried(&self, job: &Job) -> Tried {
        let age = self.notes.now_ns().saturating_sub(job.closed_ns);
        Tried {
            attempts: job.attempt.saturating_sub(1),
            failures: job.failures,
            fresh_deaths: job.fresh_deaths,
            age: Duration::from_nanos(u64::try_from(age).unwrap_or(0)),
        }
    }
}

/// What has happened to a batch.
#[derive(Debug, Default)]
struct Job {
    number: usize,
    attempt: u32,
    failures: u32,
    deaths: u32,
    fresh_deaths: u32,
    closed_ns: i64,
}

/// What the plugin asks for is granted where the test says nothing else. A credential that the test does not describe may go wherever the
/// plugin may.
fn asked_for(plan: &Plan, credentials: &[Credential]) -> Result<GrantsConfig, String> {
    let group = |name: &String| LogGroupGrant { log_group: name.clone() };
    let destination = |url: &String| {
        HttpDestination::parse(url).map_err(|what| format!("the plugin asks for the HTTP destination {url:?}: {what}"))
    };
    let http: Vec<HttpDestination> = plan.http.iter().map(destination).collect::<Result<_, _>>()?;
    let credential = |name: &String| match credentials.iter().find(|known| *known.name == **name) {
        Some(known) => known.granted(),
        None => GrantedCredential { name: name.as_str().into(), to: http.clone(), headers: vec![] },
    };
    Ok(GrantsConfig {
        s3: plan.s3.clone(),
        cloudwatch_logs: plan.log_groups.iter().map(group).collect(),
        credentials: plan.credentials.iter().map(credential).collect(),
        http,
        ..GrantsConfig::default()
    })
}

/// The plugin's own series: name with labels, and value.
fn own_series(rendered: &str) -> BTreeMap<String, String> {
    let own = |line: &str| {
        let (series, value) = line.strip_prefix("wharf_plugin_")?.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels: Vec<&str> =
            labels.trim_end_matches('}').split(',').filter(|l| !l.is_empty() && !l.starts_with("output=")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        Some((format!("{name}{labels}"), value.to_owned()))
    };
    rendered.lines().filter_map(own).collect()
}
