//! The thread of a tail source: looks for files, reads them in turn, hands chunks in.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::absent::Absent;
use super::compressed::Turns;
use super::followed::{BLOCK_BYTES, End, Followed, Look, Moved};
use super::gathered::{Common, Gathered};
use super::identity::FileId;
use super::patterns::Patterns;
use super::position::FilePosition;
use super::watch::Watch;
use crate::config::{CompressedFiles, LongLines, SourceConfig, TailConfig};
use crate::record::Position;
use crate::source::lane::{Lane, Stopping};
use crate::source::lines::Longest;
use crate::source::sink::Sink;

/// How often files are looked at of which nothing can be heard: what finds growth where inotify does not work.
const POLL: Duration = Duration::from_millis(250);

/// A scan looks at every file's size, so it costs more the more files there are. Where every name's coming and going is heard, it is only
/// a net below that, and takes no more than one part in so many of the time.
const SCAN_SHARE: u32 = 400;

/// But it comes at least so often.
const LONGEST_BETWEEN_SCANS: Duration = Duration::from_secs(60);

/// Pause behind a round that read everything there was, so that a trickle becomes chunks of more than a line.
const PACE: Duration = Duration::from_millis(5);

/// No `max_line_bytes` goes beyond this: a line is in memory as a whole, and a chunk must hold it.
const LONGEST_LINE: usize = 1 << 30;

/// The key of a position that is of no file: it says that the first start with `read_from: end` is over. From then on files that are new
/// are read whole, also where the first start found none.
const BEGUN: &str = "begun";

/// A compressed file that ends inside a member is being written. Where nobody has written to it for so many times `rotate_wait`, that is said.
const CUT_OFF_WAITS: u32 = 12;

pub(super) struct Reader {
    pub(super) common: Common,
    pub(super) patterns: Patterns,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) watch: Option<Watch>,
    pub(super) files: Vec<Followed>,
    /// Where each is among them.
    pub(super) by_id: HashMap<FileId, usize>,
    /// The same, by the names by which growth is heard.
    pub(super) by_name: HashMap<PathBuf, usize>,
    /// Files that are too old to be followed, until somebody writes to them.
    pub(super) ignored: HashSet<PathBuf>,
    pub(super) ignore_older: Option<Duration>,
    /// Whether names may have changed since the last scan.
    pub(super) names_changed: bool,
    /// Whether all changes of names are heard.
    pub(super) names_heard: bool,
    pub(super) absent: Absent,
    /// Whether files that are new are left out as far as they go.
    pub(super) leave_out_old: bool,
    pub(super) runtime: Handle,
    warned: HashSet<(PathBuf, String)>,
    pub(super) lane: Lane,
    shutdown: CancellationToken,
    refresh_interval: Duration,
    rotate_wait: Duration,
}

impl Reader {
    /// Needs to be called within a runtime.
    pub(super) fn new(
        source: &SourceConfig,
        tail: &TailConfig,
        patterns: Patterns,
        sink: Arc<dyn Sink>,
        shutdown: CancellationToken,
    ) -> Self {
        let name = &source.name;
        let watch = Watch::new().inspect_err(|e| {
            warn!(source = %name, "inotify is not to be had ({e}): files are looked at every {POLL:?} instead; \
                  fs.inotify.max_user_instances may be too low");
        });
        let mut reader = Self {
            common: Common {
                source: name.clone(),
                tag: source.tag.clone(),
                longest: Longest {
                    bytes: usize::try_from(tail.max_line_bytes).unwrap_or(usize::MAX).clamp(1, LONGEST_LINE),
                    longer: tail.long_lines,
                },
                multiline: tail.multiline.clone(),
                encoding: tail.encoding,
                path_key: tail.path_key.clone(),
                kubernetes: tail.kubernetes,
                compressed: tail.compressed,
                turns: Turns::default(),
                stretches: 0,
                buffer: vec![0; BLOCK_BYTES],
                gathered: Gathered::new(source.tag.clone(), false),
                unrecorded: Vec::new(),
            },
            patterns,
            watch: watch.ok(),
            files: Vec::new(),
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            ignored: HashSet::new(),
            ignore_older: tail.ignore_older,
            names_changed: false,
            names_heard: false,
            absent: Absent::new(tail.compressed == CompressedFiles::Read),
            leave_out_old: false,
            runtime: Handle::current(),
            warned: HashSet::new(),
            lane: Lane::new(name.clone(), sink.clone(), shutdown.clone()),
            sink,
            shutdown,
            refresh_interval: tail.refresh_interval.max(PACE),
            rotate_wait: tail.rotate_wait,
        };
        let positions = reader.sink.positions(name);
        reader.leave_out_old = positions.is_empty() && !tail.read_from_beginning;
        for position in positions.iter().filter(|position| position.key != BEGUN) {
            match FilePosition::decode(&position.key, &position.value) {
                Ok(there) => {
                    let stretch = reader.common.next_stretch();
                    reader.absent.insert(stretch, there);
                }
                Err(why) => {
                    warn!(source = %name, "position {:?} is damaged ({why}): its file is read from its beginning", position.key);
                }
            }
        }
        reader
    }

    /// Reads until the source is stopped.
    pub(super) fn run(mut self) {
        let runtime = self.runtime.clone();
        let _stopping = self.follow();
        // What is under way was handed in: it becomes durable, or is read again by the next start.
        let _ = runtime.block_on(self.lane.drain());
    }

    fn follow(&mut self) -> Result<(), Stopping> {
        self.scan();
        self.find_moved();
        if std::mem::take(&mut self.leave_out_old) {
            // Behind the files: once it is kept, all of them are.
            let source = self.common.source.clone();
            self.common.unrecorded.push(Position { source, key: BEGUN.to_owned(), value: b"end".to_vec() });
        }
        self.keep_formers()?;
        self.keep_unrecorded();
        let mut scan_due = Instant::now() + self.refresh_interval;
        let mut scan_earliest = Instant::now();
        let mut poll_due = Instant::now() + POLL;
        while !self.shutdown.is_cancelled() {
            let more_events = self.take_events();
            let now = Instant::now();
            if now >= scan_due || (self.names_changed && now >= scan_earliest) {
                self.names_changed = false;
                self.scan();
                self.keep_formers()?;
                self.keep_unrecorded();
                self.forget_expired();
                // Where a scan is dear and names change often, most of the time still goes into reading.
                let (cost, after) = (now.elapsed(), Instant::now());
                scan_earliest = after + 10 * cost;
                scan_due = (after + self.until_next_scan(cost)).max(scan_earliest);
            }
            let is_due = now >= poll_due;
            if is_due {
                self.files.iter_mut().filter(|file| !file.heard).for_each(|file| file.ready = true);
                poll_due = now + POLL;
            }
            self.round()?;
            self.seek_origins()?;
            if is_due {
                self.give_out_old()?;
                self.tell_cut_off();
            }
            self.part_with_moved()?;
            if !more_events && !self.files.iter().any(|file| file.ready) {
                let until = if self.names_changed { scan_earliest } else { scan_due }.min(poll_due);
                self.wait(until)?;
            }
        }
        Err(Stopping)
    }

    fn until_next_scan(&self, cost: Duration) -> Duration {
        if !self.names_heard {
            return self.refresh_interval;
        }
        self.refresh_interval.max((SCAN_SHARE * cost).min(LONGEST_BETWEEN_SCANS))
    }

    /// One block of each file that has one.
    fn round(&mut self) -> Result<(), Stopping> {
        for n in 0..self.files.len() {
            let Some(file) = self.files.get_mut(n).filter(|file| file.ready && !file.is_sought()) else { continue };
            match file.look(&mut self.common) {
                Ok(mut look) => {
                    let former = look.restarted.as_mut().and_then(|restarted| restarted.former.take());
                    if let Some((stretch, former)) = former {
                        self.absent.insert_former(stretch, former);
                    }
                    self.tell(n, &look);
                    if self.common.gathered.is_enough() {
                        self.hand_in()?;
                    }
                }
                Err(e) => {
                    let path = file.path.clone();
                    // Looked at again soon, whether it grows or not.
                    file.heard = false;
                    self.warn_once(&path, &format!("reading failed: {e}; it is tried again"));
                }
            }
        }
        self.hand_in()
    }

    fn tell(&mut self, n: usize, look: &Look) {
        let Some(path) = self.files.get(n).map(|file| file.path.clone()) else { return };
        if let Some(restarted) = &look.restarted {
            warn!(source = %self.common.source,
                  "{} was truncated or written anew after {} bytes of it were read: it is read from its beginning",
                  path.display(), restarted.offset);
            if restarted.unread > 0 {
                warn!(source = %self.common.source, "{}: {} bytes were gone before they could be read",
                      path.display(), restarted.unread);
            }
            // How many records they were is not to be known. Nor is it what was written after the last look, if anything.
            let reason = if restarted.unread > 0 { "truncated" } else { "truncated_unseen" };
            self.sink.count_discarded(&self.common.source, reason, 1);
        }
        if let Some(why) = &look.damage {
            self.damaged(
                &path,
                "compressed_damaged",
                &format!("is damaged: {why}; what is before that is read, and the rest is not"),
            );
        }
        if look.too_large > 0 {
            self.sink.count_discarded(&self.common.source, "record_split", look.too_large);
            self.warn_once(
                &path,
                "joined lines became larger than multiline.max_size allows: they are several records",
            );
        }
        if look.cut > 0 {
            let (reason, what) = match self.common.longest.longer {
                LongLines::Truncate => ("line_too_long", "are cut there"),
                LongLines::Split => ("line_split", "become several records"),
                LongLines::Skip => ("line_skipped", "are left out"),
            };
            self.sink.count_discarded(&self.common.source, reason, look.cut);
            let limit = self.common.longest.bytes;
            self.warn_once(&path, &format!("lines are longer than {limit} bytes (max_line_size) and {what}"));
        }
    }

    fn damaged(&self, path: &Path, reason: &'static str, what: &str) {
        warn!(source = %self.common.source, "{}: {what}", path.display());
        self.sink.count_discarded(&self.common.source, reason, 1);
    }

    /// Says of compressed files that they end too early, where that has been so for long.
    fn tell_cut_off(&mut self) {
        let after = CUT_OFF_WAITS * self.rotate_wait;
        for n in 0..self.files.len() {
            let Some(file) = self.files.get_mut(n).filter(|file| file.is_unfinished()) else { continue };
            if file.is_cut_off(after) {
                file.ready = true;
                let path = file.path.clone();
                let what = "ends before its compressed data does; should somebody write on, that is read";
                self.damaged(&path, "compressed_cut_off", what);
            }
        }
    }

    /// Gives out records that wait for more lines which do not come.
    fn give_out_old(&mut self) -> Result<(), Stopping> {
        let Some(how) = &self.common.multiline else { return Ok(()) };
        let Some(since) = Instant::now().checked_sub(how.timeout) else { return Ok(()) };
        for n in 0..self.files.len() {
            // Where there is more to read, that may be what it waits for.
            let Some(file) = self.files.get_mut(n).filter(|file| !file.ready && file.holds()) else { continue };
            file.give_out(&mut self.common, Some(since));
            if self.common.gathered.is_enough() {
                self.hand_in()?;
            }
        }
        self.hand_in()
    }

    fn hand_in(&mut self) -> Result<(), Stopping> {
        let Some(chunk) = self.common.close_chunk() else { return Ok(()) };
        self.runtime.block_on(self.lane.hand_in(chunk))
    }

    /// Lets go of files that were moved away or deleted, at their end and some time after their last growth.
    fn part_with_moved(&mut self) -> Result<(), Stopping> {
        let mut deleted = Vec::new();
        let before = self.files.len();
        let mut n = 0;
        while let Some(file) = self.files.get_mut(n) {
            let (Some(moved), true) = (file.moved, file.quiet_since().elapsed() >= self.rotate_wait) else {
                n += 1;
                continue;
            };
            // What is being written is not at its end; and before it is known what a file was, nothing of it was read.
            let waits = match moved {
                Moved::Renamed(_) => file.is_unfinished(),
                Moved::Away(_) => file.is_sought() && file.follows().is_none() && !file.is_unfinished(),
            };
            if waits {
                n += 1;
                continue;
            }
            let was_cut_off = file.is_cut_off(Duration::ZERO);
            match file.end(&mut self.common) {
                Ok(End::Grown) => {
                    file.ready = true;
                    n += 1;
                    continue;
                }
                Ok(End::Reached) => {}
                Err(e) => {
                    warn!(source = %self.common.source, "{}: its last line could not be read: {e}", file.path.display());
                }
            }
            if was_cut_off {
                let path = file.path.clone();
                self.damaged(&path, "compressed_cut_off", "is gone, and ended before its compressed data did");
            }
            let Some(file) = self.files.get_mut(n) else { break };
            if let Moved::Renamed(_) = moved {
                file.moved = None;
                n += 1;
            } else {
                let file = self.files.swap_remove(n);
                info!(source = %self.common.source, "{} is read to its end and let go of", file.path.display());
                if file.is_sought() {
                    // Nothing of it was read.
                } else if file.is_deleted().unwrap_or(false) {
                    deleted.push(file);
                } else {
                    self.absent.insert(file.stretch, file.position());
                }
            }
        }
        if self.files.len() < before {
            self.index();
        }
        self.hand_in()?;
        if !deleted.is_empty() {
            // Its position must not come after it is forgotten; and while the file is open, no other gets its inode.
            self.runtime.block_on(self.lane.drain())?;
            let keys = deleted.iter().map(|file| file.position().key()).collect();
            for file in &deleted {
                self.absent.insert_former(file.stretch, file.position());
            }
            if self.keep_formers()? {
                self.runtime.block_on(self.sink.forget(&self.common.source, keys));
            }
        }
        Ok(())
    }

    /// Keeps where files begin whose old content is left out, before anything is read: what is written to them while Wharf is
    /// stopped is read by the next start, though they gave no record before. Whether all of them are.
    pub(super) fn keep_unrecorded(&mut self) -> bool {
        if self.common.unrecorded.is_empty() {
            return true;
        }
        let kept = self.runtime.block_on(self.sink.keep(self.common.unrecorded.clone()));
        if kept {
            self.common.unrecorded.clear();
        }
        kept
    }

    fn forget_expired(&mut self) {
        // One of them may be what a compressed file was.
        if self.files.iter().any(Followed::is_sought) {
            return;
        }
        let keys = self.absent.expired(Instant::now(), crate::record::now_ns() / 1_000_000_000);
        if !keys.is_empty() {
            info!(source = %self.common.source, "positions of {} files that are gone are forgotten", keys.len());
            self.runtime.block_on(self.sink.forget(&self.common.source, keys));
        }
    }

    /// Takes what the watch has heard. Whether there is more.
    fn take_events(&mut self) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        let events = watch.take();
        for name in &events.changed {
            if let Some(file) = self.by_name.get(name).and_then(|n| self.files.get_mut(*n)) {
                file.ready = true;
                file.changed = true;
            }
            self.names_changed |= self.ignored.contains(name);
        }
        self.names_changed |= events.names;
        events.more
    }

    /// Waits until there may be something to do, at the latest until `until`.
    fn wait(&mut self, until: Instant) -> Result<(), Stopping> {
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            self.lane.reap().await?;
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(Stopping),
                () = tokio::time::sleep(PACE) => {}
            }
            let event = async {
                match &self.watch {
                    Some(watch) => watch.wait().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.shutdown.cancelled() => Err(Stopping),
                () = tokio::time::sleep_until(until.into()) => Ok(()),
                () = event => Ok(()),
            }
        })
    }

    /// Warns, but not twice of the same.
    pub(super) fn warn_once(&mut self, path: &Path, what: &str) {
        // Bounded: many files that fail for ever warn again now and then.
        if self.warned.len() > 10_000 {
            self.warned.clear();
        }
        if self.warned.insert((path.to_owned(), what.to_owned())) {
            warn!(source = %self.common.source, "{}: {what}", path.display());
        }
    }
}
