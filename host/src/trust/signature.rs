//! A signature as it is written in a file.

use aws_smithy_types::base64;

/// Bytes of an ed25519 signature.
const ED25519_BYTES: usize = 64;
/// What a DER sequence begins with: an ECDSA signature is one.
const DER_SEQUENCE: u8 = 0x30;

/// A signature, not yet checked by any key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature(Vec<u8>);

impl Signature {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// From a file: the bytes themselves (64 of ed25519, DER of ECDSA), as `openssl` writes them; or their base64, as `cosign sign-blob`
    /// writes it; with `-----BEGIN …` lines around it or not.
    ///
    /// # Errors
    /// What is there instead.
    pub fn parse(file: &[u8]) -> Result<Self, String> {
        if is_signature(file) {
            return Ok(Self(file.to_vec()));
        }
        let text = std::str::from_utf8(file).map_err(|_| damaged(file))?;
        let body: String =
            text.lines().filter(|line| !line.starts_with("-----")).flat_map(str::split_whitespace).collect();
        match base64::decode(&body) {
            Ok(bytes) if is_signature(&bytes) => Ok(Self(bytes)),
            _ => Err(damaged(file)),
        }
    }

    /// In base64 with a line's end, as cosign writes it.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}\n", self.to_base64())
    }

    pub(crate) fn to_base64(&self) -> String {
        base64::encode(&self.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether it has a form that some key could have made: what it says, the keys tell.
fn is_signature(bytes: &[u8]) -> bool {
    match bytes {
        [DER_SEQUENCE, length, rest @ ..] if rest.len() == usize::from(*length) => true,
        _ => bytes.len() == ED25519_BYTES,
    }
}

fn damaged(file: &[u8]) -> String {
    format!(
        "it is damaged: its {} bytes are neither an ed25519 signature (64 bytes), nor one of ECDSA (DER), nor the base64 of one",
        file.len()
    )
}
