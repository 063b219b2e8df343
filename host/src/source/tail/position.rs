//! How far a file was read, as it is kept with each chunk.

use serde::{Deserialize, Serialize};

use super::identity::{FileId, Fingerprint};

/// A position's value may have so many bytes.
const MAX_BYTES: usize = 1024;

/// How far one file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePosition {
    /// Which file.
    pub(crate) id: FileId,
    /// How it begins.
    pub(crate) fingerprint: Fingerprint,
    /// Behind the last whole line that was taken.
    pub(crate) offset: u64,
    /// Whether `offset` is inside a line whose beginning was taken and whose rest is skipped.
    pub(crate) skipping: bool,
    /// Where the file was last seen; cut at the front where it is very long.
    pub(crate) path: String,
    /// When this was written, seconds since 1970 UTC.
    pub(crate) at: i64,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    offset: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    skipping: bool,
    first_bytes: u32,
    first_crc64: u64,
    at: i64,
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
}

impl FilePosition {
    /// As a position's value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut path = self.path.as_str();
        loop {
            let stored = Stored {
                offset: self.offset,
                skipping: self.skipping,
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
        let id = FileId::parse(key).ok_or_else(|| format!("{key:?} is not a device and an inode"))?;
        let stored: Stored<'_> = serde_json::from_slice(value).map_err(|e| e.to_string())?;
        Ok(Self {
            id,
            fingerprint: Fingerprint { hash: stored.first_crc64, bytes: stored.first_bytes },
            offset: stored.offset,
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
