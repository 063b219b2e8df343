//! Small files that are replaced whole, and directories that are made durable.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes the entries of a directory durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Puts `content` into `path`, all or nothing: a temporary file, synced, renamed, the directory synced.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()
    })();
    if let Err(e) = written {
        // A half-written file would only take room, of which there may be none.
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// The file's content; none where there is no file.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// CRC-32C.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}
