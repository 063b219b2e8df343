//! Where connections come from: an address, with TLS or without, a Unix socket; and heartbeats by UDP.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::TaskTracker;
use tracing::{debug, info};

use super::connection;
use super::door::Door;
use super::fault::Fault;
use crate::config::ForwardConfig;
use crate::fair::Tenant;
use crate::source::places::{Place, Places};
use crate::source::secured::{NotSecure, acceptor, listen, secured};
use crate::source::{SourceError, no_folder};

/// Pause after a heartbeat could not be received.
const PAUSE: Duration = Duration::from_millis(100);

/// Everything that one source listens on.
pub(super) struct Ears {
    tcp: Option<(TcpListener, SocketAddr)>,
    tls: Option<TlsAcceptor>,
    udp: Option<UdpSocket>,
    unix: Option<UnixEar>,
}

impl Ears {
    /// Listens.
    pub(super) fn open(name: &Arc<str>, forward: &ForwardConfig) -> Result<Self, SourceError> {
        let tls = forward.tls.as_ref().map(|tls| acceptor(name, tls, None)).transpose()?;
        let mut ears = Self { tcp: None, tls, udp: None, unix: None };
        if let Some(address) = forward.listen {
            let (listener, address) = listen(name, address)?;
            if forward.udp_heartbeat {
                let failed = |cause| SourceError::Listen { source_name: name.clone(), address, cause };
                ears.udp = Some(udp(address).map_err(failed)?);
            }
            info!(source = %name, tls = ears.tls.is_some(), "listening on {address}");
            ears.tcp = Some((listener, address));
        }
        if let Some(path) = &forward.unix_path {
            let failed = |why| SourceError::ListenUnix { source_name: name.clone(), path: path.clone(), why };
            ears.unix = Some(UnixEar::open(path, forward.unix_perm).map_err(failed)?);
            info!(source = %name, "listening on {}", path.display());
        }
        Ok(ears)
    }

    /// The address, with the port that it got.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(|(_, address)| *address)
    }

    /// Takes connections until the source stops, then waits until what they handed in is durable.
    pub(super) async fn serve(self, door: Arc<Door>, places: Places) {
        let (tasks, tenant) = (TaskTracker::new(), Tenant::of(&door.name));
        let over_tcp = async {
            let Some((listener, _)) = &self.tcp else { return };
            let mut said = false;
            while let Some(Some((stream, peer, place))) =
                door.shutdown.run_until_cancelled(places.next(listener, &mut said)).await
            {
                // Answers are small and waited for.
                drop(stream.set_nodelay(true));
                let (door, tls) = (Arc::clone(&door), self.tls.clone());
                tasks.spawn(tenant.paced(async move {
                    door.begins(&place);
                    match tls {
                        None => connection::serve(stream, &door, &place, &peer).await,
                        Some(tls) => {
                            if let Some(stream) = shake_hands(&tls, stream, &door, &place, &peer).await {
                                connection::serve(stream, &door, &place, &peer).await;
                            }
                        }
                    }
                }));
            }
        };
        let over_unix = async {
            let Some(ear) = &self.unix else { return };
            let mut said = false;
            while let Some(Some((stream, peer, place))) =
                door.shutdown.run_until_cancelled(places.next(&ear.listener, &mut said)).await
            {
                let door = Arc::clone(&door);
                tasks.spawn(tenant.paced(async move {
                    door.begins(&place);
                    connection::serve(stream, &door, &place, &peer).await;
                }));
            }
        };
        let heartbeats = async {
            let Some(socket) = &self.udp else { return };
            door.shutdown.run_until_cancelled(answer_heartbeats(socket)).await;
        };
        tokio::join!(over_tcp, over_unix, heartbeats);
        drop(self);
        tasks.close();
        tasks.wait().await;
    }
}

fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// "Heartbeat Message": "UDP heartbeat message SHOULD be a byte of 0x00 in both of Client and Server", and the server responds to the source
/// address. An answer is no longer than what it answers.
async fn answer_heartbeats(socket: &UdpSocket) {
    let mut byte = [0; 1];
    loop {
        match socket.recv_from(&mut byte).await {
            Ok((_, from)) => drop(socket.send_to(&[0], from).await),
            // An earlier answer that did not arrive.
            Err(e) => {
                debug!("a heartbeat was not received: {e}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The same connection by TLS, where the sender can have that.
async fn shake_hands(
    tls: &TlsAcceptor,
    stream: TcpStream,
    door: &Door,
    place: &Place,
    peer: &str,
) -> Option<TlsStream<TcpStream>> {
    let patience = door.handshake_timeout;
    let fault = match door.shutdown.run_until_cancelled(place.while_kept(secured(tls, stream, patience))).await?? {
        Ok(stream) => return Some(stream),
        Err(NotSecure::Failed(why)) => Fault::Tls(why),
        Err(NotSecure::Slow(patience)) => Fault::Slow { what: "the TLS handshake", patience },
    };
    door.refused(peer, &fault);
    None
}

/// A Unix socket, whose file goes away with it.
struct UnixEar {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixEar {
    fn open(path: &Path, permissions: Option<u32>) -> Result<Self, String> {
        clear(path)?;
        let listener = UnixListener::bind(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => no_folder(path),
            _ => e.to_string(),
        })?;
        let ear = Self { listener, path: path.to_owned() };
        if let Some(permissions) = permissions {
            let set = fs::set_permissions(path, fs::Permissions::from_mode(permissions));
            set.map_err(|e| format!("setting its permissions (unix_perm) failed: {e}"))?;
        }
        Ok(ear)
    }
}

impl Drop for UnixEar {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes away the socket that a process left behind which was killed.
fn clear(path: &Path) -> Result<(), String> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err("something that is no socket is there; name another path, or take it away".to_owned());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err("another process listens there".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| format!("a socket that was left there cannot be taken away: {e}"))
        }
        Err(e) => Err(format!("something is there already: {e}")),
    }
}
