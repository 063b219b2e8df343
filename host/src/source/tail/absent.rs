//! Positions of files that are not followed at the moment: they may come back, and are not remembered for ever.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::followed::Followed;
use super::identity::FileId;
use super::position::FilePosition;

/// A file that was not found for so long while Wharf ran is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60 * 60);

/// One that gave nothing for so long is forgotten as soon as its directory was found without it, so that
/// a Wharf that is restarted often does not gather positions for ever. Seconds.
const FORGET_IDLE_AFTER: i64 = 7 * 24 * 60 * 60;

/// Positions of files that are not there.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    positions: HashMap<FileId, Entry>,
}

#[derive(Debug)]
struct Entry {
    position: FilePosition,
    since: Instant,
    /// Whether its directory was found without it.
    searched: bool,
}

impl Absent {
    pub(crate) fn insert(&mut self, position: FilePosition) {
        self.positions.insert(position.id, Entry { position, since: Instant::now(), searched: false });
    }

    /// The position of this file, if it has one. A position of an earlier file with the same inode is dropped: the new
    /// file's will take its place.
    pub(crate) fn take(&mut self, file: &Followed) -> io::Result<Option<FilePosition>> {
        if let Some(entry) = self.positions.remove(&file.id) {
            if file.is_of(&entry.position)? {
                return Ok(Some(entry.position));
            }
            return Ok(None);
        }
        // Devices may be numbered anew by a restart of the machine.
        let path = file.place().to_string_lossy();
        for entry in self.positions.values() {
            let position = &entry.position;
            let same_place = position.id.inode == file.id.inode && position.path == path;
            if same_place && position.fingerprint.bytes > 0 && file.is_of(position)? {
                return Ok(Some(position.clone()));
            }
        }
        Ok(None)
    }

    /// The directories where absent files were last seen.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = self.positions.values().filter_map(Entry::directory).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// Whether the file is one of these.
    pub(crate) fn contains(&self, id: FileId) -> bool {
        self.positions.contains_key(&id)
    }

    /// A directory was looked through: what is still absent is not there.
    pub(crate) fn searched(&mut self, directory: &Path) {
        for entry in self.positions.values_mut() {
            if entry.directory().is_some_and(|its| its == directory) {
                entry.searched = true;
            }
        }
    }

    /// Takes out what is to be forgotten: the keys of positions.
    pub(crate) fn expired(&mut self, now: Instant, now_seconds: i64) -> Vec<String> {
        let expired = |entry: &mut Entry| {
            let idle = entry.searched && now_seconds - entry.position.at > FORGET_IDLE_AFTER;
            idle || now.duration_since(entry.since) >= FORGET_AFTER
        };
        self.positions.extract_if(|_, entry| expired(entry)).map(|(id, _)| id.key()).collect()
    }
}

impl Entry {
    fn directory(&self) -> Option<PathBuf> {
        Path::new(&self.position.path).parent().map(Path::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tail::identity::Fingerprint;

    fn position(inode: u64, at: i64) -> FilePosition {
        let id = FileId { device: 1, inode };
        FilePosition { id, fingerprint: Fingerprint::default(), offset: 5, skipping: false, path: "/logs/a".into(), at }
    }

    #[test]
    fn an_hour_of_absence_is_forgotten() {
        let mut absent = Absent::default();
        absent.insert(position(1, 1_000_000));
        let now = Instant::now();
        assert!(absent.expired(now + Duration::from_secs(3590), 1_000_000).is_empty());
        assert_eq!(absent.expired(now + Duration::from_secs(3601), 1_000_000), ["1:1"]);
        assert!(!absent.contains(FileId { device: 1, inode: 1 }));
    }

    #[test]
    fn a_week_without_records_is_forgotten_at_once_but_only_where_the_directory_is_there() {
        let (now, week) = (Instant::now(), 7 * 86_400);
        let mut absent = Absent::default();
        absent.insert(position(1, 0));
        assert!(absent.expired(now, week + 1).is_empty());
        absent.searched(Path::new("/logs"));
        assert!(absent.expired(now, week).is_empty());
        assert_eq!(absent.expired(now, week + 1), ["1:1"]);
    }
}
