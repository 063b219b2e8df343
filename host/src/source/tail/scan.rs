//! Looking for files: new ones, those that were renamed, those that are gone.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use tracing::info;

use super::followed::{Followed, Moved};
use super::identity::FileId;
use super::patterns::is_absence;
use super::reader::Reader;
use crate::record::Position;

impl Reader {
    /// Looks which files there are now.
    pub(super) fn scan(&mut self) {
        let found = self.patterns.expand();
        if let Some(watch) = &mut self.watch
            && let Err((directory, e)) = watch.set(&found.directories)
        {
            let what = format!(
                "cannot be watched ({e}): it is looked into now and then; fs.inotify.max_user_watches may be too low"
            );
            self.warn_once(&directory, &what);
        }
        for (path, e) in found.unreadable {
            self.warn_once(&path, &format!("cannot be looked into: {e}; it is tried again"));
        }
        let known: HashMap<FileId, usize> = self.files.iter().enumerate().map(|(n, file)| (file.id, n)).collect();
        let mut present = HashMap::new();
        for path in found.paths {
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
            let keeps_name = known.get(&id).and_then(|n| self.files.get(*n)).is_some_and(|file| file.path == path);
            if keeps_name || !present.contains_key(&id) {
                present.insert(id, path);
            }
        }
        for file in &mut self.files {
            match present.remove(&file.id) {
                Some(path) if path == file.path => {
                    if matches!(file.moved, Some(Moved::Away(_))) {
                        file.moved = None;
                    }
                }
                Some(path) => {
                    info!(source = %self.common.source, "{} is now {}", file.path.display(), path.display());
                    file.path = path;
                    file.moved = Some(Moved::Renamed(Instant::now()));
                }
                None if matches!(file.moved, Some(Moved::Away(_))) => {}
                None => file.moved = Some(Moved::Away(Instant::now())),
            }
            file.ready = true;
        }
        let mut new: Vec<_> = present.into_values().collect();
        new.sort();
        for path in new {
            self.follow_new(&path);
        }
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
                    file.moved = Some(Moved::Away(Instant::now()));
                    self.files.push(file);
                }
            }
            self.absent.searched(&directory);
        }
    }

    fn follow_new(&mut self, path: &Path) {
        let opened = Followed::open(path).and_then(|(file, metadata)| {
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
        if !metadata.is_file() || self.files.iter().any(|known| known.id == file.id) {
            return;
        }
        if let Some(position) = position {
            file.resume(&position);
        } else if self.leave_out_old {
            file.skip_to(metadata.len());
            let position = file.position();
            self.common.unrecorded.push(Position {
                source: self.common.source.clone(),
                key: position.id.key(),
                value: position.encode(),
            });
        }
        info!(source = %self.common.source, "following {} from byte {}", path.display(), file.position().offset);
        self.files.push(file);
    }
}
