//! The keys of which one must have signed a component.

use std::sync::Arc;

use super::{PublicKey, Signature};

/// A key, and where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrustedKey {
    /// The key.
    pub key: PublicKey,
    /// Its file; none: it is written in the configuration itself.
    pub file: Option<Arc<str>>,
}

/// A list of keys, never empty where a configuration made it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrustedKeys(Arc<[TrustedKey]>);

impl TrustedKeys {
    /// These keys.
    #[must_use]
    pub fn new(keys: Vec<TrustedKey>) -> Self {
        Self(keys.into())
    }

    /// The key that signed these bytes, if one of the list did.
    #[must_use]
    pub fn signer(&self, bytes: &[u8], signature: &Signature) -> Option<&TrustedKey> {
        self.0.iter().find(|trusted| trusted.key.has_signed(bytes, signature))
    }

    /// All of them in words, for a message.
    #[must_use]
    pub fn listed(&self) -> String {
        let each: Vec<String> = self
            .0
            .iter()
            .map(|TrustedKey { key, file }| match file {
                None => key.to_string(),
                Some(file) => format!("{key} of {file}"),
            })
            .collect();
        each.join(", ")
    }
}
