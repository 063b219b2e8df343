//! Reading a request's body, and decompressing it, within limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use futures_util::StreamExt;

use super::super::compressed::{Compression, Unfit};
use super::super::room::Held;
use super::answer::Denied;
use crate::causes::chain;

/// How long a body may make no progress.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Compressed(Compression),
}

impl Encoding {
    /// As the headers say.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Denied> {
        let mut encoding = Self::Identity;
        let said = || {
            let values = headers.get_all(CONTENT_ENCODING).iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect::<Vec<_>>().join(", ")
        };
        for value in headers.get_all(CONTENT_ENCODING) {
            for name in String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase().split(',') {
                let next = match name.trim() {
                    "identity" | "" => continue,
                    "gzip" | "x-gzip" => Compression::Gzip,
                    "zstd" => Compression::Zstd,
                    "deflate" => Compression::Deflate,
                    _ => return Err(Denied::ContentEncoding(said())),
                };
                if encoding != Self::Identity {
                    return Err(Denied::ContentEncodings(said()));
                }
                encoding = Self::Compressed(next);
            }
        }
        Ok(encoding)
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
        let next = tokio::select! {
            next = tokio::time::timeout(PATIENCE, frames.next()) => next,
            () = held.given_up() => return Err(Denied::Busy),
        };
        let frame = match next {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(e))) => return Err(Denied::Body(chain(&e))),
            Ok(None) => {
                held.is_whole().map_err(|_| Denied::Busy)?;
                return Ok(bytes);
            }
            Err(_) => return Err(Denied::Slow(PATIENCE)),
        };
        if (bytes.len() + frame.len()) as u64 > limit {
            return Err(too_large);
        }
        held.add(frame.len() as u64).map_err(|_| Denied::Busy)?;
        bytes.extend_from_slice(&frame);
    }
}

/// Decompresses a body to at most `limit` bytes. Computes for a while: not for the runtime's threads.
pub(crate) fn decompress(encoding: Encoding, bytes: Vec<u8>, limit: u64, held: &mut Held) -> Result<Vec<u8>, Denied> {
    let Encoding::Compressed(compression) = encoding else { return Ok(bytes) };
    compression.undo(&bytes, limit, held).map_err(|unfit| match unfit {
        Unfit::TooLarge => Denied::TooLarge { limit, decompressed: true },
        Unfit::Broken(cause) => Denied::Encoded { encoding: compression.name(), cause: cause.to_string() },
        Unfit::NoRoom => Denied::Busy,
    })
}
