//! One opened sled: its trees, one transaction for a group of changes, and a flush that reaches the disk.

use std::any::Any;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use sled::transaction::{ConflictableTransactionError, TransactionError, Transactional};
use sled::{Db, IVec, Tree};

use super::rows::{self, Table, Write};
use super::snapshot::Dump;
use super::{StateError, files, sync_shim};

const COMMITS: &[u8] = b"commits";

/// Why an operation did not work: sled, whose handle is then dead, or the request itself.
#[derive(Debug)]
pub(super) enum Trouble {
    Sled(sled::Error),
    Refused(StateError),
}

impl From<sled::Error> for Trouble {
    fn from(e: sled::Error) -> Self {
        Self::Sled(e)
    }
}
impl From<StateError> for Trouble {
    fn from(e: StateError) -> Self {
        Self::Refused(e)
    }
}

/// sled's error in this room's words.
pub(super) fn sled_error(doing: &'static str, e: &sled::Error) -> StateError {
    match e {
        sled::Error::Io(e) if matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            StateError::DiskFull
        }
        e => StateError::Store { doing, cause: e.to_string() },
    }
}

/// Why sled did not open.
#[derive(Debug)]
pub(super) enum OpenFailure {
    /// Somebody else has it open.
    Locked(String),
    /// Not the data's fault: permissions, a full disk, no descriptors.
    System(StateError),
    /// The data's.
    Damaged(String),
}

impl std::fmt::Display for OpenFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Locked(cause) | Self::Damaged(cause) => f.write_str(cause),
            Self::System(e) => e.fmt(f),
        }
    }
}

/// An opened sled.
pub(super) struct Handle {
    db: Db,
    trees: Vec<Tree>,
}

impl Handle {
    /// Opens sled's directory; waits a little for a lock that a dropped handle still holds.
    pub(super) fn open(dir: &Path) -> Result<Self, OpenFailure> {
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            match Self::open_once(dir) {
                Err(OpenFailure::Locked(_)) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other,
            }
        }
    }

    fn open_once(dir: &Path) -> Result<Self, OpenFailure> {
        remove_half_snapshots(dir).map_err(|e| {
            OpenFailure::System(StateError::Store { doing: "opened", cause: format!("{}: {e}", dir.display()) })
        })?;
        let config = sled::Config::new().path(dir).cache_capacity(8 << 20).flush_every_ms(Some(500));
        // sled panics on some damage.
        let opened = catch_unwind(AssertUnwindSafe(|| -> sled::Result<Self> {
            let db = config.open()?;
            let trees = Table::ALL.iter().map(|table| db.open_tree(table.name())).collect::<sled::Result<_>>()?;
            Ok(Self { db, trees })
        }));
        match opened {
            Ok(Ok(handle)) => Ok(handle),
            Ok(Err(e)) => Err(open_failure(&e)),
            Err(panic) => Err(OpenFailure::Damaged(format!("sled panicked: {}", panic_text(&*panic)))),
        }
    }

    /// Makes the directory's entries durable, and proves that a flush reaches the disk.
    pub(super) fn prove(&self, dir: &Path) -> Result<(), StateError> {
        let fail = |cause: String| StateError::Store { doing: "opened", cause };
        files::sync_dir(dir)
            .and_then(|()| dir.parent().map_or(Ok(()), files::sync_dir))
            .map_err(|e| fail(format!("{}: {e}", dir.display())))?;
        let before = sync_shim::syncs();
        let probe = (Table::Meta, b"probe".to_vec(), Some(crate::record::now_ns().to_be_bytes().to_vec()));
        let commits = self.commits().map_err(|e| self::refused("read", e))?;
        self.apply(&[probe], commits).map_err(|e| sled_error("written", &e))?;
        match (before, sync_shim::syncs()) {
            (Some(before), Some(after)) if after <= before => Err(fail(
                "sled's flush does not reach fdatasync in this build: its sync_file_range was not replaced. \
                 Records would be lost in a power cut. Use a build whose linker keeps Wharf's own sync_file_range"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    fn tree(&self, table: Table) -> Result<&Tree, sled::Error> {
        // Cannot fail: there is one for each table.
        self.trees.get(table as usize).ok_or_else(|| sled::Error::Unsupported("no such table".into()))
    }

    pub(super) fn get(&self, table: Table, key: &[u8]) -> Result<Option<IVec>, Trouble> {
        Ok(self.tree(table)?.get(key)?)
    }

    pub(super) fn number(&self, table: Table, key: &[u8]) -> Result<Option<u64>, Trouble> {
        match self.get(table, key)? {
            None => Ok(None),
            Some(value) => Ok(Some(rows::number(table, key, &value)?)),
        }
    }

    /// Rows whose key begins with `prefix`, ascending, from `from` on.
    pub(super) fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<impl Iterator<Item = Result<(IVec, IVec), Trouble>>, Trouble> {
        let prefix = prefix.to_vec();
        Ok(self
            .tree(table)?
            .range(from.max(prefix.as_slice()).to_vec()..)
            .map(|row| row.map_err(Trouble::Sled))
            .take_while(move |row| !matches!(row, Ok((key, _)) if !key.starts_with(&prefix))))
    }

    /// How many changes there were.
    pub(super) fn commits(&self) -> Result<u64, Trouble> {
        Ok(self.number(Table::Meta, COMMITS)?.unwrap_or(0))
    }

    /// Makes all changes in one transaction, sets the number of changes, and flushes.
    pub(super) fn apply(&self, writes: &[Write], commits: u64) -> Result<(), sled::Error> {
        let mut touched = vec![Table::Meta];
        let mut trees = vec![self.tree(Table::Meta)?.clone()];
        for (table, ..) in writes {
            if !touched.contains(table) {
                touched.push(*table);
                trees.push(self.tree(*table)?.clone());
            }
        }
        let done = trees.as_slice().transaction(|views| {
            for (table, key, value) in writes {
                let view = touched.iter().position(|t| t == table).and_then(|at| views.get(at));
                if let Some(view) = view {
                    match value {
                        Some(value) => view.insert(key.as_slice(), value.as_slice())?,
                        None => view.remove(key.as_slice())?,
                    };
                }
            }
            if let Some(meta) = views.first() {
                meta.insert(COMMITS, &commits.to_be_bytes())?;
            }
            Ok::<(), ConflictableTransactionError<()>>(())
        });
        match done {
            Ok(()) => self.db.flush().map(|_| ()),
            Err(TransactionError::Storage(e)) => Err(e),
            Err(TransactionError::Abort(())) => Err(sled::Error::ReportableBug("aborted by nobody".into())),
        }
    }

    /// Everything.
    pub(super) fn dump(&self) -> Result<Dump, Trouble> {
        let mut rows = Vec::new();
        for table in Table::ALL {
            for row in self.scan(table, &[], &[])? {
                let (key, value) = row?;
                rows.push((table, key.to_vec(), value.to_vec()));
            }
        }
        Ok(Dump { commits: self.commits()?, rows })
    }
}

/// The trouble as an error, where there is no handle to give up.
pub(super) fn refused(doing: &'static str, trouble: Trouble) -> StateError {
    match trouble {
        Trouble::Sled(e) => sled_error(doing, &e),
        Trouble::Refused(e) => e,
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

/// sled writes `snap.X.generating`, but at open skips only another suffix: after a kill in between it would call itself damaged.
fn remove_half_snapshots(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn open_failure(e: &sled::Error) -> OpenFailure {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match e {
        sled::Error::Io(cause) if cause.to_string().contains("could not acquire lock") => {
            OpenFailure::Locked(cause.to_string())
        }
        sled::Error::Io(cause)
            if matches!(cause.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
                || matches!(cause.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) =>
        {
            OpenFailure::System(sled_error("opened", e))
        }
        e => OpenFailure::Damaged(e.to_string()),
    }
}
