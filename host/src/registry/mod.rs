//! Components in an OCI registry: pulled, kept by digest, and published.
//!
//! In: a reference (`oci://registry/repository:tag` or `@sha256:…`). Out: the component's bytes, the digest of the manifest that names
//! them, and what was signed of it. What a registry says is checked against digests from the reference on: the manifest's bytes against the
//! digest, the component's bytes against the manifest.
//!
//! The wire is `oci-client`'s (OCI distribution specification 1.1); [`store`] keeps what was pulled, so that the next start needs no
//! registry: the same digest is the same bytes. What is in the store is checked as what comes from the wire, and [`unused`] removes what no output needs
//! any more.

mod client;
mod credentials;
mod reference;
mod store;
mod unused;

pub use client::{Pulled, Registry, RegistryFault};
pub use credentials::default_file as default_credentials_file;
pub use reference::Reference;
pub use unused::Removed;

use crate::config::{HttpConfig, RegistryConfig};

/// How registries are reached.
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// Proxy, authorities, time for a connection.
    pub http: HttpConfig,
    /// Credentials, and who is asked without TLS.
    pub registry: RegistryConfig,
}

/// When a registry is asked for a tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Pull {
    /// Where no component of this reference was pulled before.
    #[default]
    IfMissing,
    /// At each start. Without an answer the last one counts, with a warning.
    Always,
}
