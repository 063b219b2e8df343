//! How many changes sled has taken, kept beside it.
//!
//! sled can open after damage as if nothing had happened, with an older state. So after each durable change its number
//! is also written here. It is not synced (that would double the cost of a change): after a power cut it may be
//! old, but it is never ahead of what sled had made durable. A sled that is behind it has fallen back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files;

#[derive(Debug)]
pub(super) struct Mark {
    file: File,
}

impl Mark {
    /// Opens the file, and gives what it says where it says anything.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<u64>)> {
        let content = files::read(path)?;
        let commits = content.as_deref().and_then(decode);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        Ok((Self { file }, commits))
    }

    /// Notes that so many changes are durable. Where that fails, a fall back is found less surely; nothing else.
    pub(super) fn set(&self, commits: u64) {
        let mut content = [0; 12];
        let (number, crc) = content.split_at_mut(8);
        number.copy_from_slice(&commits.to_be_bytes());
        crc.copy_from_slice(&files::crc(&commits.to_be_bytes()).to_be_bytes());
        if let Err(e) = self.file.write_all_at(&content, 0) {
            tracing::debug!(error = %e, "the state's count of changes cannot be written");
        }
    }
}

fn decode(content: &[u8]) -> Option<u64> {
    let (number, rest) = content.split_first_chunk::<8>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    (files::crc(number) == u32::from_be_bytes(*crc)).then(|| u64::from_be_bytes(*number))
}
