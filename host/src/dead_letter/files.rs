//! The files of dead letters: which there are, and what is done with a whole file. Names that could lead elsewhere are refused, and
//! links are not followed.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::read::Letters;
use super::write::{make_folder, sync_folder};
use super::{DeadLetterError, DeadLetters, REPLAY_FOLDER};

/// Which dead letters are meant. Everything, where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    output: Option<String>,
    batch: Option<String>,
}

/// Where a file is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Waits for somebody to decide.
    Dead,
    /// Waits for the host to take it in again.
    ForReplay,
}

/// One file of dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterFile {
    /// The output.
    pub output: String,
    /// The batch.
    pub batch: String,
    /// Where it is.
    pub kept: Kept,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written.
    pub written: SystemTime,
}

impl Filter {
    /// Those of an output, or of a batch, or of both.
    ///
    /// # Errors
    /// Where a name could not be one.
    pub fn new(output: Option<String>, batch: Option<String>) -> Result<Self, DeadLetterError> {
        if let Some(output) = &output {
            check_output(output)?;
        }
        if let Some(batch) = &batch {
            check_batch(batch)?;
        }
        Ok(Self { output, batch })
    }

    /// Whether it means everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.output.is_none() && self.batch.is_none()
    }

    fn admits(&self, output: &str, batch: &str) -> bool {
        self.output.as_deref().is_none_or(|o| o == output) && self.batch.as_deref().is_none_or(|b| b == batch)
    }
}

impl LetterFile {
    /// How many records it has.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn records(&self) -> Result<u64, DeadLetterError> {
        Letters::count(&self.path).map_err(DeadLetterError::disk("read", &self.path))
    }

    /// Its letters in order.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn letters(&self) -> Result<Letters, DeadLetterError> {
        Letters::open(&self.path)
    }

    /// The first few different reasons in it.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = vec![];
        let Ok(letters) = self.letters() else { return reasons };
        for letter in letters.take(100).flatten() {
            if !reasons.contains(&letter.reason) {
                reasons.push(letter.reason);
            }
            if reasons.len() == 3 {
                break;
            }
        }
        reasons
    }
}

impl DeadLetters {
    /// The files that the filter admits: by output, the oldest first.
    ///
    /// # Errors
    /// Where the folder cannot be read. That there is none is no error: there are no dead letters then.
    pub fn list(&self, filter: &Filter) -> Result<Vec<LetterFile>, DeadLetterError> {
        let mut files = vec![];
        for Folder { name, path: folder } in folders(&self.folder)? {
            for entry in entries(&folder)? {
                let file_name = entry.file_name();
                let Some(stem) = file_name.to_str().and_then(|n| n.strip_suffix(".ndjson")) else { continue };
                let (output, batch, kept) = if name == REPLAY_FOLDER {
                    let Some((output, batch)) = stem.rsplit_once("__") else { continue };
                    (output.replacen(TENANT, "/", 1), batch, Kept::ForReplay)
                } else {
                    (name.clone(), stem, Kept::Dead)
                };
                if check_output(&output).is_err() || !is_batch(batch) || !filter.admits(&output, batch) {
                    continue;
                }
                // A file that has just gone is none.
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_file() {
                    files.push(LetterFile {
                        output,
                        batch: batch.into(),
                        kept,
                        path: entry.path(),
                        bytes: metadata.len(),
                        written: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    });
                }
            }
        }
        files.sort_by(|a, b| (&a.output, a.written, &a.batch).cmp(&(&b.output, b.written, &b.batch)));
        Ok(files)
    }

    /// The outputs that have, or had, dead letters here, by name.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn outputs(&self) -> Result<Vec<String>, DeadLetterError> {
        let mut outputs = vec![];
        for Folder { name, path } in folders(&self.folder)? {
            let inside = entries(&path)?;
            // A tenant's folder has its outputs' in it, and is none of an output unless the operator has one of this name.
            let is_tenants = inside.iter().any(|e| e.path().is_dir()) && !inside.iter().any(|e| e.path().is_file());
            if name != REPLAY_FOLDER && !is_tenants {
                outputs.push(name);
            }
        }
        outputs.extend(self.replay_pending()?.into_iter().map(|file| file.output));
        outputs.sort();
        outputs.dedup();
        Ok(outputs)
    }

    /// Removes the files that the filter admits, and gives them. Those that wait for their replay stay.
    ///
    /// # Errors
    /// Where a file cannot be removed; those before it are gone.
    pub fn purge(&self, filter: &Filter) -> Result<Vec<LetterFile>, DeadLetterError> {
        let mut gone = vec![];
        for file in self.list(filter)?.into_iter().filter(|f| f.kept == Kept::Dead) {
            match fs::remove_file(&file.path) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
                removed => removed.map_err(DeadLetterError::disk("removed", &file.path))?,
            }
            if let Some(folder) = file.path.parent() {
                sync_folder(folder)?;
            }
            gone.push(file);
        }
        Ok(gone)
    }

    /// Hands the files that the filter admits to the host for their replay, and gives them. Each moves in one step, after all
    /// of its lines proved to be records.
    ///
    /// # Errors
    /// Where a line is no record (its file stays), or a file cannot be moved; those before it are moved.
    pub fn request_replay(&self, filter: &Filter) -> Result<Vec<LetterFile>, DeadLetterError> {
        let mut moved = vec![];
        for file in self.list(filter)?.into_iter().filter(|f| f.kept == Kept::Dead) {
            check_letters(&file)?;
            let replay = self.folder.join(REPLAY_FOLDER);
            make_folder(&replay)?;
            let target = replay.join(format!("{}__{}.ndjson", file.output.replacen('/', TENANT, 1), file.batch));
            if !move_to_new(&file.path, &target)? {
                let LetterFile { output, batch, .. } = file;
                return Err(DeadLetterError::Waiting { output, batch, path: target });
            }
            sync_folder(&replay)?;
            if let Some(folder) = file.path.parent() {
                sync_folder(folder)?;
            }
            moved.push(LetterFile { kept: Kept::ForReplay, path: target, ..file });
        }
        Ok(moved)
    }

    /// The files that wait for their replay, the oldest first.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn replay_pending(&self) -> Result<Vec<LetterFile>, DeadLetterError> {
        let mut files = self.list(&Filter::default())?;
        files.retain(|f| f.kept == Kept::ForReplay);
        files.sort_by(|a, b| (a.written, &a.path).cmp(&(b.written, &b.path)));
        Ok(files)
    }

    /// Removes a file whose records were all taken in again.
    ///
    /// # Errors
    /// Where it cannot be removed.
    pub fn replay_done(&self, file: &LetterFile) -> Result<(), DeadLetterError> {
        match fs::remove_file(&file.path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(DeadLetterError::disk("removed", &file.path))?,
        }
        sync_folder(&self.folder.join(REPLAY_FOLDER))
    }

    /// Puts a file that cannot be replayed back to the dead letters.
    ///
    /// # Errors
    /// Where it cannot be moved.
    pub fn replay_refused(&self, file: &LetterFile) -> Result<(), DeadLetterError> {
        let folder = self.folder.join(&file.output);
        make_folder(&folder)?;
        move_to_new(&file.path, &folder.join(format!("{}.ndjson", file.batch)))?;
        sync_folder(&folder)?;
        sync_folder(&self.folder.join(REPLAY_FOLDER))
    }
}

/// Whether every line is a record that could be taken in, and belongs to this file's output.
pub(super) fn check_letters(file: &LetterFile) -> Result<(), DeadLetterError> {
    let mut letters = file.letters()?;
    while let Some(letter) = letters.next() {
        let letter = letter?;
        let other = (letter.output != file.output).then(|| format!("the letter is of output {:?}", letter.output));
        let what = other.or_else(|| letter.check_body().err());
        if let Some(what) = what {
            return Err(DeadLetterError::Line { path: file.path.clone(), line: letters.line(), what });
        }
    }
    Ok(())
}

/// Moves a file in one step to a name that nothing has; whether it did.
fn move_to_new(from: &Path, to: &Path) -> Result<bool, DeadLetterError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // A file system without exclusive renames: the look before is the best there is.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !to.exists() => {
            fs::rename(from, to).map(|()| true).map_err(DeadLetterError::disk("moved", from))
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(DeadLetterError::disk("moved", from)(errno.into())),
    }
}

/// Stands for the `/` of `acme/archive` in the name of a file.
const TENANT: &str = "~";

/// A folder of dead letters.
pub(super) struct Folder {
    /// The output's name, or [`REPLAY_FOLDER`].
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// The real folders of outputs, and that of what waits for its replay; links are none. Those of a tenant's outputs are in one of the
/// tenant's name.
pub(super) fn folders(folder: &Path) -> Result<Vec<Folder>, DeadLetterError> {
    let mut found = vec![];
    for path in real_folders(folder)? {
        let Some(name) = own_name(&path) else { continue };
        if name != REPLAY_FOLDER && check_output(&name).is_err() {
            continue;
        }
        if name != REPLAY_FOLDER {
            for path in real_folders(&path)? {
                let output = own_name(&path).map(|output| format!("{name}/{output}"));
                if let Some(name) = output.filter(|output| check_output(output).is_ok()) {
                    found.push(Folder { name, path });
                }
            }
        }
        found.push(Folder { name, path });
    }
    Ok(found)
}

fn real_folders(folder: &Path) -> Result<Vec<PathBuf>, DeadLetterError> {
    let own = |e: &DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    Ok(entries(folder)?.into_iter().filter(own).map(|e| e.path()).collect())
}

fn own_name(path: &Path) -> Option<String> {
    path.file_name().and_then(|n| n.to_str()).map(ToOwned::to_owned)
}

/// What is in a folder; nothing where there is none.
pub(super) fn entries(folder: &Path) -> Result<Vec<DirEntry>, DeadLetterError> {
    match fs::read_dir(folder) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(vec![]),
        read => read.and_then(Iterator::collect).map_err(DeadLetterError::disk("read", folder)),
    }
}

/// Names of outputs are file names here, so only the characters that the configuration allows; a tenant's have one `/` in them.
pub(super) fn check_output(name: &str) -> Result<(), DeadLetterError> {
    let (tenant, output) = match name.split_once('/') {
        None => (None, name),
        Some((tenant, output)) => (Some(tenant), output),
    };
    let fine = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    // The first of the names is a folder beside that of what waits for its replay.
    if fine(output) && tenant.is_none_or(fine) && tenant.unwrap_or(output) != REPLAY_FOLDER {
        return Ok(());
    }
    let rule = "names have 1 to 64 of the characters a-z, 0-9, _ and -, and one of a tenant's output begins with the tenant's and a /";
    Err(DeadLetterError::Name { what: "output", name: name.into(), rule })
}

/// Names of batches are file names here, too.
fn check_batch(name: &str) -> Result<(), DeadLetterError> {
    if is_batch(name) {
        return Ok(());
    }
    let rule = "a batch id has 32 digits of 0-9 and a-f; `wharf dead-letter list` shows them";
    Err(DeadLetterError::Name { what: "batch", name: name.into(), rule })
}

fn is_batch(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
