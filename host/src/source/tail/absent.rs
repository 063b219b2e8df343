//! Positions of files that are not followed at the moment: they may come back, also compressed, and are not remembered for ever.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::followed::Followed;
use super::identity::{FileId, Fingerprint};
use super::position::FilePosition;
use super::recognise::Candidate;

/// A file that was not found for so long while Wharf ran is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60 * 60);

/// One that gave nothing for so long is forgotten as soon as its directory was found without it, so that
/// a Wharf that is restarted often does not gather positions for ever. Seconds.
const FORGET_IDLE_AFTER: i64 = 7 * 24 * 60 * 60;

/// Most files that are gone and are remembered because they may come back compressed. One whose rotated files are never seen again would
/// gather them.
const MOST_FORMERS: usize = 1000;

/// Positions of files that are not there.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// By the stretch of a file, the oldest first.
    entries: BTreeMap<u64, Entry>,
    by_id: HashMap<FileId, Vec<u64>>,
    /// Whether files that are gone, or begin anew, are remembered because they may come back compressed.
    remembers: bool,
    /// Such positions that are not on the disk yet.
    unkept: Vec<FilePosition>,
}

#[derive(Debug)]
struct Entry {
    position: FilePosition,
    since: Instant,
    /// Whether its directory was found without it.
    searched: bool,
}

impl Absent {
    /// `remembers`: also files that are gone for good, because they may come back compressed.
    pub(crate) fn new(remembers: bool) -> Self {
        Self { remembers, ..Self::default() }
    }

    /// A file that is not followed (any more).
    pub(crate) fn insert(&mut self, stretch: u64, position: FilePosition) {
        if !position.is_former {
            self.by_id.entry(position.id).or_default().push(stretch);
        }
        self.entries.insert(stretch, Entry { position, since: Instant::now(), searched: false });
    }

    /// A file that is gone, or begins anew, and may come back compressed. It is to be kept: see [`Self::unkept`]. Whether it is remembered.
    pub(crate) fn insert_former(&mut self, stretch: u64, position: FilePosition) -> bool {
        let remembered = self.remembers && position.member.is_none() && position.mark.is_some();
        if remembered {
            let position = FilePosition { is_former: true, ..position };
            self.unkept.push(position.clone());
            self.insert(stretch, position);
        }
        remembered
    }

    /// Those that are to be kept.
    pub(crate) fn unkept(&mut self) -> Vec<FilePosition> {
        std::mem::take(&mut self.unkept)
    }

    /// The position of this file, if it has one. A position of an earlier file with the same inode is dropped: the new
    /// file's will take its place.
    pub(crate) fn take(&mut self, file: &Followed) -> io::Result<Option<FilePosition>> {
        let mut found = None;
        for stretch in self.by_id.get(&file.id).cloned().unwrap_or_default() {
            let is_it = match self.entries.get(&stretch) {
                Some(entry) => file.is_of(&entry.position)?,
                None => continue,
            };
            let Some(position) = self.remove(stretch) else { continue };
            if is_it && found.is_none() {
                found = Some(position);
            } else if !is_it {
                self.insert_former(stretch, position);
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        // Devices may be numbered anew by a restart of the machine.
        let path = file.place().to_string_lossy();
        for entry in self.entries.values().filter(|entry| !entry.position.is_former) {
            let position = &entry.position;
            let same_place = position.id.inode == file.id.inode && position.path == path;
            if same_place && position.fingerprint.bytes > 0 && file.is_of(position)? {
                return Ok(Some(position.clone()));
            }
        }
        Ok(None)
    }

    /// Takes the position out that this stretch ended with.
    pub(crate) fn remove(&mut self, stretch: u64) -> Option<FilePosition> {
        let entry = self.entries.remove(&stretch)?;
        if let Some(of_id) = self.by_id.get_mut(&entry.position.id) {
            of_id.retain(|other| *other != stretch);
            if of_id.is_empty() {
                self.by_id.remove(&entry.position.id);
            }
        }
        Some(entry.position)
    }

    /// The position that this stretch ended with.
    pub(crate) fn get(&self, stretch: u64) -> Option<&FilePosition> {
        self.entries.get(&stretch).map(|entry| &entry.position)
    }

    /// Files of which something was read, and which may have been compressed since; those that begin as `begins` has it.
    pub(crate) fn candidates(&self, mut begins: impl FnMut(Fingerprint) -> bool) -> Vec<Candidate> {
        let plain = self.entries.iter().filter(|(_, entry)| entry.position.member.is_none());
        let read = plain.filter(|(_, entry)| entry.position.offset > 0 && entry.position.mark.is_some());
        let alike = read.filter(|(_, entry)| begins(entry.position.fingerprint));
        let candidate = |(stretch, entry): (&u64, &Entry)| {
            let FilePosition { offset, mark, .. } = entry.position;
            Candidate { stretch: *stretch, is_followed: false, offset, mark }
        };
        alike.map(candidate).collect()
    }

    /// The directories where absent files were last seen.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let absent = self.entries.values().filter(|entry| !entry.position.is_former);
        let mut directories: Vec<PathBuf> = absent.filter_map(Entry::directory).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// Whether the file is one of these.
    pub(crate) fn contains(&self, id: FileId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// A directory was looked through: what is still absent is not there.
    pub(crate) fn searched(&mut self, directory: &Path) {
        for entry in self.entries.values_mut() {
            if entry.directory().is_some_and(|its| its == directory) {
                entry.searched = true;
            }
        }
    }

    /// Takes out what is to be forgotten: the keys of positions. A file that is still in its directory is not, under whatever name: it may be
    /// compressed one day.
    pub(crate) fn expired(&mut self, now: Instant, now_seconds: i64) -> Vec<String> {
        let mut inodes: HashMap<PathBuf, HashSet<u64>> = HashMap::new();
        let mut expired = Vec::new();
        for (stretch, entry) in &mut self.entries {
            let idle = entry.searched && now_seconds - entry.position.at > FORGET_IDLE_AFTER;
            if !idle && now.duration_since(entry.since) < FORGET_AFTER {
                continue;
            }
            let directory = entry.directory().filter(|_| self.remembers && !entry.position.is_former);
            let is_there = directory.is_some_and(|directory| {
                let there = inodes.entry(directory).or_insert_with_key(|directory| inodes_in(directory));
                there.contains(&entry.position.id.inode)
            });
            if is_there {
                (entry.since, entry.searched) = (now, false);
            } else {
                expired.push(*stretch);
            }
        }
        let formers = self.entries.iter().filter(|(_, entry)| entry.position.is_former).map(|(stretch, _)| *stretch);
        let formers: Vec<u64> = formers.collect();
        expired.extend(formers.iter().take(formers.len().saturating_sub(MOST_FORMERS)));
        expired.into_iter().filter_map(|stretch| Some(self.remove(stretch)?.key())).collect()
    }
}

fn inodes_in(directory: &Path) -> HashSet<u64> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.ino()).collect()
}

impl Entry {
    fn directory(&self) -> Option<PathBuf> {
        Path::new(&self.position.path).parent().map(Path::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::source::tail::identity::Mark;

    fn position(inode: u64, at: i64) -> FilePosition {
        FilePosition {
            id: FileId { device: 1, inode },
            fingerprint: Fingerprint { hash: 1, bytes: 2 },
            offset: 5,
            mark: Some(Mark { at: 5, before: Fingerprint { hash: inode, bytes: 5 } }),
            member: None,
            is_former: false,
            skipping: false,
            path: "/logs/a".into(),
            at,
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_hour_of_absence_is_forgotten() {
        let mut absent = Absent::new(true);
        absent.insert(1, position(1, 1_000_000));
        let now = Instant::now();
        assert!(absent.expired(now + HOUR - Duration::from_secs(10), 1_000_000).is_empty());
        assert_eq!(absent.expired(now + HOUR, 1_000_000), ["1:1"]);
        assert!(!absent.contains(FileId { device: 1, inode: 1 }));
    }

    #[test]
    fn a_file_that_is_still_in_its_directory_is_remembered_where_it_may_be_compressed_one_day() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("app.log.1"), "x").unwrap();
        let inode = fs::metadata(directory.path().join("app.log.1")).unwrap().ino();
        let there = FilePosition { path: directory.path().join("app.log").display().to_string(), ..position(inode, 0) };
        for (remembers, forgotten) in [(true, 0), (false, 1)] {
            let mut absent = Absent::new(remembers);
            absent.insert(1, there.clone());
            let now = Instant::now();
            assert_eq!(absent.expired(now + HOUR, 0).len(), forgotten);
            if remembers {
                fs::remove_file(directory.path().join("app.log.1")).unwrap();
                assert!(absent.expired(now + HOUR + HOUR / 2, 0).is_empty());
                assert_eq!(absent.expired(now + 2 * HOUR, 0).len(), 1);
                fs::write(directory.path().join("app.log.1"), "x").unwrap();
            }
        }
    }

    #[test]
    fn of_files_that_are_gone_for_good_the_last_thousand_are_remembered() {
        let mut absent = Absent::new(true);
        (1..=1002).for_each(|n| assert!(absent.insert_former(n, position(n, 0))));
        assert_eq!(absent.unkept().len(), 1002);
        assert_eq!(absent.expired(Instant::now(), 0), ["was:1:5:1", "was:1:5:2"]);
        assert!(absent.get(2).is_none() && absent.get(3).is_some());
        assert!(!Absent::new(false).insert_former(1, position(1, 0)));
    }

    #[test]
    fn a_week_without_records_is_forgotten_at_once_but_only_where_the_directory_is_there() {
        let (now, week) = (Instant::now(), 7 * 86_400);
        let mut absent = Absent::new(true);
        absent.insert(1, position(1, 0));
        assert!(absent.expired(now, week + 1).is_empty());
        absent.searched(Path::new("/logs"));
        assert!(absent.expired(now, week).is_empty());
        assert_eq!(absent.expired(now, week + 1), ["1:1"]);
    }
}
