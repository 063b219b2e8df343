//! A key that components are signed with. It never comes near a running Wharf: only `wharf plugin sign` and its like read one.

use std::fmt;

use ed25519_dalek::pkcs8::{KeypairBytes, spki::der::pem::LineEnding};
use ed25519_dalek::{Signer as _, SigningKey as Ed25519Key};
use p256::ecdsa::{Signature as P256Signature, SigningKey as P256Key};
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use rand::Rng as _;

use super::{KeyFault, PublicKey, Signature};

/// Most tries for a random P-256 key; nearly every 32 bytes are one.
const TRIES: usize = 16;

/// Kinds of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// RFC 8032.
    Ed25519,
    /// ECDSA over P-256 with SHA-256, as cosign's keys are.
    P256,
}

/// A private key.
pub struct PrivateKey(Form);

enum Form {
    Ed25519(Box<Ed25519Key>),
    P256(Box<P256Key>),
}

impl PrivateKey {
    /// A new one.
    ///
    /// # Errors
    /// None that is known.
    pub fn generate(kind: KeyKind) -> Result<Self, KeyFault> {
        let mut random = rand::rng();
        for _ in 0..TRIES {
            let mut bytes = [0; 32];
            random.fill_bytes(&mut bytes);
            match kind {
                KeyKind::Ed25519 => return Ok(Self(Form::Ed25519(Box::new(Ed25519Key::from_bytes(&bytes))))),
                KeyKind::P256 => {
                    if let Ok(key) = P256Key::from_slice(&bytes) {
                        return Ok(Self(Form::P256(Box::new(key))));
                    }
                }
            }
        }
        Err(KeyFault("no key could be made: random numbers of this machine are not random".into()))
    }

    /// From PEM in PKCS#8 (`BEGIN PRIVATE KEY`, RFC 5958), or SEC1 (`BEGIN EC PRIVATE KEY`, RFC 5915), without a password.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn from_pem(pem: &str) -> Result<Self, KeyFault> {
        // `openssl ecparam -genkey` writes the curve's name before the key.
        let pem = pem.find("-----BEGIN EC PRIVATE KEY-----").and_then(|at| pem.get(at..)).unwrap_or(pem).trim();
        if pem.contains("ENCRYPTED") {
            let what = if pem.contains("SIGSTORE") || pem.contains("COSIGN") {
                "it is cosign's, with a password: sign with `cosign sign-blob`, Wharf reads its signatures"
            } else {
                "it has a password: `openssl pkey -in KEY -out PLAIN` writes it without"
            };
            return Err(KeyFault(what.into()));
        }
        if !pem.contains("PRIVATE KEY-----") {
            return Err(KeyFault("it does not begin with -----BEGIN PRIVATE KEY-----".into()));
        }
        if let Ok(key) = Ed25519Key::from_pkcs8_pem(pem) {
            return Ok(Self(Form::Ed25519(Box::new(key))));
        }
        let key = P256Key::from_pkcs8_pem(pem).ok().or_else(|| Some(p256::SecretKey::from_sec1_pem(pem).ok()?.into()));
        match key {
            Some(key) => Ok(Self(Form::P256(Box::new(key)))),
            None => Err(KeyFault("it is damaged, or of another kind than ed25519 and ECDSA over P-256".into())),
        }
    }

    /// The key in PEM (PKCS#8).
    ///
    /// # Errors
    /// None that is known.
    pub fn to_pem(&self) -> Result<String, KeyFault> {
        let pem = match &self.0 {
            // Version 1, without the public key in it: OpenSSL before 3.5 reads no other.
            Form::Ed25519(key) => {
                KeypairBytes { secret_key: key.to_bytes(), public_key: None }.to_pkcs8_pem(LineEnding::LF)
            }
            Form::P256(key) => key.to_pkcs8_pem(LineEnding::LF),
        };
        pem.map(|pem| pem.to_string()).map_err(|error| KeyFault(error.to_string()))
    }

    /// What its signatures are checked with.
    ///
    /// # Errors
    /// None that is known.
    pub fn public(&self) -> Result<PublicKey, KeyFault> {
        match &self.0 {
            Form::Ed25519(key) => PublicKey::ed25519(key.verifying_key()),
            Form::P256(key) => PublicKey::p256(*key.verifying_key()),
        }
    }

    /// Signs bytes.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        match &self.0 {
            Form::Ed25519(key) => Signature::of(key.sign(bytes).to_bytes().to_vec()),
            Form::P256(key) => {
                let signature: P256Signature = key.sign(bytes);
                Signature::of(signature.to_der().as_bytes().to_vec())
            }
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(secret)")
    }
}
