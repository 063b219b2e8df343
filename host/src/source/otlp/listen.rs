//! Where requests come from: connections for gRPC (HTTP/2), and for HTTP (HTTP/1.1), each with TLS or without.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::HeaderMap;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::io::InspectReader;
use tokio_util::task::TaskTracker;
use tracing::{debug, info};

use super::door::Door;
use super::{grpc, http};
use crate::config::OtlpConfig;
use crate::source::SourceError;
use crate::source::places::Places;
use crate::source::secured::{acceptor, listen, secured};

/// Calls at the same time on one connection for gRPC.
const CALLS: u32 = 128;

/// Bytes of a call's headers.
const LONGEST_HEADERS: u32 = 16 << 10;

/// How often a silent connection for gRPC is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(60);
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// What a connection of HTTP/2 has sent when it has begun: the preface (RFC 9113, 3.4) and an empty SETTINGS frame.
const BEGINNING: u64 = 24 + 9;

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Grpc,
    Http,
}

struct Ear {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    protocol: Protocol,
}

/// Everything that one source listens on.
pub(super) struct Ears(Vec<Ear>);

impl Ears {
    /// Listens.
    pub(super) fn open(name: &Arc<str>, otlp: &OtlpConfig) -> Result<Self, SourceError> {
        let mut ears = Vec::new();
        for (address, protocol, alpn) in
            [(otlp.grpc, Protocol::Grpc, &b"h2"[..]), (otlp.http, Protocol::Http, b"http/1.1")]
        {
            let Some(address) = address else { continue };
            let tls = otlp.tls.as_ref().map(|tls| acceptor(name, tls, Some(alpn))).transpose()?;
            let (listener, address) = listen(name, address)?;
            info!(source = %name, ?protocol, tls = tls.is_some(), "listening on {address}");
            ears.push(Ear { listener, address, tls, protocol });
        }
        Ok(Self(ears))
    }

    /// The first address, with the port that it got.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.0.first().map(|ear| ear.address)
    }

    /// Takes connections until the source stops, then answers what is in hand.
    pub(super) async fn serve(self, door: Arc<Door>, places: Places) {
        let tasks = TaskTracker::new();
        let listening = self.0.iter().map(|ear| ear.serve(&door, &places, &tasks));
        futures_util::future::join_all(listening).await;
        drop(self);
        tasks.close();
        tasks.wait().await;
    }
}

impl Ear {
    async fn serve(&self, door: &Arc<Door>, places: &Places, tasks: &TaskTracker) {
        let mut said = false;
        while let Some(Some((stream, peer, place))) =
            door.shutdown.run_until_cancelled(places.next(&self.listener, &mut said)).await
        {
            // Answers are small and waited for.
            drop(stream.set_nodelay(true));
            let (door, tls, protocol) = (Arc::clone(door), self.tls.clone(), self.protocol);
            tasks.spawn(async move {
                match tls {
                    None => connection(stream, &door, protocol, &peer).await,
                    Some(tls) => {
                        let shaking = secured(&tls, stream, door.handshake_timeout);
                        match door.shutdown.run_until_cancelled(shaking).await {
                            Some(Ok(stream)) => connection(stream, &door, protocol, &peer).await,
                            Some(Err(why)) => {
                                debug!(source = %door.name, peer, "a connection is closed: {why}");
                                door.sink.count_refused(&door.name, "tls");
                            }
                            None => {}
                        }
                    }
                }
                drop(place);
            });
        }
    }
}

async fn connection<S>(stream: S, door: &Arc<Door>, protocol: Protocol, peer: &str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let read = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&read);
    let io = TokioIo::new(InspectReader::new(stream, move |came: &[u8]| {
        counted.fetch_add(came.len() as u64, Ordering::Relaxed);
    }));
    let at = Arc::clone(door);
    let ended = match protocol {
        Protocol::Http => {
            let service = service_fn(move |request: Request<Incoming>| {
                let door = Arc::clone(&at);
                async move { Ok::<_, Infallible>(http::answer(&door, request).await) }
            });
            let mut server = http1::Builder::new();
            // Also between requests, where it is what idle_timeout says.
            server.timer(TokioTimer::new()).header_read_timeout(door.idle_timeout);
            let connection = std::pin::pin!(server.serve_connection(io, service));
            until_ended(connection, http1::Connection::graceful_shutdown, door, std::future::pending()).await
        }
        Protocol::Grpc => {
            let service = service_fn(move |request: Request<Incoming>| {
                let door = Arc::clone(&at);
                async move { Ok::<_, Infallible>(grpc::answer(&door, request).await) }
            });
            let mut server = http2::Builder::new(TokioExecutor::new());
            server
                .timer(TokioTimer::new())
                .max_concurrent_streams(CALLS)
                .max_header_list_size(LONGEST_HEADERS)
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_PATIENCE);
            let connection = std::pin::pin!(server.serve_connection(io, service));
            let patience = door.handshake_timeout;
            let silent = async move {
                tokio::time::sleep(patience).await;
                if read.load(Ordering::Relaxed) >= BEGINNING {
                    std::future::pending::<()>().await;
                }
            };
            until_ended(connection, http2::Connection::graceful_shutdown, door, silent).await
        }
    };
    match ended {
        Ok(()) => debug!(source = %door.name, peer, "a connection has ended"),
        Err(why) => debug!(source = %door.name, peer, "a connection ended: {why}"),
    }
}

/// Drives a connection to its end; when the source stops, to the end of what is in hand; and no further where `silent` ends.
async fn until_ended<C, E>(
    mut connection: Pin<&mut C>,
    stop: fn(Pin<&mut C>),
    door: &Door,
    silent: impl Future<Output = ()>,
) -> Result<(), String>
where
    C: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut silent = std::pin::pin!(silent);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(|e| e.to_string()),
            () = &mut silent => return Err("it did not begin in time".to_owned()),
            () = door.shutdown.cancelled(), if !stopping => {
                stopping = true;
                stop(connection.as_mut());
            }
        }
    }
}

/// The body of an answer, and trailers behind it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Answer {
    pub(super) fn of(data: Bytes) -> Self {
        Self { data: Some(data).filter(|data| !data.is_empty()), trailers: None }
    }

    pub(super) fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { trailers: Some(trailers), ..Self::of(data) }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
