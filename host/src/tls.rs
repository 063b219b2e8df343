//! TLS of what listens, from PEM files: certificates, a private key, and the authorities that clients have to show a certificate of.
//!
//! Used twice: by the configuration, so that `wharf validate` finds what is wrong with the files, and by what listens.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

/// Which of the files something is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    /// The chain of certificates, the server's own first.
    Certificates,
    /// The private key of the first certificate.
    Key,
    /// The authorities of clients' certificates.
    ClientAuthorities,
}

/// What is wrong with a file, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    /// The file.
    pub file: TlsFile,
    /// What is wrong, without the file's name.
    pub why: String,
    /// What to do.
    pub help: Option<&'static str>,
}

/// Bytes of a PEM file.
const MOST_BYTES: u64 = 16 << 20;

impl TlsFile {
    /// The key of the configuration that names it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Certificates => "cert_file",
            Self::Key => "key_file",
            Self::ClientAuthorities => "client_ca_file",
        }
    }

    fn fault(self, why: impl fmt::Display) -> TlsFault {
        TlsFault { file: self, why: why.to_string(), help: None }
    }

    fn helped(self, why: impl fmt::Display, help: &'static str) -> TlsFault {
        TlsFault { file: self, why: why.to_string(), help: Some(help) }
    }

    fn read(self, path: &Path) -> Result<Vec<u8>, TlsFault> {
        crate::regular_file::read(path, MOST_BYTES)
            .map_err(|e| self.helped(format!("cannot be read: {e}"), "name a PEM file that Wharf may read"))
    }

    fn certificates(self, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.read(path)?).collect();
        match certificates {
            Ok(certificates) if certificates.is_empty() => {
                Err(self.helped("has no certificate", "it should have -----BEGIN CERTIFICATE----- (PEM)"))
            }
            Ok(certificates) => Ok(certificates),
            Err(e) => Err(self.fault(format!("is not a PEM file: {e}"))),
        }
    }
}

/// What a server by TLS is made of. With authorities, clients without a certificate of one of them are refused.
///
/// # Errors
/// The first fault of each file.
pub fn server(
    certificates: &Path,
    key: &Path,
    client_authorities: Option<&Path>,
) -> Result<Arc<ServerConfig>, Vec<TlsFault>> {
    let chain = TlsFile::Certificates.certificates(certificates);
    let key = private_key(key);
    let roots = client_authorities.map(authorities).transpose();
    let (chain, key, roots) = match (chain, key, roots) {
        (Ok(chain), Ok(key), Ok(roots)) => (chain, key, roots),
        (chain, key, roots) => return Err([chain.err(), key.err(), roots.err()].into_iter().flatten().collect()),
    };
    with(chain, key, roots).map_err(|fault| vec![fault])
}

fn with(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<RootCertStore>,
) -> Result<Arc<ServerConfig>, TlsFault> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsFile::Certificates.fault(e))?;
    let config = match roots {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.map_err(|e| TlsFile::ClientAuthorities.fault(e))?)
        }
    };
    let config = config.with_single_cert(chain, key).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => TlsFile::Key.helped(
            "is not the key of the certificate in cert_file",
            "the server's own certificate is to be the first there",
        ),
        rustls::Error::InvalidCertificate(e) => {
            TlsFile::Certificates.fault(format!("has a certificate that is none: {e}"))
        }
        e => TlsFile::Key.helped(
            format!("has a key that cannot be used: {e}"),
            "use an RSA key of 2048 bits or more, ECDSA P-256 or P-384, or Ed25519",
        ),
    })?;
    Ok(Arc::new(config))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let bytes = TlsFile::Key.read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| match e {
        pem::Error::NoItemsFound if memchr::memmem::find(&bytes, b"ENCRYPTED PRIVATE KEY").is_some() => {
            TlsFile::Key.helped("has a key with a passphrase", "take it away: openssl pkey -in FILE -out NEW_FILE")
        }
        pem::Error::NoItemsFound => {
            TlsFile::Key.helped("has no private key", "it should have -----BEGIN PRIVATE KEY----- (PEM)")
        }
        e => TlsFile::Key.fault(format!("is not a PEM file: {e}")),
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsFault> {
    let file = TlsFile::ClientAuthorities;
    let mut roots = RootCertStore::empty();
    for certificate in file.certificates(path)? {
        roots.add(certificate).map_err(|e| file.fault(format!("has a certificate that is none: {e}")))?;
    }
    Ok(roots)
}
