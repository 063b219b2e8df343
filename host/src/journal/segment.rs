//! Segment files and their directory: making, recycling, reading and writing them.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::layout::{Frame, HEADER_BYTES, Kind, SegmentHeader};

/// Linux takes at most 1,024 pieces a call.
const MAX_PIECES: usize = 1024;

/// One life of a segment file.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) generation: u64,
    pub(super) salt: u64,
}

impl Segment {
    /// A frame of this life.
    pub(super) fn frame(&self, kind: Kind, id: u64, length: u64) -> Frame {
        Frame { kind, generation: self.generation, salt: self.salt, id, length }
    }
}

/// A file that waits to be used again.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) length: u64,
}

/// What a file in the journal's directory is, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// `<16 hex digits>.seg`
    Segment(u64),
    /// `<16 hex digits>.free`: a spare, or a segment that was being made.
    Free,
}

/// Reads a file's name.
pub(super) fn named(name: &OsStr) -> Option<Named> {
    let (digits, kind) = name.to_str()?.split_once('.')?;
    if digits.len() != 16 {
        return None;
    }
    let generation = u64::from_str_radix(digits, 16).ok()?;
    match kind {
        "seg" => Some(Named::Segment(generation)),
        "free" => Some(Named::Free),
        _ => None,
    }
}

pub(super) fn segment_path(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("{generation:016x}.seg"))
}

pub(super) fn free_path(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("{generation:016x}.free"))
}

/// Makes what happened to a directory's names durable.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Makes a segment, from a spare where there is one. The file bears its name only once its header is on the disk, so a
/// `.seg` file without a good header is a damaged one.
pub(super) fn make(dir: &Path, header: &SegmentHeader, spare: Option<&Spare>) -> io::Result<Segment> {
    let (free, path) = match spare {
        Some(spare) => (spare.path.clone(), segment_path(dir, header.generation)),
        None => (free_path(dir, header.generation), segment_path(dir, header.generation)),
    };
    let made = fill(&free, header, spare.is_none()).and_then(|file| {
        std::fs::rename(&free, &path)?;
        sync_dir(dir)?;
        Ok(file)
    });
    match made {
        Ok(file) => Ok(Segment { file, path, generation: header.generation, salt: header.salt }),
        Err(cause) => {
            // A file with a header that nothing was written behind would only be an empty segment: it may stay if it must.
            for left in [&free, &path] {
                match std::fs::remove_file(left) {
                    Err(why) if why.kind() != io::ErrorKind::NotFound => {
                        tracing::warn!(file = %left.display(), %why, "a journal segment that failed could not be removed");
                    }
                    _ => {}
                }
            }
            Err(cause)
        }
    }
}

fn fill(path: &Path, header: &SegmentHeader, new: bool) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(new).truncate(new).open(path)?;
    if new {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, header.length) {
            // The file system cannot reserve room: a full disk shows when frames are written, then.
            Err(Errno::OPNOTSUPP) => file.set_len(header.length)?,
            done => done?,
        }
    }
    let mut page = header.encode();
    let end = Frame { kind: Kind::End, generation: header.generation, salt: header.salt, id: header.base, length: 0 };
    page.extend_from_slice(&end.encode());
    file.write_all_at(&page, 0)?;
    // A new file's length must reach the disk, too.
    file.sync_all()?;
    Ok(file)
}

/// Writes all pieces one behind the other.
pub(super) fn write_pieces(file: &File, mut pieces: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    while !pieces.is_empty() {
        let call = pieces.get(..pieces.len().min(MAX_PIECES)).unwrap_or_default();
        match rustix::io::pwritev(file, call, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(())
}

/// Reads into `buffer`, which is emptied before, up to `length` bytes; fewer at the file's end.
pub(super) fn read_at(file: &File, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    if length == 0 {
        return Ok(());
    }
    buffer.reserve_exact(length);
    while buffer.len() < length {
        let at = offset + buffer.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// As [`read_at`], but a place that the disk does not give reads as zeros, page by page: checksums tell what is missing.
/// Gives the disk's first error.
pub(super) fn read_leniently(file: &File, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Option<io::Error> {
    let cause = read_at(file, offset, length, buffer).err()?;
    buffer.clear();
    buffer.resize(length, 0);
    for (n, page) in buffer.chunks_mut(4096).enumerate() {
        let at = offset + n as u64 * 4096;
        if file.read_exact_at(page, at).is_err() {
            page.fill(0);
        }
    }
    Some(cause)
}

/// Zeroes from `offset` to the file's end.
pub(super) fn zero_from(file: &File, offset: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length <= offset {
        return Ok(());
    }
    if rustix::fs::fallocate(file, FallocateFlags::ZERO_RANGE, offset, length - offset).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; 1 << 20];
    let mut at = offset;
    while at < length {
        let piece = zeros.get(..((length - at) as usize).min(zeros.len())).unwrap_or(&zeros);
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The page at the beginning of a segment file.
pub(super) fn read_header(file: &File) -> Vec<u8> {
    let mut page = Vec::new();
    if let Some(cause) = read_leniently(file, 0, HEADER_BYTES as usize, &mut page) {
        tracing::error!(%cause, "reading the header of a journal segment failed");
    }
    page
}
