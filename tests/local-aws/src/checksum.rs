//! Reading a body, and the checksums that came with it: in a header, or in a trailer behind an `aws-chunked` body.
//!
//! The rules are those of "Checking object integrity in Amazon S3" in the S3 user guide.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use hyper::HeaderMap;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::StreamingBlob;
use s3s::{S3Request, S3Result, s3_error};

/// A checksum algorithm of S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of S3")]
pub enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    pub(crate) const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// S3's name, as in `x-amz-checksum-algorithm`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }
    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Crc32 => Crc32::checksum(bytes).as_ref().to_vec(),
            Self::Crc32c => Crc32c::checksum(bytes).as_ref().to_vec(),
            Self::Crc64Nvme => Crc64Nvme::checksum(bytes).as_ref().to_vec(),
            Self::Sha1 => Sha1::checksum(bytes).as_ref().to_vec(),
            Self::Sha256 => Sha256::checksum(bytes).as_ref().to_vec(),
        }
    }
}

/// A checksum that S3 keeps with an object or a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Base64; a composite one ends in `-` and the number of parts.
    pub value: String,
    /// Whether it is a checksum of parts' checksums.
    pub composite: bool,
}

impl Checksum {
    pub(crate) fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        Self { algorithm, value: base64(&algorithm.digest(bytes)), composite: false }
    }
    /// The value, where it is of this algorithm: for S3's one-field-an-algorithm answers.
    pub(crate) fn value_of(this: Option<&Self>, algorithm: Algorithm) -> Option<String> {
        this.filter(|checksum| checksum.algorithm == algorithm).map(|checksum| checksum.value.clone())
    }
}

/// A body, read whole and found intact.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) size: u64,
    /// The checksum that the client sent, verified.
    pub(crate) checksum: Option<Checksum>,
}

/// Reads a request's body and checks length, checksums and `Content-MD5`. With `discard` the bytes are counted and dropped, and only the
/// length is checked.
pub(crate) async fn receive<T>(
    request: &S3Request<T>,
    body: Option<StreamingBlob>,
    announced: Option<i64>,
    discard: bool,
) -> S3Result<Received> {
    let mut bytes =
        BytesMut::with_capacity(if discard { 0 } else { announced.unwrap_or(0).clamp(0, 1 << 26) as usize });
    let mut size = 0_u64;
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|cause| s3_error!(IncompleteBody, "the body ended early: {cause}"))?;
            size += piece.len() as u64;
            if !discard {
                bytes.extend_from_slice(&piece);
            }
        }
    }
    if announced.is_some_and(|announced| announced != size as i64) {
        return Err(s3_error!(IncompleteBody, "{size} bytes came, {} were announced", announced.unwrap_or(0)));
    }
    let trailers = request.trailing_headers.as_ref().and_then(s3s::TrailingHeaders::take).unwrap_or_default();
    let mut sent = sent_checksums(&request.headers, &trailers)?;
    if sent.len() > 1 {
        return Err(s3_error!(InvalidRequest, "Expecting a single x-amz-checksum- header"));
    }
    let checksum = sent.pop();
    if !discard {
        if let Some(sent) = &checksum {
            let actual = Checksum::of(sent.algorithm, &bytes);
            if actual.value != sent.value {
                let name = sent.algorithm.name();
                return Err(s3_error!(BadDigest, "The {name} you specified did not match the calculated checksum."));
            }
        }
        if let Some(sent) = text(&request.headers, "content-md5")
            && sent != base64(Md5::checksum(&bytes).as_ref())
        {
            return Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match what we received."));
        }
    }
    Ok(Received { bytes: bytes.freeze(), size, checksum })
}

fn sent_checksums(headers: &HeaderMap, trailers: &HeaderMap) -> S3Result<Vec<Checksum>> {
    let mut sent = Vec::new();
    let announced = text(headers, "x-amz-trailer").unwrap_or_default().to_ascii_lowercase();
    for algorithm in Algorithm::ALL {
        let name = algorithm.header();
        let in_trailer = text(trailers, name);
        if announced.split(',').any(|trailer| trailer.trim() == name) && in_trailer.is_none() {
            return Err(s3_error!(InvalidRequest, "The trailer {name} was announced and did not come."));
        }
        if let Some(value) = text(headers, name).or(in_trailer) {
            sent.push(Checksum { algorithm, value: value.to_owned(), composite: false });
        }
    }
    Ok(sent)
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An `ETag` as S3 makes it for unencrypted objects: the MD5 in hexadecimal.
pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::checksum(bytes)
}

/// Fills S3's five checksum fields of an answer from one [`Checksum`].
macro_rules! with_checksum {
    ($output:expr, $checksum:expr) => {{
        let checksum: Option<&$crate::checksum::Checksum> = $checksum;
        let mut output = $output;
        output.checksum_crc32 = Checksum::value_of(checksum, Algorithm::Crc32);
        output.checksum_crc32c = Checksum::value_of(checksum, Algorithm::Crc32c);
        output.checksum_crc64nvme = Checksum::value_of(checksum, Algorithm::Crc64Nvme);
        output.checksum_sha1 = Checksum::value_of(checksum, Algorithm::Sha1);
        output.checksum_sha256 = Checksum::value_of(checksum, Algorithm::Sha256);
        output
    }};
}
pub(crate) use with_checksum;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_algorithms_published_check_values() {
        // "123456789": CRC-32/ISO-HDLC cbf43926, CRC-32/ISCSI e3069283, CRC-64/NVME ae8b14860a799888 (reveng's catalogue).
        assert_eq!(hex(&Algorithm::Crc32.digest(b"123456789")), "cbf43926");
        assert_eq!(hex(&Algorithm::Crc32c.digest(b"123456789")), "e3069283");
        assert_eq!(hex(&Algorithm::Crc64Nvme.digest(b"123456789")), "ae8b14860a799888");
        assert_eq!(hex(&Algorithm::Sha1.digest(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
    }
}
