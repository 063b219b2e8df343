//! One process a data directory.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The lock on a data directory, held until it is dropped. The kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

/// Why a data directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is in use by another Wharf{}; stop that one, or give this one its own `data_dir`", .data_dir.display(), .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Held {
        /// The data directory.
        data_dir: PathBuf,
        /// Who holds it, where that can be read.
        pid: Option<u32>,
    },
    /// The lock file could not be opened.
    #[error("{} cannot be opened: {cause}; the data directory must be writable for this user", .file.display())]
    File {
        /// The lock file.
        file: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl DataDirLock {
    /// Takes the lock, or says who has it.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn take(data_dir: &Path) -> Result<Self, LockError> {
        let path = data_dir.join("wharf.lock");
        let failed = |cause| LockError::File { file: path.clone(), cause };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(LockError::Held { data_dir: data_dir.to_owned(), pid: text.trim().parse().ok() });
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = DataDirLock::take(dir.path()).unwrap();
        let refused = DataDirLock::take(dir.path()).unwrap_err();
        let expected = format!(
            "{} is in use by another Wharf (process {}); stop that one, or give this one its own `data_dir`",
            dir.path().display(),
            std::process::id()
        );
        assert_eq!(refused.to_string(), expected);
        drop(held);
        assert!(DataDirLock::take(dir.path()).is_ok());
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let refused = DataDirLock::take(Path::new("/nonexistent/wharf")).unwrap_err();
        assert!(refused.to_string().starts_with("/nonexistent/wharf/wharf.lock cannot be opened: No such file"));
    }
}
