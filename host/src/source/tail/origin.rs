//! Compressed files that are new: whether they are what was read already.

use std::collections::{HashMap, HashSet};

use tracing::info;

use super::compressed::Origin;
use super::identity::Fingerprint;
use super::reader::Reader;
use super::recognise::{Candidate, Search, Sought};
use crate::record::Position;
use crate::source::lane::Stopping;

impl Reader {
    /// Goes on to find out what the compressed files were that are new.
    pub(super) fn seek_origins(&mut self) -> Result<(), Stopping> {
        if !self.files.iter().any(super::followed::Followed::is_sought) {
            return Ok(());
        }
        let followed: HashSet<u64> = self.files.iter().map(|file| file.stretch).collect();
        for n in 0..self.files.len() {
            let Some(file) = self.files.get_mut(n).filter(|file| file.is_sought()) else { continue };
            match file.follows() {
                // Whatever that gives is not given again, and what this has more than that is read after it.
                Some(stretch) if followed.contains(&stretch) => file.ready = false,
                Some(stretch) if self.absent.get(stretch).is_some() => self.take_over(n, stretch)?,
                Some(_) => file.set_origin(Origin::Sought(Box::default()), &self.common.turns),
                None if file.ready => self.seek(n)?,
                None => {}
            }
        }
        Ok(())
    }

    fn seek(&mut self, n: usize) -> Result<(), Stopping> {
        let Some(file) = self.files.get_mut(n) else { return Ok(()) };
        match file.seek(&mut self.common) {
            Ok(Sought::Goes | Sought::Waits) => {}
            Ok(Sought::Begins) => self.compare(n),
            Ok(Sought::Found(None)) => {
                info!(source = %self.common.source, "{} is compressed, and none of the files that were read", file.path.display());
                file.resume_from(None);
            }
            Ok(Sought::Found(Some(Candidate { stretch, is_followed: true, .. }))) => {
                file.set_origin(Origin::Follows(stretch), &self.common.turns);
            }
            Ok(Sought::Found(Some(Candidate { stretch, .. }))) if self.absent.get(stretch).is_some() => {
                self.take_over(n, stretch)?;
            }
            // It was found under another name meanwhile.
            Ok(Sought::Found(Some(_))) => file.set_origin(Origin::Sought(Box::default()), &self.common.turns),
            Err(e) => {
                let path = file.path.clone();
                file.heard = false;
                self.warn_once(&path, &format!("reading failed: {e}; it is tried again"));
            }
        }
        Ok(())
    }

    /// Has a file compared with those that begin like it.
    fn compare(&mut self, n: usize) {
        let Some(search) = self.files.get_mut(n).and_then(|file| file.search().map(std::mem::take)) else { return };
        let mut known: HashMap<(u64, u32), bool> = HashMap::new();
        let mut begins =
            |first: Fingerprint| *known.entry((first.hash, first.bytes)).or_insert_with(|| search.begins_with(first));
        let mut candidates = self.absent.candidates(&mut begins);
        let followed = self.files.iter().filter(|file| file.begins().is_some_and(&mut begins));
        candidates.extend(followed.map(super::followed::Followed::as_candidate));
        let mut search: Search = search;
        search.compare_with(candidates);
        if let Some(place) = self.files.get_mut(n).and_then(|file| file.search()) {
            *place = search;
        }
    }

    /// The file is what that stretch was, compressed: it is gone on with where that ended.
    fn take_over(&mut self, n: usize, stretch: u64) -> Result<(), Stopping> {
        // What was read of it has to be on the disk before it counts as read.
        self.runtime.block_on(self.lane.drain())?;
        let (Some(file), Some(former)) = (self.files.get_mut(n), self.absent.get(stretch)) else { return Ok(()) };
        info!(source = %self.common.source, "{} is what {} was, compressed: it is gone on with from byte {}",
              file.path.display(), former.path, former.offset);
        file.resume_from(Some(former));
        let (position, key) = (file.position(), former.key());
        let source = self.common.source.clone();
        self.common.unrecorded.push(Position { source, key: position.key(), value: position.encode() });
        if self.keep_unrecorded() {
            // It is not taken for another file that is the same.
            self.absent.remove(stretch);
            self.runtime.block_on(self.sink.forget(&self.common.source, vec![key]));
        }
        Ok(())
    }

    /// Keeps the positions of files that are gone and may come back compressed. What was read of them is on the disk first. Whether it is done.
    pub(super) fn keep_formers(&mut self) -> Result<bool, Stopping> {
        let formers = self.absent.unkept();
        if formers.is_empty() {
            return Ok(true);
        }
        self.runtime.block_on(self.lane.drain())?;
        let source = &self.common.source;
        let kept = formers.iter().map(|it| Position { source: source.clone(), key: it.key(), value: it.encode() });
        self.common.unrecorded.extend(kept);
        Ok(self.keep_unrecorded())
    }
}
