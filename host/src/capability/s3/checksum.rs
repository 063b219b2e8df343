//! The checksums that S3 verifies. Computed here and sent as a header, so that one attempt is one plain request, without trailers.
//!
//! Names and headers: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html>.

use aws_sdk_s3::types::ChecksumAlgorithm;
use crc_fast::CrcAlgorithm;
use sha2::Digest as _;

use crate::capability::bindings::types::HostError;
use crate::capability::escape::cut;

/// A checksum algorithm of S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Checksum {
    /// By its name in WIT.
    pub(super) fn named(name: &str) -> Result<Self, HostError> {
        match name {
            "crc32" => Ok(Self::Crc32),
            "crc32c" => Ok(Self::Crc32c),
            "crc64nvme" => Ok(Self::Crc64Nvme),
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            other => Err(HostError::Invalid(format!(
                "checksum {:?} is not known here; known are crc32, crc32c, crc64nvme, sha1, sha256",
                cut(other, 64)
            ))),
        }
    }

    /// As S3 takes it in a header: big-endian, base64.
    pub(super) fn of(self, bytes: &[u8]) -> String {
        let crc = |algorithm| crc_fast::checksum(algorithm, bytes).to_be_bytes();
        // crc-fast gives every width in 64 bits; the last four bytes are a CRC-32.
        let crc32 = |algorithm| crc(algorithm).last_chunk::<4>().map_or_else(Vec::new, |last| last.to_vec());
        let raw = match self {
            Self::Crc32 => crc32(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => crc32(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme).to_vec(),
            Self::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
            Self::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
        };
        aws_smithy_types::base64::encode(raw)
    }

    /// As the SDK names it.
    pub(super) fn algorithm(self) -> ChecksumAlgorithm {
        match self {
            Self::Crc32 => ChecksumAlgorithm::Crc32,
            Self::Crc32c => ChecksumAlgorithm::Crc32C,
            Self::Crc64Nvme => ChecksumAlgorithm::Crc64Nvme,
            Self::Sha1 => ChecksumAlgorithm::Sha1,
            Self::Sha256 => ChecksumAlgorithm::Sha256,
        }
    }
}

/// Sets the value of one algorithm on an SDK builder, each of which has a setter for each algorithm.
macro_rules! with_checksum {
    ($builder:expr, $checksum:expr, $value:expr) => {
        match $checksum {
            Checksum::Crc32 => $builder.checksum_crc32($value),
            Checksum::Crc32c => $builder.checksum_crc32_c($value),
            Checksum::Crc64Nvme => $builder.checksum_crc64_nvme($value),
            Checksum::Sha1 => $builder.checksum_sha1($value),
            Checksum::Sha256 => $builder.checksum_sha256($value),
        }
    };
}
pub(super) use with_checksum;

#[cfg(test)]
mod tests {
    use super::*;

    /// "123456789" is the check input of the CRC catalogue (<https://reveng.sourceforge.io/crc-catalogue/>):
    /// CRC-32/ISO-HDLC cbf43926, CRC-32/ISCSI e3069283, CRC-64/NVME ae8b14860a799888. The SHA values are those of `sha1sum` and
    /// `sha256sum`. All turned into base64 by `xxd -r -p | base64`.
    #[test]
    fn the_catalogues_check_values_come_out() {
        for (name, expected) in [
            ("crc32", "y/Q5Jg=="),
            ("crc32c", "4waSgw=="),
            ("crc64nvme", "rosUhgp5mIg="),
            ("sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
            ("sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ] {
            assert_eq!(Checksum::named(name).unwrap().of(b"123456789"), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_invalid() {
        assert!(matches!(Checksum::named("md5"), Err(HostError::Invalid(_))));
        assert!(matches!(Checksum::named(""), Err(HostError::Invalid(_))));
    }
}
