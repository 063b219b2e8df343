//! Room on the disk for settling, always.
//!
//! A full disk must not keep Wharf from recording that something was delivered: that is what frees space. So a
//! ballast file holds some space, which is given up as soon as the disk is nearly full, and taken again when there is room.
//! sled is not touched at all when even that is not enough: its first failed write would end its handle.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::StateError;

const BALLAST: u64 = 8 << 20;
/// Free space that a change wants to find.
const NEEDED: u64 = 1 << 20;
const REFILL_EVERY: Duration = Duration::from_secs(5);

/// Guards the free space of one directory's file system.
#[derive(Debug)]
pub(super) struct Space {
    dir: PathBuf,
    ballast: PathBuf,
    size: u64,
    there: bool,
    refill_after: Instant,
}

impl Space {
    pub(super) fn new(dir: &Path) -> Self {
        let size =
            rustix::fs::statvfs(dir).map_or(BALLAST, |fs| (fs.f_blocks.saturating_mul(fs.f_frsize) / 20).min(BALLAST));
        let ballast = dir.join("ballast");
        let there = fs::metadata(&ballast).is_ok_and(|file| file.len() >= size);
        let mut space = Self { dir: dir.into(), ballast, size, there, refill_after: Instant::now() };
        space.refill();
        space
    }

    /// Sees to it that a change finds room.
    pub(super) fn ensure(&mut self) -> Result<(), StateError> {
        let needed = NEEDED.min(self.size / 2);
        if self.free() >= needed {
            if !self.there && Instant::now() >= self.refill_after {
                self.refill();
            }
            return Ok(());
        }
        if self.there {
            match fs::remove_file(&self.ballast) {
                Ok(()) => tracing::warn!(
                    bytes = self.size,
                    dir = %self.dir.display(),
                    "the disk is nearly full: the state's reserve is used so that deliveries can be recorded; free some space"
                ),
                Err(e) => {
                    tracing::warn!(file = %self.ballast.display(), error = %e, "the state's reserve cannot be freed")
                }
            }
            self.there = false;
            self.refill_after = Instant::now() + REFILL_EVERY;
        }
        if self.free() >= needed.min(64 << 10) { Ok(()) } else { Err(StateError::DiskFull) }
    }

    fn free(&self) -> u64 {
        // Where the system does not tell, sled's own error has to.
        rustix::fs::statvfs(&self.dir).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize))
    }

    fn refill(&mut self) {
        self.refill_after = Instant::now() + REFILL_EVERY;
        if self.there || self.free() < (64 << 20).min(self.size.saturating_mul(10)) {
            return;
        }
        match self.allocate() {
            Ok(()) => self.there = true,
            Err(e) => {
                let _ = fs::remove_file(&self.ballast);
                tracing::warn!(file = %self.ballast.display(), error = %e, "the state's reserve cannot be made");
            }
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&self.ballast)?;
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.size).is_err() {
            // A file system that cannot reserve has to be written to.
            write_zeros(&mut file, self.size)?;
        }
        file.sync_all()
    }
}

fn write_zeros(file: &mut File, mut bytes: u64) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    while bytes > 0 {
        let piece = usize::try_from(bytes).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(zeros.get(..piece).unwrap_or(&zeros))?;
        bytes = bytes.saturating_sub(piece as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ballast_is_really_allocated() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let space = Space::new(dir.path());
        assert!(space.there);
        let file = fs::metadata(dir.path().join("ballast")).unwrap();
        assert_eq!(file.len(), space.size);
        assert!(file.blocks() * 512 >= space.size);
    }
}
