//! Looking for files: new ones, those that were renamed, those that are gone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tracing::info;

use super::followed::{Followed, Moved};
use super::identity::FileId;
use super::patterns::is_absence;
use super::reader::Reader;
use super::watch::is_local;
use crate::record::Position;

/// A file that is there.
struct Present {
    path: PathBuf,
    /// Where it is in truth, where its name is a link.
    real: Option<PathBuf>,
    /// Whether a watch reports all of its growth.
    heard: bool,
    metadata: Metadata,
}

impl Reader {
    /// Looks which files there are now.
    pub(super) fn scan(&mut self) {
        let mut found = self.patterns.expand();
        // A file that is reached by a link grows in another directory: there its growth is to be heard.
        let mut linked: HashMap<PathBuf, PathBuf> = HashMap::new();
        for path in found.paths.iter().filter(|(_, is_link)| **is_link).map(|(path, _)| path) {
            let Ok(real) = fs::canonicalize(path) else { continue };
            found.directories.extend(real.parent().map(Path::to_owned));
            linked.insert(path.clone(), real);
        }
        let hearing = self.listen(&found.directories);
        self.names_heard = hearing.len() == found.directories.len();
        for (path, e) in found.unreadable {
            self.warn_once(&path, &format!("cannot be looked into: {e}; it is tried again"));
        }
        let mut present: HashMap<FileId, Present> = HashMap::new();
        for path in found.paths.into_keys() {
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(e) if is_absence(&e) => continue,
                Err(e) => {
                    self.warn_once(&path, &format!("cannot be looked at: {e}; it is tried again"));
                    continue;
                }
            };
            if metadata.is_dir() {
                continue;
            }
            if !metadata.is_file() {
                self.warn_once(&path, "is not a regular file, and is left out");
                continue;
            }
            let id = FileId::of(&metadata);
            // Of several names, one that is known already is kept.
            let keeps_name = self.by_id.get(&id).and_then(|n| self.files.get(*n)).is_some_and(|file| file.path == path);
            if keeps_name || !present.contains_key(&id) {
                let real = linked.remove(&path);
                let directory = real.as_ref().unwrap_or(&path).parent();
                // Who writes by another name, in a directory that nobody watches, is not heard.
                let heard = metadata.nlink() == 1 && directory.is_some_and(|directory| hearing.contains(directory));
                present.insert(id, Present { path, real, heard, metadata });
            }
        }
        let now = Instant::now();
        for file in &mut self.files {
            match present.remove(&file.id) {
                Some(there) => {
                    // Its growth is found even where no watch reports it, and it costs nothing more.
                    file.ready |= file.differs(&there.metadata);
                    file.real = there.real;
                    file.heard = there.heard;
                    if there.path != file.path {
                        info!(source = %self.common.source, "{} is now {}", file.path.display(), there.path.display());
                        file.path = there.path;
                        file.moved = Some(Moved::Renamed(now));
                    } else if matches!(file.moved, Some(Moved::Away(_))) {
                        file.moved = None;
                    }
                }
                None if matches!(file.moved, Some(Moved::Away(_))) => {}
                None => {
                    file.moved = Some(Moved::Away(now));
                    file.heard = false;
                    file.ready = true;
                }
            }
        }
        let mut new: Vec<_> = present.into_values().collect();
        new.sort_by(|one, other| one.path.cmp(&other.path));
        self.ignored.clear();
        for there in new {
            self.follow_new(there);
        }
        self.index();
    }

    /// Watches just these directories. Gives those where all that is written is heard.
    fn listen(&mut self, directories: &BTreeSet<PathBuf>) -> HashSet<PathBuf> {
        let Some(watch) = &mut self.watch else { return HashSet::new() };
        let watched = watch.set(directories);
        // What happened between the look at a directory and its watch was not heard.
        self.names_changed |= watched.more;
        let heard = directories.iter().filter(|directory| watch.hears(directory) && is_local(directory));
        let heard = heard.cloned().collect();
        if let Some((directory, e)) = watched.error {
            let what = format!(
                "cannot be watched ({e}): it is looked into now and then; fs.inotify.max_user_watches may be too low"
            );
            self.warn_once(&directory, &what);
        }
        heard
    }

    /// Notes where each file is among all.
    pub(super) fn index(&mut self) {
        self.by_id = self.files.iter().enumerate().map(|(n, file)| (file.id, n)).collect();
        let names = self.files.iter().enumerate().filter(|(_, file)| file.heard);
        self.by_name = names.map(|(n, file)| (file.place().to_owned(), n)).collect();
    }

    /// Files that were read before, have no matching name now, and are still in their directory: rotated while Wharf
    /// did not run. They are read to their end.
    pub(super) fn find_moved(&mut self) {
        for directory in self.absent.directories() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if !metadata.is_file() || !self.absent.contains(FileId::of(&metadata)) {
                    continue;
                }
                let Ok((mut file, _)) = Followed::open(&entry.path()) else { continue };
                if let Ok(Some(position)) = self.absent.take(&file) {
                    info!(source = %self.common.source, "{} was {}: it is read to its end, from byte {}",
                          file.path.display(), position.path, position.offset);
                    file.resume(&position);
                    file.configure(&mut self.common);
                    file.moved = Some(Moved::Away(Instant::now()));
                    self.files.push(file);
                }
            }
            self.absent.searched(&directory);
        }
        self.index();
    }

    fn is_too_old(&self, metadata: &Metadata) -> bool {
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        self.ignore_older.is_some_and(|limit| age.is_some_and(|age| age > limit))
    }

    fn follow_new(&mut self, there: Present) {
        let path = there.path.as_path();
        // One that was read before is followed: its position must not be forgotten.
        if self.is_too_old(&there.metadata) && !self.absent.contains(FileId::of(&there.metadata)) {
            self.ignored.insert(there.real.unwrap_or(there.path));
            return;
        }
        let opened = Followed::open(path).and_then(|(mut file, metadata)| {
            if file.id == FileId::of(&there.metadata) {
                file.real = there.real.clone();
                file.heard = there.heard;
            }
            let position = self.absent.take(&file)?;
            Ok((file, metadata, position))
        });
        let (mut file, metadata, position) = match opened {
            Ok(opened) => opened,
            Err(e) if is_absence(&e) => return,
            Err(e) => {
                self.warn_once(path, &format!("cannot be read: {e}; it is tried again"));
                return;
            }
        };
        // Between the look and the opening, the name may have got another file.
        if !metadata.is_file() || self.by_id.contains_key(&file.id) {
            return;
        }
        file.configure(&mut self.common);
        if file.is_left_out() {
            self.warn_once(path, "is compressed, and left out (compressed: skip)");
        } else if let Some(position) = position {
            file.resume(&position);
        } else if self.leave_out_old {
            file.skip_to(metadata.len());
            let position = file.position();
            self.common.unrecorded.push(Position {
                source: self.common.source.clone(),
                key: position.key(),
                value: position.encode(),
            });
        }
        if file.is_sought() {
            info!(source = %self.common.source, "following {}, which is compressed", path.display());
        } else {
            info!(source = %self.common.source, "following {} from byte {}", path.display(), file.offset());
        }
        self.by_id.insert(file.id, self.files.len());
        self.files.push(file);
    }
}
