//! Why bytes are not a chunk.

/// Why bytes are not a chunk.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChunkError {
    /// They end too early.
    #[error("the chunk is cut off: {needed} bytes are needed, {found} are there")]
    Short {
        /// Bytes needed.
        needed: u64,
        /// Bytes there.
        found: u64,
    },
    /// They do not begin like one.
    #[error("not a chunk: it begins with {found:#010x}")]
    Magic {
        /// The first four bytes, little-endian.
        found: u32,
    },
    /// A later Wharf wrote it.
    #[error("the chunk has format version {found}, this Wharf reads {known}")]
    Version {
        /// Its version.
        found: u16,
        /// Ours.
        known: u16,
    },
    /// A checksum does not agree.
    #[error("the chunk's {part} is damaged: CRC-32C is {actual:#010x}, recorded {recorded:#010x}")]
    Crc {
        /// `header` or `content`.
        part: &'static str,
        /// As written.
        recorded: u32,
        /// As found.
        actual: u32,
    },
    /// A field makes no sense although the checksum agrees.
    #[error("the chunk's {0} is impossible")]
    Field(&'static str),
}
