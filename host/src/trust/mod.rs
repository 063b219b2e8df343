//! Trust: which keys a component may be signed with, and whether it is.
//!
//! In: the bytes of a component as they were read, a signature that lies beside it or in its registry, and the keys that the configuration
//! names. Out: which of the keys signed it, or why none did. Nothing of the component is looked at before: bytes are compared, not parsed.
//!
//! Two kinds of keys: ed25519 (RFC 8032, the signature is over the bytes themselves) and ECDSA over P-256 (the signature is over their
//! SHA-256, as `cosign sign-blob` and `openssl dgst -sha256 -sign` make it). [`simple_signing`] is what cosign signs in a registry.

mod key;
mod private_key;
mod signature;
pub(crate) mod simple_signing;
mod trusted;

pub use key::{KeyFault, PublicKey};
pub use private_key::{KeyKind, PrivateKey};
pub use signature::Signature;
pub use trusted::{TrustedKey, TrustedKeys};

#[cfg(test)]
mod tests;
