//! A worker: one store, one batch at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::plugin::{Death, Delivery, Failure, FailureKind, Outcome, StartError, Worker, WorkerContext};
use crate::record::now_ns;

use super::poison::{PROBE_EVERY, Verdict};
use super::schedule::Job;
use super::status::WorkerState;
use super::{HOST_TROUBLE_PAUSE, Shared, backoff};

/// Waits between attempts to start a store: 200 ms doubled up to 5 s.
const RESTART_FIRST: Duration = Duration::from_millis(200);
const RESTART_LAST: Duration = Duration::from_secs(5);
/// A misconfigured destination is not asked more often than this: it takes a person to mend it.
const MISCONFIGURED_WAIT: Duration = Duration::from_secs(10);

/// A store and how many batches it has seen.
struct Seat {
    worker: Worker,
    batches: u64,
}

/// Takes batches until the output stops.
pub(super) async fn run(number: u32, shared: Arc<Shared>) {
    let mut seat = None;
    loop {
        shared.board.worker(number, WorkerState::Idle);
        let Some(job) = shared.schedule.next().await else { break };
        // A batch that ended a store gets a fresh one, so that the next death tells something.
        if job.deaths > 0 && seat.as_ref().is_some_and(|seat: &Seat| seat.batches > 0) {
            seat = None;
        }
        let Some(ready) = ensure(seat.take(), number, &shared).await else {
            shared.schedule.again_at(Instant::now() + RESTART_LAST, job);
            continue;
        };
        shared.board.worker(number, WorkerState::Paused);
        let permit = shared.destination.permit().await;
        shared.board.worker(number, WorkerState::Busy);
        seat = attempt(ready, job, number, &shared).await;
        drop(permit);
    }
    if let Some(seat) = seat {
        seat.worker.close().await;
    }
    shared.board.worker(number, WorkerState::Stopped);
}

/// The store that is there, or a new one. None where the component cannot even be started any more (it could when the
/// output was set up): the reason is shown, and it is tried again later.
async fn ensure(seat: Option<Seat>, number: u32, shared: &Shared) -> Option<Seat> {
    if seat.is_some() {
        return seat;
    }
    shared.board.worker(number, WorkerState::Starting);
    let mut wait = RESTART_FIRST;
    loop {
        let context = WorkerContext { worker: number, ..shared.context.clone() };
        match shared.plugin.start(context).await {
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
        if wait > RESTART_LAST {
            return None;
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}

/// One attempt at one batch. Gives the store back if it lives.
async fn attempt(seat: Seat, mut job: Job, number: u32, shared: &Arc<Shared>) -> Option<Seat> {
    // Chunks that were found damaged are set aside and counted by the journal; the batch goes on without them.
    let chunks: Arc<[_]> = job.batch.chunks.iter().filter(|(id, _)| shared.journal.contains(*id)).cloned().collect();
    if chunks.is_empty() {
        shared.ending.nothing_left(&job.batch).await;
        return Some(seat);
    }
    let delivery = Delivery { id: job.batch.row.id, attempt: job.attempt, chunks, journal: shared.journal.clone() };
    let fresh = seat.batches == 0;
    let batches = seat.batches + 1;
    let (outcome, worker) = seat.worker.deliver(delivery.clone()).await;
    let mut seat = worker.map(|worker| Seat { worker, batches });
    job.attempt = job.attempt.saturating_add(1);
    match outcome {
        Outcome::Delivered { rejected } => {
            shared.destination.succeeded();
            shared.health.delivered();
            shared.board.delivered();
            shared.ending.delivered(&job.batch, &delivery.chunks, rejected).await;
        }
        Outcome::Failed(failure) => {
            seat = failed(failure, job, delivery, seat, number, shared).await;
        }
        Outcome::Died(death) => died(&death, fresh, job, delivery, number, shared).await,
    }
    seat
}

async fn failed(
    failure: Failure,
    mut job: Job,
    delivery: Delivery,
    seat: Option<Seat>,
    number: u32,
    shared: &Arc<Shared>,
) -> Option<Seat> {
    let kind = kind_name(failure.kind);
    let random = rand::random::<f64>();
    let now = Instant::now();
    shared.destination.failed(&failure, &shared.retry, now, random);
    shared.board.failed(kind, &failure.message);
    if failure.kind == FailureKind::Rejected {
        shared.ending.dead(&job.batch, &delivery.chunks, "rejected", &failure.message).await;
        return seat;
    }
    if too_old(&job, shared) {
        let seat = abandon(seat, delivery.clone(), number).await;
        let reason = format!("given up after {} tries in {}: {}", job.attempt - 1, age_text(&job), failure.message);
        shared.ending.dead(&job.batch, &delivery.chunks, "retry_expired", &reason).await;
        return seat;
    }
    job.failures = job.failures.saturating_add(1);
    let mut wait = backoff::wait(&shared.retry, job.failures, random);
    if failure.kind == FailureKind::Misconfigured {
        wait = wait.max(MISCONFIGURED_WAIT.min(shared.retry.max));
    }
    if let Some(asked) = failure.retry_after {
        wait = wait.max(asked.min(shared.retry.max));
    }
    shared.metrics.retry(&shared.ending.output, kind);
    tracing::warn!(
        output = %shared.ending.output, batch = %job.batch.row.id, kind, attempt = job.attempt - 1,
        retry_in = ?wait, destination = shared.destination.name(), "not delivered: {}", failure.message
    );
    shared.schedule.again_at(now + wait, job);
    seat
}

async fn died(death: &Death, fresh: bool, mut job: Job, delivery: Delivery, number: u32, shared: &Arc<Shared>) {
    let cause = death.cause.as_str();
    let output = &shared.ending.output;
    shared.board.failed(cause, &death.message);
    shared.metrics.worker_restart(output, cause);
    tracing::error!(
        output = %output, worker = number, batch = %job.batch.row.id, cause, digest = shared.plugin.digest(),
        last_log = ?death.last_log, "the plugin's store is gone: {}", death.message
    );
    job.deaths = job.deaths.saturating_add(1);
    job.failures = job.failures.saturating_add(1);
    let blames_the_batch = !matches!(death.cause, crate::plugin::DeathCause::Timeout | crate::plugin::DeathCause::Host);
    if fresh && blames_the_batch {
        job.fresh_deaths = job.fresh_deaths.saturating_add(1);
    }
    if too_old(&job, shared) {
        let reason = format!("given up after {} tries in {}: {}", job.attempt - 1, age_text(&job), death.message);
        shared.ending.dead(&job.batch, &delivery.chunks, "retry_expired", &reason).await;
        return;
    }
    let verdict = if blames_the_batch { shared.health.died(job.fresh_deaths) } else { Verdict::Again };
    let wait = match verdict {
        Verdict::DeadLetter => {
            let reason = format!("ended {} fresh stores of the plugin: {}", job.fresh_deaths, death.message);
            shared.ending.dead(&job.batch, &delivery.chunks, cause, &reason).await;
            return;
        }
        Verdict::Hold => {
            tracing::error!(
                output = %output, digest = shared.plugin.digest(),
                "the plugin dies of whatever it is given: it is quarantined, its batches are kept, and one is tried every {PROBE_EVERY:?}"
            );
            PROBE_EVERY
        }
        Verdict::Again => backoff::wait(&shared.retry, job.failures, rand::random::<f64>()),
    };
    shared.metrics.retry(output, cause);
    shared.schedule.again_at(Instant::now() + wait, job);
}

/// Whether the batch's time is over.
fn too_old(job: &Job, shared: &Shared) -> bool {
    batch_age(job) >= shared.retry.max_age
}

fn batch_age(job: &Job) -> Duration {
    Duration::from_nanos(u64::try_from(now_ns().saturating_sub(job.batch.row.closed_ns)).unwrap_or(0))
}

fn age_text(job: &Job) -> String {
    format!("{} s", batch_age(job).as_secs())
}

/// Lets the component undo what it left half done outside.
async fn abandon(seat: Option<Seat>, delivery: Delivery, number: u32) -> Option<Seat> {
    let seat = seat?;
    let batches = seat.batches;
    let batch = delivery.id;
    let worker = seat.worker.abandon(delivery).await;
    if worker.is_none() {
        tracing::warn!(worker = number, %batch, "the plugin's store ended while it gave the batch up; something may be left at the destination");
    }
    worker.map(|worker| Seat { worker, batches })
}

fn kind_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Throttled => "throttled",
        FailureKind::Transient => "transient",
        FailureKind::Auth => "auth",
        FailureKind::Misconfigured => "misconfigured",
        FailureKind::Rejected => "rejected",
    }
}

/// How long to wait when the host's own disk is in the way.
pub(super) async fn pause_for_host() {
    tokio::time::sleep(HOST_TROUBLE_PAUSE).await;
}
