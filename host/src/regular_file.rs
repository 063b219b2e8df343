//! Files that are files: what somebody named in a configuration may be a pipe or a device, and would keep whoever reads it waiting for ever.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file, but nothing that opening or reading could wait on for ever.
///
/// # Errors
/// Where it cannot be opened, or is no regular file once links are followed.
pub(crate) fn open(path: &Path) -> Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    // Should it be a pipe by now, nobody waits for who writes it.
    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// All of a file of at most `most` bytes.
///
/// # Errors
/// As [`open`], where it cannot be read, and where it has more.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let bytes = begin(path, most)?;
    match bytes.len() as u64 > most {
        false => Ok(bytes),
        true => Err(Error::other(format!("it has more than {most} bytes"))),
    }
}

/// A file's first `most` bytes, and one more where there are more.
///
/// # Errors
/// As [`open`], and where it cannot be read.
pub(crate) fn begin(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
