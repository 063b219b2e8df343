//! A socket that can be told to end with a reset instead of an orderly close.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Tells a connection how to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    reset: Arc<AtomicBool>,
}

impl Ending {
    /// The peer shall see a reset.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Connection {
    socket: TcpStream,
    ending: Ending,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream) -> (Self, Ending) {
        let ending = Ending::default();
        (Self { socket, ending: ending.clone() }, ending)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.ending.reset.load(Ordering::Relaxed) {
            // Closing with data unsent and a zero linger time is what makes TCP send RST (socket(7), SO_LINGER).
            let _ = self.socket.set_zero_linger();
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ending.reset.load(Ordering::Relaxed) {
            // An orderly FIN would come before the reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
