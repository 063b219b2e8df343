//! How far a file was read, as it is kept with each chunk.

use serde::{Deserialize, Serialize};

use super::identity::{FileId, Fingerprint, Mark};

/// A position's value may have so many bytes.
const MAX_BYTES: usize = 1024;

/// What keys of former files begin with. No device has such a number.
const FORMER: &str = "was:";

/// How far one file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePosition {
    /// Which file.
    pub(crate) id: FileId,
    /// How it begins.
    pub(crate) fingerprint: Fingerprint,
    /// Behind the last whole line that was taken. Of a compressed file, in what it unpacks to.
    pub(crate) offset: u64,
    /// What is before a place up to which it was read: by that it is known when it is compressed.
    pub(crate) mark: Option<Mark>,
    /// Of a compressed file: where its unpacking is gone on with.
    pub(crate) member: Option<Member>,
    /// Whether the file is gone, or begins anew, and this is kept because it may be there again, compressed.
    pub(crate) is_former: bool,
    /// Whether `offset` is inside a line whose beginning was taken and whose rest is skipped.
    pub(crate) skipping: bool,
    /// Where the file was last seen; cut at the front where it is very long.
    pub(crate) path: String,
    /// When this was written, seconds since 1970 UTC.
    pub(crate) at: i64,
}

/// The beginning of a member of a compressed file (gzip) or of a frame (zstd), not behind the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// Tells the file from an earlier one that had its inode.
    pub(crate) salt: u64,
    /// Where it is in the file.
    pub(crate) file: u64,
    /// And in what the file unpacks to.
    pub(crate) unpacked: u64,
    /// Whether the file is damaged: nothing more is read of it.
    pub(crate) damaged: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    offset: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skipping: bool,
    /// Place, bytes before it, their CRC-64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<(u64, u32, u64)>,
    /// Place in the file, place in what it unpacks to, whether it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<(u64, u64, bool)>,
    first_bytes: u32,
    first_crc64: u64,
    at: i64,
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
}

impl FilePosition {
    /// As a position's key. A compressed file's is its own as long as the file is there: no earlier one had it.
    pub(crate) fn key(&self) -> String {
        if self.is_former {
            let mark = self.mark.map_or(0, |mark| mark.before.hash);
            return format!("{FORMER}{:x}:{:x}:{mark:x}", self.fingerprint.hash, self.offset);
        }
        match self.member {
            Some(member) => format!("{}:{:x}", self.id.key(), member.salt),
            None => self.id.key(),
        }
    }

    /// As a position's value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut path = self.path.as_str();
        loop {
            let stored = Stored {
                offset: self.offset,
                skipping: self.skipping,
                mark: self.mark.map(|mark| (mark.at, mark.before.bytes, mark.before.hash)),
                member: self.member.map(|member| (member.file, member.unpacked, member.damaged)),
                first_bytes: self.fingerprint.bytes,
                first_crc64: self.fingerprint.hash,
                at: self.at,
                path: path.into(),
            };
            // Numbers and a string always serialise.
            let value = serde_json::to_vec(&stored).unwrap_or_default();
            if value.len() <= MAX_BYTES || path.is_empty() {
                return value;
            }
            // The end of a path says most. Escapes make a character up to six bytes long, so it may take several cuts.
            let cut = (path.len() / 4).max(1);
            path = path.char_indices().find(|(at, _)| *at >= cut).map_or("", |(at, _)| &path[at..]);
        }
    }

    /// From a position's key and value; the reason where they are not one.
    pub(crate) fn decode(key: &str, value: &[u8]) -> Result<Self, String> {
        let stored: Stored<'_> = serde_json::from_slice(value).map_err(|e| e.to_string())?;
        let is_former = key.starts_with(FORMER);
        let not_one = || format!("{key:?} is not a device and an inode");
        // A compressed file's key has its salt behind them.
        let (place, salt) = match key.rsplit_once(':') {
            Some((place, salt)) if place.contains(':') && !is_former => (place, Some(salt)),
            _ => (key, None),
        };
        let id = if is_former { FileId::default() } else { FileId::parse(place).ok_or_else(not_one)? };
        let salt = salt.map(|salt| u64::from_str_radix(salt, 16).map_err(|_| not_one())).transpose()?;
        let member = match (salt, stored.member) {
            (Some(salt), Some((file, unpacked, damaged))) => Some(Member { salt, file, unpacked, damaged }),
            (None, None) => None,
            _ => return Err(format!("{key:?} is not the key of such a file")),
        };
        Ok(Self {
            id,
            fingerprint: Fingerprint { hash: stored.first_crc64, bytes: stored.first_bytes },
            offset: stored.offset,
            mark: stored.mark.map(|(at, bytes, hash)| Mark { at, before: Fingerprint { hash, bytes } }),
            member,
            is_former,
            skipping: stored.skipping,
            path: stored.path.into_owned(),
            at: stored.at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(path: &str) -> FilePosition {
        FilePosition {
            id: FileId { device: 1, inode: 2 },
            fingerprint: Fingerprint { hash: u64::MAX, bytes: 1024 },
            offset: 1 << 40,
            mark: Some(Mark { at: 1 << 39, before: Fingerprint { hash: 7, bytes: 1000 } }),
            member: None,
            is_former: false,
            skipping: true,
            path: path.into(),
            at: 1_790_000_000,
        }
    }

    #[test]
    fn a_position_comes_back_as_it_was() {
        let there = position("/var/log/ä \"quoted\".log");
        assert_eq!(FilePosition::decode("1:2", &there.encode()).unwrap(), there);
    }

    #[test]
    fn positions_of_compressed_and_of_former_files_come_back_by_keys_of_their_own() {
        let member = Member { salt: 0xabc, file: 5, unpacked: 77, damaged: true };
        let compressed = FilePosition { member: Some(member), mark: None, ..position("/a.gz") };
        assert_eq!(compressed.key(), "1:2:abc");
        assert_eq!(FilePosition::decode("1:2:abc", &compressed.encode()).unwrap(), compressed);
        let former = FilePosition { is_former: true, id: FileId::default(), ..position("/a") };
        assert_eq!(former.key(), "was:ffffffffffffffff:10000000000:7");
        assert_eq!(FilePosition::decode(&former.key(), &former.encode()).unwrap(), former);
        for (key, of) in [("1:2", &compressed), ("1:2:abc", &former), ("1:2:x", &compressed), ("1:2:3:4", &compressed)]
        {
            assert!(FilePosition::decode(key, &of.encode()).is_err(), "{key}");
        }
    }

    /// As a version before this one wrote it.
    #[test]
    fn a_position_without_a_mark_is_read() {
        let value = br#"{"offset":9,"first_bytes":4,"first_crc64":5,"at":6,"path":"/a"}"#;
        let read = FilePosition::decode("1:2", value).unwrap();
        assert_eq!((read.offset, read.mark, read.member), (9, None, None));
        assert_eq!(read.encode(), value);
    }

    #[test]
    fn a_very_long_path_keeps_its_end_and_the_value_its_limit() {
        for path in ["/a".repeat(3000) + "/app.log", "\u{1}".repeat(4000) + "/app.log", "ä".repeat(1500) + "/app.log"]
        {
            let value = position(&path).encode();
            assert!(value.len() <= 1024);
            let back = FilePosition::decode("1:2", &value).unwrap();
            assert!(back.path.ends_with("/app.log"), "{}", back.path);
            assert_eq!(back.offset, 1 << 40);
        }
    }

    #[test]
    fn bytes_that_are_no_position_give_a_reason() {
        for value in [&b""[..], b"{}", b"\xff\xfe", b"[1]", b"{\"offset\":-1}"] {
            assert!(FilePosition::decode("1:2", value).is_err());
        }
        assert!(FilePosition::decode("nonsense", &position("/x").encode()).is_err());
    }
}
