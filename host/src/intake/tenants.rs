//! What each tenant may take in, and what it has used of it: a registry by name, whose limits can be others from one moment to the next.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::RETRY_AFTER;
use super::rate::{Rate, Short};
use super::routes::Wanted;
use crate::config::TenantLimits;
use crate::config::units::format_size;
use crate::queue::Queue;
use crate::record::ChunkMeta;

/// A sender that is over its rate is told to wait for no longer.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Time since some moment.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A limit of a tenant that keeps records out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Bytes on disk of all its outputs together.
    Journal,
    /// Bytes a second.
    IngestBytes,
    /// Records a second.
    IngestRecords,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Journal, Self::IngestBytes, Self::IngestRecords];

    /// Its name, as `wharf_tenant_refused_total` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::IngestBytes => "ingest_bytes",
            Self::IngestRecords => "ingest_records",
        }
    }

    /// Its kind, as `wharf_source_refused_requests_total` has it.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Journal => "tenant_journal",
            Self::IngestBytes | Self::IngestRecords => "tenant_ingest",
        }
    }

    /// Where it is in the configuration, below its tenant.
    fn key(self) -> &'static str {
        match self {
            Self::Journal => "limits.journal",
            Self::IngestBytes => "limits.ingest.bytes",
            Self::IngestRecords => "limits.ingest.records",
        }
    }
}

/// A tenant has as much as it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtLimit {
    /// Whose limit it is.
    pub tenant: Arc<str>,
    /// Which.
    pub limit: Limit,
    /// What it allows: bytes, or, of a rate, bytes or records at once.
    pub most: u64,
    /// What of that is used.
    pub current: u64,
    /// What was wanted beyond it.
    pub requested: u64,
    /// When to try again.
    pub retry_after: Duration,
}

impl fmt::Display for AtLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant, limit, most, current, requested, .. } = self;
        let amount = |n: u64| match limit {
            Limit::IngestRecords => format!("{n} records"),
            Limit::Journal | Limit::IngestBytes => format_size(n),
        };
        let at_once = if *limit == Limit::Journal { "" } else { " at once" };
        let (most, current, requested) = (amount(*most), amount(*current), amount(*requested));
        write!(
            f,
            "tenant {tenant} is at its limit: {} allows {most}{at_once}, {current} of it are used, and {requested} more were to come",
            limit.key()
        )
    }
}

impl std::error::Error for AtLimit {}

/// All tenants that have limits. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tenants {
    accounts: Arc<RwLock<HashMap<Arc<str>, Arc<Account>>>>,
    clock: Clock,
}

/// One tenant's.
pub(super) struct Account {
    name: Arc<str>,
    limits: RwLock<TenantLimits>,
    rate: Mutex<Rate>,
    /// Held while room is given: the sum over its queues is right as long.
    admitting: Mutex<()>,
}

impl Tenants {
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Self::with_clock(Arc::new(move || start.elapsed()))
    }

    pub(super) fn with_clock(clock: Clock) -> Self {
        Self { accounts: Arc::default(), clock }
    }

    /// These limits from now on, and those of no other tenant.
    pub(super) fn set(&self, limits: Vec<(Arc<str>, TenantLimits)>) {
        let now = (self.clock)();
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|name, _| limits.iter().any(|(tenant, _)| tenant == name));
        for (name, limits) in limits {
            match accounts.get(&name) {
                Some(known) => known.change(limits, now),
                None => drop(accounts.insert(name.clone(), Arc::new(Account::new(name, limits, now)))),
            }
        }
    }

    fn account(&self, wanted: &Wanted) -> Option<Arc<Account>> {
        let tenant = wanted.tenant.as_ref()?;
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    /// The account of a chunk's tenant, where that has a share of the disk.
    pub(super) fn with_journal_limit(&self, wanted: &Wanted) -> Option<Arc<Account>> {
        self.account(wanted).filter(|account| account.limits().journal_bytes.is_some())
    }

    /// Takes a chunk from what its tenant may send. Given back unless it is [kept](Taken::keep).
    pub(super) fn take(&self, wanted: &Wanted, meta: &ChunkMeta) -> Result<Taken, AtLimit> {
        let Some(account) = self.account(wanted) else { return Ok(Taken(None)) };
        let (bytes, records) = (meta.body_bytes, u64::from(meta.records));
        match account.rate().take(bytes, records, (self.clock)()) {
            Ok(()) => {}
            Err(Short { of_bytes, most, current, after }) => {
                return Err(AtLimit {
                    tenant: account.name.clone(),
                    limit: if of_bytes { Limit::IngestBytes } else { Limit::IngestRecords },
                    most,
                    current,
                    requested: if of_bytes { bytes } else { records },
                    retry_after: after.min(LONGEST_RETRY_AFTER),
                });
            }
        }
        Ok(Taken(Some((account, bytes, records))))
    }
}

/// What a chunk took of its tenant's rate. Dropped, it is given back: the chunk did not come in.
pub(super) struct Taken(Option<(Arc<Account>, u64, u64)>);

impl Taken {
    /// The chunk came in.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some((account, bytes, records)) = self.0.take() {
            account.rate().give_back(bytes, records);
        }
    }
}

impl Account {
    fn new(name: Arc<str>, limits: TenantLimits, now: Duration) -> Self {
        let rate = Mutex::new(Rate::new(limits.ingest, now));
        Self { name, limits: RwLock::new(limits), rate, admitting: Mutex::default() }
    }

    fn change(&self, limits: TenantLimits, now: Duration) {
        let before = std::mem::replace(&mut *self.limits.write().unwrap_or_else(PoisonError::into_inner), limits);
        if before.ingest != limits.ingest {
            self.rate().change(limits.ingest, now);
        }
    }

    fn limits(&self) -> TenantLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn rate(&self) -> MutexGuard<'_, Rate> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tenant's share of the disk, of which `queues` are all queues. Nobody else adds to them while this is there.
    pub(super) fn books<'a>(&'a self, queues: &'a [Queue]) -> Books<'a> {
        let admitting = self.admitting.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.limits().journal_bytes.unwrap_or(u64::MAX);
        let mut books = Books { account: self, queues, most, is_alone: false, _admitting: admitting };
        // As with an output's own share, what is larger than the whole comes in alone: it would wait for ever.
        books.is_alone = books.used() == 0;
        books
    }
}

/// See [`Account::books`].
pub(super) struct Books<'a> {
    account: &'a Account,
    queues: &'a [Queue],
    most: u64,
    /// There was nothing else when this began.
    is_alone: bool,
    _admitting: MutexGuard<'a, ()>,
}

impl Books<'_> {
    fn used(&self) -> u64 {
        self.queues.iter().map(Queue::used).sum()
    }

    /// Whether so many bytes more are within the limit.
    pub(super) fn fits(&self, bytes: u64) -> Result<(), AtLimit> {
        let fits = self.is_alone || bytes == 0 || self.used().saturating_add(bytes) <= self.most;
        if fits { Ok(()) } else { Err(self.at_limit(bytes)) }
    }

    /// What is left beside so many bytes; none is any.
    pub(super) fn room_beside(&self, bytes: u64) -> Option<u64> {
        (!self.is_alone).then(|| self.most.saturating_sub(self.used()).saturating_sub(bytes))
    }

    /// There is no room for so many bytes.
    pub(super) fn at_limit(&self, bytes: u64) -> AtLimit {
        AtLimit {
            tenant: self.account.name.clone(),
            limit: Limit::Journal,
            most: self.most,
            current: self.used(),
            requested: bytes,
            retry_after: RETRY_AFTER,
        }
    }
}
