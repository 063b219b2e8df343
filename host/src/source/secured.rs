//! Listening by TCP, with TLS or without: what sources that take connections share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::SourceError;
use crate::config::TlsConfig;

/// Connections that wait in the system's queue.
const BACKLOG: u32 = 1024;

/// Listens. With keep-alive: a sender whose machine is gone does not keep a place for ever. What is accepted has it from the listener (Linux,
/// socket(7)). Gives the address with the port that it got.
pub(crate) fn listen(name: &Arc<str>, address: SocketAddr) -> Result<(TcpListener, SocketAddr), SourceError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_keepalive(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    open().map_err(|cause| SourceError::Listen { source_name: name.clone(), address, cause })
}

/// What makes connections secure, for a protocol by its name in ALPN (RFC 7301); with none, nothing is said of protocols.
pub(crate) fn acceptor(name: &Arc<str>, tls: &TlsConfig, protocol: Option<&[u8]>) -> Result<TlsAcceptor, SourceError> {
    let loaded = crate::tls::server(&tls.cert_file, &tls.key_file, tls.client_ca_file.as_deref());
    let loaded = loaded.map_err(|faults| {
        let (key, why) = faults.into_iter().next().map_or(("cert_file", String::new()), |f| (f.file.key(), f.why));
        SourceError::Tls { source_name: name.clone(), key, why: format!("the file {why}") }
    })?;
    let mut config = (*loaded).clone();
    config.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Why there is no connection by TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSecure {
    /// What was sent is not what it should be.
    #[error("the TLS handshake failed: {0}")]
    Failed(String),
    /// It took too long.
    #[error("the TLS handshake made no progress for {0:?}")]
    Slow(Duration),
}

/// The same connection by TLS, where the sender can have that.
pub(crate) async fn secured(
    tls: &TlsAcceptor,
    stream: TcpStream,
    patience: Duration,
) -> Result<TlsStream<TcpStream>, NotSecure> {
    match tokio::time::timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(e)) if e.kind() == io::ErrorKind::InvalidData && e.to_string().contains("corrupt") => {
            Err(NotSecure::Failed(format!("{e}; does the sender speak without TLS?")))
        }
        Ok(Err(e)) => Err(NotSecure::Failed(e.to_string())),
        Err(_) => Err(NotSecure::Slow(patience)),
    }
}
