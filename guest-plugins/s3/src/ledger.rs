//! What is written down of a multipart upload, so that any later attempt, in whatever process, goes on with it.
//!
//! Rows of the batch (they go away with it): `upload` says that an upload is being created or which one is used, and `part/<n>` that
//! a part has arrived. Rows of the output: `upload/<upload id>` tells the sweep which batch an upload is for, when the batch is gone.

use std::collections::BTreeMap;

use wharf_plugin::HostError;
use wharf_plugin::s3::Part;

use crate::object::Target;
use crate::template::hash;
use crate::world::World;

const UPLOAD: &str = "upload";
const PARTS: &str = "part/";
/// Rows of the output begin so.
pub const UPLOADS: &str = "upload/";
/// The host's limits for a row.
const MAX_ROW_KEY: usize = 512;
const MAX_ROW_VALUE: usize = 1024;

/// What is known of the batch's upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// One was about to be created for this key; whether it was is not known.
    Creating,
    /// This one, with the parts that have arrived.
    Upload(Upload),
}

/// An upload, and the parts of it that have arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upload {
    /// S3's id.
    pub id: String,
    /// Parts by number.
    pub parts: BTreeMap<u16, Arrived>,
}

/// A part that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes.
    pub size: u64,
    /// Of the bytes.
    pub crc32c: u32,
    /// What S3 said.
    pub part: Part,
}

/// Reads what is known of the batch's upload to this key. An upload to another key (before the batch got another number) is forgotten
/// here; its row of the output stays for the sweep.
pub fn read<W: World>(world: &W, key: &str) -> Result<Known, HostError> {
    let Some(row) = world.progress(UPLOAD)? else { return Ok(Known::Nothing) };
    let row = String::from_utf8_lossy(&row).into_owned();
    let (key_hash, id) = row.split_once(' ').unwrap_or_default();
    if key_hash != hash_text(key) {
        forget(world)?;
        return Ok(Known::Nothing);
    }
    if id.is_empty() {
        return Ok(Known::Creating);
    }
    let mut parts = BTreeMap::new();
    for (name, value) in world.progress_rows(PARTS)? {
        // A row that cannot be read is a part that is sent again.
        if let Some(arrived) = Arrived::from_row(&name, &value) {
            parts.insert(arrived.part.number, arrived);
        }
    }
    Ok(Known::Upload(Upload { id: id.into(), parts }))
}

/// Before an upload is created.
pub fn creating<W: World>(world: &W, key: &str) -> Result<(), HostError> {
    world.set_progress(UPLOAD, Some(format!("{} ", hash_text(key)).as_bytes()))
}

/// An upload was created, or is gone on with.
pub fn using<W: World>(world: &W, target: &Target, key: &str, id: &str) -> Result<(), HostError> {
    world.set_progress(UPLOAD, Some(format!("{} {id}", hash_text(key)).as_bytes()))?;
    let row = format!("{UPLOADS}{id}");
    let value = format!("{} {} {key}", world.facts().id, target.bucket);
    // With the longest of keys there is no room to write it down; such an upload is aborted by its batch or by the bucket's lifecycle.
    if row.len() <= MAX_ROW_KEY && value.len() <= MAX_ROW_VALUE {
        world.store(&row, Some(value.as_bytes()))?;
    }
    Ok(())
}

/// A part has arrived.
pub fn arrived<W: World>(world: &W, arrived: &Arrived) -> Result<(), HostError> {
    world.set_progress(&format!("{PARTS}{:05}", arrived.part.number), Some(arrived.to_row().as_bytes()))
}

/// The upload cannot be used any more: the next one starts with nothing.
pub fn forget<W: World>(world: &W) -> Result<(), HostError> {
    // Parts first: without its `upload` row an upload is not gone on with, whatever parts are left.
    for (row, _) in world.progress_rows(PARTS)? {
        world.set_progress(&row, None)?;
    }
    world.set_progress(UPLOAD, None)
}

/// The upload is finished or aborted: the sweep need not know it.
pub fn ended<W: World>(world: &W, id: &str) -> Result<(), HostError> {
    world.store(&format!("{UPLOADS}{id}"), None)
}

/// Id of the batch's upload, whatever its key.
pub fn current<W: World>(world: &W) -> Result<Option<String>, HostError> {
    let row = world.progress(UPLOAD)?.unwrap_or_default();
    let row = String::from_utf8_lossy(&row).into_owned();
    Ok(row.split_once(' ').map(|(_, id)| id.to_owned()).filter(|id| !id.is_empty()))
}

/// A row of the output: whose upload it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The batch.
    pub batch: String,
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: String,
}

impl Owner {
    /// Reads a row of the output.
    pub fn from_row(value: &[u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(value).ok()?.splitn(3, ' ').map(str::to_owned);
        Some(Self { batch: fields.next()?, bucket: fields.next()?, key: fields.next()? })
    }
}

impl Arrived {
    fn to_row(&self) -> String {
        let checksum = self.part.checksum.as_deref().unwrap_or("-");
        format!("{} {:08x} {checksum} {}", self.size, self.crc32c, self.part.etag)
    }

    fn from_row(name: &str, value: &[u8]) -> Option<Self> {
        let number = name.strip_prefix(PARTS)?.parse().ok()?;
        let mut fields = std::str::from_utf8(value).ok()?.splitn(4, ' ');
        let size = fields.next()?.parse().ok()?;
        let crc32c = u32::from_str_radix(fields.next()?, 16).ok()?;
        let checksum = Some(fields.next()?).filter(|checksum| *checksum != "-").map(str::to_owned);
        let etag = fields.next()?.to_owned();
        Some(Self { size, crc32c, part: Part { number, etag, checksum } })
    }
}

fn hash_text(key: &str) -> String {
    format!("{:016x}", hash(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_back_as_it_was_written_down() {
        for checksum in [None, Some("yZRlqg==".to_owned())] {
            let part = Part { number: 42, etag: "\"a b\"".into(), checksum };
            let arrived = Arrived { size: 8 << 20, crc32c: 0x00ab_cdef, part };
            assert_eq!(Arrived::from_row("part/00042", arrived.to_row().as_bytes()), Some(arrived));
        }
        assert_eq!(Arrived::from_row("part/00042", b"8388608 zz - e"), None);
        assert_eq!(Arrived::from_row("part/x", b"1 00 - e"), None);
    }

    #[test]
    fn a_key_with_blanks_is_read_back_whole() {
        let owner = Owner::from_row(b"b1 my-bucket logs/a b c").unwrap();
        assert_eq!(
            (owner.batch.as_str(), owner.bucket.as_str(), owner.key.as_str()),
            ("b1", "my-bucket", "logs/a b c")
        );
    }
}
