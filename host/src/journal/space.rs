//! How much room the disk has.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How old an answer may be.
const FRESH: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct FreeSpace {
    dir: PathBuf,
    last: Option<(Instant, u64)>,
}

impl FreeSpace {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, last: None }
    }

    /// Bytes free, as of at most 100 ms ago.
    pub(super) fn bytes(&mut self) -> io::Result<u64> {
        match self.last {
            Some((at, free)) if at.elapsed() < FRESH => Ok(free),
            _ => self.bytes_now(),
        }
    }

    /// Bytes free now, for a process without privileges.
    pub(super) fn bytes_now(&mut self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.dir)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        self.last = Some((Instant::now(), free));
        Ok(free)
    }
}

/// Whether an error means that there is no room, rather than that the disk is failing.
pub(super) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
