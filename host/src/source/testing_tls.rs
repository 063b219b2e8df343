//! TLS for tests: a server's files, and a client, with what is in `testdata/tls`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::TlsConfig;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

/// A server's files; with `client_authority`, clients have to show a certificate.
pub(crate) fn tls_files(client_authority: bool) -> TlsConfig {
    TlsConfig {
        cert_file: file("server.pem"),
        key_file: file("server.key.pem"),
        client_ca_file: client_authority.then(|| file("ca.pem")),
    }
}

/// A client with the certificate of this name, or none, that speaks these protocols (ALPN); with none, it says nothing of them.
pub(crate) fn tls_client(certificate: Option<&str>, protocols: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => config.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key.pem"))).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

/// Connects as such a client.
pub(crate) async fn tls_connect(
    address: SocketAddr,
    certificate: Option<&str>,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(tls_client(certificate, protocols))).connect(name, stream).await
}
