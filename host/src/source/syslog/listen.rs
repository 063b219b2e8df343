//! Where messages come from: connections by TCP and TLS, datagrams by UDP and a Unix socket.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, UdpSocket, UnixDatagram};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::collect::{Collect, Door};
use super::framing::Framer;
use crate::config::SyslogConfig;
use crate::source::lane::Stopping;
use crate::source::places::Places;
use crate::source::secured::{acceptor, listen, secured};
use crate::source::{SourceError, no_folder};

/// Read at a time.
const BLOCK: usize = 64 << 10;

/// The largest datagram.
const DATAGRAM: usize = 64 << 10;

/// How long more is waited for, so that a trickle becomes chunks of more than a message.
const PACE: Duration = Duration::from_millis(10);

/// Pause after a datagram could not be received.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked how many datagrams the kernel dropped.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Everything that one source listens on.
pub(super) struct Ears {
    tcp: Option<(TcpListener, SocketAddr)>,
    tls: Option<TlsAcceptor>,
    udp: Option<(UdpSocket, SocketAddr)>,
    unix: Option<(UnixDatagram, PathBuf)>,
}

impl Ears {
    /// Listens.
    pub(super) fn open(name: &Arc<str>, syslog: &SyslogConfig) -> Result<Self, SourceError> {
        // No protocol is named in ALPN for syslog.
        let tls = syslog.tls.as_ref().map(|tls| acceptor(name, tls, None)).transpose()?;
        let tcp = syslog.tcp.map(|address| listen(name, address)).transpose()?;
        let udp = syslog.udp.map(|address| {
            let failed = |cause| SourceError::Listen { source_name: name.clone(), address, cause };
            let socket = std::net::UdpSocket::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let socket = UdpSocket::from_std(socket).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            Ok((socket, address))
        });
        let udp = udp.transpose()?;
        let unix = syslog.unix_path.as_ref().map(|path| {
            let failed = |why: String| SourceError::ListenUnix { source_name: name.clone(), path: path.clone(), why };
            clear(path).map_err(failed)?;
            let socket = UnixDatagram::bind(path).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => failed(no_folder(path)),
                _ => failed(e.to_string()),
            })?;
            Ok((socket, path.clone()))
        });
        let ears = Self { tcp, tls, udp, unix: unix.transpose()? };
        if let Some((_, address)) = &ears.tcp {
            info!(source = %name, tls = ears.tls.is_some(), "listening on {address}");
        }
        if let Some((_, address)) = &ears.udp {
            info!(source = %name, "listening on {address} (UDP)");
        }
        if let Some((_, path)) = &ears.unix {
            info!(source = %name, "listening on {}", path.display());
        }
        Ok(ears)
    }

    /// The address of TCP, else of UDP, with the port that it got.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().map(|it| it.1).or(self.udp.as_ref().map(|it| it.1))
    }

    /// Takes messages until the source stops, then waits until what was read is durable.
    pub(super) async fn serve(self, door: Arc<Door>, places: Places) {
        let tasks = TaskTracker::new();
        let over_tcp = async {
            let Some((listener, _)) = &self.tcp else { return };
            let mut said = false;
            while let Some(Some((stream, peer, place))) =
                door.shutdown.run_until_cancelled(places.next(listener, &mut said)).await
            {
                let (door, tls) = (Arc::clone(&door), self.tls.clone());
                tasks.spawn(async move {
                    match tls {
                        None => connection(stream, &door, &peer).await,
                        Some(tls) => {
                            let shaking = secured(&tls, stream, door.handshake_timeout);
                            match door.shutdown.run_until_cancelled(shaking).await {
                                Some(Ok(stream)) => connection(stream, &door, &peer).await,
                                Some(Err(why)) => refused(&door, &peer, "tls", &why.to_string()),
                                None => {}
                            }
                        }
                    }
                    drop(place);
                });
            }
        };
        let over_udp = async {
            let Some((socket, address)) = &self.udp else { return };
            let drops = Drops::new(&door, address.port());
            datagrams(&door, Some(drops), Socket::Udp(socket)).await;
        };
        let over_unix = async {
            let Some((socket, path)) = &self.unix else { return };
            datagrams(&door, None, Socket::Unix(socket)).await;
            let _ = std::fs::remove_file(path);
        };
        tokio::join!(over_tcp, over_udp, over_unix);
        drop(self);
        tasks.close();
        tasks.wait().await;
    }
}

fn refused(door: &Door, peer: &str, reason: &'static str, why: &str) {
    warn!(source = %door.name, peer, reason, "a connection is closed: {why}");
    door.sink.count_refused(&door.name, reason);
}

/// Reads a connection to its end.
async fn connection<S: AsyncRead + Unpin>(mut stream: S, door: &Arc<Door>, peer: &str) {
    let (mut collect, mut framer) = (Collect::new(door), Framer::new(door.most_bytes));
    let mut buffer = BytesMut::new();
    let ended = read(&mut stream, door, &mut collect, &mut framer, &mut buffer).await;
    // What has no end yet was cut off by the sender; on a line it is a message all the same.
    if let (Ended::Closed, Some(frame)) = (&ended, framer.last(&buffer)) {
        collect.add(buffer.get(frame.begin..frame.end).unwrap_or_default(), frame.is_cut);
    }
    match ended {
        Ended::Malformed(why) => refused(door, peer, "malformed", &why),
        Ended::Closed => debug!(source = %door.name, peer, "a connection was closed by the sender"),
        Ended::Idle => debug!(source = %door.name, peer, "a connection is closed: it was idle for idle_timeout"),
        Ended::Broken(e) => debug!(source = %door.name, peer, "a connection broke: {e}"),
        Ended::Stopping => {}
    }
    collect.finish().await;
}

enum Ended {
    Closed,
    Idle,
    Broken(io::Error),
    Malformed(String),
    Stopping,
}

impl From<Stopping> for Ended {
    fn from(_: Stopping) -> Self {
        Self::Stopping
    }
}

async fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    door: &Door,
    collect: &mut Collect,
    framer: &mut Framer,
    buffer: &mut BytesMut,
) -> Ended {
    loop {
        loop {
            let skipped = framer.skip(buffer);
            buffer.advance(skipped);
            match framer.next(buffer) {
                Ok(Some(frame)) => {
                    collect.add(buffer.get(frame.begin..frame.end).unwrap_or_default(), frame.is_cut);
                    buffer.advance(frame.taken);
                }
                Ok(None) => break,
                Err(why) => return Ended::Malformed(why.to_string()),
            }
            if collect.is_full()
                && let Err(stopping) = collect.hand_in().await
            {
                return stopping.into();
            }
        }
        buffer.reserve(BLOCK);
        // Until the lane has room nothing more is read: that is how this protocol pushes back.
        let patience = if collect.is_empty() { door.idle_timeout } else { Some(PACE) };
        let next = within(patience, stream.read_buf(buffer));
        match door.shutdown.run_until_cancelled(next).await {
            None => return Ended::Stopping,
            Some(Some(Ok(0))) => return Ended::Closed,
            Some(Some(Ok(_))) => {}
            Some(Some(Err(e))) => return Ended::Broken(e),
            Some(None) if collect.is_empty() => return Ended::Idle,
            Some(None) => {
                if let Err(stopping) = collect.hand_in().await {
                    return stopping.into();
                }
            }
        }
        if let Err(stopping) = collect.reap().await {
            return stopping.into();
        }
    }
}

/// None where it took longer.
async fn within<T>(patience: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, work).await.ok(),
        None => Some(work.await),
    }
}

/// Where datagrams come from.
enum Socket<'a> {
    Udp(&'a UdpSocket),
    Unix(&'a UnixDatagram),
}

impl Socket<'_> {
    async fn receive(&self, bytes: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.recv_buf(bytes).await,
            Self::Unix(socket) => socket.recv_buf(bytes).await,
        }
    }
}

/// Takes datagrams: each is a message (RFC 5426, 3.1).
async fn datagrams(door: &Arc<Door>, mut drops: Option<Drops>, socket: Socket<'_>) {
    let mut collect = Collect::new(door);
    let mut buffer = BytesMut::with_capacity(DATAGRAM);
    loop {
        buffer.clear();
        buffer.reserve(DATAGRAM);
        let patience = if !collect.is_empty() { PACE } else { LOOK_EVERY };
        let handed_in = match door
            .shutdown
            .run_until_cancelled(tokio::time::timeout(patience, socket.receive(&mut buffer)))
            .await
        {
            None => break,
            Some(Ok(Ok(_))) => {
                let kept = buffer.len().min(door.most_bytes);
                collect.add(buffer.get(..kept).unwrap_or_default(), kept < buffer.len());
                if collect.is_full() { collect.hand_in().await } else { Ok(()) }
            }
            Some(Ok(Err(e))) => {
                debug!(source = %door.name, "a datagram was not received: {e}");
                tokio::time::sleep(PAUSE).await;
                Ok(())
            }
            Some(Err(_)) => {
                if let Some(drops) = &mut drops {
                    drops.look();
                }
                collect.hand_in().await
            }
        };
        if handed_in.is_err() || collect.reap().await.is_err() {
            break;
        }
    }
    if let Some(drops) = &mut drops {
        drops.look();
    }
    collect.finish().await;
}

/// How many datagrams the kernel dropped because nobody took them in time: the last column of /proc/net/udp (Linux, proc(5)).
struct Drops {
    door: Arc<Door>,
    port: u16,
    counted: u64,
}

impl Drops {
    fn new(door: &Arc<Door>, port: u16) -> Self {
        Self { door: Arc::clone(door), port, counted: 0 }
    }

    fn look(&mut self) {
        let tables = ["/proc/net/udp", "/proc/net/udp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        let dropped: u64 = tables.iter().map(|table| dropped(table, self.port)).sum();
        let more = dropped.saturating_sub(self.counted);
        if more > 0 {
            self.counted = dropped;
            self.door.sink.count_discarded(&self.door.name, "udp_dropped", more);
        }
    }
}

fn dropped(table: &str, port: u16) -> u64 {
    let of_line = |line: &str| {
        let mut columns = line.split_whitespace();
        let local = columns.nth(1)?;
        let (_, in_hex) = local.rsplit_once(':')?;
        let is_ours = u16::from_str_radix(in_hex, 16).ok()? == port;
        if is_ours { columns.next_back()?.parse::<u64>().ok() } else { None }
    };
    table.lines().skip(1).filter_map(of_line).sum()
}

/// Takes away the socket that a process left behind which was killed.
fn clear(path: &std::path::Path) -> Result<(), String> {
    use std::os::unix::fs::FileTypeExt as _;

    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err("something that is no socket is there; name another path, or take it away".to_owned());
    }
    match std::os::unix::net::UnixDatagram::unbound().and_then(|socket| socket.connect(path)) {
        Ok(()) => Err("another process listens there".to_owned()),
        Err(_) => std::fs::remove_file(path).map_err(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// proc(5), and what a kernel 6.1 shows.
    #[test]
    fn drops_are_the_last_column_of_our_port() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
             100: 00000000:0202 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 17 2 0000000000000000 42\n\
             101: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 18 2 0000000000000000 7\n";
        assert_eq!((dropped(table, 514), dropped(table, 68), dropped(table, 1)), (42, 7, 0));
    }
}
