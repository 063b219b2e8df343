//! A worker: one store, one batch at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::tenant_in;
use crate::plugin::{Death, Delivery, Failure, Outcome, StartError, Worker, WorkerContext};
use crate::record::{Portion, now_ns};

use super::decision::{self, Next, Tried};
use super::destination::Permit;
use super::ending::QUARANTINED;
use super::poison::{PROBE_EVERY, Verdict};
use super::schedule::Job;
use super::status::WorkerState;
use super::{BY_DELIVERY, Shared};

/// Waits between attempts to start a store: 200 ms doubled up to 5 s.
const RESTART_FIRST: Duration = Duration::from_millis(200);
const RESTART_LAST: Duration = Duration::from_secs(5);

/// A store and how many batches it has seen.
struct Seat {
    worker: Worker,
    batches: u64,
}

/// Takes batches until the output stops.
///
/// `predecessor` is cancelled when the one ends whose place it takes: an output never has more deliveries at work than workers.
pub(super) async fn run(number: u32, shared: Arc<Shared>, predecessor: Option<CancellationToken>) {
    if let Some(predecessor) = predecessor {
        predecessor.cancelled().await;
    }
    let mut seat: Option<Seat> = None;
    loop {
        let waits = |for_retry: bool| {
            let state = if for_retry { WorkerState::WaitingForRetry } else { WorkerState::Idle };
            shared.board.worker(number, state);
        };
        let Some(job) = next(shared.schedule.next(waits), &mut seat, &shared).await else { break };
        if job.given_up {
            let reason = "its plugin dies of whatever it is given, and is quarantined (on_quarantine: dead_letter)";
            shared.ending.dead(&job.batch, &job.batch.portions.clone(), QUARANTINED, reason).await;
            continue;
        }
        // A batch that ended a store gets a fresh one, so that the next death tells something.
        if job.deaths > 0
            && let Some(used) = seat.take_if(|seat| seat.batches > 0)
        {
            used.worker.close().await;
        }
        let ready = match seat.take() {
            Some(seat) => seat,
            // The batch stays in the queue, on disk.
            None => match start(number, &shared).await {
                Some(seat) => seat,
                None => {
                    // Others must not wait for what comes behind it in order.
                    if shared.schedule.retired().is_cancelled() {
                        shared.schedule.again_at(Instant::now(), job);
                    } else {
                        shared.ending.queue.give_back(job.batch);
                    }
                    break;
                }
            },
        };
        shared.board.worker(number, WorkerState::Paused);
        // Until it is under way, another worker may as well deliver it.
        let Some(permit) = shared.schedule.retired().run_until_cancelled(shared.destination.permit()).await else {
            shared.schedule.again_at(Instant::now(), job);
            seat = Some(ready);
            break;
        };
        shared.board.worker(number, WorkerState::Busy);
        seat = attempt(ready, job, permit, number, &shared).await;
    }
    if let Some(seat) = seat {
        seat.worker.close().await;
    }
    shared.board.worker(number, WorkerState::Stopped);
}

/// The next job. A store that has nothing to do meanwhile is let go; the next batch gets another.
async fn next(coming: impl Future<Output = Option<Job>>, seat: &mut Option<Seat>, shared: &Shared) -> Option<Job> {
    tokio::pin!(coming);
    if let Ok(job) = tokio::time::timeout(shared.store_idle, &mut coming).await {
        return job;
    }
    if let Some(idle) = seat.take() {
        tracing::debug!(output = %shared.ending.output, batches = idle.batches, "a store that has nothing to do is let go");
        idle.worker.close().await;
        // Others that are at work make room for theirs again.
        crate::record::encode::let_go_of_pieces();
        crate::allocator::much_is_free();
    }
    coming.await
}

/// A new store. Where the component cannot be started any more (it could when the output was set up), the reason is shown and it is
/// tried again and again; none only where the output stops, or other workers take over, since neither must wait for it.
async fn start(number: u32, shared: &Shared) -> Option<Seat> {
    shared.board.worker(number, WorkerState::Starting);
    let mut wait = RESTART_FIRST;
    loop {
        match shared.plugin.start(context(number, shared)).await {
            Ok((worker, _plan)) => return Some(Seat { worker, batches: 0 }),
            Err(cause) => {
                let kind = match &cause {
                    StartError::Config { .. } => "config",
                    StartError::Died { death, .. } => death.cause.as_str(),
                };
                shared.board.failed(kind, &cause.to_string());
                tracing::error!(output = %shared.ending.output, worker = number, %cause, "a worker could not be started");
            }
        }
        if shared.schedule.is_stopping() {
            return None;
        }
        shared.schedule.retired().run_until_cancelled(tokio::time::sleep(wait)).await?;
        wait = (wait * 2).min(RESTART_LAST);
    }
}

fn context(number: u32, shared: &Shared) -> WorkerContext {
    WorkerContext { worker: number, ..shared.context.clone() }
}

/// One attempt at one batch. Gives the store back if it lives.
async fn attempt(seat: Seat, mut job: Job, permit: Permit, number: u32, shared: &Shared) -> Option<Seat> {
    // Chunks that were found damaged are set aside by the journal; the batch goes on without them.
    let is_there = |portion: &&Portion| shared.journal.contains(portion.id);
    let portions: Arc<[_]> = job.batch.portions.iter().filter(is_there).cloned().collect();
    if portions.is_empty() {
        drop(permit);
        shared.ending.nothing_left(&job.batch).await;
        return Some(seat);
    }
    let delivery = Delivery {
        id: job.batch.row.id,
        attempt: job.attempt,
        portions,
        partitioning: Arc::clone(shared.ending.queue.partitioning()),
        journal: shared.journal.clone(),
    };
    let fresh = seat.batches == 0;
    let batches = seat.batches + 1;
    let (outcome, worker) = seat.worker.deliver(delivery.clone()).await;
    let mut seat = worker.map(|worker| Seat { worker, batches });
    job.attempt = job.attempt.saturating_add(1);
    let (now, random) = (Instant::now(), rand::random::<f64>());
    match &outcome {
        Outcome::Delivered { .. } => shared.destination.succeeded(),
        Outcome::Failed(failure) => shared.destination.failed(failure, &shared.retry, now, random),
        Outcome::Died(_) => {}
    }
    // What follows may have to wait for the host's own disk, and others deliver meanwhile.
    drop(permit);
    if seat.is_some() {
        shared.health.survived();
    }
    match outcome {
        Outcome::Delivered { rejected } => {
            let released = shared.health.delivered();
            if !released.is_empty() {
                tracing::info!(output = %shared.ending.output, outputs = ?released, "the plugin's quarantine is over: a batch got through");
                released.iter().for_each(|output| shared.metrics.plugin_quarantine_ended(output, BY_DELIVERY));
                shared.schedule.released();
            }
            shared.board.delivered();
            shared.ending.delivered(&job.batch, &delivery.portions, rejected).await;
        }
        Outcome::Failed(failure) => {
            seat = failed(&failure, job, delivery, seat, Moment { now, random }, number, shared).await;
        }
        Outcome::Died(death) => died(&death, fresh, job, delivery, Moment { now, random }, number, shared).await,
    }
    seat
}

/// When an attempt ended, and its share of chance: the batch's wait and the destination's pause are of one length, so that the batch
/// comes when it may be delivered.
#[derive(Clone, Copy)]
struct Moment {
    now: Instant,
    random: f64,
}

async fn failed(
    failure: &Failure,
    mut job: Job,
    delivery: Delivery,
    seat: Option<Seat>,
    ended: Moment,
    number: u32,
    shared: &Shared,
) -> Option<Seat> {
    let kind = failure.kind.as_str();
    shared.board.failed(kind, &failure.message);
    job.failures = job.failures.saturating_add(1);
    let wait = match decision::after_failure(failure, tried(&job), &shared.retry, ended.random) {
        Next::Dead { failure, reason, abandon: gives_up } => {
            let seat = if gives_up { abandon(seat, &delivery, number, shared).await } else { seat };
            shared.ending.dead(&job.batch, &delivery.portions, failure, &reason).await;
            return seat;
        }
        Next::Again(wait) => wait,
    };
    job.why = format!("{kind}: {}", failure.message);
    shared.metrics.retry(&shared.ending.output, kind);
    tracing::warn!(
        output = %shared.ending.output, batch = %job.batch.row.id, kind, attempt = job.attempt - 1,
        retry_in = ?wait, destination = shared.destination.name(), "not delivered: {}", failure.message
    );
    shared.schedule.again_at(ended.now + wait, job);
    seat
}

async fn died(
    death: &Death,
    fresh: bool,
    mut job: Job,
    delivery: Delivery,
    ended: Moment,
    number: u32,
    shared: &Shared,
) {
    let cause = death.cause.as_str();
    let output = &shared.ending.output;
    shared.board.failed(cause, &death.message);
    shared.metrics.worker_restart(output, cause);
    tracing::error!(
        output = %output, tenant = tenant_in(output), worker = number, batch = %job.batch.row.id, class = cause,
        plugin = shared.plugin.descriptor().name, digest = shared.plugin.digest(),
        limit = death.limit.as_ref().map(|limit| limit.name.as_str()),
        most = death.limit.as_ref().map(|limit| limit.limit), current = death.limit.as_ref().map(|limit| limit.current),
        requested = death.limit.as_ref().map(|limit| limit.requested), last_log = ?death.last_log, "the plugin's store is gone: {}", death.message
    );
    let pause = shared.health.store_lost();
    job.deaths = job.deaths.saturating_add(1);
    job.failures = job.failures.saturating_add(1);
    let verdict = death.cause.blames_the_batch().then(|| {
        job.fresh_deaths = job.fresh_deaths.saturating_add(u32::from(fresh));
        shared.health.died(job.fresh_deaths, ended.now)
    });
    let wait = match decision::after_death(death, verdict, tried(&job), &shared.retry, ended.random) {
        Next::Dead { failure, reason, abandon: gives_up } => {
            if gives_up {
                abandon(None, &delivery, number, shared).await;
            }
            shared.ending.dead(&job.batch, &delivery.portions, failure, &reason).await;
            rest(pause, number, shared).await;
            return;
        }
        Next::Again(wait) => wait,
    };
    if verdict == Some(Verdict::Hold) {
        tracing::error!(
            output = %output, digest = shared.plugin.digest(),
            "the plugin dies of whatever it is given: it is quarantined, its batches are kept, and one is tried every {PROBE_EVERY:?}"
        );
    }
    job.why = format!("{cause}: {}", death.message);
    shared.metrics.retry(output, cause);
    shared.schedule.again_at(ended.now + wait, job);
    rest(pause, number, shared).await;
}

/// Before another store is made where the last ones were lost one after the other.
async fn rest(pause: Duration, number: u32, shared: &Shared) {
    if pause > Duration::ZERO && !shared.schedule.is_stopping() {
        shared.board.worker(number, WorkerState::Starting);
        tokio::time::sleep(pause).await;
    }
}

/// What the decision goes by. The job's attempt is the next one already.
fn tried(job: &Job) -> Tried {
    let attempts = job.attempt.saturating_sub(1);
    Tried { attempts, failures: job.failures, fresh_deaths: job.fresh_deaths, age: batch_age(job) }
}

fn batch_age(job: &Job) -> Duration {
    Duration::from_nanos(u64::try_from(now_ns().saturating_sub(job.batch.row.closed_ns)).unwrap_or(0))
}

/// Lets the component undo what it left half done outside, in a store of its own where the last one is gone.
async fn abandon(seat: Option<Seat>, delivery: &Delivery, number: u32, shared: &Shared) -> Option<Seat> {
    let (worker, batches) = match seat {
        Some(seat) => (Some(seat.worker), seat.batches),
        None => (shared.plugin.start(context(number, shared)).await.ok().map(|(worker, _plan)| worker), 0),
    };
    let worker = match worker {
        Some(worker) => worker.abandon(delivery.clone()).await,
        None => None,
    };
    if worker.is_none() {
        tracing::warn!(
            output = %shared.ending.output, worker = number, batch = %delivery.id,
            "the plugin could not give the batch up in order; something may be left at the destination"
        );
    }
    worker.map(|worker| Seat { worker, batches })
}
