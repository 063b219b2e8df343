//! Taking connections, so many at the same time: what is more waits in the system's queue until one ends.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;

use super::sink::Sink;

/// Pause after the system gave no connection (no descriptors, no memory).
const PAUSE: Duration = Duration::from_secs(1);

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
    free: Arc<Semaphore>,
}

/// A connection's place: free again when it is dropped. The connection is counted as open until then.
pub(crate) struct Place {
    source: Arc<str>,
    sink: Arc<dyn Sink>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sink.count_connections(&self.source, -1);
    }
}

impl Places {
    pub(crate) fn new(source: Arc<str>, sink: Arc<dyn Sink>, connections: usize) -> Self {
        Self { source, sink, free: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))) }
    }

    /// A connection, once there is a place for it. `said` is whether it was said that there is none. None only where places are
    /// given no more.
    pub(crate) async fn next<L: Listener>(&self, listener: &L, said: &mut bool) -> Option<(L::Stream, String, Place)> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => {
                *said = false;
                permit
            }
            Err(_) => {
                if !std::mem::replace(said, true) {
                    warn!(source = %self.source, "all connections are in use (max_connections): more wait until one ends");
                }
                Arc::clone(&self.free).acquire_owned().await.ok()?
            }
        };
        loop {
            match listener.next().await {
                Ok((stream, peer)) => {
                    let (source, sink) = (self.source.clone(), Arc::clone(&self.sink));
                    sink.count_connections(&source, 1);
                    return Some((stream, peer, Place { source, sink, _permit: permit }));
                }
                // It was gone before it was taken.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {}
                Err(e) => {
                    warn!(source = %self.source, "no connection can be taken: {e}; it is tried again; a limit on open files may be too low");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}
