//! Taking connections, so many at the same time.
//!
//! Where all places are taken and one more connection comes, [`standing`] says which of those that are open gives its place up, if any does: one
//! that stays open and sends nothing keeps nobody out. A connection takes part in that by saying what it is at and who sends on it; one that
//! never says so keeps its place to its end, and what is more waits in the system's queue.

mod standing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::standing::{At, Standing, gives_up};
use super::sink::Sink;

/// Why a connection was closed, as `wharf_source_refused_requests_total` has it: another had its place.
pub(crate) const GIVEN_UP: &str = "max_connections";

/// Pause after the system gave no connection (no descriptors, no memory).
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is looked again whether a connection gives its place up, while one waits for it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What connections come from.
pub(crate) trait Listener {
    /// A connection.
    type Stream;
    /// The next one, and who it is, as far as that can be said.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, String)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    async fn next(&self) -> io::Result<(TcpStream, String)> {
        let (stream, address) = self.accept().await?;
        Ok((stream, address.to_string()))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    async fn next(&self) -> io::Result<(UnixStream, String)> {
        let (stream, _) = self.accept().await?;
        Ok((stream, "its Unix socket".to_owned()))
    }
}

/// The places of a source's connections, for all its listeners.
#[derive(Clone)]
pub(crate) struct Places {
    source: Arc<str>,
    sink: Arc<dyn Sink>,
    most: usize,
    free: Arc<Semaphore>,
    open: Arc<Open>,
}

/// The connections that have places.
#[derive(Default)]
struct Open {
    next: AtomicU64,
    holders: Mutex<HashMap<u64, Arc<Holder>>>,
    /// How many wait for a place, and what tells them that a connection may have become one that gives its place up.
    waiting: AtomicUsize,
    changed: Notify,
}

struct Holder {
    standing: Mutex<Standing>,
    given_up: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's place: free again when it is dropped. The connection is counted as open until then.
pub(crate) struct Place {
    source: Arc<str>,
    sink: Arc<dyn Sink>,
    number: u64,
    holder: Arc<Holder>,
    open: Arc<Open>,
    _permit: OwnedSemaphorePermit,
}

/// The connection has given its place up, and nothing more of it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all connections are in use (max_connections), and another one had this one's place")]
pub(crate) struct GivenUp;

impl Places {
    pub(crate) fn new(source: Arc<str>, sink: Arc<dyn Sink>, connections: usize) -> Self {
        let most = connections.min(Semaphore::MAX_PERMITS);
        Self { source, sink, most, free: Arc::new(Semaphore::new(most)), open: Arc::default() }
    }

    /// A connection, once there is a place for it. `said` is whether it was said that there is none. None only where places are
    /// given no more.
    pub(crate) async fn next<L: Listener>(&self, listener: &L, said: &mut bool) -> Option<(L::Stream, String, Place)> {
        let (stream, peer) = self.accepted(listener).await;
        let permit = self.permit(said).await?;
        let (number, holder) = (self.open.next.fetch_add(1, Ordering::Relaxed), Arc::new(Holder::new()));
        lock(&self.open.holders).insert(number, Arc::clone(&holder));
        let (source, sink) = (self.source.clone(), Arc::clone(&self.sink));
        sink.count_connections(&source, 1);
        Some((stream, peer, Place { source, sink, number, holder, open: Arc::clone(&self.open), _permit: permit }))
    }

    async fn accepted<L: Listener>(&self, listener: &L) -> (L::Stream, String) {
        loop {
            match listener.next().await {
                Ok(accepted) => return accepted,
                // It was gone before it was taken.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {}
                Err(e) => {
                    warn!(source = %self.source, "no connection can be taken: {e}; it is tried again; a limit on open files may be too low");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn permit(&self, said: &mut bool) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            *said = false;
            return Some(permit);
        }
        if !std::mem::replace(said, true) {
            let source = &self.source;
            warn!(%source, "all connections are in use (max_connections): for one more, one that is idle is closed; where none is, it waits");
        }
        let _waits = Waiting::new(&self.open);
        let permit = Arc::clone(&self.free).acquire_owned();
        tokio::pin!(permit);
        loop {
            let changed = self.open.changed.notified();
            tokio::pin!(changed);
            // Before looking: what changes from here on is heard.
            changed.as_mut().enable();
            if self.open.close_one(self.most) {
                debug!(source = %self.source, "a connection is closed, since another one needs its place");
                self.sink.count_refused(&self.source, GIVEN_UP);
                return permit.await.ok();
            }
            tokio::select! {
                permit = &mut permit => return permit.ok(),
                () = changed => {}
                // Something may have been on its way for long by then.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}

/// Counts who waits.
struct Waiting<'a>(&'a Open);

impl<'a> Waiting<'a> {
    fn new(open: &'a Open) -> Self {
        open.waiting.fetch_add(1, Ordering::SeqCst);
        Self(open)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Open {
    /// Has one connection closed, if one may be.
    fn close_one(&self, places: usize) -> bool {
        let holders: Vec<Arc<Holder>> = lock(&self.holders).values().cloned().collect();
        loop {
            let standings: Vec<Standing> = holders.iter().map(|holder| lock(&holder.standing).clone()).collect();
            let Some(n) = gives_up(&standings, places, Instant::now()) else { return false };
            let (Some(holder), Some(seen)) = (holders.get(n), standings.get(n)) else { return false };
            let mut standing = lock(&holder.standing);
            // It may have gone on since; then it is another's turn.
            if *standing == *seen {
                standing.at = At::GaveUp;
                holder.given_up.cancel();
                return true;
            }
        }
    }

    fn changed(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.notify_waiters();
        }
    }
}

impl Holder {
    fn new() -> Self {
        let standing = Standing { sender: None, opened: Instant::now(), at: At::Stays };
        Self { standing: Mutex::new(standing), given_up: CancellationToken::new() }
    }
}

impl Place {
    /// Who sends on the connection: a tenant's name, or the empty one where it is nobody's but may be here.
    pub(crate) fn is_of(&self, sender: Option<&Arc<str>>) {
        let mut standing = lock(&self.holder.standing);
        if standing.sender.as_ref().is_none_or(|known| **known != *sender.map_or("", |sender| sender)) {
            standing.sender = Some(sender.map_or_else(|| "".into(), Arc::clone));
        }
    }

    /// Nothing is in hand: it may give its place up without harm.
    pub(crate) fn waits(&self) {
        self.is_at(At::Waits(Instant::now()));
    }

    /// Something is on its way that is not whole yet, and began to come then.
    pub(crate) fn receives(&self, since: Instant) {
        self.is_at(At::Receives(since));
    }

    /// Something is being taken or answered: it keeps its place.
    ///
    /// # Errors
    /// Where it has given it up already. Then nothing may be taken: nobody would hear the answer.
    pub(crate) fn stays(&self) -> Result<(), GivenUp> {
        self.is_at(At::Stays);
        if self.holder.given_up.is_cancelled() { Err(GivenUp) } else { Ok(()) }
    }

    /// Ends when the connection has to be closed, since another one has its place.
    pub(crate) async fn given_up(&self) {
        self.holder.given_up.cancelled().await;
    }

    /// Does `work` as long as the connection has its place; none where it gave that up.
    pub(crate) async fn while_kept<F: Future>(&self, work: F) -> Option<F::Output> {
        self.holder.given_up.run_until_cancelled(work).await
    }

    fn is_at(&self, at: At) {
        {
            let mut standing = lock(&self.holder.standing);
            if standing.at == At::GaveUp {
                return;
            }
            standing.at = at;
        }
        if at != At::Stays {
            self.open.changed();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.open.holders).remove(&self.number);
        self.sink.count_connections(&self.source, -1);
    }
}
