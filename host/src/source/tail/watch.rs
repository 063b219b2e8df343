//! Being woken when something happens in a directory.
//!
//! inotify is used as it is: the kernel folds a busy file's events into one while nobody reads them, so a fast writer costs
//! one event a look, not one a write. Where it does not work (network file systems, other systems, too few watches left)
//! the reader's own polling finds everything, a little later.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What happened since the last look.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Files that may have grown.
    pub(crate) changed: HashSet<PathBuf>,
    /// Whether names came, went or changed.
    pub(crate) names: bool,
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Watch;
#[cfg(target_os = "linux")]
pub(crate) use linux::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeSet, HashMap};
    use std::ffi::OsStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    use super::{Events, Path, PathBuf};

    const NAMES: ReadFlags = ReadFlags::CREATE
        .union(ReadFlags::DELETE)
        .union(ReadFlags::MOVED_FROM)
        .union(ReadFlags::MOVED_TO)
        .union(ReadFlags::DELETE_SELF)
        .union(ReadFlags::MOVE_SELF)
        .union(ReadFlags::QUEUE_OVERFLOW);

    /// Most events that one look takes.
    const MOST_EVENTS: usize = 4096;

    /// Directories that are watched.
    #[derive(Debug)]
    pub(crate) struct Watch {
        inotify: AsyncFd<OwnedFd>,
        paths: HashMap<i32, PathBuf>,
        watched: HashMap<PathBuf, i32>,
    }

    impl Watch {
        /// Needs to be called within a runtime.
        pub(crate) fn new() -> io::Result<Self> {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            #[expect(
                deprecated,
                reason = "an OwnedFd stays open until it is dropped, which is what the replacement's `unsafe` asks for"
            )]
            let inotify = AsyncFd::with_interest(inotify, tokio::io::Interest::READABLE)?;
            Ok(Self { inotify, paths: HashMap::new(), watched: HashMap::new() })
        }

        /// Watches just these directories. The first error is given; the other directories are watched all the same.
        pub(crate) fn set(&mut self, directories: &BTreeSet<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
            let gone: Vec<PathBuf> = self.watched.keys().filter(|path| !directories.contains(*path)).cloned().collect();
            for path in gone {
                if let Some(watch) = self.watched.remove(&path) {
                    self.paths.remove(&watch);
                    // It may be gone with its directory already.
                    let _ = inotify::remove_watch(self.inotify.get_ref(), watch);
                }
            }
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::MODIFY
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let mut first_error = Ok(());
            for path in directories.iter().filter(|path| !self.watched.contains_key(*path)).collect::<Vec<_>>() {
                match inotify::add_watch(self.inotify.get_ref(), path.as_path(), flags) {
                    Ok(watch) => {
                        self.paths.insert(watch, path.clone());
                        self.watched.insert(path.clone(), watch);
                    }
                    Err(e) if first_error.is_ok() => first_error = Err((path.clone(), e.into())),
                    Err(_) => {}
                }
            }
            first_error
        }

        /// Waits until something happened.
        pub(crate) async fn wait(&self) {
            match self.inotify.readable().await {
                // Whether there is something to read is for `take` to find out.
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => std::future::pending().await,
            }
        }

        /// What happened, without waiting.
        pub(crate) fn take(&mut self) -> Events {
            let mut events = Events::default();
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(self.inotify.get_ref(), &mut buffer);
            let mut forgotten = Vec::new();
            // Bounded, so that busy directories do not keep the reader from reading.
            for _ in 0..MOST_EVENTS {
                let Ok(event) = reader.next() else { break };
                if event.events().contains(ReadFlags::IGNORED) {
                    forgotten.push(event.wd());
                    events.names = true;
                    continue;
                }
                events.names |= event.events().intersects(NAMES);
                if event.events().contains(ReadFlags::MODIFY)
                    && let Some(directory) = self.paths.get(&event.wd())
                    && let Some(name) = event.file_name()
                {
                    events.changed.insert(directory.join(Path::new(OsStr::from_bytes(name.to_bytes()))));
                }
            }
            for watch in forgotten {
                if let Some(path) = self.paths.remove(&watch) {
                    self.watched.remove(&path);
                }
            }
            events
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::collections::BTreeSet;
    use std::io;

    use super::{Events, PathBuf};

    /// Nothing is watched here.
    #[derive(Debug)]
    pub(crate) struct Watch;

    impl Watch {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }
        pub(crate) fn set(&mut self, _directories: &BTreeSet<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
            Ok(())
        }
        pub(crate) async fn wait(&self) {
            std::future::pending().await
        }
        pub(crate) fn take(&mut self) -> Events {
            Events::default()
        }
    }
}
