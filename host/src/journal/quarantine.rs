//! Damaged bytes are copied out of the journal before anything is done about them, so that a person can look at them later.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::segment::{Segment, read_leniently, sync_dir};

const PIECE: u64 = 1 << 20;

/// Bytes of a segment that are not what they should be.
#[derive(Debug)]
pub(super) struct Stretch<'a> {
    pub(super) segment: &'a Segment,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) id: Option<u64>,
    pub(super) reason: &'a str,
}

/// Copies the bytes to `<segment>-<offset>-<id>.bin` in `dir`, with a `.txt` beside it that says what they are. Both are on
/// the disk when this returns. A stretch of no bytes gives an empty file.
pub(super) fn set_aside(dir: &Path, stretch: &Stretch<'_>) -> io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let id = stretch.id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
    let name = format!("{:016x}-{}-{id}", stretch.segment.generation, stretch.offset);
    let copy = dir.join(format!("{name}.bin"));
    let mut file = File::create(&copy)?;
    let mut buffer = Vec::new();
    let mut done = 0;
    while done < stretch.bytes {
        let length = (stretch.bytes - done).min(PIECE);
        read_leniently(&stretch.segment.file, stretch.offset + done, length as usize, &mut buffer);
        file.write_all(&buffer)?;
        done += length;
    }
    file.sync_all()?;

    let mut note = File::create(dir.join(format!("{name}.txt")))?;
    writeln!(note, "segment: {}", stretch.segment.path.display())?;
    writeln!(note, "offset: {}", stretch.offset)?;
    writeln!(note, "bytes: {}", stretch.bytes)?;
    writeln!(note, "chunk: {id}")?;
    writeln!(note, "reason: {}", stretch.reason)?;
    note.sync_all()?;
    sync_dir(dir)?;
    Ok(copy)
}
