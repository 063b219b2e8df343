//! The intake is the one door between sources and the journal: it routes a chunk by its tag and shares its records out to each output's
//! partitions, asks each output's queue for room, and appends. What it answers is what a source may acknowledge.
//!
//! A record that no output wants is counted as dropped (`no_output`) and is not kept; nor is its position, so it is read again
//! after a restart, when an output may want it.

mod line;
mod pattern;
mod routes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::tenant_in;
use crate::journal::Journal;
use crate::queue::{Admission, Ledger, Queue};
use crate::record::{Chunk, ChunkMeta, Position, Route};
use crate::state::StateError;
use crate::telemetry::Metrics;
use line::{Done, Granted, Line, Log, NotNow, Parcel};
use pattern::Pattern;
use routes::Routes;
pub use routes::{EmptyMatch, Routing};

/// What a sender is told to wait when an output's queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How soon the queues of a chunk are looked for anew, where one of them leaves.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Why records are dropped whose tag no output wants, as `wharf_dropped_records_total` has it, with an empty output.
pub const NO_OUTPUT: &str = "no_output";

/// Where sources hand chunks in. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    inner: Arc<Inner>,
    /// The source that this handle is for.
    source: Option<Arc<str>>,
    /// Nothing is taken in through this handle before it is cancelled.
    opened: Option<CancellationToken>,
}

struct Inner {
    routes: RwLock<Arc<Routes>>,
    line: Arc<Line>,
    ledger: Ledger,
    positions: Mutex<HashMap<Arc<str>, Vec<Position>>>,
    metrics: Metrics,
    stop: CancellationToken,
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A chunk on its way to the disk.
#[derive(Debug)]
pub struct Ticket {
    /// None: there is nothing to wait for.
    done: Option<Done>,
}

/// Why a chunk was not taken. None of it may be acknowledged; all of it may be handed in again.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    /// An output's queue is full (`when_full: block`), or the journal's own limit is reached.
    #[error("{what} is full")]
    Full {
        /// `output NAME`, or `the journal`.
        what: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk is full.
    #[error("the disk that holds the data directory is full")]
    DiskFull {
        /// When to try again.
        retry_after: Duration,
    },
    /// The journal could not take the chunk if it were empty: waiting is of no use.
    #[error("the records take {bytes} bytes in the journal, which may hold {limit} (journal.max_size)")]
    TooLarge {
        /// What the chunk takes.
        bytes: u64,
        /// What the journal may hold.
        limit: u64,
    },
    /// The disk failed.
    #[error("the journal could not be written: {0}")]
    Failed(String),
    /// Wharf is stopping.
    #[error("Wharf is stopping")]
    Stopping,
}

/// What is full where the journal is, by its own limit.
const JOURNAL: &str = "the journal";

impl Refused {
    /// Its kind, as `wharf_source_refused_requests_total` has it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Full { what, .. } if what == JOURNAL => "journal_full",
            Self::Full { .. } => "queue_full",
            Self::DiskFull { .. } => "disk_full",
            Self::TooLarge { .. } => "too_large",
            Self::Failed(_) => "journal_failed",
            Self::Stopping => "stopping",
        }
    }
}

/// Whether any of an output's patterns wants this tag.
#[must_use]
pub fn wants(patterns: &[String], tag: &str) -> bool {
    patterns.iter().any(|pattern| Pattern::new(pattern).matches(tag))
}

impl Intake {
    /// An intake before these outputs' queues. `positions` are those of all sources as they were found at start.
    ///
    /// # Errors
    /// Where a pattern is empty.
    pub fn new(
        routing: Routing,
        journal: Journal,
        ledger: Ledger,
        positions: Vec<Position>,
        metrics: Metrics,
    ) -> Result<Self, EmptyMatch> {
        Self::with(routing, Arc::new(journal), ledger, positions, metrics)
    }

    fn with(
        routing: Routing,
        log: Arc<dyn Log>,
        ledger: Ledger,
        positions: Vec<Position>,
        metrics: Metrics,
    ) -> Result<Self, EmptyMatch> {
        let mut by_source: HashMap<Arc<str>, Vec<Position>> = HashMap::new();
        for position in positions {
            by_source.entry(position.source.clone()).or_default().push(position);
        }
        let inner = Inner {
            routes: RwLock::new(Arc::new(Routes::new(routing)?)),
            line: Line::new(log),
            ledger,
            positions: Mutex::new(by_source),
            metrics,
            stop: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner), source: None, opened: None })
    }

    /// From now on records go by these routes. What is on its way goes by those that it began with.
    ///
    /// # Errors
    /// Where a pattern is empty; then nothing has changed.
    pub fn reroute(&self, routing: Routing) -> Result<(), EmptyMatch> {
        let routes = Arc::new(Routes::new(routing)?);
        *self.inner.routes.write().unwrap_or_else(PoisonError::into_inner) = routes;
        Ok(())
    }

    /// The same intake, for a source of this name: what comes in through it is counted as the source's. Without, it is
    /// counted as of the source that its positions name, or that its tag is named after.
    #[must_use]
    pub fn for_source(&self, name: &Arc<str>) -> Self {
        Self { source: Some(name.clone()), ..self.clone() }
    }

    /// The same intake, which takes nothing in before `opened` is cancelled: whoever waits goes on waiting, and who does not is told to come
    /// again. For a source that is started before it is sure that it will run.
    #[must_use]
    pub fn opened_by(&self, opened: CancellationToken) -> Self {
        Self { opened: Some(opened), ..self.clone() }
    }

    /// Hands a chunk in, waiting for room where outputs say `block` or the disk is full. When it returns, the chunk has its place: chunks
    /// of one caller keep their order, and one that the journal refuses is handed in again until it is taken, before
    /// anything that came later. Await the ticket for durability; several may be under way. Dropping the future before it
    /// returns takes nothing.
    ///
    /// # Errors
    /// Only where Wharf is stopping.
    pub async fn enqueue(&self, chunk: Chunk) -> Result<Ticket, Refused> {
        if let Some(opened) = &self.opened
            && self.inner.stop.run_until_cancelled(opened.cancelled()).await.is_none()
        {
            return Err(Refused::Stopping);
        }
        loop {
            let queues = self.queues_for(&chunk);
            match self.wait_in(chunk.clone(), &queues, false).await {
                Err(Refused::Full { .. }) => tokio::time::sleep(LOOK_AGAIN).await,
                taken => return taken,
            }
        }
    }
    /// The same, but never waits for room; and a chunk without positions that the journal refuses later is not handed in again:
    /// the ticket tells.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn try_enqueue(&self, chunk: Chunk) -> Result<Ticket, Refused> {
        if self.inner.stop.is_cancelled() {
            return Err(Refused::Stopping);
        }
        if self.opened.as_ref().is_some_and(|opened| !opened.is_cancelled()) {
            return Err(Refused::Full {
                what: "a reload is under way, and the source".into(),
                retry_after: RETRY_AFTER,
            });
        }
        let queues = self.queues_for(&chunk);
        if queues.is_empty() {
            return Ok(self.nobody_wants(&chunk));
        }
        // Before queues are asked: what they drop is counted, and a chunk that is refused comes again.
        if !self.inner.line.is_clear() {
            return Err(self.inner.line.refusal());
        }
        let (granted, routes) = self
            .inner
            .admit(&shares(&chunk, &queues), chunk.meta(), false)
            .map_err(|queue| Refused::Full { what: format!("output {}", queue.output()), retry_after: RETRY_AFTER })?;
        if routes.is_empty() {
            self.count_accepted(&chunk);
            return Ok(Ticket { done: None });
        }
        let keep = !chunk.meta().positions.is_empty();
        let parcel = Parcel { chunk: chunk.with_routes(routes), granted, keep };
        let counted = parcel.chunk.clone();
        match self.inner.line.join(parcel) {
            Ok(done) => {
                self.count_accepted(&counted);
                Ok(Ticket { done: Some(done) })
            }
            Err(NotNow::Behind(_)) => Err(self.inner.line.refusal()),
            Err(NotNow::Refused(refused)) => Err(refused),
        }
    }
    /// Hands a chunk in for one output, whatever that wants by its `match`, and waits for room whatever it does when
    /// it is full: for records that were kept aside and must not be dropped now.
    ///
    /// # Errors
    /// Where there is no such output, or Wharf is stopping.
    pub async fn enqueue_for(&self, output: &str, chunk: Chunk) -> Result<Ticket, Refused> {
        loop {
            let Some(queue) = self.inner.routes().queue(output) else {
                return Err(Refused::Failed(format!("there is no output {output}")));
            };
            match self.wait_in(chunk.clone(), &[queue], true).await {
                Err(Refused::Full { .. }) => tokio::time::sleep(LOOK_AGAIN).await,
                taken => return taken,
            }
        }
    }
    /// Whether an output of this name is configured.
    pub fn has_output(&self, output: &str) -> bool {
        self.inner.routes().queue(output).is_some()
    }
    /// Looks for the positions of a source that is about to start anew: it begins where it was, or one of its name.
    ///
    /// # Errors
    /// Where the state cannot be read.
    pub async fn find_positions(&self, source: &Arc<str>) -> Result<(), StateError> {
        let (ledger, owned) = (self.inner.ledger.clone(), source.clone());
        let found = tokio::task::spawn_blocking(move || ledger.positions(&owned)).await;
        let found = found.map_err(|fault| StateError::Invalid(fault.to_string()))??;
        self.inner.positions.lock().unwrap_or_else(PoisonError::into_inner).insert(source.clone(), found);
        Ok(())
    }
    /// The positions of a source as they were when it started.
    pub fn positions(&self, source: &str) -> Vec<Position> {
        let positions = self.inner.positions.lock().unwrap_or_else(PoisonError::into_inner);
        positions.get(source).cloned().unwrap_or_default()
    }
    /// Keeps positions that go with no record, such as the ends of files whose old content is left out. Whether they are on the disk.
    pub async fn keep(&self, positions: Vec<Position>) -> bool {
        let (ledger, count) = (self.inner.ledger.clone(), positions.len());
        match tokio::task::spawn_blocking(move || ledger.keep(&positions)).await {
            Ok(Ok(())) => true,
            Ok(Err(e)) => {
                tracing::warn!(source = ?self.source, positions = count, error = %e, "where files begin could not be kept yet; it is tried again");
                false
            }
            Err(_) => false,
        }
    }
    /// Forgets positions, for instance of files that are gone. Where that cannot be written they are there again after a restart.
    pub async fn forget(&self, source: &str, keys: Vec<String>) {
        if let Some(known) = self.inner.positions.lock().unwrap_or_else(PoisonError::into_inner).get_mut(source) {
            known.retain(|position| !keys.contains(&position.key));
        }
        let (ledger, owned) = (self.inner.ledger.clone(), source.to_owned());
        let forgotten = tokio::task::spawn_blocking(move || ledger.forget(&owned, &keys)).await;
        if let Ok(Err(e)) = forgotten {
            tracing::warn!(source, error = %e, "positions of what is gone could not be forgotten");
        }
    }
    /// A record was taken in by a source but lost a part, or was refused for good: counted as `wharf_source_discarded_records_total{source, reason}`.
    pub fn count_discarded(&self, source: &str, reason: &'static str, records: u64) {
        self.inner.metrics.discarded(source, reason, records);
    }
    /// A request was not taken, for one of a few fixed reasons: counted as `wharf_source_refused_requests_total{source, reason}`.
    pub fn count_refused(&self, source: &str, reason: &'static str) {
        self.inner.metrics.refused(source, reason);
    }
    /// Connections to a source were opened, or (with a minus) ended: they are `wharf_source_connections{source}`.
    pub fn count_connections(&self, source: &str, change: i64) {
        self.inner.metrics.connections(source, change);
    }
    /// Takes nothing from now on; what waits for room or for the disk is told so.
    pub fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.line.stop();
    }

    async fn wait_in(&self, chunk: Chunk, queues: &[Queue], never_drop: bool) -> Result<Ticket, Refused> {
        if queues.is_empty() {
            return Ok(self.nobody_wants(&chunk));
        }
        let joined = self.inner.stop.run_until_cancelled(self.inner.wait_for_place(&chunk, queues, never_drop)).await;
        let done = joined.unwrap_or(Err(Refused::Stopping))?;
        self.count_accepted(&chunk);
        Ok(Ticket { done })
    }

    /// The queues that want the chunk.
    fn queues_for(&self, chunk: &Chunk) -> Arc<[Queue]> {
        let tenant = self.source.as_deref().and_then(tenant_in);
        self.inner.routes().queues_for(tenant, &chunk.meta().tag)
    }

    fn nobody_wants(&self, chunk: &Chunk) -> Ticket {
        self.count_accepted(chunk);
        self.inner.metrics.dropped("", NO_OUTPUT, u64::from(chunk.meta().records));
        Ticket { done: None }
    }

    fn count_accepted(&self, chunk: &Chunk) {
        let meta = chunk.meta();
        let of_position = meta.positions.first().map(|position| &position.source);
        let source = self.source.as_ref().or(of_position).unwrap_or(&meta.tag);
        self.inner.metrics.accepted(source, u64::from(meta.records), meta.body_bytes);
    }
}

impl Inner {
    fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Room from all queues or from none; and the routes to those that do not drop the chunk. Else the one that is full.
    fn admit(&self, shares: &[Share], meta: &ChunkMeta, never_drop: bool) -> Result<(Granted, Vec<Route>), Queue> {
        let mut granted = Granted::default();
        let mut taken = Vec::new();
        for Share { queue, routes, bytes } in shares {
            let admission =
                if never_drop { queue.admit_or_wait(*bytes, meta.records) } else { queue.admit(*bytes, meta.records) };
            match admission {
                Admission::Granted => {
                    granted.room.push((queue.clone(), *bytes));
                    taken.extend(routes.iter().cloned());
                }
                Admission::Dropped => {}
                Admission::Full => return Err(queue.clone()),
            }
        }
        Ok((granted, taken))
    }

    /// Waits until every queue has room, then until the line takes the chunk. None: it was dropped everywhere.
    async fn wait_for_place(&self, chunk: &Chunk, queues: &[Queue], never_drop: bool) -> Result<Option<Done>, Refused> {
        let shares = shares(chunk, queues);
        let (granted, routes) = loop {
            // Begun before the question: room that comes right after the answer is not missed.
            let rooms: Vec<_> = queues.iter().map(Queue::room_from_now).collect();
            match self.admit(&shares, chunk.meta(), never_drop) {
                Ok(admitted) => break admitted,
                // For the full one only: others get back what they had granted just now, and that wakes whoever waits for
                // them; two that wait would wake each other for ever.
                // It will not have room again, and another one may be there soon.
                Err(full) if full.is_leaving() => {
                    return Err(Refused::Full { what: format!("output {}", full.output()), retry_after: RETRY_AFTER });
                }
                Err(full) => {
                    let room = queues.iter().zip(rooms).find(|(queue, _)| queue.output() == full.output());
                    if let Some((_, room)) = room {
                        let _ = tokio::time::timeout(RETRY_AFTER, room).await;
                    }
                }
            }
        };
        if routes.is_empty() {
            return Ok(None);
        }
        let mut parcel = Parcel { chunk: chunk.clone().with_routes(routes), granted, keep: true };
        loop {
            match self.line.join(parcel) {
                Ok(done) => return Ok(Some(done)),
                Err(NotNow::Refused(refused)) => return Err(refused),
                Err(NotNow::Behind(back)) => parcel = *back,
            }
            self.line.clear().await;
        }
    }
}

/// What one output wants of a chunk.
struct Share {
    queue: Queue,
    routes: Vec<Route>,
    /// What they are counted with in the output's share of the disk.
    bytes: u64,
}

/// The chunk is not cut: all routes go into its header and are committed with it and its positions. Were there a chunk for each partition, a
/// crash between two of them would keep some records, and the source would read all of them again.
fn shares(chunk: &Chunk, queues: &[Queue]) -> Vec<Share> {
    let share = |queue: &Queue| {
        let routes = queue.routes(chunk);
        let bytes = routes.iter().map(|route| chunk.meta().disk_bytes(Some(route))).sum();
        Share { queue: queue.clone(), routes, bytes }
    };
    queues.iter().map(share).collect()
}

impl Ticket {
    /// Waits until the chunk is on the disk (or was counted as dropped, where policy says so).
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn durable(self) -> Result<(), Refused> {
        match self.done {
            None => Ok(()),
            Some(done) => done.await.unwrap_or(Err(Refused::Stopping)),
        }
    }
}
