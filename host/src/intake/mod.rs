//! The intake is the one door between sources and the journal: it routes a chunk by its tag and shares its records out to each output's
//! partitions, asks each output's queue for room, and appends. What it answers is what a source may acknowledge.
//!
//! A record that no output wants is counted as dropped (`no_output`) and is not kept; nor is its position, so it is read again
//! after a restart, when an output may want it.
//!
//! A record is of one tenant, or the operator's own. Before anything else is asked, a tenant's own limits are: how fast it may send, and how
//! much of the disk all of its outputs together may hold.

mod line;
mod lines;
mod pattern;
mod rate;
mod routes;
mod tenants;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::tenant_in;
use crate::fair::Tenant;
use crate::journal::Journal;
use crate::queue::{Admission, Ledger, Queue, WhenFull};
use crate::record::{Chunk, ChunkMeta, Position, Route};
use crate::state::StateError;
use crate::telemetry::Metrics;
use line::{Done, Granted, Line, NotNow, Parcel};
use lines::{Lines, Logs};
use pattern::Pattern;
pub use routes::{EmptyMatch, Routing, claimant};
use routes::{Routes, Wanted};
pub use tenants::{AtLimit, Limit};
use tenants::{Taken, Tenants};

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
    /// The tenant whose everything is that comes in through it, where that is known.
    tenant: Option<Arc<str>>,
    /// Nothing is taken in through this handle before it is cancelled.
    opened: Option<CancellationToken>,
}

struct Inner {
    routes: RwLock<Arc<Routes>>,
    lines: Lines,
    ledger: Ledger,
    tenants: Tenants,
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
    /// The tenant whose records they are has what it may have.
    #[error(transparent)]
    AtLimit(Box<AtLimit>),
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
            Self::AtLimit(at) => at.limit.reason(),
            Self::DiskFull { .. } => "disk_full",
            Self::TooLarge { .. } => "too_large",
            Self::Failed(_) => "journal_failed",
            Self::Stopping => "stopping",
        }
    }

    /// When to try again, where that can be said.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after, .. } | Self::DiskFull { retry_after } => Some(*retry_after),
            Self::AtLimit(at) => Some(at.retry_after),
            Self::TooLarge { .. } | Self::Failed(_) | Self::Stopping => None,
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
        let lane = move |tenant: Option<&str>| Arc::new(journal.lane(Tenant::named(tenant))) as Arc<_>;
        Self::with(routing, Box::new(lane), ledger, positions, metrics, Tenants::new())
    }

    fn with(
        mut routing: Routing,
        logs: Logs,
        ledger: Ledger,
        positions: Vec<Position>,
        metrics: Metrics,
        tenants: Tenants,
    ) -> Result<Self, EmptyMatch> {
        tenants.set(std::mem::take(&mut routing.limits));
        let mut by_source: HashMap<Arc<str>, Vec<Position>> = HashMap::new();
        for position in positions {
            by_source.entry(position.source.clone()).or_default().push(position);
        }
        let inner = Inner {
            routes: RwLock::new(Arc::new(Routes::new(routing)?)),
            lines: Lines::new(logs),
            ledger,
            tenants,
            positions: Mutex::new(by_source),
            metrics,
            stop: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner), source: None, tenant: None, opened: None })
    }

    /// From now on records go by these routes, and tenants have these limits. What is on its way goes by those that it began with. What a
    /// tenant has used of a limit stays used.
    ///
    /// # Errors
    /// Where a pattern is empty; then nothing has changed.
    pub fn reroute(&self, mut routing: Routing) -> Result<(), EmptyMatch> {
        let limits = std::mem::take(&mut routing.limits);
        let routes = Arc::new(Routes::new(routing)?);
        self.inner.tenants.set(limits);
        *self.inner.routes.write().unwrap_or_else(PoisonError::into_inner) = routes;
        Ok(())
    }

    /// The same intake, for a source of this name: what comes in through it is counted as the source's. Without, it is
    /// counted as of the source that its positions name, or that its tag is named after.
    #[must_use]
    pub fn for_source(&self, name: &Arc<str>) -> Self {
        Self { source: Some(name.clone()), tenant: tenant_in(name).map(Arc::from), ..self.clone() }
    }

    /// The same intake, for what this tenant sends to the source, whatever its tag is.
    #[must_use]
    pub fn for_tenant(&self, name: &Arc<str>) -> Self {
        Self { tenant: Some(name.clone()), ..self.clone() }
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
            let wanted = self.wanted(&chunk);
            let taken = self.within_rate(&wanted, &chunk).await?;
            match self.wait_in(chunk.clone(), &wanted, false).await {
                // The routes are about to be others.
                Err(Refused::Full { .. }) => tokio::time::sleep(LOOK_AGAIN).await,
                Err(refused) => return Err(refused),
                Ok(ticket) => {
                    taken.keep();
                    return Ok(ticket);
                }
            }
        }
    }
    /// The same, but never waits for room; and a chunk without positions that the journal refuses later is not handed in again:
    /// the ticket tells.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn try_enqueue(&self, chunk: Chunk) -> Result<Ticket, Refused> {
        if let Some(refused) = self.is_closed() {
            return Err(refused);
        }
        let wanted = self.wanted(&chunk);
        let taken = self.inner.tenants.take(&wanted, chunk.meta()).map_err(|at| self.at_limit(at))?;
        let ticket = self.try_wanted(chunk, &wanted)?;
        taken.keep();
        Ok(ticket)
    }

    /// Why nothing would be taken now that a source hands in, whoever's it is: Wharf stops, or the journal takes nothing. A full queue is one
    /// output's own affair.
    #[must_use]
    pub fn refuses(&self) -> Option<Refused> {
        let line = self.inner.lines.of(self.source.as_deref().and_then(tenant_in));
        self.is_closed().or_else(|| (!line.is_clear()).then(|| line.refusal()))
    }

    fn is_closed(&self) -> Option<Refused> {
        if self.inner.stop.is_cancelled() {
            return Some(Refused::Stopping);
        }
        let is_waiting = self.opened.as_ref().is_some_and(|opened| !opened.is_cancelled());
        let what = "a reload is under way, and the source";
        is_waiting.then(|| Refused::Full { what: what.into(), retry_after: RETRY_AFTER })
    }

    fn try_wanted(&self, chunk: Chunk, wanted: &Wanted) -> Result<Ticket, Refused> {
        if wanted.queues.is_empty() {
            return Ok(self.nobody_wants(&chunk, wanted));
        }
        // Before queues are asked: what they drop is counted, and a chunk that is refused comes again.
        let line = self.line_for(&chunk, wanted);
        if !line.is_clear() {
            return Err(line.refusal());
        }
        let (granted, routes) = self
            .inner
            .admit(&shares(&chunk, &wanted.queues), chunk.meta(), false, wanted)
            .map_err(|full| match full {
                Full::Queue(queue) => {
                    Refused::Full { what: format!("output {}", queue.output()), retry_after: RETRY_AFTER }
                }
                Full::Tenant { at, .. } => self.at_limit(at),
            })?;
        if routes.is_empty() {
            self.count_accepted(&chunk, wanted);
            return Ok(Ticket { done: None });
        }
        let keep = !chunk.meta().positions.is_empty();
        let parcel = Parcel { chunk: chunk.with_routes(routes), granted, keep };
        let counted = parcel.chunk.clone();
        match line.join(parcel) {
            Ok(done) => {
                self.count_accepted(&counted, wanted);
                Ok(Ticket { done: Some(done) })
            }
            Err(NotNow::Behind(_)) => Err(line.refusal()),
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
            let Some(wanted) = self.inner.routes().output(output) else {
                return Err(Refused::Failed(format!("there is no output {output}")));
            };
            match self.wait_in(chunk.clone(), &wanted, true).await {
                Err(Refused::Full { .. }) => tokio::time::sleep(LOOK_AGAIN).await,
                taken => return taken,
            }
        }
    }
    /// Whether an output of this name is configured.
    pub fn has_output(&self, output: &str) -> bool {
        self.inner.routes().output(output).is_some()
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
    /// Records could not be parsed and went on as they are: counted as `wharf_source_unparsed_records_total{source, reason}`.
    pub fn count_unparsed(&self, source: &str, reason: &'static str, records: u64) {
        self.inner.metrics.unparsed(source, reason, records);
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
        self.inner.lines.stop();
    }

    async fn wait_in(&self, chunk: Chunk, wanted: &Wanted, never_drop: bool) -> Result<Ticket, Refused> {
        if wanted.queues.is_empty() {
            return Ok(self.nobody_wants(&chunk, wanted));
        }
        let line = self.line_for(&chunk, wanted);
        let place = self.inner.wait_for_place(&chunk, wanted, &line, never_drop);
        let joined = self.inner.stop.run_until_cancelled(place).await;
        let done = joined.unwrap_or(Err(Refused::Stopping))?;
        self.count_accepted(&chunk, wanted);
        Ok(Ticket { done })
    }

    /// Waits until the tenant may send as much.
    async fn within_rate(&self, wanted: &Wanted, chunk: &Chunk) -> Result<Taken, Refused> {
        let mut waits = false;
        loop {
            let at = match self.inner.tenants.take(wanted, chunk.meta()) {
                Ok(taken) => return Ok(taken),
                Err(at) => at,
            };
            if !std::mem::replace(&mut waits, true) {
                self.inner.metrics.tenant_refused(&at.tenant, at.limit.name());
            }
            // Not for longer than this: the limit may be another one by then.
            let pause = tokio::time::sleep(at.retry_after.min(RETRY_AFTER));
            if self.inner.stop.run_until_cancelled(pause).await.is_none() {
                return Err(Refused::Stopping);
            }
        }
    }

    /// Whose the chunk is, and which queues want it.
    fn wanted(&self, chunk: &Chunk) -> Wanted {
        self.inner.routes().wanted(self.tenant.as_deref(), &chunk.meta().tag)
    }

    /// The line in which the chunk keeps its place: that of the tenant whose it is. One with a position stays in its source's, whoever
    /// claims its tag: another must not commit a later position of the same file before it.
    fn line_for(&self, chunk: &Chunk, wanted: &Wanted) -> Arc<Line> {
        let tenant = match &self.source {
            Some(source) if !chunk.meta().positions.is_empty() => tenant_in(source),
            _ => wanted.tenant.as_deref(),
        };
        self.inner.lines.of(tenant)
    }

    fn at_limit(&self, at: AtLimit) -> Refused {
        self.inner.metrics.tenant_refused(&at.tenant, at.limit.name());
        Refused::AtLimit(Box::new(at))
    }

    fn nobody_wants(&self, chunk: &Chunk, wanted: &Wanted) -> Ticket {
        self.count_accepted(chunk, wanted);
        let of_nobody = wanted.tenant.as_ref().map_or_else(String::new, |tenant| format!("{tenant}/"));
        self.inner.metrics.dropped(&of_nobody, NO_OUTPUT, u64::from(chunk.meta().records));
        Ticket { done: None }
    }

    fn count_accepted(&self, chunk: &Chunk, wanted: &Wanted) {
        let meta = chunk.meta();
        let of_position = meta.positions.first().map(|position| &position.source);
        let source = self.source.as_ref().or(of_position).unwrap_or(&meta.tag);
        self.inner.metrics.accepted(source, u64::from(meta.records), meta.body_bytes);
        if let Some(tenant) = &wanted.tenant {
            self.inner.metrics.tenant_accepted(tenant, u64::from(meta.records), meta.body_bytes);
        }
    }
}

/// Who has no room.
enum Full {
    Queue(Queue),
    /// `after_others`: some had granted room, and get it back.
    Tenant {
        at: AtLimit,
        after_others: bool,
    },
}

impl Inner {
    fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Room from all queues or from none; and the routes to those that do not drop the chunk. Else the one that is full.
    ///
    /// Where the tenant has a share of the disk, what its queues have is summed up under its lock. Nobody else adds to them then, and
    /// what leaves them meanwhile only makes room.
    fn admit(
        &self,
        shares: &[Share],
        meta: &ChunkMeta,
        never_drop: bool,
        wanted: &Wanted,
    ) -> Result<(Granted, Vec<Route>), Full> {
        let account = self.tenants.with_journal_limit(wanted);
        let books = account.as_ref().map(|account| account.books(&wanted.of_tenant));
        let waits = |share: &Share| never_drop || share.queue.when_full() == WhenFull::Block;
        // What cannot be dropped has to fit first, and what can be has what is left.
        let mut waiting: u64 = shares.iter().filter(|share| waits(share)).map(|share| share.bytes).sum();
        if let Some(books) = &books {
            books.fits(waiting).map_err(|at| Full::Tenant { at, after_others: false })?;
        }
        let mut granted = Granted::default();
        let mut taken = Vec::new();
        for share in shares {
            let Share { queue, routes, bytes } = share;
            let admission = if waits(share) {
                waiting -= bytes;
                queue.admit_or_wait(*bytes, meta.records)
            } else {
                queue.admit_within(*bytes, meta.records, books.as_ref().and_then(|books| books.room_beside(waiting)))
            };
            match admission {
                Admission::Granted => {
                    granted.room.push((queue.clone(), *bytes));
                    taken.extend(routes.iter().cloned());
                }
                Admission::Dropped => {}
                Admission::Full => return Err(Full::Queue(queue.clone())),
                Admission::FullForTenant => {
                    let after_others = !granted.room.is_empty();
                    let at = books.as_ref().map(|books| books.at_limit(*bytes));
                    let full = at.map(|at| Full::Tenant { at, after_others });
                    return Err(full.unwrap_or_else(|| Full::Queue(queue.clone())));
                }
            }
        }
        Ok((granted, taken))
    }

    /// Waits until every queue has room, then until the line takes the chunk. None: it was dropped everywhere.
    async fn wait_for_place(
        &self,
        chunk: &Chunk,
        wanted: &Wanted,
        line: &Arc<Line>,
        never_drop: bool,
    ) -> Result<Option<Done>, Refused> {
        let shares = shares(chunk, &wanted.queues);
        let mut waits = false;
        let (granted, routes) = loop {
            // Begun before the question: room that comes right after the answer is not missed.
            let rooms: Vec<_> = wanted.of_tenant.iter().map(Queue::room_from_now).collect();
            match self.admit(&shares, chunk.meta(), never_drop, wanted) {
                Ok(admitted) => break admitted,
                // For the full one only: others get back what they had granted just now, and that wakes whoever waits for
                // them; two that wait would wake each other for ever.
                // It will not have room again, and another one may be there soon.
                Err(Full::Queue(full)) if full.is_leaving() => {
                    return Err(Refused::Full { what: format!("output {}", full.output()), retry_after: RETRY_AFTER });
                }
                Err(Full::Queue(full)) => {
                    let room = wanted.of_tenant.iter().zip(rooms).find(|(queue, _)| queue.output() == full.output());
                    if let Some((_, room)) = room {
                        let _ = tokio::time::timeout(RETRY_AFTER, room).await;
                    }
                }
                Err(Full::Tenant { at, after_others }) => {
                    if !std::mem::replace(&mut waits, true) {
                        self.metrics.tenant_refused(&at.tenant, at.limit.name());
                    }
                    if after_others {
                        tokio::time::sleep(RETRY_AFTER).await;
                    } else {
                        let any = futures_util::future::select_all(rooms.into_iter().map(Box::pin));
                        let _ = tokio::time::timeout(RETRY_AFTER, any).await;
                    }
                }
            }
        };
        if routes.is_empty() {
            return Ok(None);
        }
        let mut parcel = Parcel { chunk: chunk.clone().with_routes(routes), granted, keep: true };
        loop {
            match line.join(parcel) {
                Ok(done) => return Ok(Some(done)),
                Err(NotNow::Refused(refused)) => return Err(refused),
                Err(NotNow::Behind(back)) => parcel = *back,
            }
            line.clear().await;
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
