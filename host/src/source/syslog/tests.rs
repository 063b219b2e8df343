//! Messages over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};
use tokio_util::sync::CancellationToken;

use crate::config::{SourceConfig, SourceKind, SyslogConfig};
use crate::intake::Refused;
use crate::record::BodyKind;
use crate::source::testing::{FakeSink, eventually};
use crate::source::testing_tls::{tls_connect, tls_files};
use crate::source::{Running, SourceEnded, spawn_into};

struct Server {
    running: Running,
    shutdown: CancellationToken,
    sink: Arc<FakeSink>,
}

impl Server {
    fn start(change: impl FnOnce(&mut SyslogConfig)) -> Self {
        let mut syslog = SyslogConfig {
            tcp: None,
            udp: None,
            unix_path: None,
            tls: None,
            max_message_bytes: 1024,
            time_zone: TimeZone::UTC,
            handshake_timeout: Duration::from_secs(3600),
            idle_timeout: None,
            max_connections: 16,
        };
        change(&mut syslog);
        let kind = SourceKind::Syslog(Box::new(syslog));
        let source = SourceConfig { name: "sys".into(), tenant: None, parse: None, tag: "sys.tag".into(), kind };
        let (sink, shutdown) = (FakeSink::new(), CancellationToken::new());
        let running = spawn_into(&source, Arc::new(sink.clone()), shutdown.clone()).unwrap();
        Self { running, shutdown, sink }
    }

    fn tcp() -> Self {
        Self::start(|syslog| syslog.tcp = Some(any_port()))
    }

    fn address(&self) -> SocketAddr {
        self.running.address().unwrap()
    }

    async fn has(&self, lines: usize) {
        eventually("all lines", || (self.sink.lines().len() >= lines).then_some(())).await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), self.running.ended()).await;
        assert_eq!(ended.expect("the stop waits"), SourceEnded::Stopped);
        assert_eq!(self.sink.connections(), 0);
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[tokio::test]
async fn messages_become_json_and_what_is_none_stays_text_and_is_counted() {
    let server = Server::tcp();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(b"<13>1 - - - - - - one\nno message\n<13>two").await.unwrap();
    drop(client);
    server.has(3).await;
    assert_eq!(server.sink.kinds(), [BodyKind::Json, BodyKind::Text]);
    let lines = server.sink.lines();
    assert!(lines[0].ends_with(r#""message":"one"}"#) && lines[1].ends_with(r#""message":"two"}"#), "{lines:?}");
    assert_eq!(lines[2], "no message");
    assert_eq!(server.sink.unparsed(), [("format", 1)].into());
    assert_eq!(server.sink.chunks()[0].meta().tag.as_ref(), "sys.tag");
    server.stop().await;
}

#[tokio::test]
async fn a_stop_hands_in_what_was_read() {
    let server = Server::tcp();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(b"<13>one\n").await.unwrap();
    server.has(1).await;
    let sink = Arc::clone(&server.sink);
    server.stop().await;
    assert_eq!(sink.lines().len(), 1);
}

#[tokio::test]
async fn what_is_no_frame_closes_the_connection_and_what_came_before_is_kept() {
    let server = Server::tcp();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(b"7 <13>one<13>two").await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(30), client.read_to_end(&mut Vec::new())).await;
    let _ = closed.expect("it stays open");
    server.has(1).await;
    assert_eq!(server.sink.refused(), [("malformed", 1)].into());
    server.stop().await;
}

#[tokio::test]
async fn a_refused_chunk_is_handed_in_again() {
    let server = Server::tcp();
    server.sink.refuse_next(Refused::Full { what: "output o".into(), retry_after: Duration::from_millis(10) });
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(b"<13>one\n").await.unwrap();
    server.has(1).await;
    server.stop().await;
}

#[tokio::test]
async fn a_long_message_is_cut_and_counted() {
    let server = Server::tcp();
    let mut client = TcpStream::connect(server.address()).await.unwrap();
    client.write_all(&[b"<13>", &b"x".repeat(2000)[..], b"\n<13>next\n"].concat()).await.unwrap();
    server.has(2).await;
    assert!(server.sink.lines()[0].len() < 1100);
    assert_eq!(server.sink.discarded("message_too_long"), 1);
    server.stop().await;
}

#[tokio::test]
async fn each_datagram_is_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.sock");
    let server = Server::start(|syslog| {
        (syslog.udp, syslog.unix_path) = (Some(any_port()), Some(path.clone()));
    });
    let client = UdpSocket::bind(any_port()).await.unwrap();
    client.send_to(b"<13>one\n", server.address()).await.unwrap();
    // RFC 5426, 3.1: one message a datagram, whatever is in it.
    client.send_to(b"two\nlines", server.address()).await.unwrap();
    server.has(2).await;
    let local = UnixDatagram::unbound().unwrap();
    local.send_to(b"<13>Nov 30 10:00:00 app[1]: three", &path).await.unwrap();
    server.has(3).await;
    let lines = server.sink.lines();
    assert!(lines.iter().any(|line| line == "two lines"), "{lines:?}");
    assert!(lines.iter().any(|line| line.ends_with(r#""appname":"app","procid":"1","message":"three"}"#)), "{lines:?}");
    server.stop().await;
    assert!(!path.exists());
}

/// RFC 5425, 4.3: octet counting by TLS.
#[tokio::test]
async fn messages_come_by_tls() {
    let server = Server::start(|syslog| {
        syslog.tcp = Some(any_port());
        syslog.tls = Some(tls_files(false));
    });
    let mut client = tls_connect(server.address(), None, &[]).await.unwrap();
    client.write_all(b"7 <13>one8 <13>a\nb!").await.unwrap();
    client.flush().await.unwrap();
    server.has(2).await;
    assert!(server.sink.lines()[1].ends_with(r#""message":"a\nb!"}"#), "{:?}", server.sink.lines());
    let mut plain = TcpStream::connect(server.address()).await.unwrap();
    plain.write_all(b"<13>plain\n").await.unwrap();
    eventually("it is refused", || (server.sink.refused() == [("tls", 1)].into()).then_some(())).await;
    client.shutdown().await.unwrap();
    server.stop().await;
}
