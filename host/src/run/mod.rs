//! A whole Wharf at work: every room wired to the next, from start to stop.
//!
//! Start: lock the data directory, open the state and the journal, load and check every plugin, restore the queues, then let workers
//! deliver and sources take in. What lives as long as the process ([`fleet::Ground`]) is kept apart from what a configuration makes
//! ([`fleet::Fleet`]), so that another configuration can take over while it runs ([`reload`]). Stop (SIGTERM, SIGINT, or every source at its end): sources first, then open batches are closed and
//! delivered within `grace`; what is left stays on disk. A second signal ends the process at once; nothing is lost either way.

mod difference;
mod fleet;
mod identity;
mod imports;
mod lock;
mod outputs;
mod process;
mod reload;
mod replay;
mod signals;
mod status;
mod unused;
mod watch;
mod zeros;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{AdminServer, Doors, Quarantine, Reload};
use crate::config::{Config, Faults, SourceConfig};
use crate::dead_letter::DeadLetters;
use crate::intake::Intake;
use crate::journal::{Journal, Options, Recovery};
use crate::output::{Destinations, Output, OutputHandle, Quarantines};
use crate::plugin::{HostOptions, PluginHost};
use crate::queue::Ledger;
use crate::registry::{Registry, RegistryOptions};
use crate::source::SourceEnded;
use crate::state::{Opened, State};
use crate::telemetry::Metrics;

use fleet::{Fed, Fleet, Ground};
pub use identity::identity_warnings;
pub(crate) use imports::unanswered;
pub use lock::{DataDirLock, LockError};
pub(crate) use outputs::{AsksFor, asked_of};
pub use outputs::{CheckedOutput, all_faults, check_outputs, shadowed_plugins, unwanted_sources};
use reload::{Door, Reloading, Request};
use signals::Signals;
use status::Board;
use watch::Watched;

/// How often the state's snapshot, which a rebuild starts from, is made anew.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(60);
/// How often free memory is given back, where there is much of it.
const MEMORY_EVERY: Duration = Duration::from_secs(60);

/// Why Wharf ended other than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong in a way that only its plugins could tell.
    #[error("{0}")]
    Config(Faults),
    /// Something else; the message has the cause and the remedy.
    #[error("{0}")]
    Failed(String),
}

fn failed(cause: impl std::fmt::Display) -> RunError {
    RunError::Failed(cause.to_string())
}

/// What a run is asked for beside its configuration.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The configuration's file, which a reload reads again; none: there is no reload.
    pub file: Option<PathBuf>,
    /// Outputs that are not configured and whose undelivered records are dropped at the start; `acme/` is all of a tenant's.
    pub discard: Vec<String>,
}

/// Runs until a signal ends it, or every source is at its end and everything is delivered.
///
/// # Errors
/// See [`RunError`].
pub async fn run(config: Config, asked: Asked) -> Result<(), RunError> {
    let mut signals = Signals::listen().map_err(failed)?;
    let mut hangups = Signals::hangups().map_err(failed)?;
    raise_open_files();
    process::keep_memory_private();
    process::warn_of_root();
    crate::fair::set_shares(&config.tenants);
    let started = Instant::now();
    make_folder(&config.data_dir)?;
    let _lock = DataDirLock::take(&config.data_dir).map_err(failed)?;
    let metrics = Metrics::new();
    zeros::begin(&config, &metrics);
    metrics.configured_at(now_seconds());
    let board = Arc::new(Board::new(metrics.clone()));
    let background = TaskTracker::new();
    let stop_background = CancellationToken::new();
    let (door, mut requests) = Door::new();
    if let Some(admin) = &config.admin {
        let server = AdminServer::bind(admin.listen).await.map_err(failed)?;
        tracing::info!(listen = %server.address(), "admin server: /health, /ready, /metrics, /reload, /quarantine/end");
        let (board, stop) = (Arc::clone(&board), stop_background.clone());
        let doors = Doors {
            reload: admin.reload.then(|| Arc::new(door.clone()) as Arc<dyn Reload>),
            quarantine: admin.end_quarantine.then(|| Arc::clone(&board) as Arc<dyn Quarantine>),
        };
        background.spawn(async move {
            if let Err(cause) = server.run(board, doors, stop).await {
                tracing::error!(%cause, "the admin server ended");
            }
        });
    }
    let mut ran = begin(config, asked, metrics, board).await?;
    let (ground, fleet, eye) = (&ran.ground, &mut ran.fleet, ran.eye);
    let replayed_at_start = CancellationToken::new();
    background.spawn(crate::dead_letter::replay::run(
        ground.rooms.dead_letters.clone(),
        replay::ReplayInto(ground.intake.clone()),
        stop_background.clone(),
        replayed_at_start.clone().drop_guard(),
    ));
    background.spawn(snapshots(ground.rooms.state.clone(), stop_background.clone()));
    background.spawn(gives_memory_back(stop_background.clone()));
    let registry = registry(&fleet.config).with_store(&registry_store(&fleet.config), true);
    background.spawn(unused::run(registry, ground.components.subscribe(), stop_background.clone()));
    background.spawn(watch::run(ground.watched.clone(), eye, door.clone(), stop_background.clone()));
    let hung_up = door.clone();
    let stop = stop_background.clone();
    background.spawn(async move {
        while stop.run_until_cancelled(hangups.recv()).await.flatten().is_some() {
            stop.run_until_cancelled(hung_up.wait_for(reload::HANGUP)).await;
        }
    });
    drop(door);
    ground.board.running();
    tracing::info!(
        data_dir = %fleet.config.data_dir.display(), sources = fleet.sources.len(), outputs = fleet.outputs.len(),
        in_ms = started.elapsed().as_millis(), "Wharf {} is running", env!("CARGO_PKG_VERSION")
    );

    let reason = work(ground, fleet, &mut signals, &mut requests, &replayed_at_start).await;
    drop(requests);
    ground.board.stopping();
    let handles = fleet.handles();
    let grace = fleet.config.grace;
    let give_up = CancellationToken::new();
    let stop = stop_everything(Stopping {
        give_up: give_up.clone(),
        sources: std::mem::take(&mut fleet.sources),
        outputs: std::mem::take(&mut fleet.outputs).into_iter().map(|placed| placed.output).collect(),
        rooms: &ground.rooms,
        intake: ground.intake.clone(),
    });
    let stopped = within_grace(reason, grace, &give_up, async || signals.next().await, stop).await;
    match &stopped {
        Some(stopped) => {
            let is_settled = handles.iter().all(OutputHandle::is_empty);
            let told = outcome(is_settled, handles.iter().map(OutputHandle::dead_letters).sum());
            tracing::info!(records_left = (!is_settled).then_some(stopped.records_left), "{told}");
        }
        None => tracing::warn!("a second signal: stopping at once; what is not delivered stays on disk"),
    }
    stop_background.cancel();
    background.close();
    let _ = tokio::time::timeout(Duration::from_secs(2), background.wait()).await;
    match stopped {
        Some(Stopped { failed_sources, .. }) if !failed_sources.is_empty() => Err(failed(failed_sources.join("; "))),
        _ => Ok(()),
    }
}

/// What runs: what stays as long as the process, and what the configuration has made.
struct Ran {
    ground: Ground,
    fleet: Fleet,
    eye: watch::Eye,
}

/// Opens what holds the data, loads and checks every plugin, and lets outputs and sources begin.
async fn begin(config: Config, asked: Asked, metrics: Metrics, board: Arc<Board>) -> Result<Ran, RunError> {
    let watched = Watched::default();
    if let Some(file) = &asked.file {
        watched.set(file, &[&config]);
    }
    // Before the components are read: what changes while they are compiled is seen.
    let eye = watched.eye();
    let most_workers = most_workers(&config);
    let host = plugin_host(&config, most_workers)?;
    let checked = check_outputs(&config, &host).await.map_err(RunError::Config)?;
    for file in shadowed_plugins(&config) {
        tracing::warn!(
            file,
            "plugins.dir has a file with a built-in's name, which always means the built-in: to use the file, write its path"
        );
    }
    for source in unwanted_sources(&config) {
        tracing::warn!(source = %source, "no output's `match` wants this source's tag, or not that of all whose records it takes in: they are counted as dropped (no_output)");
    }
    for warning in identity_warnings(&config, &checked) {
        tracing::warn!("{warning}");
    }
    let rooms = open_rooms(&config, &metrics).await?;
    let (queues, positions) = outputs::queues(&config, &checked, &rooms.ledger, &rooms.recovery).map_err(failed)?;
    let ledger = rooms.ledger.clone();
    rooms.journal.start(Box::new(move |group| ledger.committed(group)));
    refuse_discard_of_configured(&config, &asked.discard)?;
    refuse_discard_of_nothing(&rooms.ledger, &asked.discard)?;
    let mut destinations = Destinations::default();
    let outputs = outputs::start(&config, checked.clone(), &queues, &mut destinations, &rooms, &metrics).await;
    let outputs = outputs.map_err(failed)?;
    let routing = Fleet::routing(&config, queues);
    let intake = Intake::new(routing, rooms.journal.clone(), rooms.ledger.clone(), positions, metrics.clone())
        .map_err(failed)?;
    let start = |source: &SourceConfig| Fed::start(source, &intake).map_err(failed);
    let sources = config.sources.iter().map(start).collect::<Result<Vec<_>, RunError>>()?;
    let ground = Ground {
        file: asked.file,
        host,
        most_workers,
        rooms,
        metrics,
        board,
        intake,
        destinations: Mutex::new(destinations),
        components: tokio::sync::watch::Sender::new(unused::in_use(&config)),
        watched,
    };
    for dropped in reload::discard_kept(&ground, &asked.discard).await {
        tracing::warn!(output = %dropped.output, records = dropped.records, bytes = dropped.bytes, "undelivered records were dropped, as asked for");
    }
    let fleet = Fleet { config, outputs, sources };
    ground.board.outputs(&fleet.config, &checked, fleet.handles(), &ground.rooms);
    Ok(Ran { ground, fleet, eye })
}

/// Nothing of an output is dropped that delivers it.
fn refuse_discard_of_configured(config: &Config, discard: &[String]) -> Result<(), RunError> {
    match fleet::is_configured(discard, config.outputs.iter().map(|output| &*output.name)) {
        None => Ok(()),
        Some(why) => Err(failed(format!("--discard: {why}"))),
    }
}

/// A tenant's name alone would drop nothing, and say nothing. Other names that mean nothing may stay where a service is started with them again.
fn refuse_discard_of_nothing(ledger: &Ledger, discard: &[String]) -> Result<(), RunError> {
    let kept: HashSet<String> = ledger.kept().iter().map(|kept| kept.output.to_string()).collect();
    let misnamed = fleet::mean_nothing(discard, &kept).into_iter();
    match misnamed.filter_map(|name| fleet::meant(name, kept.iter().map(String::as_str))).next() {
        None => Ok(()),
        Some(help) => Err(failed(format!("--discard: {help}"))),
    }
}

/// Until something ends it: reloads as they are asked for.
async fn work(
    ground: &Ground,
    fleet: &mut Fleet,
    signals: &mut Signals,
    requests: &mut mpsc::Receiver<Request>,
    replayed_at_start: &CancellationToken,
) -> Stop {
    loop {
        let request = tokio::select! {
            signal = signals.next() => return Stop::Signal(signal),
            // One that could not be started again after a reload is none that ended; and where a reload left none, another may bring some.
            () = all_ended(&fleet.sources, replayed_at_start),
                if !fleet.sources.is_empty() && fleet.sources.len() >= fleet.config.sources.len() => return Stop::SourcesEnded,
            Some(request) = requests.recv() => request,
        };
        let reloading = Reloading::begin(ground, request.trigger);
        let prepared = tokio::select! {
            // Nothing has changed yet, so nothing has to be undone.
            signal = signals.next() => return Stop::Signal(signal),
            prepared = reload::prepare(ground, fleet, request.asked.discard.clone()) => prepared,
        };
        let reloaded = reloading.finish(ground, fleet, prepared).await;
        request.answer(reloaded);
    }
}

/// Seconds since 1970 UTC.
fn now_seconds() -> f64 {
    crate::record::now_ns() as f64 / 1e9
}

/// Workers that there may be without a restart: twice those of the start, and never few.
fn most_workers(config: &Config) -> u32 {
    let workers: u32 = config.outputs.iter().map(|output| output.workers).sum();
    workers.saturating_mul(2).max(64)
}

/// What holds the data.
struct Rooms {
    state: State,
    journal: Journal,
    ledger: Ledger,
    dead_letters: DeadLetters,
    /// Which components are held back, in whichever output they run.
    quarantines: Quarantines,
    recovery: Recovery,
}

async fn open_rooms(config: &Config, metrics: &Metrics) -> Result<Rooms, RunError> {
    let data_dir = config.data_dir.clone();
    let options = Options {
        segment_bytes: config.journal.segment_bytes,
        max_bytes: config.journal.max_bytes,
        reserve_bytes: config.journal.reserve_bytes,
    };
    let opened = tokio::task::spawn_blocking(move || {
        let (state, opened) = State::open(&data_dir).map_err(failed)?;
        let (journal, recovery) =
            Journal::open(&data_dir.join("journal"), &data_dir.join("quarantine"), options).map_err(failed)?;
        let dead_letters = DeadLetters::open(&data_dir);
        dead_letters.sweep().map_err(failed)?;
        Ok::<_, RunError>((state, opened, journal, recovery, dead_letters))
    });
    let (state, opened, journal, recovery, dead_letters) = opened.await.map_err(failed)??;
    report(&opened, &recovery);
    let ledger = Ledger::new(journal.clone(), state.clone(), metrics.clone());
    Ok(Rooms { state, journal, ledger, dead_letters, quarantines: Quarantines::default(), recovery })
}

/// Says what opening found, loudly where it was not well.
fn report(opened: &Opened, recovery: &Recovery) {
    match opened {
        Opened::New => tracing::info!("a new data directory"),
        Opened::Intact => {}
        Opened::Rebuilt { reason, set_aside } => tracing::error!(
            reason, set_aside = ?set_aside,
            "the state was lost and is rebuilt from its last snapshot and the journal: nothing is lost and no number repeats, \
             but batches delivered since that snapshot may be delivered again, under new names"
        ),
    }
    for cut in &recovery.cut {
        tracing::warn!(segment = %cut.segment.display(), offset = cut.offset, bytes = cut.bytes, "a torn tail was cut; nothing in it was acknowledged");
    }
    for damaged in &recovery.quarantined {
        tracing::error!(file = %damaged.file.display(), records = damaged.records(), reason = damaged.reason, "a damaged stretch of the journal was set aside");
    }
    if !recovery.chunks.is_empty() {
        tracing::info!(chunks = recovery.chunks.len(), "the journal holds chunks from before");
    }
}

fn plugin_host(config: &Config, workers: u32) -> Result<PluginHost, RunError> {
    let cache_dir = config.data_dir.join("plugins").join("cache");
    make_folder(&cache_dir)?;
    PluginHost::new(HostOptions::of(config, Some(cache_dir), workers))
        .map(|host| host.with_registry(registry(config).with_store(&registry_store(config), true)))
        .map_err(failed)
}

/// What registries are reached with.
pub(crate) fn registry(config: &Config) -> Registry {
    let mut options = RegistryOptions { http: config.http.clone(), registry: config.plugins.registry.clone() };
    if options.registry.credentials_file.is_none() {
        options.registry.credentials_file = crate::registry::default_credentials_file();
    }
    Registry::new(options)
}

/// Where components from registries are kept.
pub(crate) fn registry_store(config: &Config) -> std::path::PathBuf {
    config.data_dir.join("plugins").join("oci")
}

/// Segments and followed files stay open, so the usual soft limit of 1,024 files is soon too low.
fn raise_open_files() {
    if let Err(cause) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%cause, "the limit of open files could not be raised; see `ulimit -n`");
    }
}

fn make_folder(path: &Path) -> Result<(), RunError> {
    std::fs::create_dir_all(path).map_err(|cause| {
        let path = path.display();
        failed(match cause.kind() {
            ErrorKind::AlreadyExists => {
                format!("{path} is a file, and has to be a folder; move it away, or set `data_dir`")
            }
            ErrorKind::NotADirectory => {
                format!("cannot make {path}: a part of it is a file; move that away, or set `data_dir`")
            }
            _ => format!("cannot make {path}: {cause}; make it for this user, or set `data_dir`"),
        })
    })
}

/// Done when every source is at its end and the replays that were there at the start are taken in; never where a source goes on for ever.
/// One that failed counts too: it cannot take in any more.
async fn all_ended(sources: &[Fed], replayed_at_start: &CancellationToken) {
    for source in sources {
        source.running.wait_ended().await;
    }
    replayed_at_start.cancelled().await;
}

/// How it ended: whether everything that was taken in is settled, and how many records of it became dead letters.
fn outcome(is_settled: bool, dead_letters: u64) -> String {
    let dead = match dead_letters {
        0 => String::new(),
        1 => "; 1 record became a dead letter in this run (wharf dead-letter list)".to_owned(),
        many => format!("; {many} records became dead letters in this run (wharf dead-letter list)"),
    };
    match (is_settled, dead_letters) {
        (true, 0) => "stopped; everything is delivered".to_owned(),
        (true, _) => format!("stopped; nothing is left to deliver{dead}"),
        (false, _) => format!("stopped; what is left is on disk and is delivered after the next start{dead}"),
    }
}

enum Stop {
    Signal(&'static str),
    SourcesEnded,
}

/// Waits for the stop, and lets it give up when the grace is over that a signal begins: one before the stop, or one that comes while the
/// outputs deliver what sources at their end have left. None where another signal ended it.
async fn within_grace<T>(
    reason: Stop,
    grace: Duration,
    give_up: &CancellationToken,
    mut next_signal: impl AsyncFnMut() -> &'static str,
    stop: impl Future<Output = T>,
) -> Option<T> {
    let begin = |signal: &str| {
        tracing::info!(signal, ?grace, "stopping: sources first, then what is open is delivered");
        Instant::now() + grace
    };
    let mut deadline = match reason {
        Stop::Signal(signal) => Some(begin(signal)),
        Stop::SourcesEnded => {
            tracing::info!("every source is at its end: delivering what is open, then stopping");
            None
        }
    };
    tokio::pin!(stop);
    loop {
        let over = async {
            match deadline {
                Some(deadline) if !give_up.is_cancelled() => tokio::time::sleep_until(deadline).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            stopped = &mut stop => return Some(stopped),
            () = over => give_up.cancel(),
            signal = next_signal() => match deadline {
                Some(_) => return None,
                None => deadline = Some(begin(signal)),
            },
        }
    }
}

struct Stopping<'a> {
    /// Cancelled when the grace is over.
    give_up: CancellationToken,
    sources: Vec<Fed>,
    outputs: Vec<Output>,
    rooms: &'a Rooms,
    intake: Intake,
}

/// What a stop that came to its end has to tell.
struct Stopped {
    records_left: u64,
    /// A sentence for each source that failed while it was at work.
    failed_sources: Vec<String>,
}

/// Sources, then outputs, then the journal.
async fn stop_everything(stopping: Stopping<'_>) -> Stopped {
    let mut failed_sources = vec![];
    for source in &stopping.sources {
        source.stop();
    }
    let ended = async {
        for source in stopping.sources {
            let name = source.name().to_string();
            match source.running.wait_ended().await {
                SourceEnded::Failed(reason) => {
                    tracing::error!(source = name, reason, "a source failed");
                    failed_sources.push(format!("source {name}: {reason}"));
                }
                SourceEnded::Finished | SourceEnded::Stopped => {}
            }
        }
    };
    if stopping.give_up.run_until_cancelled(ended).await.is_none() {
        tracing::warn!("a source did not stop within the grace time; what it had not acknowledged is not taken in");
    }
    stopping.intake.stop();
    let stops = stopping.outputs.into_iter().map(|output| output.stop(&stopping.give_up));
    let records_left = futures_util::future::join_all(stops).await.into_iter().sum();
    let (journal, state) = (stopping.rooms.journal.clone(), stopping.rooms.state.clone());
    let closed = tokio::task::spawn_blocking(move || {
        journal.close();
        state.snapshot()
    });
    if let Ok(Err(cause)) = closed.await {
        tracing::warn!(%cause, "the state's snapshot was not written; the last one stays");
    }
    Stopped { records_left, failed_sources }
}

/// What outputs without work let go is given back to the system, for all of them at once.
async fn gives_memory_back(stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(MEMORY_EVERY)).await.is_some() {
        // Where it panicked, the next time is as good.
        let _ = tokio::task::spawn_blocking(crate::allocator::give_back).await;
    }
}

async fn snapshots(state: State, stop: CancellationToken) {
    let mut said = false;
    while stop.run_until_cancelled(tokio::time::sleep(SNAPSHOT_EVERY)).await.is_some() {
        let state = state.clone();
        match tokio::task::spawn_blocking(move || state.snapshot()).await {
            Ok(Err(cause)) if !said => {
                said = true;
                tracing::warn!(%cause, "the state's snapshot could not be written; trying again each minute");
            }
            Ok(Ok(())) => said = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    async fn ends(
        reason: Stop,
        grace: Duration,
        signals: Vec<&'static str>,
        stop: impl Future<Output = ()>,
    ) -> Option<()> {
        let mut signals = signals.into_iter();
        // Several futures may have been made and dropped before one of them is asked.
        let next = async || match signals.next() {
            Some(signal) => signal,
            None => std::future::pending().await,
        };
        within_grace(reason, grace, &CancellationToken::new(), next, stop).await
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_said_to_be_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::write(&file, "").unwrap();
        let told = |path: &Path| make_folder(path).unwrap_err().to_string();
        assert!(told(&file).contains("data is a file, and has to be a folder; move it away"), "{}", told(&file));
        let below = file.join("journal");
        assert!(told(&below).contains("data/journal: a part of it is a file"), "{}", told(&below));
    }

    #[tokio::test]
    async fn a_second_signal_ends_a_stop_that_goes_on() {
        assert_eq!(ends(Stop::Signal("SIGTERM"), LONG, vec!["SIGTERM"], std::future::pending()).await, None);
    }

    #[tokio::test]
    async fn the_first_signal_after_the_sources_ended_begins_the_grace_and_only_the_next_ends_it() {
        let signals = vec!["SIGTERM", "SIGINT"];
        assert_eq!(ends(Stop::SourcesEnded, LONG, signals, std::future::pending()).await, None);
        let give_up = CancellationToken::new();
        let mut first = Some("SIGTERM");
        let next = async || match first.take() {
            Some(signal) => signal,
            None => std::future::pending().await,
        };
        let stop = async { give_up.cancelled().await };
        assert_eq!(within_grace(Stop::SourcesEnded, Duration::ZERO, &give_up, next, stop).await, Some(()));
    }

    #[test]
    fn dead_letters_are_told_of_at_the_end_and_not_called_delivered() {
        let list = "(wharf dead-letter list)";
        for (is_settled, dead_letters, told) in [
            (true, 0, "stopped; everything is delivered".to_owned()),
            (true, 1, format!("stopped; nothing is left to deliver; 1 record became a dead letter in this run {list}")),
            (true, 7, format!("stopped; nothing is left to deliver; 7 records became dead letters in this run {list}")),
            (false, 0, "stopped; what is left is on disk and is delivered after the next start".to_owned()),
        ] {
            assert_eq!(outcome(is_settled, dead_letters), told);
        }
    }

    #[tokio::test]
    async fn a_stop_without_a_signal_is_given_all_the_time_it_needs() {
        assert_eq!(ends(Stop::SourcesEnded, Duration::ZERO, vec![], async {}).await, Some(()));
    }
}
