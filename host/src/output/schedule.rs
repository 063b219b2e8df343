//! Which batch a worker takes next: one whose wait is over, oldest first, else a new one from the queue.
//!
//! While the destination is down no new batch is drawn: those that wait are enough to probe with, and what stays in
//! the queue can still be dropped by policy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::queue::{Batch, Queue};

use super::destination::Destination;

/// A batch and what has happened to it in this process.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) batch: Batch,
    /// The attempt that comes next, from 1. A batch restored at start begins with 2: it may have been tried before.
    pub(crate) attempt: u32,
    /// Failures so far, for the back-off.
    pub(crate) failures: u32,
    /// Stores that it ended, of any age: it is given a fresh one next.
    pub(crate) deaths: u32,
    /// Stores that had done nothing else before and that it ended.
    pub(crate) fresh_deaths: u32,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    queue: Queue,
    destination: Arc<Destination>,
    /// By the batch's number: the oldest first.
    waiting: Mutex<BTreeMap<u64, (Instant, Job)>>,
    changed: Notify,
    stopping: AtomicBool,
}

enum Pick {
    Job(Box<Job>),
    /// Nothing due; the earliest wait ends then.
    Until(Instant),
    Nothing,
}

impl Schedule {
    pub(crate) fn new(queue: Queue, destination: Arc<Destination>) -> Self {
        Self { queue, destination, waiting: Mutex::default(), changed: Notify::new(), stopping: AtomicBool::new(false) }
    }

    /// Puts a job back until `when`.
    pub(crate) fn again_at(&self, when: Instant, job: Job) {
        self.lock().insert(job.batch.row.number, (when, job));
        self.changed.notify_waiters();
    }

    /// From now on a worker that finds nothing to do is done.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (Instant, Job)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pick(&self, now: Instant) -> Pick {
        let mut waiting = self.lock();
        let due = waiting.iter().find(|(_, (when, _))| *when <= now).map(|(number, _)| *number);
        if let Some((_, job)) = due.and_then(|number| waiting.remove(&number)) {
            return Pick::Job(Box::new(job));
        }
        waiting.values().map(|(when, _)| *when).min().map_or(Pick::Nothing, Pick::Until)
    }

    /// The next job. None once the output stops and nothing is left to try.
    pub(crate) async fn next(&self) -> Option<Job> {
        let mut drained = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = match self.pick(Instant::now()) {
                Pick::Job(job) => return Some(*job),
                Pick::Until(until) => Some(until),
                Pick::Nothing => None,
            };
            if drained && until.is_none() {
                if self.stopping.load(Ordering::Acquire) {
                    return None;
                }
                changed.await;
                continue;
            }
            let draw = !drained && (until.is_none() || !self.destination.is_down());
            let wait_over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = wait_over => {}
                batch = self.queue.next_batch(), if draw => match batch {
                    Some(batch) => return Some(Job::new(batch)),
                    None => drained = true,
                },
                () = &mut changed => {}
            }
        }
    }
}

impl Job {
    pub(crate) fn new(batch: Batch) -> Self {
        let attempt = if batch.restored { 2 } else { 1 };
        Self { batch, attempt, failures: 0, deaths: 0, fresh_deaths: 0 }
    }
}
