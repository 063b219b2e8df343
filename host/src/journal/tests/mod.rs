//! What the journal promises, on real files.

mod behaviour;
mod damage;
mod failures;
mod full;
mod model;
mod power;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{AppendError, Condition, Journal, Options, Recovery};
use crate::record::{BodyKind, Chunk, ChunkBuilder, ChunkId};

/// Makes the disk fail where it is asked to.
#[derive(Default)]
pub(super) struct Faults {
    syncs: AtomicU32,
    makes: AtomicU32,
}

impl Faults {
    pub(super) fn on_sync(&self) -> io::Result<()> {
        fail(&self.syncs)
    }
    pub(super) fn on_make(&self) -> io::Result<()> {
        fail(&self.makes)
    }
}

fn fail(left: &AtomicU32) -> io::Result<()> {
    match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EIO)),
        Err(_) => Ok(()),
    }
}

/// The smallest segments there are: 64 KiB.
fn small() -> Options {
    Options { segment_bytes: 64 << 10, max_bytes: None, reserve_bytes: 0 }
}

/// A data directory.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }
    fn journal(&self) -> PathBuf {
        self.root.path().join("journal")
    }
    fn quarantine(&self) -> PathBuf {
        self.root.path().join("quarantine")
    }
    fn open_with(&self, options: Options) -> (Journal, Recovery) {
        let (journal, recovery) = Journal::open(&self.journal(), &self.quarantine(), options).unwrap();
        journal.start(Box::new(|_| {}));
        (journal, recovery)
    }
    fn open(&self) -> (Journal, Recovery) {
        self.open_with(small())
    }
    /// A crash: the directory as it is now, without anybody having closed it.
    fn crash(&self, journal: &Journal) -> Self {
        settle(journal);
        self.crash_now()
    }
    /// The same for a writer that is known to be at rest.
    fn crash_now(&self) -> Self {
        let copy = Self::new();
        std::fs::create_dir(copy.journal()).unwrap();
        for file in std::fs::read_dir(self.journal()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.journal().join(file.file_name())).unwrap();
        }
        copy
    }
    /// Segment files, oldest first.
    fn segments(&self) -> Vec<PathBuf> {
        let mut segments = files(&self.journal(), "seg");
        segments.sort();
        segments
    }
    fn spares(&self) -> usize {
        files(&self.journal(), "free").len()
    }
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).into_iter().flatten().map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|is| is == extension)).collect()
}

/// A chunk of one record.
fn chunk(body: &[u8]) -> Chunk {
    let mut builder = ChunkBuilder::new(BodyKind::Text, "app".into());
    builder.push(1_700_000_000_000_000_000, body);
    builder.finish().unwrap()
}

/// Bytes that differ by `seed`, without line feeds.
fn body(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'a' + (state % 26) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn body_of(chunk: &Chunk) -> Vec<u8> {
    chunk.record(0).unwrap().body.to_vec()
}

fn append(journal: &Journal, body: &[u8]) -> Result<u64, AppendError> {
    journal.append(chunk(body)).blocking_recv().unwrap().map(|id| id.0)
}

fn ids(recovery: &Recovery) -> Vec<u64> {
    recovery.chunks.iter().map(|(id, _)| id.0).collect()
}

fn read(journal: &Journal, id: u64) -> Vec<u8> {
    body_of(&journal.read(ChunkId(id)).unwrap())
}

fn nothing_wrong(recovery: &Recovery) {
    assert_eq!(recovery.cut, []);
    assert_eq!(recovery.quarantined, []);
}

/// Polls until it is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the writer has nothing to do.
fn settle(journal: &Journal) {
    until("the writer is idle", || {
        let work = journal.shared.work();
        work.closing || (work.idle && work.waiting.is_empty() && !work.reclaim)
    });
}

fn until_writable(journal: &Journal) {
    until("the journal takes appends", || *journal.condition().borrow() == Condition::Writable);
}

fn hear() -> (super::OnCommit, Arc<std::sync::Mutex<Vec<u64>>>) {
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = heard.clone();
    let on_commit = move |group: &[(ChunkId, Arc<crate::record::ChunkMeta>)]| {
        tell.lock().unwrap().extend(group.iter().map(|(id, _)| id.0));
    };
    (Box::new(on_commit), heard)
}
