//! Connections: how many there may be, and how long one may keep its place without sending a request.
//!
//! Each connection is idle, inside a request's head, or inside a request; the first two have an end, and sooner where others need the place.
//! What a request itself may take is the door's to say: a body that stands still is refused by [`super::body`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::super::places::{Place, Places};
use super::super::secured::secured;
use super::{Door, answer_to};
use crate::fair::Tenant;

/// How long a head that has begun may still take when the source stops.
const LAST_HEADS: Duration = Duration::from_secs(1);

/// How long a connection may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// For TLS.
    pub(super) handshake: Duration,
    /// For a whole head, from its first byte.
    pub(super) head: Duration,
    /// Without a request.
    pub(super) idle: Duration,
}

/// Where connections come from.
pub(super) struct Ear {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) places: Places,
    pub(super) limits: Limits,
}

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between requests, since then.
    Idle(Instant),
    /// A request has begun then, and its head is not whole yet.
    Head(Instant),
    /// A request is being read or answered.
    Request,
}

/// Takes connections until the source stops, then answers what is in hand.
pub(super) async fn serve(ear: Ear, door: Arc<Door>) {
    let (tasks, shutdown) = (TaskTracker::new(), door.shutdown.clone());
    let (tenant, limits) = (Tenant::of(&door.name), ear.limits);
    let mut said = false;
    while let Some((stream, peer, place)) =
        shutdown.run_until_cancelled(ear.places.next(&ear.listener, &mut said)).await.flatten()
    {
        // Answers are small and waited for.
        drop(stream.set_nodelay(true));
        let (door, tls) = (Arc::clone(&door), ear.tls.clone());
        tasks.spawn(tenant.paced(async move {
            let place = Arc::new(place);
            place.waits();
            match tls {
                None => connection(stream, door, &place, limits).await,
                Some(tls) => {
                    if let Some(stream) = shake_hands(&tls, stream, &door, &place, &peer, limits.handshake).await {
                        connection(stream, door, &place, limits).await;
                    }
                }
            }
        }));
    }
    drop(ear);
    tasks.close();
    tasks.wait().await;
}

async fn shake_hands(
    tls: &TlsAcceptor,
    stream: TcpStream,
    door: &Door,
    place: &Place,
    peer: &str,
    patience: Duration,
) -> Option<TlsStream<TcpStream>> {
    match door.shutdown.run_until_cancelled(place.while_kept(secured(tls, stream, patience))).await?? {
        Ok(stream) => Some(stream),
        Err(why) => {
            debug!(source = %door.name, peer, "a connection is closed: {why}");
            door.sink.count_refused(&door.name, "tls");
            None
        }
    }
}

async fn connection<S>(stream: S, door: Arc<Door>, place: &Arc<Place>, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    if door.tokens.is_none() {
        // Whoever is here may send.
        place.is_of(None);
    }
    let phase = Arc::new(watch::Sender::new(Phase::Idle(Instant::now())));
    let (begins, at) = (Arc::clone(&phase), Arc::clone(place));
    let io = TokioIo::new(InspectReader::new(stream, move |came: &[u8]| request_begins(&begins, &at, came)));
    let (name, shutdown, seen) = (door.name.clone(), door.shutdown.clone(), phase.subscribe());
    let at = Arc::clone(place);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (door, phase, place) = (Arc::clone(&door), Arc::clone(&phase), Arc::clone(&at));
        async move {
            phase.send_replace(Phase::Request);
            let response = answer_to(&door, &place, request.map(Body::new)).await;
            phase.send_replace(Phase::Idle(Instant::now()));
            place.waits();
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new().serve_connection(io, service);
    tokio::pin!(connection);
    let late = too_late(seen, limits, shutdown.clone());
    tokio::pin!(late);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(e) = ended {
                    debug!(source = %name, "a connection ended: {e}");
                }
                return;
            }
            phase = &mut late => {
                debug!(source = %name, ?phase, "a connection is closed: it sent no request in time");
                return;
            }
            () = place.given_up() => return,
            () = shutdown.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Ends when a connection has been in a phase for longer than it may.
async fn too_late(mut seen: watch::Receiver<Phase>, limits: Limits, shutdown: CancellationToken) -> Phase {
    loop {
        let phase = *seen.borrow_and_update();
        let stopping = shutdown.is_cancelled();
        let within = |limit: Duration| if stopping { limit.min(LAST_HEADS) } else { limit };
        let deadline = match phase {
            Phase::Idle(since) => Some(since + within(limits.idle)),
            Phase::Head(since) => Some(since + within(limits.head)),
            Phase::Request => None,
        };
        let over = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = seen.changed() => if changed.is_err() {
                // The connection is gone, and with it whoever waits here.
                std::future::pending::<()>().await;
            },
            () = over => return phase,
            () = shutdown.cancelled(), if !stopping => {}
        }
    }
}

/// A request begins with the first bytes that come while none is there.
fn request_begins(phase: &watch::Sender<Phase>, place: &Place, came: &[u8]) {
    if came.is_empty() {
        return;
    }
    let begins = phase.send_if_modified(|phase| {
        let begins = matches!(phase, Phase::Idle(_));
        if begins {
            *phase = Phase::Head(Instant::now());
        }
        begins
    });
    if begins {
        place.receives(Instant::now());
    }
}
