//! Dead letters: records that cannot be delivered, kept with the reason until somebody decides.
//!
//! One file a settled batch, `dead-letters/<output>/<batch id>.ndjson`: one JSON object a record, readable with any tool
//! (`output`, `batch`, `record`, `time`, `tag`, `kind`, `reason`, `failure`, and `body`, or `body_base64` where it is not UTF-8).
//! A file is whole and on the disk before the batch that it came from is settled. Files are the only index: no state is needed to list,
//! show or purge. Replay moves files into `dead-letters/replay/`, from where the running (or next started) host takes them
//! in again, for their own output only; the file's name is the position that makes this happen once.

use std::path::Path;
use std::sync::Arc;

/// The dead letters of a data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    _todo: Arc<Path>,
}
