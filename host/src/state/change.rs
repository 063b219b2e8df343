//! How changes are made: one at a time, each one transaction and one flush; and what happens when sled fails.
//!
//! After an error sled's handle is of no use any more, and a call on it may hang. So it is dropped on a thread of its own,
//! and the next call opens sled again. Whether the failed change happened is known only then; every change of
//! this room may be asked for again.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::handle::{Handle, Trouble, panic_text, refused, sled_error};
use super::mark::Mark;
use super::open::{Parts, Paths};
use super::reserve::Reserve;
use super::rows::{self, Table, Write, Writes};
use super::snapshot;
use super::space::Space;
use super::{BatchId, Flushed, Quota, StateError, files};
use crate::config::tenant_in;

const REOPEN_PAUSE: Duration = Duration::from_millis(500);

/// The state behind its door.
pub(super) struct Inner {
    paths: Paths,
    live: RwLock<Option<Arc<Handle>>>,
    writer: Mutex<Writer>,
    known: Mutex<Known>,
    snapshots: Mutex<u64>,
}

/// What whoever changes something holds.
pub(super) struct Writer {
    pub(super) reserve: Reserve,
    commits: u64,
    space: Space,
    mark: Mark,
    reopen_at: Instant,
}

/// What is asked often, and is known from the rows.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Open batches and their numbers.
    pub(super) batches: HashMap<String, HashMap<BatchId, u64>>,
    /// Bytes of the plugins' rows and counters, by output.
    pub(super) stored: HashMap<String, u64>,
    /// How many counters each output has.
    pub(super) counters: HashMap<String, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(super) fn new(parts: Parts) -> Result<Self, StateError> {
        let known = Known::read(&parts.handle).map_err(|e| refused("read", e))?;
        let inner = Self {
            paths: parts.paths,
            live: RwLock::new(Some(Arc::new(parts.handle))),
            writer: Mutex::new(Writer {
                reserve: parts.reserve,
                commits: parts.commits,
                space: parts.space,
                mark: parts.mark,
                reopen_at: Instant::now(),
            }),
            known: Mutex::new(known),
            snapshots: Mutex::new(0),
        };
        if parts.snapshot_due
            && let Err(e) = inner.snapshot()
        {
            tracing::warn!(error = %e, "the state's first snapshot cannot be written; it is tried again later");
        }
        Ok(inner)
    }

    pub(super) fn known<T>(&self, ask: impl FnOnce(&Known) -> T) -> T {
        ask(&lock(&self.known))
    }

    /// Makes the changes that `plan` gives, durably, and gives its answer. Nobody else changes anything meanwhile.
    pub(super) fn change<T>(
        &self,
        plan: impl FnOnce(&mut Writer, &Handle) -> Result<(Writes, T), Trouble>,
    ) -> Result<Flushed<T>, StateError> {
        self.change_within(None, plan)
    }

    /// The same, unless the plugins' rows would hold more than they may.
    pub(super) fn change_within<T>(
        &self,
        quota: Option<Quota>,
        plan: impl FnOnce(&mut Writer, &Handle) -> Result<(Writes, T), Trouble>,
    ) -> Result<Flushed<T>, StateError> {
        let mut writer = lock(&self.writer);
        writer.space.ensure()?;
        let handle = self.handle(&mut writer)?;
        // sled may panic on what it finds on a disk.
        let done = catch_unwind(AssertUnwindSafe(|| -> Result<T, Trouble> {
            let (writes, answer) = plan(&mut writer, &handle)?;
            if !writes.is_empty() {
                let news = News::of(&writes, &handle)?;
                if let Some(quota) = quota {
                    news.check(quota, &lock(&self.known))?;
                }
                let commits = writer.commits + 1;
                handle.apply(&writes, commits)?;
                writer.commits = commits;
                writer.mark.set(commits);
                news.tell(&mut lock(&self.known));
            }
            Ok(answer)
        }));
        self.outcome(&mut writer, handle, "written", done).map(Flushed)
    }

    /// Reads.
    pub(super) fn read<T>(&self, ask: impl FnOnce(&Handle) -> Result<T, Trouble>) -> Result<T, StateError> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
        let handle = match live {
            Some(handle) => handle,
            None => self.handle(&mut lock(&self.writer))?,
        };
        match catch_unwind(AssertUnwindSafe(|| ask(&handle))) {
            Ok(Ok(answer)) => Ok(answer),
            failed => self.outcome(&mut lock(&self.writer), handle, "read", failed),
        }
    }

    fn outcome<T>(
        &self,
        writer: &mut Writer,
        handle: Arc<Handle>,
        doing: &'static str,
        done: std::thread::Result<Result<T, Trouble>>,
    ) -> Result<T, StateError> {
        let error = match done {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(Trouble::Refused(e))) => return Err(e),
            Ok(Err(Trouble::Sled(e))) => sled_error(doing, &e),
            Err(panic) => StateError::Store { doing, cause: format!("sled panicked: {}", panic_text(&*panic)) },
        };
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        // Another reader may have given the same handle up already, and a new one be there.
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, &handle)) {
            tracing::error!(error = %error, "the state failed and is opened anew");
            *live = None;
            writer.reopen_at = Instant::now() + REOPEN_PAUSE;
        }
        drop(live);
        let dropping = std::thread::Builder::new().name("wharf-state-drop".into()).spawn(move || drop(handle));
        if let Err(e) = dropping {
            tracing::warn!(error = %e, "no thread for closing the failed state; it was closed here");
        }
        Err(error)
    }

    /// The live handle, or a new one where the last was given up.
    fn handle(&self, writer: &mut Writer) -> Result<Arc<Handle>, StateError> {
        if let Some(handle) = self.live.read().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(handle);
        }
        let again = |cause: String| StateError::Store { doing: "reopened", cause };
        if Instant::now() < writer.reopen_at {
            return Err(again("it failed a moment ago, and is opened again soon".into()));
        }
        writer.reopen_at = Instant::now() + REOPEN_PAUSE;
        writer.space.ensure()?;
        let opened = Handle::open(&self.paths.sled).map_err(|failure| again(failure.to_string()))?;
        let known = || -> Result<(u64, Known), Trouble> { Ok((opened.commits()?, Known::read(&opened)?)) };
        let (commits, known) = known().map_err(|e| refused("reopened", e))?;
        if commits < writer.commits {
            return Err(again(format!(
                "it has fallen back from change {} to {commits}; restart Wharf, which rebuilds it",
                writer.commits
            )));
        }
        let handle = Arc::new(opened);
        writer.commits = commits;
        writer.mark.set(commits);
        *lock(&self.known) = known;
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        tracing::info!("the state is open again");
        Ok(handle)
    }

    /// Writes the snapshot, where anything has changed since the last.
    pub(super) fn snapshot(&self) -> Result<(), StateError> {
        // Held to the end, so that an older snapshot never replaces a newer one.
        let mut last = lock(&self.snapshots);
        let dump = {
            let mut writer = lock(&self.writer);
            writer.space.ensure()?;
            let handle = self.handle(&mut writer)?;
            if writer.commits == *last {
                return Ok(());
            }
            let dumped = catch_unwind(AssertUnwindSafe(|| handle.dump()));
            self.outcome(&mut writer, handle, "read", dumped)?
        };
        let written = files::replace(&self.paths.snapshot, &snapshot::encode(&dump));
        written.map_err(|e| super::open::failed(&self.paths.snapshot, &e))?;
        *last = dump.commits;
        Ok(())
    }
}

impl Known {
    fn read(handle: &Handle) -> Result<Self, Trouble> {
        let mut known = Self::default();
        for row in handle.scan(Table::Batches, &[], &[])? {
            let (key, value) = row?;
            let batch = rows::batch(&key, &value)?;
            known.batches.entry(batch.output.to_string()).or_default().insert(batch.id, batch.number);
        }
        for table in [Table::Kv, Table::Progress, Table::Sequences] {
            for row in handle.scan(table, &[], &[])? {
                let (key, value) = row?;
                let (output, rest) = rows::split(table, &key)?;
                *known.stored.entry(output.to_owned()).or_default() += (rest.len() + value.len()) as u64;
                if table == Table::Sequences {
                    *known.counters.entry(output.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(known)
    }
}

/// What changes change in what is known.
#[derive(Default)]
struct News {
    opened: Vec<(String, BatchId, u64)>,
    ended: HashSet<(String, u64)>,
    stored: HashMap<String, (u64, u64)>,
    /// Counters that were not there before, by output.
    counters: HashMap<String, u64>,
}

impl News {
    fn of(writes: &[Write], handle: &Handle) -> Result<Self, Trouble> {
        let mut news = Self::default();
        for (table, key, value) in writes {
            match (table, value) {
                (Table::Batches, Some(value)) => {
                    let batch = rows::batch(key, value)?;
                    news.opened.push((batch.output.to_string(), batch.id, batch.number));
                }
                (Table::Batches, None) => {
                    let (output, rest) = rows::split(*table, key)?;
                    news.ended.insert((output.to_owned(), rows::number(*table, key, rest)?));
                }
                (Table::Kv | Table::Progress | Table::Sequences, value) => {
                    let (output, rest) = rows::split(*table, key)?;
                    let (more, less) = news.stored.entry(output.to_owned()).or_default();
                    let size = |value: &[u8]| (rest.len() + value.len()) as u64;
                    let before = handle.get(*table, key)?;
                    *more += value.as_deref().map_or(0, size);
                    *less += before.as_deref().map_or(0, size);
                    // A counter is never removed.
                    if *table == Table::Sequences && before.is_none() {
                        *news.counters.entry(output.to_owned()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(news)
    }

    /// Refuses what would let what an output keeps, or its tenant, grow past the quota. What makes it smaller is always allowed.
    fn check(&self, quota: Quota, known: &Known) -> Result<(), StateError> {
        for (output, (more, less)) in &self.stored {
            let requested = more.saturating_sub(*less);
            let over = |of_tenant, limit, current: u64| {
                let fits = requested == 0 || current.saturating_add(requested) <= limit;
                if fits { Ok(()) } else { Err(StateError::OverQuota { of_tenant, limit, current, requested }) }
            };
            over(false, quota.output.bytes, known.stored.get(output).copied().unwrap_or(0))?;
            if let Some(tenant) = tenant_in(output) {
                let of_it = known.stored.iter().filter(|(other, _)| tenant_in(other) == Some(tenant));
                over(true, quota.tenant.bytes, of_it.map(|(_, bytes)| bytes).sum())?;
            }
        }
        for (output, new) in &self.counters {
            let over = |of_tenant, limit, current: u64| {
                let fits = current.saturating_add(*new) <= limit;
                if fits { Ok(()) } else { Err(StateError::TooManyCounters { of_tenant, limit, current }) }
            };
            over(false, quota.output.counters, known.counters.get(output).copied().unwrap_or(0))?;
            if let Some(tenant) = tenant_in(output) {
                let of_it = known.counters.iter().filter(|(other, _)| tenant_in(other) == Some(tenant));
                over(true, quota.tenant.counters, of_it.map(|(_, counters)| counters).sum())?;
            }
        }
        Ok(())
    }

    fn tell(self, known: &mut Known) {
        for (output, number) in self.ended {
            if let Some(batches) = known.batches.get_mut(&output) {
                batches.retain(|_, n| *n != number);
            }
        }
        for (output, id, number) in self.opened {
            known.batches.entry(output).or_default().insert(id, number);
        }
        for (output, (more, less)) in self.stored {
            let stored = known.stored.entry(output).or_default();
            *stored = stored.saturating_add(more).saturating_sub(less);
        }
        for (output, new) in self.counters {
            *known.counters.entry(output).or_default() += new;
        }
    }
}
