//! Writing the dead letters of one batch.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::files::check_output;
use super::letter::{Letter, write_line};
use super::{DeadLetterError, DeadLetters};
use crate::state::BatchId;

/// The dead letters of one batch, while they are written. Nothing is there under the final name until
/// [`Writer::finish`]; a writer that is dropped before leaves nothing behind.
#[derive(Debug)]
pub struct Writer {
    output: String,
    batch: String,
    failure: String,
    temporary: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    records: u64,
    finished: bool,
}

impl DeadLetters {
    /// Begins the dead letters of a batch. `failure` is the kind of end that the batch had, one of a few fixed words. The same
    /// batch written again replaces what it wrote before. Blocks on the disk.
    ///
    /// # Errors
    /// Where the disk does not take it; the batch must not be settled then.
    pub fn writer(&self, output: &str, batch: BatchId, failure: &str) -> Result<Writer, DeadLetterError> {
        check_output(output)?;
        let folder = self.folder.join(output);
        make_folder(&folder)?;
        let batch = batch.to_string();
        let temporary = folder.join(format!(".{batch}.tmp"));
        let file = File::create(&temporary).map_err(DeadLetterError::disk("written", &temporary))?;
        Ok(Writer {
            output: output.into(),
            failure: failure.into(),
            path: folder.join(format!("{batch}.ndjson")),
            batch,
            temporary,
            file: BufWriter::with_capacity(256 << 10, file),
            records: 0,
            finished: false,
        })
    }

    /// Removes what writers left behind when the process was killed.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn sweep(&self) -> Result<(), DeadLetterError> {
        for folder in super::files::folders(&self.folder)? {
            for entry in super::files::entries(&folder.path)? {
                let name = entry.file_name();
                if name.to_str().is_some_and(|n| n.starts_with('.') && n.ends_with(".tmp")) {
                    let path = entry.path();
                    fs::remove_file(&path).map_err(DeadLetterError::disk("removed", &path))?;
                }
            }
        }
        Ok(())
    }
}

impl Writer {
    /// Adds one record.
    ///
    /// # Errors
    /// Where the disk does not take it.
    pub fn record(&mut self, letter: &Letter<'_>) -> Result<(), DeadLetterError> {
        self.records += 1;
        write_line(&mut self.file, &self.output, &self.batch, &self.failure, letter)
            .map_err(DeadLetterError::disk("written", &self.temporary))
    }

    /// Puts the file where it belongs, on the disk whole. Gives how many records it has; with none there is no file.
    ///
    /// # Errors
    /// Where the disk does not take it.
    pub fn finish(mut self) -> Result<u64, DeadLetterError> {
        if self.records == 0 {
            return Ok(0);
        }
        let failed = |cause| DeadLetterError::Disk { doing: "written", path: self.temporary.clone(), cause };
        self.file.flush().map_err(failed)?;
        self.file.get_ref().sync_all().map_err(failed)?;
        fs::rename(&self.temporary, &self.path).map_err(DeadLetterError::disk("put in place", &self.path))?;
        self.finished = true;
        if let Some(folder) = self.path.parent() {
            sync_folder(folder)?;
        }
        Ok(self.records)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            // What stays behind is swept at the next start.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Makes a folder, and what it is in, so that they survive a power cut.
pub(super) fn make_folder(folder: &Path) -> Result<(), DeadLetterError> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
        match fs::create_dir(folder) {
            Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(DeadLetterError::disk("made", folder)(cause));
            }
            _ => sync_folder(parent)?,
        }
    }
    Ok(())
}

pub(super) fn sync_folder(folder: &Path) -> Result<(), DeadLetterError> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(DeadLetterError::disk("synced", folder))
}
