//! Decompressing what was sent, within limits. It computes for a while: not for the runtime's threads.

use std::io::{self, Read};

use super::room::Held;

/// Largest window of a zstd frame, as a power of two: 8 MiB, what RFC 8878 recommends to support. A frame may ask for
/// gigabytes of memory otherwise.
const ZSTD_WINDOW_LOG: u32 = 23;

/// What a member begins with (RFC 1952, section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// One member or several (RFC 1952).
    Gzip,
    /// One frame or several (RFC 8878).
    Zstd,
    /// The zlib format (RFC 1950), which is HTTP's `deflate` (RFC 9110, 8.4.1.2).
    Deflate,
}

/// Why bytes are not decompressed.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// They would be more than the limit.
    TooLarge,
    /// They are not compressed as it was said.
    Broken(io::Error),
    /// Too much is in memory.
    NoRoom,
}

impl Compression {
    /// Its name in protocols.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Deflate => "deflate",
        }
    }

    /// Decompresses to at most `limit` bytes, which are added to `held`.
    pub(crate) fn undo(self, bytes: &[u8], limit: u64, held: &mut Held) -> Result<Vec<u8>, Unfit> {
        match self {
            Self::Gzip => gunzip(bytes, limit, held),
            Self::Deflate => {
                let mut decoder = flate2::bufread::ZlibDecoder::new(bytes);
                let mut all = room_for(bytes);
                inflate(&mut decoder, limit, held, &mut all)?;
                match decoder.into_inner().len() {
                    0 => Ok(all),
                    rest => Err(followed(rest)),
                }
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(Unfit::Broken)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(Unfit::Broken)?;
                let mut all = room_for(bytes);
                inflate(&mut decoder, limit, held, &mut all)?;
                Ok(all)
            }
        }
    }
}

/// Member by member, so that what is behind the last one is told from one that is damaged.
fn gunzip(bytes: &[u8], limit: u64, held: &mut Held) -> Result<Vec<u8>, Unfit> {
    let (mut all, mut rest) = (room_for(bytes), bytes);
    loop {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        inflate(&mut member, limit, held, &mut all)?;
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(all);
        }
        if !rest.starts_with(&GZIP_MAGIC) {
            return Err(followed(rest.len()));
        }
    }
}

fn followed(rest: usize) -> Unfit {
    Unfit::Broken(io::Error::other(format!("the last {rest} bytes, behind it, are something else")))
}

fn room_for(compressed: &[u8]) -> Vec<u8> {
    Vec::with_capacity(compressed.len().saturating_mul(4).min(1 << 20))
}

/// Appends all that a decoder gives; `bytes` has at most `limit` then.
fn inflate(from: &mut impl Read, limit: u64, held: &mut Held, bytes: &mut Vec<u8>) -> Result<(), Unfit> {
    loop {
        let step = (bytes.capacity() - bytes.len()).max(64 << 10) as u64;
        let read = from.by_ref().take(step).read_to_end(bytes).map_err(Unfit::Broken)?;
        held.add(read as u64).map_err(|_| Unfit::NoRoom)?;
        if bytes.len() as u64 > limit {
            return Err(Unfit::TooLarge);
        }
        if read == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::room::Room;
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 3).unwrap()
    }

    fn held() -> Held {
        Room::new(u64::MAX).hold()
    }

    #[test]
    fn compressed_bytes_come_back_as_they_were_and_are_counted() {
        let text = b"{\"a\":1}\n".repeat(50_000);
        let limit = text.len() as u64;
        for (compression, bytes) in [(Compression::Gzip, gzip(&text)), (Compression::Zstd, zstd(&text))] {
            let mut held = held();
            assert!(compression.undo(&bytes, limit, &mut held).unwrap() == text);
            assert_eq!(held.bytes(), limit);
        }
    }

    #[test]
    fn several_members_or_frames_are_one_text() {
        for (compression, one) in
            [(Compression::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Compression::Zstd, zstd as fn(&[u8]) -> Vec<u8>)]
        {
            let both = [one(b"a\n"), one(b""), one(b"b\n")].concat();
            assert_eq!(compression.undo(&both, 4, &mut held()).unwrap(), b"a\nb\n");
        }
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let zeros = vec![0; 10 << 20];
        for (compression, bomb) in [(Compression::Gzip, gzip(&zeros)), (Compression::Zstd, zstd(&zeros))] {
            let unfit = compression.undo(&bomb, 1 << 20, &mut held()).unwrap_err();
            assert!(matches!(unfit, Unfit::TooLarge), "{unfit:?}");
            let unfit = compression.undo(&bomb, u64::MAX, &mut Room::new(1 << 20).hold()).unwrap_err();
            assert!(matches!(unfit, Unfit::NoRoom), "{unfit:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_compressed_are_refused() {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let unfit = compression.undo(b"plain text", 1000, &mut held()).unwrap_err();
            assert!(matches!(unfit, Unfit::Broken(_)), "{unfit:?}");
        }
        let followed = [gzip(b"a\n"), gzip(b"b\n"), b"and more".to_vec()].concat();
        let Unfit::Broken(why) = Compression::Gzip.undo(&followed, 1000, &mut held()).unwrap_err() else { panic!() };
        assert_eq!(why.to_string(), "the last 8 bytes, behind it, are something else");
        let mut followed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        followed.write_all(b"a\n").unwrap();
        let followed = [followed.finish().unwrap(), b"more".to_vec()].concat();
        let Unfit::Broken(why) = Compression::Deflate.undo(&followed, 1000, &mut held()).unwrap_err() else { panic!() };
        assert_eq!(why.to_string(), "the last 4 bytes, behind it, are something else");
        let mut cut = gzip(&b"some text\n".repeat(1000));
        cut.truncate(cut.len() - 5);
        assert!(Compression::Gzip.undo(&cut, 100_000, &mut held()).is_err());
    }
}
