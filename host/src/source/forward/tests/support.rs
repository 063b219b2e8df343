//! A source at work, and a sender.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::config::{ForwardConfig, ForwardSecurity, ForwardTag, ForwardUser, Secret, SourceConfig, SourceKind};
use crate::source::testing::FakeSink;
use crate::source::{Running, SourceEnded, spawn_into};

const LONG: Duration = Duration::from_secs(3600);

/// On a port of its own, with nothing that a test does not ask for.
pub(super) fn config() -> ForwardConfig {
    ForwardConfig {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        unix_path: None,
        unix_perm: None,
        tag: ForwardTag::Sent { prefix: String::new() },
        tls: None,
        security: None,
        udp_heartbeat: false,
        metadata_key: Some("metadata".into()),
        max_message_bytes: 4 << 20,
        handshake_timeout: LONG,
        idle_timeout: None,
        max_connections: 1024,
    }
}

pub(super) fn source(forward: ForwardConfig) -> SourceConfig {
    SourceConfig {
        name: "fw".into(),
        tenant: None,
        parse: None,
        tag: "fw.tag".into(),
        kind: SourceKind::Forward(Box::new(forward)),
    }
}

/// The key is `geheim`.
pub(super) fn security(users: &[(&str, &str)]) -> ForwardSecurity {
    let user = |(name, password): &(&str, &str)| ForwardUser {
        username: (*name).to_owned(),
        password: Secret::new(*password),
        tenant: None,
    };
    ForwardSecurity {
        shared_key: Secret::new("geheim"),
        users: users.iter().map(user).collect(),
        self_hostname: "server.local".into(),
    }
}

pub(super) struct Server {
    pub(super) running: Running,
    pub(super) shutdown: CancellationToken,
    pub(super) sink: Arc<FakeSink>,
}

impl Server {
    pub(super) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(super) fn start_with(change: impl FnOnce(&mut ForwardConfig)) -> Self {
        let mut forward = config();
        change(&mut forward);
        let (sink, shutdown) = (FakeSink::new(), CancellationToken::new());
        let running = spawn_into(&source(forward), Arc::new(sink.clone()), shutdown.clone()).unwrap();
        Self { running, shutdown, sink }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.running.address().unwrap()
    }

    pub(super) async fn connect(&self) -> Client<TcpStream> {
        Client(TcpStream::connect(self.address()).await.unwrap())
    }

    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), self.running.ended()).await;
        assert_eq!(ended.expect("the stop waits"), SourceEnded::Stopped);
        assert_eq!(self.sink.connections(), 0);
    }
}

pub(super) struct Client<S>(pub(super) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Waits for exactly this.
    pub(super) async fn hears(&mut self, expected: &[u8]) {
        let mut found = vec![0; expected.len()];
        let read = tokio::time::timeout(Duration::from_secs(30), self.0.read_exact(&mut found)).await;
        read.expect("nothing came").unwrap();
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(&found));
    }

    /// What comes next, at least a byte.
    pub(super) async fn next(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        let read = tokio::time::timeout(Duration::from_secs(30), self.0.read_buf(&mut bytes)).await;
        assert!(read.expect("nothing came").unwrap() > 0, "the connection was closed");
        bytes
    }

    /// Waits until the other end closes the connection, with nothing said before.
    pub(super) async fn is_closed(&mut self) {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), self.0.read_to_end(&mut bytes)).await;
        // A reset is as good as an end.
        let _ = read.expect("the connection stays open");
        assert!(bytes.is_empty(), "{:?}", String::from_utf8_lossy(&bytes));
    }
}

impl Client<TcpStream> {
    /// Nothing has come so far.
    pub(super) fn heard_nothing(&self) {
        assert!(self.0.try_read(&mut [0; 1]).is_err(), "something came, or the connection was closed");
    }
}
