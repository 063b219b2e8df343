//! Which batch a worker takes next: the one whose wait ended first, else a new one from the queue. Not the oldest: where a destination is tried with
//! one batch at a time, two that never get through would be due in turn for ever, and no other be tried again.
//!
//! While the destination is down a new batch is drawn only where each that waits was tried often enough to tell: those are enough to
//! probe with, and what stays in the queue can still be dropped by policy. But one batch that never gets through must not pass for a
//! destination that is down, and keep all others from being tried. While the plugin is quarantined, nothing is tried but its probe.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::OnQuarantine;
use crate::fair::{Tenant, Wait, WaitFor};
use crate::queue::{Batch, Queue};

use super::destination::{DOWN_AFTER, Destination};
use super::poison::PluginHealth;

/// Batches that wait for another try, past which no new one is drawn: a destination that refuses so many is not helped by one more, and the
/// queue's policy decides about the rest.
pub(super) const MOST_WAITING: usize = 256;

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
    /// How the last attempt ended, for a person.
    pub(crate) why: String,
    /// It is not tried: its plugin is quarantined, and the output's policy is not to wait.
    pub(crate) given_up: bool,
}

/// The batches that wait for another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// How many.
    pub batches: usize,
    /// When the first of them is tried.
    pub next: Instant,
    /// How its last attempt ended.
    pub why: String,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    queue: Queue,
    destination: Arc<Destination>,
    health: Arc<PluginHealth>,
    on_quarantine: OnQuarantine,
    again: Arc<Again>,
    stopping: AtomicBool,
    /// Other workers take over: these take nothing more.
    retired: CancellationToken,
}

/// The batches that wait for another try: they stay when the output's workers are replaced.
#[derive(Debug, Default)]
pub(crate) struct Again {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

/// Until when each batch waits, by its number.
type Waiting = BTreeMap<u64, (Instant, Job, Wait)>;

#[derive(Debug)]
pub(super) enum Pick {
    Job(Box<Job>),
    /// The plugin is quarantined; its next probe is then.
    Held(Instant),
    /// Nothing due.
    Wait {
        /// The earliest wait ends then.
        until: Option<Instant>,
        /// Whether a new batch may be drawn.
        draw: bool,
    },
}

impl Schedule {
    pub(crate) fn new(
        queue: Queue,
        destination: Arc<Destination>,
        health: Arc<PluginHealth>,
        on_quarantine: OnQuarantine,
        again: Arc<Again>,
    ) -> Self {
        Self {
            queue,
            destination,
            health,
            on_quarantine,
            again,
            stopping: AtomicBool::new(false),
            retired: CancellationToken::new(),
        }
    }

    /// Whether batches become dead letters while the plugin is quarantined.
    fn gives_up(&self) -> bool {
        self.on_quarantine == OnQuarantine::DeadLetter
    }

    /// Puts a job back until `when`; where others have taken over meanwhile, for these to try at once, as all that waited then.
    pub(crate) fn again_at(&self, when: Instant, job: Job) {
        let when = if self.retired.is_cancelled() { when.min(Instant::now()) } else { when };
        let wait = Tenant::of(self.queue.output()).waits(WaitFor::Retry);
        self.lock().insert(job.batch.row.number, (when, job, wait));
        self.again.changed.notify_waiters();
    }

    /// The plugin's quarantine is over: what was held may be tried.
    pub(crate) fn released(&self) {
        self.again.changed.notify_waiters();
    }

    /// From now on a worker that finds nothing to do is done.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
        self.again.changed.notify_waiters();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Other workers take over, with what waits here: these take nothing more, and end.
    pub(crate) fn retire(&self) -> Arc<Again> {
        self.retired.cancel();
        self.again.changed.notify_waiters();
        Arc::clone(&self.again)
    }

    /// Cancelled when other workers take over.
    pub(crate) fn retired(&self) -> &CancellationToken {
        &self.retired
    }

    /// The output is another one now, or a person says so: what waits is tried at once. Gives how many. Where the component is another one too, what
    /// the last one died of says nothing about it.
    pub(crate) fn begin_anew(&self, other_component: bool) -> usize {
        let now = Instant::now();
        let mut waiting = self.lock();
        for (when, job, _) in waiting.values_mut() {
            *when = now;
            if other_component {
                (job.deaths, job.fresh_deaths) = (0, 0);
            }
        }
        let batches = waiting.len();
        drop(waiting);
        // The new ones may have looked already, and wait for what was then the time.
        self.again.changed.notify_waiters();
        batches
    }

    /// What waits for another try.
    pub(crate) fn retries(&self) -> Option<Retries> {
        let held = self.health.held_until(Instant::now());
        let waiting = self.lock();
        let (when, job, _) = waiting.values().min_by_key(|(when, job, _)| (*when, job.batch.row.number))?;
        let why = if held.is_some() {
            "its plugin is quarantined, and tried with one batch now and then".to_owned()
        } else {
            job.why.clone()
        };
        Some(Retries { batches: waiting.len(), next: held.map_or(*when, |held| held.max(*when)), why })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.again.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `draw_first`: whether a new batch is better than one whose wait is over, where the destination is down and each that waits was
    /// tried often: as soon as two never get through, there is always one whose wait is over.
    pub(super) fn pick(&self, now: Instant, draw_first: bool) -> Pick {
        let mut waiting = self.lock();
        if let Some(probe) = self.health.held_until(now) {
            return Pick::Held(probe);
        }
        let down = self.destination.is_down();
        let probed = waiting.values().all(|(_, job, _)| job.failures >= DOWN_AFTER);
        let draw = waiting.len() < MOST_WAITING && (!down || probed);
        let first = waiting.iter().map(|(number, (when, ..))| (*when, *number)).min();
        if let Some((_, number)) = first.filter(|(when, _)| *when <= now)
            && !(draw_first && down && draw)
            && self.health.may_try(now)
            && let Some((_, job, _)) = waiting.remove(&number)
        {
            return Pick::Job(Box::new(job));
        }
        let until = first.map(|(when, _)| when);
        Pick::Wait { until, draw }
    }

    /// The next job. None once the output stops and nothing is left to try; a quarantined plugin is not waited for then. Whenever it begins to
    /// wait it tells whether any batch waits for another try.
    pub(crate) async fn next(&self, tell: impl Fn(bool)) -> Option<Job> {
        let (mut drained, mut draw_first) = (false, true);
        loop {
            let changed = self.again.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.retired.is_cancelled() {
                return None;
            }
            let released = self.health.released();
            tokio::pin!(released);
            released.as_mut().enable();
            let delivery_ends = self.destination.delivery_ends();
            tokio::pin!(delivery_ends);
            delivery_ends.as_mut().enable();
            let stopping = self.is_stopping();
            let (until, draw) = match self.pick(Instant::now(), draw_first && !drained) {
                Pick::Job(job) => return Some(*job),
                Pick::Held(_) if stopping => return None,
                Pick::Held(probe) if self.gives_up() => match self.lock().pop_first() {
                    Some((_, (_, job, _))) => return Some(Job { given_up: true, ..job }),
                    None => (Some(probe), !drained),
                },
                Pick::Held(probe) => (Some(probe), false),
                Pick::Wait { until: None, .. } if stopping && drained => return None,
                Pick::Wait { until, draw } => (until, draw && !drained),
            };
            tell(until.is_some());
            let wait_over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                batch = self.queue.next_batch(), if draw => match batch {
                    Some(batch) => {
                        let (job, now) = (Job::new(batch), Instant::now());
                        if self.health.may_try(now) {
                            return Some(job);
                        }
                        if self.gives_up() {
                            return Some(Job { given_up: true, ..job });
                        }
                        self.again_at(now, job);
                    }
                    None => drained = true,
                },
                () = wait_over => draw_first = false,
                () = &mut changed => {}
                () = &mut released => {}
                // The destination may be up again, so that a new batch may be drawn.
                () = &mut delivery_ends, if !draw => {}
            }
        }
    }
}

impl Job {
    pub(crate) fn new(batch: Batch) -> Self {
        let attempt = if batch.restored { 2 } else { 1 };
        Self { batch, attempt, failures: 0, deaths: 0, fresh_deaths: 0, why: String::new(), given_up: false }
    }
}
