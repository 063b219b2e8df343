//! Being woken when something happens in a directory.
//!
//! inotify is used as it is: the kernel folds a busy file's events into one while nobody reads them, so a fast writer costs
//! one event a look, not one a write. Where it does not work (network file systems, other systems, too few watches left)
//! the reader's own polling finds everything, a little later. [`is_local`] says where nothing is to be heard.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// What happened since the last look.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Files that may have grown.
    pub(crate) changed: HashSet<PathBuf>,
    /// Whether names came, went or changed.
    pub(crate) names: bool,
    /// Whether there is more to take at once.
    pub(crate) more: bool,
}

/// What is watched now.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Whether directories are among it that were not: what happened in them before was not heard.
    pub(crate) more: bool,
    /// The first directory that cannot be watched, and why; the others are watched all the same.
    pub(crate) error: Option<(PathBuf, io::Error)>,
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Watch, is_local};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Watch, is_local};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeSet, HashMap};
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    use super::{Events, Path, PathBuf, Watched};

    const NAMES: ReadFlags = ReadFlags::CREATE
        .union(ReadFlags::DELETE)
        .union(ReadFlags::MOVED_FROM)
        .union(ReadFlags::MOVED_TO)
        .union(ReadFlags::DELETE_SELF)
        .union(ReadFlags::MOVE_SELF)
        .union(ReadFlags::QUEUE_OVERFLOW);

    /// File systems whose changes all pass through this kernel (`linux/magic.h`, statfs(2)): there a watch hears of each write. On others,
    /// such as NFS, SMB and FUSE, somebody else may write unheard.
    const LOCAL: [u32; 13] = [
        0x0000_ef53, // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683e, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlayfs
        0x2fc1_2fc1, // zfs
        0xf2f5_2010, // f2fs
        0xca45_1a4e, // bcachefs
        0x5265_4973, // reiserfs
        0x3153_464a, // jfs
        0x0000_4d44, // vfat
        0x2011_bab0, // exfat
    ];

    /// Whether a watch on this directory hears of all that is written there.
    pub(crate) fn is_local(directory: &Path) -> bool {
        // The type's width differs between architectures; magic numbers have 32 bits.
        rustix::fs::statfs(directory).is_ok_and(|fs| LOCAL.contains(&(fs.f_type as u32)))
    }

    /// Most events that one look takes.
    const MOST_EVENTS: usize = 4096;

    /// Directories that are watched.
    #[derive(Debug)]
    pub(crate) struct Watch {
        inotify: AsyncFd<OwnedFd>,
        /// A directory that is reached by several names has one watch.
        paths: HashMap<i32, Vec<PathBuf>>,
        watched: HashMap<PathBuf, i32>,
    }

    impl Watch {
        /// Needs to be called within a runtime.
        pub(crate) fn new() -> std::io::Result<Self> {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            #[expect(
                deprecated,
                reason = "an OwnedFd stays open until it is dropped, which is what the replacement's `unsafe` asks for"
            )]
            let inotify = AsyncFd::with_interest(inotify, tokio::io::Interest::READABLE)?;
            Ok(Self { inotify, paths: HashMap::new(), watched: HashMap::new() })
        }

        /// Watches just these directories.
        pub(crate) fn set(&mut self, directories: &BTreeSet<PathBuf>) -> Watched {
            let gone: Vec<PathBuf> = self.watched.keys().filter(|path| !directories.contains(*path)).cloned().collect();
            for path in gone {
                let Some(watch) = self.watched.remove(&path) else { continue };
                let Some(names) = self.paths.get_mut(&watch) else { continue };
                names.retain(|name| *name != path);
                if names.is_empty() {
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
            let mut watched = Watched::default();
            for path in directories.iter().filter(|path| !self.watched.contains_key(*path)).collect::<Vec<_>>() {
                match inotify::add_watch(self.inotify.get_ref(), path.as_path(), flags) {
                    Ok(watch) => {
                        self.paths.entry(watch).or_default().push(path.clone());
                        self.watched.insert(path.clone(), watch);
                        watched.more = true;
                    }
                    Err(e) if watched.error.is_none() => watched.error = Some((path.clone(), e.into())),
                    Err(_) => {}
                }
            }
            watched
        }

        /// Whether what happens in this directory is heard.
        pub(crate) fn hears(&self, directory: &Path) -> bool {
            self.watched.contains_key(directory)
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
            // Bounded, so that busy directories do not keep the reader from reading; but what is in the buffer was taken.
            for taken in 0.. {
                if taken >= MOST_EVENTS && reader.is_buffer_empty() {
                    events.more = true;
                    break;
                }
                let Ok(event) = reader.next() else { break };
                if event.events().contains(ReadFlags::IGNORED) {
                    forgotten.push(event.wd());
                    events.names = true;
                    continue;
                }
                events.names |= event.events().intersects(NAMES);
                if event.events().contains(ReadFlags::MODIFY)
                    && let Some(directories) = self.paths.get(&event.wd())
                    && let Some(name) = event.file_name()
                {
                    let name = Path::new(OsStr::from_bytes(name.to_bytes()));
                    events.changed.extend(directories.iter().map(|directory| directory.join(name)));
                }
            }
            for watch in forgotten {
                for path in self.paths.remove(&watch).unwrap_or_default() {
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

    use super::{Events, Path, PathBuf, Watched};

    /// Nothing is heard here.
    pub(crate) fn is_local(_directory: &Path) -> bool {
        false
    }

    /// Nothing is watched here.
    #[derive(Debug)]
    pub(crate) struct Watch;

    impl Watch {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }
        pub(crate) fn set(&mut self, _directories: &BTreeSet<PathBuf>) -> Watched {
            Watched::default()
        }
        pub(crate) fn hears(&self, _directory: &Path) -> bool {
            false
        }
        pub(crate) async fn wait(&self) {
            std::future::pending().await
        }
        pub(crate) fn take(&mut self) -> Events {
            Events::default()
        }
    }
}
