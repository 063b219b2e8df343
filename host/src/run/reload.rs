//! Another configuration takes over while Wharf runs.
//!
//! Everything that can be wrong is found before anything changes: the file is read and checked, its components are loaded and compiled,
//! and for each output that is new or another one a first worker is made with the very settings and services that it will work with. Then
//! sources that change stop, and those that take over get their addresses, but take nothing in yet; queues of outputs that go are left.
//! Where any of this fails, what had stopped starts again as it was. Only then, in steps that cannot fail, queues get their limits,
//! routes are swapped, new workers take over the places of the old ones as these finish what they have in hand, and new sources open.
//!
//! What is durable belongs to none of it: batches, their numbers, sequences and positions stay where they are.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin::{NotNow, Parts, Reload, ReloadAsked, ReloadResult, Reloaded, Undelivered};
use crate::capability::Services;
use crate::config::{Config, Draft, Fault, Faults, PluginsConfig, SourceConfig, SourceKind, fault_at_plugin};
use crate::output::Output;
use crate::queue::{Kept, Queue};
use crate::source::SourceEnded;

use super::difference::{self, Whole};
use super::fleet::{Fed, Fleet, Ground, Placed, is_configured, is_discarded, mean_nothing, meant};
use super::{CheckedOutput, all_faults, check_outputs, outputs, unused, zeros};

pub(super) const API: &str = "api";
pub(super) const HANGUP: &str = "SIGHUP";
pub(super) const WATCH: &str = "watch";

/// How long what was granted room may take to be on the disk, and a worker of an output that is dropped to finish its batch.
const MOMENT: Duration = Duration::from_secs(5);

/// Where reloads are asked for. One at a time. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Door {
    requests: mpsc::Sender<Request>,
    turn: Arc<Semaphore>,
}

/// A reload that somebody waits for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) trigger: &'static str,
    pub(super) asked: ReloadAsked,
    answer: oneshot::Sender<Reloaded>,
    turn: OwnedSemaphorePermit,
}

impl Request {
    pub(super) fn answer(self, reloaded: Reloaded) {
        let Self { answer, turn, .. } = self;
        // Before the answer: whoever gets it may ask again at once.
        drop(turn);
        // Whoever went away does not want to know.
        let _ = answer.send(reloaded);
    }
}

impl Door {
    pub(super) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (requests, asked) = mpsc::channel(1);
        (Self { requests, turn: Arc::new(Semaphore::new(1)) }, asked)
    }

    /// Asks when it is its turn, and waits for the end. The log tells of it.
    pub(super) async fn wait_for(&self, trigger: &'static str) {
        if let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await {
            let _ = self.ask(trigger, ReloadAsked::default(), turn).await;
        }
    }

    async fn ask(
        &self,
        trigger: &'static str,
        asked: ReloadAsked,
        turn: OwnedSemaphorePermit,
    ) -> Result<Reloaded, NotNow> {
        let stopping = || NotNow("Wharf is stopping".into());
        let (answer, heard) = oneshot::channel();
        let request = Request { trigger, asked, answer, turn };
        self.requests.send(request).await.map_err(|_| stopping())?;
        heard.await.map_err(|_| stopping())
    }
}

impl Reload for Door {
    fn reload(&self, asked: ReloadAsked) -> Pin<Box<dyn Future<Output = Result<Reloaded, NotNow>> + Send + '_>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.turn).try_acquire_owned();
            let turn = turn.map_err(|_| NotNow("another reload is under way".into()))?;
            self.ask(API, asked, turn).await
        })
    }
}

/// Why a configuration did not take over.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Whether something had begun to change, and was undone.
    failed: bool,
    faults: Vec<String>,
    undelivered: Vec<Undelivered>,
}

impl Refusal {
    fn of(faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = Faults::of(faults.into_iter().collect());
        Self { faults: faults.iter().flat_map(|all| all.iter()).map(ToString::to_string).collect(), ..Self::default() }
    }

    fn because(fault: impl Into<String>) -> Self {
        Self { faults: vec![fault.into()], ..Self::default() }
    }

    fn undelivered(kept: Vec<Kept>) -> Self {
        let mut refusal = Self { undelivered: kept.into_iter().map(undelivered).collect(), ..Self::default() };
        let fault = |held: &Undelivered| {
            format!(
                "output {} is not configured any more and has {} undelivered records ({} bytes)\n    \
                 help: keep it until they are delivered (nothing new comes in where its `match` is a tag that nobody sends), \
                 or drop them: wharf reload --discard {}",
                held.output, held.records, held.bytes, held.output
            )
        };
        refusal.faults = refusal.undelivered.iter().map(fault).collect();
        refusal
    }
}

fn undelivered(kept: Kept) -> Undelivered {
    Undelivered { output: kept.output.to_string(), records: kept.records, bytes: kept.bytes }
}

/// A configuration that was found good, and what it makes another.
pub(super) struct Prepared {
    config: Config,
    checked: Vec<CheckedOutput>,
    outputs: Parts,
    sources: Parts,
    needs_restart: Vec<String>,
    discard: Vec<String>,
    /// For outputs that get workers.
    services: HashMap<Arc<str>, Arc<Services>>,
}

/// One reload from its beginning to its answer. `prepare` may be dropped at any time: nothing has changed then.
pub(super) struct Reloading {
    started: Instant,
    trigger: &'static str,
    file: String,
}

impl Reloading {
    pub(super) fn begin(ground: &Ground, trigger: &'static str) -> Self {
        let file = ground.file.as_ref().map_or_else(String::new, |file| file.display().to_string());
        tracing::info!(trigger, file, "reloading the configuration");
        Self { started: Instant::now(), trigger, file }
    }

    fn answer(&self, result: ReloadResult) -> Reloaded {
        Reloaded {
            result,
            file: self.file.clone(),
            trigger: self.trigger.to_owned(),
            seconds: self.started.elapsed().as_secs_f64(),
            faults: vec![],
            undelivered: vec![],
            outputs: Parts::default(),
            sources: Parts::default(),
            discarded: vec![],
            needs_restart: vec![],
        }
    }

    fn refused(&self, refusal: Refusal) -> Reloaded {
        let result = if refusal.failed { ReloadResult::Failed } else { ReloadResult::Refused };
        Reloaded { faults: refusal.faults, undelivered: refusal.undelivered, ..self.answer(result) }
    }

    /// Puts what was prepared to work, and says how it went, also to the log, the metrics and `/health`.
    pub(super) async fn finish(
        self,
        ground: &Ground,
        fleet: &mut Fleet,
        prepared: Result<Prepared, Refusal>,
    ) -> Reloaded {
        let reloaded = match prepared {
            Err(refusal) => self.refused(refusal),
            Ok(prepared) => {
                let unchanged = prepared.outputs.are_unchanged()
                    && prepared.sources.are_unchanged()
                    && super::difference::is_the_rest_the_same(&fleet.config, &prepared.config);
                let (outputs, sources) = (prepared.outputs.clone(), prepared.sources.clone());
                let needs_restart = prepared.needs_restart.clone();
                match apply(ground, fleet, prepared).await {
                    Err(refusal) => self.refused(refusal),
                    Ok(discarded) => {
                        let unchanged = unchanged && discarded.is_empty();
                        let result = if unchanged { ReloadResult::Unchanged } else { ReloadResult::Applied };
                        let discarded = discarded.into_iter().map(undelivered).collect();
                        Reloaded { outputs, sources, discarded, needs_restart, ..self.answer(result) }
                    }
                }
            }
        };
        tell(&reloaded);
        ground.metrics.reloaded(reloaded.result.as_str());
        if matches!(reloaded.result, ReloadResult::Applied | ReloadResult::Unchanged) {
            ground.metrics.configured_at(super::now_seconds());
        }
        ground.board.reloaded(&reloaded);
        reloaded
    }
}

fn tell(reloaded: &Reloaded) {
    let Reloaded { trigger, outputs, sources, seconds, .. } = reloaded;
    match reloaded.result {
        ReloadResult::Unchanged => tracing::info!(trigger, seconds, "the configuration is the one that is at work"),
        ReloadResult::Applied => {
            let changed = |parts: &Parts| parts.changed.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
            tracing::info!(
                trigger, seconds,
                outputs_added = ?outputs.added, outputs_changed = ?changed(outputs), outputs_removed = ?outputs.removed,
                sources_added = ?sources.added, sources_changed = ?changed(sources), sources_removed = ?sources.removed,
                "the new configuration is at work"
            );
        }
        ReloadResult::Refused | ReloadResult::Failed => {
            for fault in &reloaded.faults {
                tracing::error!(trigger, "the new configuration is not taken, the old one goes on: {fault}");
            }
        }
    }
    for held in &reloaded.discarded {
        tracing::warn!(
            output = held.output,
            records = held.records,
            bytes = held.bytes,
            "undelivered records were dropped, as asked for"
        );
    }
    if !reloaded.needs_restart.is_empty() {
        tracing::warn!(keys = ?reloaded.needs_restart, "these have changed in the file, and take effect at the next start only");
    }
}

/// Reads and checks everything. Changes nothing, and may be dropped at any time.
pub(super) async fn prepare(ground: &Ground, fleet: &Fleet, discard: Vec<String>) -> Result<Prepared, Refusal> {
    let Some(file) = ground.file.clone() else { return Err(Refusal::because("this Wharf runs without a file")) };
    let path = file.clone();
    let draft = tokio::task::spawn_blocking(move || Draft::load(&path)).await;
    let draft = draft.map_err(|fault| Refusal::because(fault.to_string()))?;
    match draft.config() {
        // What a refused configuration names may be what is missing.
        Some(config) => ground.watched.set(&file, &[&fleet.config, config]),
        None => ground.watched.set(&file, &[&fleet.config]),
    }
    if !draft.faults().is_empty() {
        return Err(Refusal::of(all_faults(&draft, &ground.host).await));
    }
    let config = draft.finish().map_err(|faults| Refusal::of(faults.iter().cloned()))?;
    let checked = check_outputs(&config, &ground.host).await.map_err(|faults| Refusal::of(faults.iter().cloned()))?;
    refuse_what_cannot_be(ground, fleet, &config)?;

    let pairs: Vec<_> = config.outputs.iter().zip(&checked).collect();
    let whole_old = |placed: &Placed, keys: (&crate::config::OutputConfig, &CheckedOutput)| {
        let old = Whole { config: &fleet.config, output: &placed.settings, checked: &placed.checked };
        difference::of_output(old, Whole { config: &config, output: keys.0, checked: keys.1 })
    };
    let outputs = difference::parts(
        &fleet.outputs,
        &pairs,
        |placed| placed.settings.name.clone(),
        |(output, _)| output.name.clone(),
        |placed, (output, checked)| whole_old(placed, (output, checked)),
    );
    let sources = difference::parts(
        &fleet.sources,
        &config.sources,
        |fed| fed.name().clone(),
        |source| source.name.clone(),
        Fed::differs,
    );
    refuse_what_is_undelivered(ground, fleet, &outputs, &pairs, &discard)?;
    let mut services = HashMap::new();
    let mut faults = vec![];
    for (output, checked) in &pairs {
        let is_added = outputs.added.iter().any(|name| **name == *output.name);
        let changed = outputs.changed.iter().find(|changed| *changed.name == *output.name);
        let keys: Vec<&str> = changed.iter().flat_map(|changed| changed.what.iter().map(String::as_str)).collect();
        if !(is_added || difference::needs_workers(&keys)) {
            continue;
        }
        match canary(ground, &config, output, checked).await {
            Ok(made) => drop(services.insert(output.name.clone(), made)),
            Err(cause) => faults.push(fault_at_plugin(output, cause, None)),
        }
    }
    if !faults.is_empty() {
        return Err(Refusal::of(faults));
    }
    let needs_restart = difference::needs_restart(&fleet.config, &config);
    drop(pairs);
    Ok(Prepared { config, checked, outputs, sources, needs_restart, discard, services })
}

/// A first worker with the live settings; what it worked with is what the others will.
async fn canary(
    ground: &Ground,
    config: &Config,
    output: &crate::config::OutputConfig,
    checked: &CheckedOutput,
) -> Result<Arc<Services>, String> {
    let services = outputs::services(output, config, checked, &ground.rooms.state, &ground.metrics).await?;
    let context = outputs::context(output, &checked.config, Arc::clone(&services));
    let (worker, _plan) = checked.plugin.start(context).await.map_err(|cause| cause.to_string())?;
    worker.close().await;
    Ok(services)
}

fn refuse_what_cannot_be(ground: &Ground, fleet: &Fleet, config: &Config) -> Result<(), Refusal> {
    if config.data_dir != fleet.config.data_dir {
        return Err(Refusal::because(format!(
            "data_dir has changed from {} to {}, which needs a restart: what is durable does not move by itself",
            fleet.config.data_dir.display(),
            config.data_dir.display()
        )));
    }
    let reads_stdin = |source: &&SourceConfig| matches!(source.kind, SourceKind::Stdin);
    if let (Some(old), Some(new)) =
        (fleet.config.sources.iter().find(reads_stdin), config.sources.iter().find(reads_stdin))
        && old != new
    {
        // Whoever reads from it has read ahead, and a pipe gives nothing twice.
        return Err(Refusal::because(format!(
            "the standard input stays with source {} as it is: another one needs a restart",
            old.name
        )));
    }
    let workers: u32 = config.outputs.iter().map(|output| output.workers).sum();
    if workers > ground.most_workers {
        return Err(Refusal::because(format!(
            "{workers} workers need a restart: room was made for {} at the start",
            ground.most_workers
        )));
    }
    Ok(())
}

/// Outputs that go, or whose records are kept apart by other fields from now on, must have nothing left.
fn refuse_what_is_undelivered(
    ground: &Ground,
    fleet: &Fleet,
    outputs: &Parts,
    pairs: &[(&crate::config::OutputConfig, &CheckedOutput)],
    discard: &[String],
) -> Result<(), Refusal> {
    let removed = |placed: &&Placed| outputs.removed.iter().any(|name| **name == *placed.settings.name);
    let mut may_go: HashSet<String> = ground.rooms.ledger.kept().iter().map(|kept| kept.output.to_string()).collect();
    may_go.extend(outputs.removed.iter().cloned());
    let nothing = mean_nothing(discard, &may_go);
    if let Some(name) = nothing.first() {
        let configured = pairs.iter().map(|(output, _)| &*output.name);
        let help = meant(name, may_go.iter().map(String::as_str))
            .or_else(|| is_configured(std::slice::from_ref(*name), configured));
        let help = help.map(|help| format!("\n    help: {help}"));
        return Err(Refusal::because(format!(
            "--discard {name}: there is no output of this name (with a / behind it: no tenant) that is not configured and has undelivered records; \
             nothing is dropped of one that is configured{}",
            help.unwrap_or_default()
        )));
    }
    let left: Vec<Kept> = fleet
        .outputs
        .iter()
        .filter(removed)
        .filter(|placed| !is_discarded(discard, &placed.settings.name))
        .map(|placed| placed.queue.kept())
        .filter(|kept| kept.records > 0)
        .collect();
    if !left.is_empty() {
        return Err(Refusal::undelivered(left));
    }
    let mut faults = vec![];
    for (output, checked) in pairs {
        let options = outputs::queue_options(output, &checked.plan);
        let Some(placed) = fleet.outputs.iter().find(|placed| placed.settings.name == output.name) else { continue };
        let kept = placed.queue.kept();
        if !placed.queue.can_become(&options) && kept.records > 0 {
            faults.push(fault_at_plugin(output, apart(&kept), None));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Refusal::of(faults)) }
}

fn apart(kept: &Kept) -> String {
    format!(
        "its records would be kept apart by other fields, or go in another order, and {} undelivered ones ({} bytes) are kept as the old \
         configuration says: stop what feeds it until they are delivered, or give the new one another name",
        kept.records, kept.bytes
    )
}

/// Sources that were stopped or started, until it is sure that they stay so.
struct Swap<'a> {
    ground: &'a Ground,
    stopped: Vec<SourceConfig>,
    started: Vec<Fed>,
    left: Vec<Queue>,
}

impl Swap<'_> {
    /// All is as it was before, as far as that can be.
    async fn undo(self, fleet: &mut Fleet, mut refusal: Refusal) -> Refusal {
        refusal.failed = refusal.undelivered.is_empty();
        for queue in &self.left {
            queue.stay();
        }
        for fed in &self.started {
            fed.stop();
        }
        for fed in self.started {
            // It has taken nothing in.
            let _ = fed.running.ended().await;
        }
        let opened = CancellationToken::new();
        opened.cancel();
        for settings in self.stopped {
            match self.ground.feed(&settings, opened.clone()).await {
                Ok(fed) => fleet.sources.push(fed),
                Err(cause) => refusal.faults.push(format!("and the old one could not be started again: {cause}")),
            }
        }
        refusal
    }
}

/// Everything else takes over. Gives what was dropped because that was asked for.
async fn apply(ground: &Ground, fleet: &mut Fleet, prepared: Prepared) -> Result<Vec<Kept>, Refusal> {
    let Prepared { config, checked, outputs: parts, sources, discard, mut services, .. } = prepared;
    let gate = CancellationToken::new();
    let mut swap = Swap { ground, stopped: vec![], started: vec![], left: vec![] };

    // Sources: what is new and in nobody's way first, so that the most is known before anything stops.
    let is_changed = |name: &str| sources.changed.iter().any(|changed| changed.name == name);
    let goes = |fed: &Fed| is_changed(fed.name()) || sources.removed.iter().any(|name| **name == **fed.name());
    let begin: Vec<&SourceConfig> = config
        .sources
        .iter()
        .filter(|source| is_changed(&source.name) || sources.added.iter().any(|name| **name == *source.name))
        .collect();
    let has_to_wait = |source: &SourceConfig| {
        is_changed(&source.name) || fleet.sources.iter().any(|fed| goes(fed) && fed.is_in_the_way_of(source))
    };
    let (late, early): (Vec<&SourceConfig>, Vec<&SourceConfig>) =
        begin.into_iter().partition(|source| has_to_wait(source));
    for source in early {
        match ground.feed(source, gate.clone()).await {
            Ok(fed) => swap.started.push(fed),
            Err(cause) => return Err(swap.undo(fleet, Refusal::because(cause)).await),
        }
    }
    let (going, staying): (Vec<Fed>, Vec<Fed>) = std::mem::take(&mut fleet.sources).into_iter().partition(goes);
    fleet.sources = staying;
    for fed in &going {
        fed.stop();
    }
    let mut stuck = vec![];
    for fed in going {
        let (name, settings) = (fed.name().clone(), fed.settings.clone());
        match tokio::time::timeout(fleet.config.grace.max(MOMENT), fed.running.wait_ended()).await {
            Ok(SourceEnded::Failed(reason)) => tracing::warn!(source = %name, reason, "a source had failed"),
            Ok(_) => {}
            Err(_) => {
                // It stays among those at work; it is stopped, and the next reload begins it anew.
                stuck.push(format!("source {name} did not stop within the grace time"));
                fleet.sources.push(fed);
                continue;
            }
        }
        swap.stopped.push(settings);
    }
    if !stuck.is_empty() {
        return Err(swap.undo(fleet, Refusal { faults: stuck, ..Refusal::default() }).await);
    }
    for source in late {
        match ground.feed(source, gate.clone()).await {
            Ok(fed) => swap.started.push(fed),
            Err(cause) => return Err(swap.undo(fleet, Refusal::because(cause)).await),
        }
    }

    // Queues that end: nothing more comes in, and what is on its way arrives.
    let is_removed = |name: &str| parts.removed.iter().any(|removed| removed == name);
    let options: HashMap<Arc<str>, _> = config
        .outputs
        .iter()
        .zip(&checked)
        .map(|(output, checked)| (output.name.clone(), outputs::queue_options(output, &checked.plan)))
        .collect();
    let ends =
        |placed: &Placed| options.get(&placed.settings.name).is_none_or(|options| !placed.queue.can_become(options));
    for placed in fleet.outputs.iter().filter(|placed| ends(placed)) {
        let (queue, name) = (placed.queue.clone(), placed.settings.name.clone());
        swap.left.push(queue.clone());
        if !queue.leave(MOMENT).await {
            let why = format!("output {name}: the journal does not take what is on its way to it; try again");
            return Err(swap.undo(fleet, Refusal::because(why)).await);
        }
        let kept = queue.kept();
        if kept.records > 0 && is_removed(&name) && !is_discarded(&discard, &name) {
            return Err(swap.undo(fleet, Refusal::undelivered(vec![kept])).await);
        }
        if kept.records > 0 && !is_removed(&name) {
            return Err(swap.undo(fleet, Refusal::because(format!("output {name}: {}", apart(&kept)))).await);
        }
    }

    // From here on nothing can fail. What is made once at the start is as it was then, whatever the file says.
    let config = Config {
        journal: fleet.config.journal.clone(),
        log: fleet.config.log.clone(),
        admin: fleet.config.admin.clone(),
        plugins: PluginsConfig { dirs: config.plugins.dirs.clone(), ..fleet.config.plugins.clone() },
        ..config
    };
    zeros::begin(&config, &ground.metrics);
    let mut before: HashMap<Arc<str>, Placed> =
        std::mem::take(&mut fleet.outputs).into_iter().map(|placed| (placed.settings.name.clone(), placed)).collect();
    let mut queues = vec![];
    for (output, checked) in config.outputs.iter().zip(&checked) {
        let options = outputs::queue_options(output, &checked.plan);
        let queue = match before.get(&output.name).map(|placed| placed.queue.clone()) {
            Some(queue) if queue.can_become(&options) => {
                if *queue.options() != options {
                    queue.change(options);
                }
                queue
            }
            ended => {
                if let Some(queue) = ended {
                    ground.rooms.ledger.remove(&queue);
                }
                let queue = ground.rooms.ledger.adopt(options);
                ground.rooms.ledger.take_in(&queue);
                queue
            }
        };
        queues.push(queue);
    }
    crate::fair::set_shares(&config.tenants);
    if let Err(cause) = ground.intake.reroute(Fleet::routing(&config, queues.clone())) {
        // The file's check refuses what this would.
        tracing::error!(%cause, "the routes stay as they were");
    }
    for ((output, checked), queue) in config.outputs.iter().zip(&checked).zip(queues) {
        let setup = services.remove(&output.name).map(|made| ground.setup(output, checked, made, &queue));
        let at_work = match (before.remove(&output.name), setup) {
            (Some(mut placed), Some(setup)) => {
                placed.output.replace(setup);
                Some(placed.output)
            }
            (Some(placed), None) => Some(placed.output),
            (None, Some(setup)) => Some(Output::start(setup)),
            // An output that was not there got its services.
            (None, None) => None,
        };
        if let Some(at_work) = at_work {
            fleet.outputs.push(Placed { settings: output.clone(), checked: checked.clone(), queue, output: at_work });
        }
    }
    gate.cancel();
    fleet.sources.append(&mut swap.started);
    let mut dropped = vec![];
    for (name, placed) in before {
        dropped.extend(remove(ground, &name, placed).await);
    }
    dropped.extend(discard_kept(ground, &discard).await);
    let before = std::mem::replace(&mut fleet.config, config);
    ground.board.outputs(&fleet.config, &checked, fleet.handles(), &ground.rooms);
    // The board asks for theirs no more.
    for tenant in &before.tenants {
        if !fleet.config.tenants.iter().any(|now| now.name == tenant.name) {
            ground.metrics.tenant_is_gone(&tenant.name);
        }
    }
    ground.components.send_replace(unused::in_use(&fleet.config));
    if let Some(file) = &ground.file {
        ground.watched.set(file, &[&fleet.config]);
    }
    Ok(dropped)
}

/// Ends an output that is configured no more. What it still has is dropped, as was asked for.
async fn remove(ground: &Ground, name: &Arc<str>, placed: Placed) -> Option<Kept> {
    let Placed { settings, queue, output, .. } = placed;
    output.remove(MOMENT).await;
    ground.metrics.output_is_gone(name, settings.workers);
    let discarding = queue.clone();
    let discarded =
        tokio::task::spawn_blocking(
            move || {
                if discarding.is_empty() { Ok(None) } else { discarding.discard().map(Some) }
            },
        );
    ground.rooms.ledger.remove(&queue);
    match discarded.await {
        Ok(Ok(kept)) => kept,
        Ok(Err(cause)) => {
            tracing::error!(output = %name, %cause, "undelivered records could not be dropped: they are there again after the next start");
            None
        }
        Err(fault) => {
            tracing::error!(output = %name, %fault, "undelivered records could not be dropped: they are there again after the next start");
            None
        }
    }
}

/// Drops what is kept for outputs that are not configured, where that was asked for.
pub(super) async fn discard_kept(ground: &Ground, discard: &[String]) -> Vec<Kept> {
    let mut dropped = vec![];
    for kept in ground.rooms.ledger.kept() {
        if !is_discarded(discard, &kept.output) {
            continue;
        }
        let (ledger, output) = (ground.rooms.ledger.clone(), kept.output.clone());
        match tokio::task::spawn_blocking(move || ledger.discard_kept(&output)).await {
            Ok(Ok(gone)) => dropped.extend(gone),
            Ok(Err(cause)) => {
                tracing::error!(output = %kept.output, %cause, "undelivered records could not be dropped: they are there again after the next start");
            }
            Err(fault) => tracing::error!(output = %kept.output, %fault, "undelivered records could not be dropped"),
        }
    }
    dropped
}
