//! The bytes of segment files: the header, and the frames behind it. `docs/journal.md` has the same as tables.
//!
//! A frame is believed only where its generation and salt are those of the segment's header. The generation tells apart the
//! lives of a recycled file. The salt is random, so that a record whose text looks like a frame is never taken for one.

use crc_fast::crc32_iscsi;

/// Bytes of a segment's header: a page of its own, so that no frame's write can tear it.
pub(super) const HEADER_BYTES: u64 = 4096;
/// Bytes of a frame's header.
pub(super) const FRAME_BYTES: u64 = 48;
/// Bytes that tell the frames of one life of a segment from all else.
pub(super) const PREFIX_BYTES: usize = 24;
/// The part of them that is known without the salt.
pub(super) const SALTLESS_BYTES: usize = 16;
/// Most cuts that a header can hold.
pub(super) const MAX_CUTS: usize = 250;

const MAGIC: &[u8; 8] = b"WHARFSEG";
const VERSION: u32 = 1;
const CUTS_AT: usize = 48;
const HEADER_CRC_AT: usize = HEADER_BYTES as usize - 4;
const FRAME_MAGIC: &[u8; 4] = b"WFRM";
const FRAME_CRC_AT: usize = FRAME_BYTES as usize - 4;

/// Where an abandoned segment ends: what lies behind was refused, and must not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abandoned {
    pub(super) generation: u64,
    pub(super) offset: u64,
}

/// A segment's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Which life of which file this is; ascending in a directory.
    pub(super) generation: u64,
    pub(super) salt: u64,
    /// The next id when this segment began: every id given before is lower.
    pub(super) base: u64,
    /// Bytes of the whole file.
    pub(super) length: u64,
    pub(super) abandoned: Vec<Abandoned>,
}

/// Why bytes are not a segment's header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// They are damaged, or something else.
    Damaged(String),
    /// A later Wharf wrote them.
    Version(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(HEADER_BYTES as usize);
        let abandoned = self.abandoned.iter().take(MAX_CUTS);
        page.extend_from_slice(MAGIC);
        page.extend_from_slice(&VERSION.to_le_bytes());
        page.extend_from_slice(&(abandoned.len() as u32).to_le_bytes());
        for field in [self.generation, self.salt, self.base, self.length] {
            page.extend_from_slice(&field.to_le_bytes());
        }
        for cut in abandoned {
            page.extend_from_slice(&cut.generation.to_le_bytes());
            page.extend_from_slice(&cut.offset.to_le_bytes());
        }
        page.resize(HEADER_CRC_AT, 0);
        page.extend_from_slice(&crc32_iscsi(&page).to_le_bytes());
        page
    }

    pub(super) fn decode(page: &[u8]) -> Result<Self, BadHeader> {
        let damaged = |what: &str| BadHeader::Damaged(format!("the segment's header is damaged: {what}"));
        let body = page.get(..HEADER_CRC_AT).ok_or_else(|| damaged("it is cut off"))?;
        if body.get(..8) != Some(MAGIC.as_slice()) {
            return Err(damaged("it does not begin like one"));
        }
        let (recorded, actual) = (u32_at(page, HEADER_CRC_AT), crc32_iscsi(body));
        if recorded != Some(actual) {
            return Err(damaged("its checksum does not agree"));
        }
        let version = u32_at(page, 8).unwrap_or_default();
        if version != VERSION {
            return Err(BadHeader::Version(version));
        }
        let field = |at| u64_at(page, at).unwrap_or_default();
        let count = (u32_at(page, 12).unwrap_or_default() as usize).min(MAX_CUTS);
        let cut = |n: usize| CUTS_AT + n * 16;
        Ok(Self {
            generation: field(16),
            salt: field(24),
            base: field(32),
            length: field(40),
            abandoned: (0..count).map(|n| Abandoned { generation: field(cut(n)), offset: field(cut(n) + 8) }).collect(),
        })
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A chunk follows.
    Chunk = 1,
    /// Everything that was committed ends here. The next group is written over it.
    End = 2,
    /// The same, written at a clean stop: what lies before it was committed for certain.
    Closed = 3,
    /// As many bytes as the frame says mean nothing: they were damaged, and are set aside.
    Gap = 4,
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) generation: u64,
    pub(super) salt: u64,
    /// The chunk's id; in `End` and `Closed`, the next id.
    pub(super) id: u64,
    /// Bytes behind the header, without the padding.
    pub(super) length: u64,
}

impl Frame {
    pub(super) fn encode(&self) -> [u8; FRAME_BYTES as usize] {
        let mut bytes = [0; FRAME_BYTES as usize];
        bytes[..PREFIX_BYTES].copy_from_slice(&prefix(self.generation, self.salt));
        bytes[24..32].copy_from_slice(&self.id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.length.to_le_bytes());
        bytes[40..44].copy_from_slice(&(self.kind as u32).to_le_bytes());
        let crc = crc32_iscsi(&bytes[..FRAME_CRC_AT]);
        bytes[FRAME_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a frame of this generation; of this salt, too, where it is known.
    pub(super) fn decode(bytes: &[u8], generation: u64, salt: Option<u64>) -> Option<Self> {
        let found = u64_at(bytes, 16)?;
        let salt = salt.unwrap_or(found);
        if bytes.get(..PREFIX_BYTES)? != prefix(generation, salt) {
            return None;
        }
        let (recorded, actual) = frame_crcs(bytes)?;
        if recorded != actual {
            return None;
        }
        let kind = match u32_at(bytes, 40)? {
            1 => Kind::Chunk,
            2 => Kind::End,
            3 => Kind::Closed,
            4 => Kind::Gap,
            _ => return None,
        };
        Some(Self { kind, generation, salt, id: u64_at(bytes, 24)?, length: u64_at(bytes, 32)? })
    }

    /// Bytes that the frame takes in the file.
    pub(super) fn span(&self) -> u64 {
        span(self.length)
    }
}

/// A frame header's checksum as recorded, and as it should be.
pub(super) fn frame_crcs(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((u32_at(bytes, FRAME_CRC_AT)?, crc32_iscsi(bytes.get(..FRAME_CRC_AT)?)))
}

/// What all frames of one life of a segment begin with.
pub(super) fn prefix(generation: u64, salt: u64) -> [u8; PREFIX_BYTES] {
    let mut bytes = [0; PREFIX_BYTES];
    bytes[..4].copy_from_slice(FRAME_MAGIC);
    bytes[8..16].copy_from_slice(&generation.to_le_bytes());
    bytes[16..].copy_from_slice(&salt.to_le_bytes());
    bytes
}

/// Bytes that a frame with so long a content takes: header, content, and padding to a multiple of 8.
pub(super) fn span(length: u64) -> u64 {
    length.saturating_add(FRAME_BYTES).saturating_add(7) & !7
}

/// Zeros behind a content of this length.
pub(super) fn padding(length: u64) -> usize {
    (length.wrapping_neg() & 7) as usize
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = SegmentHeader {
            generation: 7,
            salt: u64::MAX,
            base: 1 << 40,
            length: 65536,
            abandoned: vec![Abandoned { generation: 3, offset: 4096 }, Abandoned { generation: 5, offset: 8192 }],
        };
        let page = header.encode();
        assert_eq!(page.len(), 4096);
        assert_eq!(&page[..8], b"WHARFSEG");
        assert_eq!(page[16..24], [7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(SegmentHeader::decode(&page), Ok(header));
    }

    #[test]
    fn any_flipped_bit_of_a_header_is_noticed() {
        let page = SegmentHeader { generation: 1, salt: 2, base: 3, length: 4, abandoned: Vec::new() }.encode();
        for at in (0..page.len()).step_by(7) {
            let mut bad = page.clone();
            bad[at] ^= 0x10;
            assert!(matches!(SegmentHeader::decode(&bad), Err(BadHeader::Damaged(_))), "byte {at}");
        }
        assert!(matches!(SegmentHeader::decode(&page[..100]), Err(BadHeader::Damaged(_))));
    }

    #[test]
    fn any_flipped_bit_of_a_frame_makes_it_no_frame() {
        let frame = Frame { kind: Kind::Chunk, generation: 9, salt: 77, id: 123, length: 4567 };
        let bytes = frame.encode();
        assert_eq!(Frame::decode(&bytes, 9, Some(77)), Some(frame));
        assert_eq!(Frame::decode(&bytes, 9, None), Some(frame));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::decode(&bad, 9, Some(77)), None, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_an_earlier_life_or_without_the_salt_is_no_frame() {
        let bytes = Frame { kind: Kind::Chunk, generation: 9, salt: 77, id: 123, length: 1 }.encode();
        assert_eq!(Frame::decode(&bytes, 10, Some(77)), None);
        assert_eq!(Frame::decode(&bytes, 9, Some(78)), None);
    }

    #[test]
    fn frames_are_padded_to_eight_bytes() {
        assert_eq!((span(0), padding(0)), (48, 0));
        assert_eq!((span(1), padding(1)), (56, 7));
        assert_eq!((span(8), padding(8)), (56, 0));
        assert_eq!((span(9), padding(9)), (64, 7));
    }
}
