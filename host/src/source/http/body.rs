//! Reading a request's body, and decompressing it, within limits.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use futures_util::StreamExt;

use super::answer::Denied;

/// How long a body may make no progress.
const PATIENCE: Duration = Duration::from_secs(30);

/// Largest window of a zstd frame, as a power of two: 8 MiB, what RFC 8878 recommends to support. A frame may ask for
/// gigabytes of memory otherwise.
const ZSTD_WINDOW_LOG: u32 = 23;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// As the headers say.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Denied> {
        let mut encoding = Self::Identity;
        for value in headers.get_all(CONTENT_ENCODING) {
            let name = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
            encoding = match (name.as_str(), encoding) {
                ("identity" | "", _) => encoding,
                ("gzip" | "x-gzip", Self::Identity) => Self::Gzip,
                ("zstd", Self::Identity) => Self::Zstd,
                _ => return Err(Denied::ContentEncoding(name)),
            };
        }
        Ok(encoding)
    }
}

/// How many bytes of bodies a source has in memory, for all its connections: what many large requests at once are held against.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    used: Arc<AtomicU64>,
    most: u64,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Room,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(most: u64) -> Self {
        Self { used: Arc::default(), most }
    }

    pub(crate) fn hold(&self) -> Held {
        Held { room: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes so many bytes more.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Denied> {
        let before = self.room.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > self.room.most { Err(Denied::Busy) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(body: Body, headers: &HeaderMap, limit: u64, held: &mut Held) -> Result<Vec<u8>, Denied> {
    let too_large = Denied::TooLarge { limit, decompressed: false };
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > limit) {
        return Err(too_large);
    }
    // What is announced has not come yet: memory is taken as bytes come, a good part of it ahead.
    let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(1 << 20) as usize);
    let mut frames = body.into_data_stream();
    loop {
        let frame = match tokio::time::timeout(PATIENCE, frames.next()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(e))) => return Err(Denied::Body(e.to_string())),
            Ok(None) => return Ok(bytes),
            Err(_) => return Err(Denied::Slow(PATIENCE)),
        };
        if (bytes.len() + frame.len()) as u64 > limit {
            return Err(too_large);
        }
        held.add(frame.len() as u64)?;
        bytes.extend_from_slice(&frame);
    }
}

/// Decompresses a body to at most `limit` bytes. Computes for a while: not for the runtime's threads.
pub(crate) fn decompress(encoding: Encoding, bytes: Vec<u8>, limit: u64, held: &mut Held) -> Result<Vec<u8>, Denied> {
    match encoding {
        Encoding::Identity => Ok(bytes),
        Encoding::Gzip => {
            inflate(flate2::bufread::MultiGzDecoder::new(bytes.as_slice()), "gzip", bytes.len(), limit, held)
        }
        Encoding::Zstd => {
            let broken = |e: std::io::Error| Denied::Encoded { encoding: "zstd", cause: e.to_string() };
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes.as_slice()).map_err(broken)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(broken)?;
            inflate(decoder, "zstd", bytes.len(), limit, held)
        }
    }
}

fn inflate(
    mut from: impl Read,
    encoding: &'static str,
    compressed: usize,
    limit: u64,
    held: &mut Held,
) -> Result<Vec<u8>, Denied> {
    let mut bytes = Vec::with_capacity(compressed.saturating_mul(4).min(1 << 20));
    loop {
        let step = (bytes.capacity() - bytes.len()).max(64 << 10) as u64;
        let broken = |e: std::io::Error| Denied::Encoded { encoding, cause: e.to_string() };
        let read = from.by_ref().take(step).read_to_end(&mut bytes).map_err(broken)?;
        held.add(read as u64)?;
        if bytes.len() as u64 > limit {
            return Err(Denied::TooLarge { limit, decompressed: true });
        }
        if read == 0 {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn held() -> Held {
        Room::new(u64::MAX).hold()
    }

    #[test]
    fn compressed_bodies_come_back_as_they_were() {
        let text = b"{\"a\":1}\n".repeat(50_000);
        let limit = text.len() as u64;
        assert!(decompress(Encoding::Gzip, gzip(&text), limit, &mut held()).unwrap() == text);
        let zstd = zstd::encode_all(text.as_slice(), 3).unwrap();
        assert!(decompress(Encoding::Zstd, zstd, limit, &mut held()).unwrap() == text);
        let two_members = [gzip(b"a\n"), gzip(b"b\n")].concat();
        assert_eq!(decompress(Encoding::Gzip, two_members, limit, &mut held()).unwrap(), b"a\nb\n");
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let zeros = vec![0; 10 << 20];
        for (encoding, bomb) in
            [(Encoding::Gzip, gzip(&zeros)), (Encoding::Zstd, zstd::encode_all(zeros.as_slice(), 3).unwrap())]
        {
            let denied = decompress(encoding, bomb, 1 << 20, &mut held()).unwrap_err();
            assert!(matches!(denied, Denied::TooLarge { limit: 1_048_576, decompressed: true }), "{denied}");
        }
    }

    #[test]
    fn bytes_that_are_not_compressed_are_refused() {
        for encoding in [Encoding::Gzip, Encoding::Zstd] {
            let denied = decompress(encoding, b"plain text".to_vec(), 1000, &mut held()).unwrap_err();
            assert!(matches!(denied, Denied::Encoded { .. }), "{denied}");
        }
        let mut cut = gzip(&b"some text\n".repeat(1000));
        cut.truncate(cut.len() - 5);
        assert!(decompress(Encoding::Gzip, cut, 100_000, &mut held()).is_err());
    }

    #[test]
    fn room_is_given_back() {
        let room = Room::new(100);
        let mut first = room.hold();
        first.add(80).unwrap();
        assert!(matches!(room.hold().add(30), Err(Denied::Busy)));
        drop(first);
        room.hold().add(100).unwrap();
    }
}
