//! Which file this is: device and inode, and a fingerprint of its first bytes, since inodes are used again.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// How many of a file's first bytes a fingerprint covers at most.
pub(crate) const FINGERPRINT_BYTES: usize = 1024;

/// A place on a device. It names a file as long as the file is open or linked, and another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// As a position's key.
    pub(crate) fn key(self) -> String {
        format!("{:x}:{:x}", self.device, self.inode)
    }

    /// From a position's key.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let (device, inode) = key.split_once(':')?;
        Some(Self { device: u64::from_str_radix(device, 16).ok()?, inode: u64::from_str_radix(inode, 16).ok()? })
    }
}

/// The first bytes of a file, hashed. A young file is shorter than a whole fingerprint: `bytes` says how many were hashed, and
/// only so many are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint {
    pub(crate) hash: u64,
    pub(crate) bytes: u32,
}

impl Fingerprint {
    /// Of the first `bytes` of a file, or of as many as there are.
    pub(crate) fn take(file: &File, bytes: usize) -> io::Result<Self> {
        let mut first = [0; FINGERPRINT_BYTES];
        let wanted = first.get_mut(..bytes.min(FINGERPRINT_BYTES)).unwrap_or_default();
        let found = read_full(file, wanted, 0)?;
        Ok(Self::hash(wanted.get(..found).unwrap_or_default()))
    }

    fn hash(first: &[u8]) -> Self {
        let hash = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, first);
        Self { hash, bytes: u32::try_from(first.len()).unwrap_or(u32::MAX) }
    }

    /// Whether the file still begins like this.
    pub(crate) fn matches(self, file: &File) -> io::Result<bool> {
        Ok(Self::take(file, self.bytes as usize)? == self)
    }

    /// Of as many bytes as there are now, if the file still begins like this. Both are of one read: between two, the file could be
    /// written anew, and be taken for what it was.
    pub(crate) fn grown(self, file: &File) -> io::Result<Option<Self>> {
        let mut first = [0; FINGERPRINT_BYTES];
        let wanted = if self.is_short() { FINGERPRINT_BYTES } else { self.bytes as usize };
        let wanted = first.get_mut(..wanted.min(FINGERPRINT_BYTES)).unwrap_or_default();
        let found = read_full(file, wanted, 0)?;
        let found = wanted.get(..found).unwrap_or_default();
        Ok(match found.get(..self.bytes as usize) {
            Some(covered) if Self::hash(covered) == self => Some(Self::hash(found)),
            _ => None,
        })
    }

    /// Whether these bytes, the first of a file, begin with what it is of.
    pub(crate) fn is_of(self, first: &[u8]) -> bool {
        first.get(..self.bytes as usize).is_some_and(|covered| Self::hash(covered) == self)
    }

    /// Whether more bytes could still be covered.
    pub(crate) fn is_short(self) -> bool {
        (self.bytes as usize) < FINGERPRINT_BYTES
    }
}

/// A place in a file that was read, and a fingerprint of the bytes before it. Together with the file's first bytes it tells its content, wherever that is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) before: Fingerprint,
}

impl Mark {
    /// Of the bytes before this place, where there are any.
    pub(crate) fn take(file: &File, at: u64) -> io::Result<Option<Self>> {
        let mut before = [0; FINGERPRINT_BYTES];
        let bytes = usize::try_from(at).unwrap_or(FINGERPRINT_BYTES).min(FINGERPRINT_BYTES);
        let before = before.get_mut(..bytes).unwrap_or_default();
        let found = read_full(file, before, at - bytes as u64)?;
        Ok((found == bytes && bytes > 0).then(|| Self { at, before: Fingerprint::hash(before) }))
    }

    /// Whether this text, up to its place, ends as the file does there.
    pub(crate) fn is_at_end_of(self, text: &[u8]) -> bool {
        let from = text.len().checked_sub(self.before.bytes as usize);
        from.and_then(|from| text.get(from..)).is_some_and(|before| Fingerprint::hash(before) == self.before)
    }
}

/// Reads until `buffer` is full or the file ends; how many bytes it gave.
pub(crate) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_key_gives_the_identity_back() {
        let id = FileId { device: 0xfd01, inode: 42 };
        assert_eq!(id.key(), "fd01:2a");
        assert_eq!(FileId::parse("fd01:2a"), Some(id));
        assert_eq!(FileId::parse("fd01"), None);
        assert_eq!(FileId::parse("x:y"), None);
    }

    #[test]
    fn a_mark_is_of_the_bytes_before_a_place() {
        let mut file = tempfile::tempfile().unwrap();
        let text: Vec<u8> = (1..5000_u32).flat_map(|n| (n * 7919).to_le_bytes()).collect();
        file.write_all(&text).unwrap();
        for (at, bytes) in [(3, 3), (1024, 1024), (5000, 1024)] {
            let mark = Mark::take(&file, at).unwrap().unwrap();
            assert_eq!((mark.at, mark.before.bytes), (at, bytes));
            assert!(mark.is_at_end_of(&text[..at as usize]));
            assert!(!mark.is_at_end_of(&text[..at as usize + 1]));
            assert!(!mark.is_at_end_of(&text[..2]));
        }
        assert_eq!(Mark::take(&file, 0).unwrap(), None);
        assert_eq!(Mark::take(&file, 19_997).unwrap(), None, "there are not so many bytes");
    }

    #[test]
    fn a_grown_file_still_matches_and_another_one_does_not() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\n").unwrap();
        let young = Fingerprint::take(&file, FINGERPRINT_BYTES).unwrap();
        assert_eq!(young.bytes, 4);
        file.write_all(&[b'x'; 5000]).unwrap();
        assert!(young.matches(&file).unwrap());
        let grown = Fingerprint::take(&file, FINGERPRINT_BYTES).unwrap();
        assert_eq!(grown.bytes, 1024);
        assert!(!grown.is_short());
        assert_eq!(young.grown(&file).unwrap(), Some(grown));

        let mut other = tempfile::tempfile().unwrap();
        other.write_all(b"two\n").unwrap();
        assert!(!young.matches(&other).unwrap());
        assert!(!grown.matches(&other).unwrap());
        assert_eq!(young.grown(&other).unwrap(), None);
        assert_eq!(grown.grown(&other).unwrap(), None);
    }
}
