//! A guest's standard output and standard error: lines for its log.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::capability::bindings::log::Level;
use crate::capability::log::GuestLog;

/// A line is cut here, and the rest becomes another one, so that a guest which never ends a line holds no more of the host.
const LINE_BYTES: usize = 8 * 1024;
/// Bytes that are taken at once.
const WRITE_BYTES: usize = 64 * 1024;

/// One stream. Clones are the same stream, as WASI wants it.
#[derive(Debug, Clone)]
pub(super) struct GuestOutput {
    log: GuestLog,
    level: Level,
    open_line: Arc<Mutex<Vec<u8>>>,
}

impl GuestOutput {
    pub(super) fn new(log: GuestLog, level: Level) -> Self {
        Self { log, level, open_line: Arc::default() }
    }

    fn take(&self, bytes: &[u8]) {
        let mut line = self.open_line.lock().unwrap_or_else(PoisonError::into_inner);
        for &byte in bytes {
            if byte != b'\n' {
                line.push(byte);
            }
            if byte == b'\n' || line.len() == LINE_BYTES {
                self.write(&mut line);
            }
        }
    }

    fn write(&self, line: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if !text.is_empty() {
            self.log.write(self.level, text, &[]);
        }
        line.clear();
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES)
    }
}

impl AsyncWrite for GuestOutput {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Services;

    fn written(pieces: &[&[u8]]) -> Vec<String> {
        let log = GuestLog::new(Services::detached("o".into()), 0, "p".into());
        let output = GuestOutput::new(log.clone(), Level::Warn);
        for piece in pieces {
            output.take(piece);
        }
        log.last_lines()
    }

    #[test]
    fn pieces_are_put_together_to_lines() {
        assert_eq!(
            written(&[b"pani", b"cked at\r\nsrc", b"/lib.rs\n\nrest"]),
            ["warn: panicked at", "warn: src/lib.rs"]
        );
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let lines = written(&[&vec![b'x'; LINE_BYTES + 1], b"\n"]);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], "warn: x");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(written(&[b"a\xffb\n"]), ["warn: a\u{fffd}b"]);
    }
}
