//! Opening: as it was left, new, or rebuilt.
//!
//! A rebuild happens when sled's directory does not open, is gone, or has fallen back: that is, when it stands behind the
//! snapshot's number of changes, behind `state.commits`, or below where a counter was when its last reservation was made.
//! It begins with the later of the last snapshot and what sled still gave, and lifts every counter above its reservation.
//! What happened after that state is forgotten: batches closed since are closed anew from the journal under other names, so
//! what had been delivered of them may be delivered twice, but under numbers that were never used.
//!
//! Not noticed is a sled that lost only its very last change and `state.commits` with it (it is not synced), in a power cut
//! with a disk that lies about its cache. For `$INDEX` a conditional write is the guard then.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::handle::{Handle, OpenFailure, refused};
use super::mark::Mark;
use super::reserve::{self, Counter, Reserve, Reserved};
use super::rows::{self, Table, Writes};
use super::snapshot::{self, Dump};
use super::space::Space;
use super::{Opened, StateError, files};

/// What a rebuild adds to counters where the file of reservations is damaged or gone too.
const BLIND_GAP: u64 = 1000;

type Reservations = HashMap<Counter, Reserved>;

/// Where everything is.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) dir: PathBuf,
    pub(super) sled: PathBuf,
    pub(super) snapshot: PathBuf,
    reserve: PathBuf,
    mark: PathBuf,
    rebuilding: PathBuf,
}

impl Paths {
    fn new(dir: &Path) -> Self {
        Self {
            dir: dir.into(),
            sled: dir.join("state"),
            snapshot: dir.join("state.snapshot"),
            reserve: dir.join("sequences.reserve"),
            mark: dir.join("state.commits"),
            rebuilding: dir.join("state.rebuilding"),
        }
    }
}

/// An opened state's parts.
pub(super) struct Parts {
    pub(super) paths: Paths,
    pub(super) handle: Handle,
    pub(super) space: Space,
    pub(super) reserve: Reserve,
    pub(super) mark: Mark,
    pub(super) commits: u64,
    /// Whether a snapshot is to be written at once.
    pub(super) snapshot_due: bool,
}

pub(super) fn open(dir: &Path) -> Result<(Parts, Opened), StateError> {
    let paths = Paths::new(dir);
    fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    let mut space = Space::new(dir);
    // On a disk that is full all the same, an intact state may still open.
    let _ = space.ensure();
    remove_all(&paths.rebuilding)?;
    let snapshot = snapshot::read(&paths.snapshot).map_err(|e| failed(&paths.snapshot, &e))?;
    let (reserved, reserve_found) = reserve::read(&paths.reserve).map_err(|e| failed(&paths.reserve, &e))?;
    let (mark, marked) = Mark::open(&paths.mark).map_err(|e| failed(&paths.mark, &e))?;
    let snapshot = match snapshot {
        snapshot::Found::Whole(dump) => Some(dump),
        snapshot::Found::Missing => None,
        snapshot::Found::Damaged(cause) => {
            tracing::warn!(file = %paths.snapshot.display(), cause, "the state's snapshot is damaged and not used");
            None
        }
    };
    let before = Before { snapshot, marked, reserved: &reserved, reserve_found: &reserve_found };
    let (handle, opened) = settle_what_opens(&paths, before)?;
    handle.prove(&paths.sled)?;
    let mut commits = handle.commits().map_err(|e| refused("read", e))?;
    if commits == 0 {
        // From now on an empty sled is one that lost everything.
        commits = 1;
        handle.apply(&[], commits).map_err(|e| super::handle::sled_error("written", &e))?;
    }
    mark.set(commits);
    let reserved = with_counters_of(&handle, reserved)?;
    let reserve = Reserve::start(&paths.reserve, reserved).map_err(|e| failed(&paths.reserve, &e))?;
    let snapshot_due = opened != Opened::Intact || !paths.snapshot.exists();
    Ok((Parts { paths, handle, space, reserve, mark, commits, snapshot_due }, opened))
}

/// The reservations, and for counters that they lack (the file was damaged or is gone) what sled says.
fn with_counters_of(handle: &Handle, mut reserved: Reservations) -> Result<Reservations, StateError> {
    let read = |e| refused("read", e);
    for row in handle.scan(Table::Sequences, &[], &[]).map_err(read)? {
        let (key, value) = row.map_err(read)?;
        let (output, name) = rows::split(Table::Sequences, &key)?;
        let counter = (output.to_owned(), rows::text(Table::Sequences, &key, name)?);
        let next = rows::number(Table::Sequences, &key, &value)?;
        let known = reserved.entry(counter).or_insert(Reserved { from: next, upto: next });
        if known.upto < next {
            *known = Reserved { from: next, upto: next };
        }
    }
    Ok(reserved)
}

/// What is known without sled.
struct Before<'a> {
    snapshot: Option<Dump>,
    marked: Option<u64>,
    reserved: &'a Reservations,
    reserve_found: &'a reserve::Found,
}

impl Before<'_> {
    fn is_new(&self) -> bool {
        self.snapshot.is_none() && self.marked.is_none() && self.reserved.is_empty()
    }

    /// Why sled is behind, if it is.
    fn behind(&self, handle: &Handle) -> Result<Option<String>, StateError> {
        let read = |e| refused("read", e);
        let commits = handle.commits().map_err(read)?;
        let known = self.snapshot.as_ref().map_or(0, |dump| dump.commits).max(self.marked.unwrap_or(0));
        if commits < known {
            return Ok(Some(format!("it has fallen back to change {commits}, {known} had been made durable")));
        }
        for ((output, name), reserved) in self.reserved {
            let next = handle.number(Table::Sequences, &rows::key(output, name.as_bytes())?).map_err(read)?;
            // Without a row, a kill between the counter's first reservation and its first change is the likely cause;
            // `Reserve::next` takes care of the other.
            if let Some(next) = next.filter(|next| *next < reserved.from) {
                return Ok(Some(format!(
                    "counter {name:?} of output {output:?} stands at {next}, but had been at {}",
                    reserved.from
                )));
            }
        }
        Ok(None)
    }
}

fn settle_what_opens(paths: &Paths, before: Before<'_>) -> Result<(Handle, Opened), StateError> {
    let there = paths.sled.join("db").exists();
    if !there && before.is_new() {
        return Ok((open_or_fail(&paths.sled)?, Opened::New));
    }
    if !there {
        return rebuild(paths, before, "its directory or the file in it is gone".into(), None);
    }
    match Handle::open(&paths.sled) {
        Ok(handle) => match before.behind(&handle)? {
            None => {
                let fresh = handle.commits().map_err(|e| refused("read", e))? == 0;
                Ok((handle, if fresh { Opened::New } else { Opened::Intact }))
            }
            Some(reason) => {
                let dump = handle.dump().map_err(|e| refused("read", e))?;
                drop(handle);
                rebuild(paths, before, reason, Some(dump))
            }
        },
        Err(OpenFailure::Damaged(cause)) => rebuild(paths, before, cause, None),
        Err(OpenFailure::System(e)) => Err(e),
        Err(OpenFailure::Locked(cause)) => Err(locked(&cause)),
    }
}

fn rebuild(
    paths: &Paths,
    before: Before<'_>,
    reason: String,
    found: Option<Dump>,
) -> Result<(Handle, Opened), StateError> {
    let known = before.snapshot.as_ref().map_or(0, |dump| dump.commits).max(before.marked.unwrap_or(0));
    let (mut base, from) = match (before.snapshot, found) {
        (Some(snapshot), Some(found)) if found.commits <= snapshot.commits => (snapshot, "the last snapshot"),
        (_, Some(found)) => {
            // Set aside, it would be lost to a rebuild that is itself interrupted.
            files::replace(&paths.snapshot, &snapshot::encode(&found)).map_err(|e| failed(&paths.snapshot, &e))?;
            (found, "what sled still had")
        }
        (Some(snapshot), None) => (snapshot, "the last snapshot"),
        (None, None) => (Dump::default(), "nothing: there is no snapshot"),
    };
    let set_aside = set_aside(paths)?;
    tracing::error!(
        reason,
        set_aside = set_aside.as_ref().map(|path| path.display().to_string()),
        from,
        change = base.commits,
        known,
        "the state in {} cannot be used and is rebuilt; what was delivered after that change may be delivered again, \
         under new numbers",
        paths.sled.display(),
    );
    lift_counters(&mut base, before.reserved, before.reserve_found)?;
    base.commits = base.commits.max(known) + 1;
    write(paths, &base)?;
    Ok((open_or_fail(&paths.sled)?, Opened::Rebuilt { reason, set_aside }))
}

/// Raises each counter above every number that may have been handed out.
fn lift_counters(base: &mut Dump, reserved: &Reservations, found: &reserve::Found) -> Result<(), StateError> {
    let mut blind = match found {
        reserve::Found::Whole => 0,
        reserve::Found::Missing => BLIND_GAP,
        reserve::Found::Damaged(cause) => {
            tracing::error!(cause, "the file of reserved numbers is damaged too; counters resume {BLIND_GAP} higher");
            BLIND_GAP
        }
    };
    if base.commits == 0 {
        blind = 0;
    }
    let mut upto = HashMap::new();
    for ((output, name), numbers) in reserved {
        upto.insert(rows::key(output, name.as_bytes())?, numbers.upto);
    }
    for (_, key, value) in base.rows.iter_mut().filter(|(table, ..)| *table == Table::Sequences) {
        let next = rows::number(Table::Sequences, key, value)?;
        let resumed = next.saturating_add(blind).max(upto.remove(key).unwrap_or(0));
        report_gap(key, next, resumed);
        *value = resumed.to_be_bytes().to_vec();
    }
    for (key, upto) in upto {
        report_gap(&key, 0, upto);
        base.rows.push((Table::Sequences, key, upto.to_be_bytes().to_vec()));
    }
    Ok(())
}

fn report_gap(key: &[u8], next: u64, resumed: u64) {
    if next < resumed {
        tracing::warn!(
            counter = %key.escape_ascii(),
            snapshot = next,
            resumed,
            "a counter resumes above every number that may have been used since the state that is left"
        );
    }
}

fn set_aside(paths: &Paths) -> Result<Option<PathBuf>, StateError> {
    if !paths.sled.exists() {
        return Ok(None);
    }
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let free = (0..1000)
        .map(|n| {
            paths.dir.join(if n == 0 { format!("state.damaged-{stamp}") } else { format!("state.damaged-{stamp}-{n}") })
        })
        .find(|path| !path.exists())
        .ok_or_else(|| StateError::Store { doing: "set aside", cause: "too many damaged states lie there".into() })?;
    fs::rename(&paths.sled, &free).and_then(|()| files::sync_dir(&paths.dir)).map_err(|e| failed(&paths.sled, &e))?;
    Ok(Some(free))
}

/// Builds sled beside its place and moves it there when it is whole, so that a kill in between leaves no half state.
fn write(paths: &Paths, base: &Dump) -> Result<(), StateError> {
    remove_all(&paths.rebuilding)?;
    let handle = open_or_fail(&paths.rebuilding)?;
    let written = |e: &sled::Error| super::handle::sled_error("rebuilt", e);
    for rows in base.rows.chunks(500) {
        let writes: Writes =
            rows.iter().map(|(table, key, value)| (*table, key.clone(), Some(value.clone()))).collect();
        handle.apply(&writes, 0).map_err(|e| written(&e))?;
    }
    handle.apply(&[], base.commits).map_err(|e| written(&e))?;
    drop(handle);
    files::sync_dir(&paths.rebuilding)
        .and_then(|()| fs::rename(&paths.rebuilding, &paths.sled))
        .and_then(|()| files::sync_dir(&paths.dir))
        .map_err(|e| failed(&paths.rebuilding, &e))
}

fn open_or_fail(dir: &Path) -> Result<Handle, StateError> {
    Handle::open(dir).map_err(|failure| match failure {
        OpenFailure::Locked(cause) => locked(&cause),
        OpenFailure::System(e) => e,
        OpenFailure::Damaged(cause) => {
            StateError::Store { doing: "opened", cause: format!("{}: {cause}", dir.display()) }
        }
    })
}

fn locked(cause: &str) -> StateError {
    StateError::Store { doing: "opened", cause: format!("another process has it open: {cause}") }
}

fn remove_all(dir: &Path) -> Result<(), StateError> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(dir, &e)),
        _ => Ok(()),
    }
}

pub(super) fn failed(path: &Path, e: &io::Error) -> StateError {
    if matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        StateError::DiskFull
    } else {
        StateError::Store { doing: "opened", cause: format!("{}: {e}", path.display()) }
    }
}
