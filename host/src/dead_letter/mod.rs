//! Dead letters: records that cannot be delivered, kept with the reason until somebody decides.
//!
//! One file a settled batch, `dead-letters/<output>/<batch id>.ndjson` (`dead-letters/<tenant>/<output>/…` of a tenant's output): one JSON object a record, readable with any tool
//! (`output`, `batch`, `record`, `time`, `tag`, `kind`, `reason`, `failure`, and `body`, or `body_base64` where it is not UTF-8).
//! A file is whole and on the disk before the batch that it came from is settled. Files are the only index: no state is needed to list,
//! show or purge. Replay moves files into `dead-letters/replay/`, from where the running (or next started) host takes them
//! in again, for their own output only; the file's name is the position that makes this happen once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

mod files;
mod letter;
mod read;
pub mod replay;
#[cfg(test)]
mod tests;
mod write;

pub use files::{Filter, Kept, LetterFile};
pub(crate) use letter::time_text;
pub use letter::{Letter, StoredLetter};
pub use read::Letters;
pub use write::Writer;

/// The source's name that replayed records carry in positions and metrics. No source of a configuration may have it.
pub const REPLAY_SOURCE: &str = "dead-letter-replay";

/// The folder of files that wait for their replay. No output may have this name.
pub const REPLAY_FOLDER: &str = "replay";

/// The dead letters of a data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    folder: Arc<Path>,
}

/// Why something could not be done with dead letters.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The disk.
    #[error("dead letters: {path} could not be {doing}: {cause}")]
    Disk {
        /// written, read, …
        doing: &'static str,
        /// What.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A line is not a dead letter.
    #[error("dead letters: {path}, line {line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A name could not be a file's.
    #[error("{what} {name:?} cannot be: {rule}")]
    Name {
        /// output or batch
        what: &'static str,
        /// As given.
        name: String,
        /// What names are like.
        rule: &'static str,
    },
    /// The batch waits for its replay already.
    #[error("dead letters: batch {batch} of output {output} waits for its replay already, in {path}")]
    Waiting {
        /// The output.
        output: String,
        /// The batch.
        batch: String,
        /// The file that is there.
        path: PathBuf,
    },
}

impl DeadLetterError {
    fn disk(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { doing, path, cause }
    }
}

impl DeadLetters {
    /// The dead letters below `data_dir`. Nothing is touched before it is needed.
    #[must_use]
    pub fn open(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("dead-letters").into() }
    }
}
