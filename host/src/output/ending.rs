//! How a batch ends: its dead letters are on the disk before it leaves the queue, and it leaves the queue in one step.
//!
//! The host's own trouble (a full disk) never ends a batch: each step is tried until it is done. A stop in between leaves the batch
//! in the queue; the next start delivers it again, and finds its own object there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::dead_letter::{DeadLetterError, DeadLetters, Letter};
use crate::fair::Tenant;
use crate::journal::{Journal, ReadError};
use crate::queue::{Batch, Queue};
use crate::record::Portion;
use crate::telemetry::Metrics;

/// How long an ending waits before it tries again where the host itself is in trouble (its disk, its state).
const HOST_TROUBLE_PAUSE: Duration = Duration::from_millis(500);

/// The destination will never take it.
pub(super) const REJECTED: &str = "rejected";
/// The batch's time is over.
pub(super) const RETRY_EXPIRED: &str = "retry_expired";
/// Its plugin is quarantined, and the output's policy is not to wait.
pub(super) const QUARANTINED: &str = "quarantined";
/// Lost on disk after the batch closed.
pub(super) const DAMAGED: &str = "damaged";

#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) output: Arc<str>,
    pub(crate) queue: Queue,
    pub(crate) journal: Journal,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) metrics: Metrics,
    /// Records that became dead letters since the start.
    pub(crate) dead: Arc<AtomicU64>,
}

/// What an attempt was made with.
type Portions = Arc<[Portion]>;

/// Which records become dead letters.
#[derive(Debug, Clone)]
enum Dead {
    /// All, for one reason.
    All(String),
    /// These, ascending.
    Some(Vec<(u32, Arc<str>)>),
}

impl Ending {
    /// The destination has confirmed the batch, but for the rejected records.
    pub(crate) async fn delivered(&self, batch: &Batch, portions: &Portions, rejected: Vec<(u32, Arc<str>)>) {
        let (records, bytes) = totals(portions);
        let confirmed = records.saturating_sub(u64::try_from(rejected.len()).unwrap_or(u64::MAX));
        let first = rejected.first().map(|(_, reason)| Arc::clone(reason));
        let refused = if rejected.is_empty() {
            0
        } else {
            self.write_letters(batch, portions, REJECTED, Dead::Some(rejected)).await
        };
        self.settle(batch).await;
        self.metrics.delivered(&self.output, confirmed, bytes);
        self.count_lost(batch, confirmed + refused);
        if let Some(reason) = first.filter(|_| refused > 0) {
            self.count_dead(REJECTED, refused);
            tracing::warn!(
                output = %self.output, batch = %batch.row.id, records, rejected = refused,
                "a batch is delivered without its rejected records, which are now dead letters (see `wharf dead-letter list`); the first: {reason}"
            );
        }
        tracing::debug!(output = %self.output, batch = %batch.row.id, records, bytes, rejected = refused, "delivered");
    }

    /// The batch cannot be delivered: every record becomes a dead letter. `failure` is one of a few fixed words.
    pub(crate) async fn dead(&self, batch: &Batch, portions: &Portions, failure: &'static str, reason: &str) {
        let records = self.write_letters(batch, portions, failure, Dead::All(reason.to_owned())).await;
        self.settle(batch).await;
        self.count_dead(failure, records);
        self.count_lost(batch, records);
        tracing::error!(
            output = %self.output, batch = %batch.row.id, records, failure,
            "the batch is now dead letters (see `wharf dead-letter list`): {reason}"
        );
    }

    /// Every chunk of the batch was set aside as damaged: there is nothing to deliver. The journal has named them.
    pub(crate) async fn nothing_left(&self, batch: &Batch) {
        tracing::error!(
            output = %self.output, batch = %batch.row.id,
            "nothing of the batch is left to deliver: its chunks were damaged on disk and are in quarantine/"
        );
        self.settle(batch).await;
        self.count_lost(batch, 0);
    }

    fn count_dead(&self, failure: &str, records: u64) {
        self.dead.fetch_add(records, Ordering::Relaxed);
        self.metrics.rejected(&self.output, failure, records);
    }

    /// Counts what was neither delivered nor could be kept as dead letters, since its chunk was damaged on disk after the batch closed.
    fn count_lost(&self, batch: &Batch, accounted: u64) {
        let lost = totals(&batch.portions).0.saturating_sub(accounted);
        if lost > 0 {
            self.metrics.dropped(&self.output, DAMAGED, lost);
        }
    }

    async fn settle(&self, batch: &Batch) {
        let (queue, again) = (self.queue.clone(), batch.clone());
        let trouble = "a batch is delivered but not yet settled; trying until it is";
        self.until_done(batch, trouble, move || queue.settle(&again)).await;
    }

    /// Gives how many were written: what is damaged on disk cannot be.
    async fn write_letters(&self, batch: &Batch, portions: &Portions, failure: &'static str, dead: Dead) -> u64 {
        let (this, again, portions) = (self.clone(), batch.clone(), Arc::clone(portions));
        let trouble = "dead letters could not be written; trying until they are";
        self.until_done(batch, trouble, move || this.write_letters_once(&again, &portions, failure, &dead)).await
    }

    /// Tries a step that blocks on the disk until it is done. Its trouble is said once.
    async fn until_done<T, E>(
        &self,
        batch: &Batch,
        trouble: &'static str,
        step: impl Fn() -> Result<T, E> + Clone + Send + 'static,
    ) -> T
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let mut said = false;
        loop {
            match Tenant::of(&self.output).on_disk(step.clone()).await {
                Ok(Ok(done)) => return done,
                Ok(Err(cause)) if !said => {
                    said = true;
                    tracing::error!(output = %self.output, batch = %batch.row.id, %cause, "{trouble}");
                }
                Ok(Err(_)) => {}
                Err(cause) => tracing::error!(output = %self.output, batch = %batch.row.id, %cause, "{trouble}"),
            }
            tokio::time::sleep(HOST_TROUBLE_PAUSE).await;
        }
    }

    fn write_letters_once(
        &self,
        batch: &Batch,
        portions: &Portions,
        failure: &str,
        dead: &Dead,
    ) -> Result<u64, LettersError> {
        let mut writer = self.dead_letters.writer(&self.output, batch.row.id, failure)?;
        let mut number: u64 = 0;
        let mut wanted = match dead {
            Dead::All(_) => None,
            Dead::Some(records) => Some(records.iter().peekable()),
        };
        for portion in portions.iter() {
            let chunk = match self.journal.read_portion(portion) {
                Ok(chunk) => chunk,
                // Damaged on disk and set aside: the others go on. Numbers stay those of the attempt.
                Err(ReadError::Missing(_) | ReadError::Corrupt { .. }) => {
                    number += u64::from(portion.records());
                    continue;
                }
                Err(cause @ ReadError::Io { .. }) => return Err(LettersError::Read(cause)),
            };
            for record in chunk.iter() {
                let reason = match (&mut wanted, dead) {
                    (None, Dead::All(reason)) => Some(reason.as_str()),
                    (Some(wanted), _) => {
                        // Those of chunks that are gone are behind us.
                        while wanted.next_if(|(n, _)| u64::from(*n) < number).is_some() {}
                        wanted.next_if(|(n, _)| u64::from(*n) == number).map(|(_, reason)| &**reason)
                    }
                    (None, Dead::Some(_)) => None,
                };
                if let Some(reason) = reason {
                    writer.record(&Letter {
                        record: number,
                        time_ns: record.time_ns,
                        tag: &portion.meta.tag,
                        kind: portion.meta.kind,
                        body: record.body,
                        reason,
                    })?;
                }
                number += 1;
            }
        }
        Ok(writer.finish()?)
    }
}

/// Why dead letters could not be written.
#[derive(Debug, thiserror::Error)]
enum LettersError {
    #[error(transparent)]
    Write(#[from] DeadLetterError),
    #[error(transparent)]
    Read(ReadError),
}

fn totals(portions: &Portions) -> (u64, u64) {
    let records = portions.iter().map(|portion| u64::from(portion.records())).sum();
    (records, portions.iter().map(Portion::body_bytes).sum())
}
