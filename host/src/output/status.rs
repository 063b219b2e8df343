//! How an output is: its workers' states and its last failure, for health and metrics.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::queue::{Fullness, Queue};
use crate::record::now_ns;
use crate::telemetry::Metrics;

use super::schedule::Retries;

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// Building its store.
    Starting,
    /// Waiting for a batch; there is none.
    Idle,
    /// Waiting for a batch; there are some, but each has failed and waits for its next try.
    WaitingForRetry,
    /// Waiting until its destination may be tried.
    Paused,
    /// Delivering.
    Busy,
    /// Done for good.
    Stopped,
}

impl WorkerState {
    /// As metrics and messages have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::WaitingForRetry => "waiting_for_retry",
            Self::Paused => "paused",
            Self::Busy => "busy",
            Self::Stopped => "stopped",
        }
    }
}

/// The last delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// `throttled`, `auth`, `trap`, …
    pub kind: String,
    /// For a person.
    pub message: String,
    /// When, nanoseconds since 1970 UTC.
    pub at_ns: i64,
}

/// How an output is.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputStatus {
    /// Its name.
    pub output: Arc<str>,
    /// Its workers.
    pub workers: Vec<WorkerState>,
    /// Whether its plugin is quarantined.
    pub quarantined: bool,
    /// When one of its batches may be tried, where it is.
    pub next_probe: Option<Instant>,
    /// Other outputs in which it dies of whatever it is given, where it is quarantined for that.
    pub quarantined_with: Vec<Arc<str>>,
    /// The last failure, until a batch is delivered.
    pub last_failure: Option<LastFailure>,
    /// Batches that wait for another try.
    pub retries: Option<Retries>,
    /// Bytes of chunks that are not settled.
    pub queue_bytes: u64,
    /// Records that are not settled.
    pub queue_records: u64,
    /// Its queue's share of the disk, while sources are turned away because that is used up.
    pub full: Option<Fullness>,
    /// Age of the oldest undelivered record, seconds; 0 where there is none.
    pub oldest_age_seconds: f64,
}

#[derive(Debug)]
pub(crate) struct StatusBoard {
    output: Arc<str>,
    metrics: Metrics,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    workers: Vec<WorkerState>,
    last_failure: Option<LastFailure>,
}

impl StatusBoard {
    pub(crate) fn new(output: Arc<str>, workers: u32, metrics: Metrics) -> Self {
        let workers = (0..workers).map(|_| WorkerState::Starting).collect();
        Self { output, metrics, inner: Mutex::new(Inner { workers, last_failure: None }) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn worker(&self, number: u32, state: WorkerState) {
        let mut inner = self.lock();
        let Some(slot) = usize::try_from(number).ok().and_then(|n| inner.workers.get_mut(n)) else {
            // There are fewer workers now; this one finishes what it has in hand.
            self.metrics.worker_is_gone(&self.output, number);
            return;
        };
        let before = std::mem::replace(slot, state);
        if before != state {
            self.metrics.worker_state(&self.output, number, before.as_str(), false);
        }
        self.metrics.worker_state(&self.output, number, state.as_str(), true);
    }

    /// There are so many workers from now on. What the others show goes when they end.
    pub(crate) fn resize(&self, workers: u32) {
        let mut inner = self.lock();
        let before = inner.workers.len();
        inner.workers.resize(usize::try_from(workers).unwrap_or(before), WorkerState::Starting);
        for gone in inner.workers.len()..before {
            self.metrics.worker_is_gone(&self.output, u32::try_from(gone).unwrap_or(u32::MAX));
        }
    }

    pub(crate) fn failed(&self, kind: &str, message: &str) {
        let failure = LastFailure { kind: kind.to_owned(), message: message.to_owned(), at_ns: now_ns() };
        self.lock().last_failure = Some(failure);
    }

    pub(crate) fn delivered(&self) {
        self.lock().last_failure = None;
    }

    pub(crate) fn status(&self, queue: &Queue, retries: Option<Retries>, quarantined: bool) -> OutputStatus {
        let inner = self.lock();
        let age_ns = queue.oldest_arrival_ns().map_or(0, |arrival| now_ns().saturating_sub(arrival).max(0));
        #[expect(clippy::cast_precision_loss, reason = "an age in seconds for people and graphs")]
        let oldest_age_seconds = age_ns as f64 / 1e9;
        OutputStatus {
            output: Arc::clone(&self.output),
            workers: inner.workers.clone(),
            quarantined,
            next_probe: None,
            quarantined_with: vec![],
            last_failure: inner.last_failure.clone(),
            retries,
            queue_bytes: queue.bytes(),
            queue_records: queue.records(),
            full: queue.fullness(),
            oldest_age_seconds,
        }
    }
}
