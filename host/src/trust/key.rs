//! A key that signatures are checked with.

use std::fmt;
use std::hash::{Hash, Hasher};

use ed25519_dalek::VerifyingKey as Ed25519Key;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature as P256Signature, VerifyingKey as P256Key};
use p256::pkcs8::{DecodePublicKey as _, EncodePublicKey as _};
use sha2::{Digest as _, Sha256};

use super::Signature;

/// Hexadecimal digits of a fingerprint that messages show.
const SHOWN_DIGITS: usize = 16;

/// What is wrong with a key. It never shows the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyFault(pub String);

/// A public key.
#[derive(Clone)]
pub struct PublicKey {
    form: Form,
    /// SHA-256 of its DER form.
    fingerprint: [u8; 32],
}

#[derive(Clone)]
enum Form {
    Ed25519(Box<Ed25519Key>),
    P256(Box<P256Key>),
}

impl PublicKey {
    /// From PEM, as `openssl pkey -pubout` and `cosign public-key` write it (`BEGIN PUBLIC KEY`, RFC 5280's `SubjectPublicKeyInfo`).
    ///
    /// # Errors
    /// Where it is no such key, or one of another kind than ed25519 and P-256.
    pub fn from_pem(pem: &str) -> Result<Self, KeyFault> {
        let pem = pem.trim();
        if !pem.starts_with("-----BEGIN PUBLIC KEY-----") {
            return Err(KeyFault(not_a_public_key(pem)));
        }
        let form = if let Ok(key) = Ed25519Key::from_public_key_pem(pem) {
            if key.is_weak() {
                return Err(KeyFault("it is one of the few ed25519 keys for which anybody can make signatures".into()));
            }
            Form::Ed25519(Box::new(key))
        } else if let Ok(key) = P256Key::from_public_key_pem(pem) {
            Form::P256(Box::new(key))
        } else {
            return Err(KeyFault("it is damaged, or of another kind than ed25519 and ECDSA over P-256".into()));
        };
        Self::of(form)
    }

    pub(super) fn ed25519(key: Ed25519Key) -> Result<Self, KeyFault> {
        Self::of(Form::Ed25519(Box::new(key)))
    }

    pub(super) fn p256(key: P256Key) -> Result<Self, KeyFault> {
        Self::of(Form::P256(Box::new(key)))
    }

    fn of(form: Form) -> Result<Self, KeyFault> {
        let der = match &form {
            Form::Ed25519(key) => key.to_public_key_der(),
            Form::P256(key) => key.to_public_key_der(),
        };
        let der = der.map_err(|error| KeyFault(error.to_string()))?;
        Ok(Self { form, fingerprint: Sha256::digest(der.as_bytes()).into() })
    }

    /// The key in PEM.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_pem(&self) -> Result<String, KeyFault> {
        let pem = match &self.form {
            Form::Ed25519(key) => key.to_public_key_pem(p256::pkcs8::LineEnding::LF),
            Form::P256(key) => key.to_public_key_pem(p256::pkcs8::LineEnding::LF),
        };
        pem.map_err(|error| KeyFault(error.to_string()))
    }

    /// `ed25519` or `P-256`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.form {
            Form::Ed25519(_) => "ed25519",
            Form::P256(_) => "P-256",
        }
    }

    /// SHA-256 of the key's DER form, hexadecimal: what `openssl pkey -pubin -outform DER | sha256sum` says.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(self.fingerprint)
    }

    /// Whether this key made the signature of these bytes.
    #[must_use]
    pub fn has_signed(&self, bytes: &[u8], signature: &Signature) -> bool {
        match &self.form {
            // Strict: a signature that another verifier might refuse is refused here as well.
            Form::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature.bytes())
                .is_ok_and(|signature| key.verify_strict(bytes, &signature).is_ok()),
            Form::P256(key) => {
                let signature = P256Signature::from_der(signature.bytes())
                    .or_else(|_| P256Signature::from_slice(signature.bytes()));
                signature.is_ok_and(|signature| key.verify(bytes, &signature).is_ok())
            }
        }
    }
}

/// `ed25519 3f09ab…`: its kind, and the beginning of its fingerprint.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.fingerprint();
        write!(f, "{} {}", self.kind(), fingerprint.get(..SHOWN_DIGITS).unwrap_or(&fingerprint))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for PublicKey {}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// What something else is than a public key.
fn not_a_public_key(text: &str) -> String {
    let label = text.strip_prefix("-----BEGIN ").and_then(|rest| rest.split_once("-----")).map(|(label, _)| label);
    match label {
        Some(label) if label.contains("PRIVATE") => {
            "it is a private key, and here belongs the public one: `openssl pkey -in KEY -pubout` writes it".into()
        }
        Some(label) if label.len() < 40 => format!("it is a {label}, and a key begins with -----BEGIN PUBLIC KEY-----"),
        _ => "it does not begin with -----BEGIN PUBLIC KEY-----".into(),
    }
}
