//! An output at work: workers that take batches from the queue, when a failed batch is tried again, how a batch ends.
//!
//! In: a loaded plugin, a queue, settings. The component classifies a failure, this room schedules: retries by batch with
//! back-off and jitter ([`backoff`]), fewer workers and a pause for a destination that pushes back ([`destination`]). A batch ends
//! delivered, or as dead letters — refused by the destination, given up after `retry.max_age`, or fatal to two fresh stores — and
//! only then leaves the queue. Nothing is dead-lettered for a plugin that dies whatever it is given: it is quarantined, and probed.

mod backoff;
pub(crate) mod decision;
mod destination;
mod ending;
mod poison;
mod schedule;
mod status;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{OnQuarantine, RetryConfig};
use crate::dead_letter::DeadLetters;
use crate::journal::Journal;
use crate::plugin::{DeathCause, FailureKind, Plugin, WorkerContext, failure_classes};
use crate::queue::Queue;
use crate::telemetry::{Metrics, OutputWords};

pub use destination::{Destination, Destinations};
pub use schedule::Retries;
pub use status::{LastFailure, OutputStatus, WorkerState};

use ending::Ending;
pub use poison::Quarantines;
pub(crate) use poison::{PluginHealth, Verdict};
use schedule::{Again, Schedule};
use status::StatusBoard;

/// What an output is made of.
#[derive(Debug)]
pub struct OutputSetup {
    /// The component.
    pub plugin: Plugin,
    /// For each worker; `worker` is set here.
    pub context: WorkerContext,
    /// How many workers.
    pub workers: u32,
    /// Its batches.
    pub queue: Queue,
    /// Retries.
    pub retry: RetryConfig,
    /// What is known of its plugin, shared with other outputs that run the same.
    pub quarantines: Quarantines,
    /// What becomes of its batches while that is quarantined.
    pub on_quarantine: OnQuarantine,
    /// What it delivers to, shared with other outputs that deliver there.
    pub destination: Arc<Destination>,
    /// Where the chunks are.
    pub journal: Journal,
    /// Where records go that cannot be delivered.
    pub dead_letters: DeadLetters,
    /// Counts.
    pub metrics: Metrics,
    /// A worker that had nothing to deliver for so long lets its store go.
    pub store_idle: Duration,
}

/// How long a store is kept that has nothing to do. Its memory is some 0.4 MiB at least, and of an output of its own for each of many that is most of what
/// the host has; making another takes less than reading a batch does. Longer than the time between batches of an output that is at work at all, so
/// that what a component keeps in its memory (streams that it knows) is worth keeping.
pub const STORE_IDLE: Duration = Duration::from_secs(300);

/// A running output.
#[derive(Debug)]
pub struct Output {
    shared: Arc<Shared>,
    workers: JoinSet<()>,
}

/// What the workers of an output have in common. None of it can be reached by a guest.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plugin: Plugin,
    pub(crate) context: WorkerContext,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
    pub(crate) retry: RetryConfig,
    pub(crate) destination: Arc<Destination>,
    pub(crate) schedule: Schedule,
    pub(crate) ending: Ending,
    pub(crate) health: Arc<PluginHealth>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) store_idle: Duration,
    workers: u32,
    /// For each worker, and for each of a place that is no more but may be at work still: cancelled when it has ended.
    ends: Vec<CancellationToken>,
}

impl Output {
    /// Starts the workers. Must be called inside a tokio runtime.
    #[must_use]
    pub fn start(setup: OutputSetup) -> Self {
        let name = Arc::clone(setup.queue.output());
        let board = StatusBoard::new(name, setup.workers, setup.metrics.clone());
        let stays = Stays { again: Arc::default(), board: Arc::new(board), dead: Arc::default(), ends: vec![] };
        let mut workers = JoinSet::new();
        setup.destination.joined_by(setup.workers);
        let shared = begin(setup, stays, &mut workers);
        Self { shared, workers }
    }

    /// Other workers take over, of another component or with other settings. Those that are at work finish the batch that they have in hand
    /// and end; each gives its place to a new one, so that there are never more at work than workers, nor two of a partition that goes in
    /// order. What waits for another try is tried at once, by the new ones.
    pub fn replace(&mut self, setup: OutputSetup) {
        let old = Arc::clone(&self.shared);
        let other_component = old.plugin.digest() != setup.plugin.digest();
        let stays = Stays {
            again: old.schedule.retire(),
            board: Arc::clone(&old.board),
            dead: Arc::clone(&old.ending.dead),
            ends: old.ends.clone(),
        };
        if Arc::ptr_eq(&old.destination, &setup.destination) {
            setup.destination.changed_by(old.workers, setup.workers);
        } else {
            old.destination.left_by(old.workers);
            setup.destination.joined_by(setup.workers);
        }
        stays.board.resize(setup.workers);
        while self.workers.try_join_next().is_some() {}
        self.shared = begin(setup, stays, &mut self.workers);
        self.shared.schedule.begin_anew(other_component);
    }

    /// Ends the workers of an output that is removed: those that have a batch in hand may finish it within `time`. What is left belongs to the
    /// queue.
    pub async fn remove(mut self, time: Duration) {
        self.shared.schedule.retire();
        let ended = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(time, ended).await.is_err() {
            self.workers.shutdown().await;
        }
        self.shared.destination.left_by(self.shared.workers);
    }

    /// What can be asked of it while it runs, and after.
    #[must_use]
    pub fn handle(&self) -> OutputHandle {
        OutputHandle { shared: Arc::clone(&self.shared) }
    }

    /// Delivers what is open until it is told to give up, then stops. Gives the records that stay on disk. Batches in hand then are dropped
    /// with their stores; they belong to the queue and are delivered after the next start. A plugin that is quarantined or cannot be
    /// started is not waited for.
    pub async fn stop(mut self, give_up: &CancellationToken) -> u64 {
        let queue = &self.shared.ending.queue;
        queue.flush();
        queue.close();
        self.shared.schedule.stopping();
        let drained = async { while self.workers.join_next().await.is_some() {} };
        if give_up.run_until_cancelled(drained).await.is_none() {
            self.workers.shutdown().await;
        }
        self.shared.ending.queue.records()
    }
}

/// What of an output stays when its workers are replaced.
struct Stays {
    again: Arc<Again>,
    board: Arc<StatusBoard>,
    dead: Arc<AtomicU64>,
    /// When each of the workers ends whose places are taken.
    ends: Vec<CancellationToken>,
}

fn begin(setup: OutputSetup, stays: Stays, workers: &mut JoinSet<()>) -> Arc<Shared> {
    let beyond =
        stays.ends.iter().skip(usize::try_from(setup.workers).unwrap_or(usize::MAX)).cloned().collect::<Vec<_>>();
    let mut predecessors = stays.ends.into_iter();
    let (digest, described) = (setup.plugin.digest(), setup.plugin.descriptor());
    let output = setup.queue.output();
    setup.metrics.plugin_begins(output, &described.name, &described.version, digest, &failure_classes());
    let health = Arc::new(setup.quarantines.join(digest, Arc::clone(output)));
    let shared = Arc::new(Shared {
        ending: Ending {
            output: Arc::clone(setup.queue.output()),
            queue: setup.queue.clone(),
            journal: setup.journal.clone(),
            dead_letters: setup.dead_letters,
            metrics: setup.metrics.clone(),
            dead: stays.dead,
        },
        schedule: Schedule::new(
            setup.queue,
            Arc::clone(&setup.destination),
            Arc::clone(&health),
            setup.on_quarantine,
            stays.again,
        ),
        health,
        board: stays.board,
        workers: setup.workers,
        ends: (0..setup.workers).map(|_| CancellationToken::new()).chain(beyond).collect(),
        plugin: setup.plugin,
        context: setup.context,
        journal: setup.journal,
        metrics: setup.metrics,
        retry: setup.retry,
        destination: setup.destination,
        store_idle: setup.store_idle,
    });
    for (number, end) in (0..setup.workers).zip(&shared.ends) {
        let (predecessor, end, shared) = (predecessors.next(), end.clone().drop_guard(), Arc::clone(&shared));
        workers.spawn(async move {
            let _end = end;
            worker::run(number, shared, predecessor).await;
        });
    }
    shared
}

/// Every word that an output's counters use, so that each of them is there, at 0, before anything happens.
#[must_use]
pub fn counter_words() -> OutputWords {
    let causes = DeathCause::ALL.into_iter();
    let kinds = FailureKind::ALL.into_iter().filter(|kind| *kind != FailureKind::Rejected);
    OutputWords {
        rejected: [ending::REJECTED, ending::RETRY_EXPIRED, ending::QUARANTINED]
            .into_iter()
            .chain(causes.clone().filter(|cause| cause.blames_the_batch()).map(DeathCause::as_str))
            .collect(),
        dropped: vec![ending::DAMAGED],
        retries: kinds.map(FailureKind::as_str).chain(causes.clone().map(DeathCause::as_str)).collect(),
        restarts: causes.map(DeathCause::as_str).collect(),
    }
}

/// How a quarantine ends: a person ends it, or a batch gets through.
const BY_HAND: &str = "hand";
const BY_DELIVERY: &str = "delivery";

/// What a person let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// Batches that were tried before, and are tried again now.
    pub batches: usize,
    /// Other outputs that were held with this one.
    pub with: Vec<Arc<str>>,
}

/// A look at a running output.
#[derive(Debug, Clone)]
pub struct OutputHandle {
    shared: Arc<Shared>,
}

impl OutputHandle {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.shared.ending.output
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> OutputStatus {
        let shared = &self.shared;
        OutputStatus {
            next_probe: shared.health.next_probe(),
            quarantined_with: shared.health.suspects(),
            ..shared.board.status(&shared.ending.queue, shared.schedule.retries(), shared.health.quarantined())
        }
    }

    /// Ends its plugin's quarantine by hand: what was held is tried at once, as if nothing had died of it. None where there was none.
    #[must_use]
    pub fn end_quarantine(&self) -> Option<Released> {
        let with = self.shared.health.release()?;
        let batches = self.shared.schedule.begin_anew(true);
        let output = &self.shared.ending.output;
        for released in with.iter().chain([output]) {
            self.shared.metrics.plugin_quarantine_ended(released, BY_HAND);
        }
        tracing::warn!(
            output = %output, digest = self.shared.plugin.digest(), batches, with = ?with,
            "the plugin's quarantine was ended by hand: what was held is tried now"
        );
        Some(Released { batches, with })
    }

    /// Whether everything that was taken in is settled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.ending.queue.is_empty()
    }

    /// Records that became dead letters since its start.
    #[must_use]
    pub fn dead_letters(&self) -> u64 {
        self.shared.ending.dead.load(Ordering::Relaxed)
    }
}
