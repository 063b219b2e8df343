//! Senders that are as quick as they can be: everything that they send is made before the clock starts, and goes out over a few connections
//! that wait for acknowledgements as real senders do.
//!
//! [`Load::of`] makes the messages of an input, [`Load::send`] sends them and ends when the last one is acknowledged. [`http`], [`forward`] and [`grpc`] are the
//! protocols; [`otlp`] writes the requests that go by two of them. What is refused for now is sent again.

pub mod forward;
mod grpc;
pub mod http;
mod otlp;

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::input::{Input, LINE_BYTES, Records};

/// Connections of every sender.
pub const CONNECTIONS: usize = 4;

/// Before something is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// How records are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Lines, by `POST`.
    Http,
    /// PackedForward messages, or CompressedPackedForward ones.
    Forward { gzip: bool },
    /// OTLP by gRPC, so many records a call.
    OtlpGrpc { records: usize },
    /// OTLP by HTTP with Protocol Buffers, so many records a request.
    OtlpHttp { records: usize },
}

impl Way {
    /// What is sent, in words.
    pub fn says(self) -> String {
        match self {
            Self::Http => {
                let most = http::REQUEST_BYTES >> 20;
                format!(
                    "http: POST requests of {most} MiB of lines, {CONNECTIONS} connections, each with one under way"
                )
            }
            Self::Forward { gzip } => {
                let (mode, and) = if gzip { ("CompressedPackedForward", ", gzip,") } else { ("PackedForward", "") };
                let most = forward::MESSAGE_BYTES / 1_000_000;
                format!(
                    "forward: {mode} messages of {most} MB of entries{and} each [EventTime, {{\"log\": line}}], {CONNECTIONS} connections, each \
                     waiting for the ack of its chunk"
                )
            }
            Self::OtlpGrpc { records } => {
                let calls = grpc::UNDER_WAY;
                format!(
                    "otlp gRPC: calls of {records} records, {CONNECTIONS} connections, each with {calls} under way; {}",
                    otlp::A_RECORD
                )
            }
            Self::OtlpHttp { records } => {
                format!(
                    "otlp HTTP: requests of {records} records in Protocol Buffers, {CONNECTIONS} connections, each with one under way; {}",
                    otlp::A_RECORD
                )
            }
        }
    }
}

/// What one connection does with the messages that it gets.
type Serve = Box<dyn Fn(SocketAddr, &Queue<'_>) -> anyhow::Result<()> + Sync>;

/// An input as messages.
pub struct Load {
    messages: Vec<Bytes>,
    serve: Serve,
}

impl Load {
    /// Makes the messages.
    pub fn of(way: Way, input: &Input) -> anyhow::Result<Self> {
        let mut lines = Vec::with_capacity(input.bytes() as usize);
        for path in input.paths() {
            lines.extend(fs::read(path)?);
        }
        let lines = Bytes::from(lines);
        Ok(match way {
            Way::Http => {
                let kind = match input.shape().records {
                    Records::Text => "text/plain",
                    Records::Json => "application/x-ndjson",
                };
                Self { messages: http::requests(&lines), serve: Box::new(http::serve("/", kind)) }
            }
            Way::Forward { gzip } => {
                Self { messages: forward::messages(&lines, gzip)?, serve: Box::new(forward::serve) }
            }
            Way::OtlpGrpc { records } => {
                Self { messages: otlp::requests(&lines, records), serve: Box::new(grpc::serve) }
            }
            Way::OtlpHttp { records } => {
                let serve = Box::new(http::serve("/v1/logs", "application/x-protobuf"));
                Self { messages: otlp::requests(&lines, records), serve }
            }
        })
    }

    /// What is sent, without what the protocols below (HTTP, HTTP/2, TCP) add.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.len() as u64).sum()
    }

    /// Sends them, and returns when all are acknowledged.
    pub fn send(&self, to: SocketAddr) -> anyhow::Result<()> {
        let queue = Queue { messages: &self.messages, next: AtomicUsize::new(0) };
        std::thread::scope(|scope| {
            let connections: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| (self.serve)(to, &queue))).collect();
            for connection in connections {
                connection.join().map_err(|_| anyhow::anyhow!("a sender panicked"))??;
            }
            Ok(())
        })
    }
}

/// Messages that no connection has taken yet.
pub struct Queue<'a> {
    messages: &'a [Bytes],
    next: AtomicUsize,
}

impl Queue<'_> {
    /// The next message, and its number.
    fn next(&self) -> Option<(usize, &Bytes)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Some((number, self.messages.get(number)?))
    }
}

/// The lines of an input, without their line feeds.
fn each_line(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.chunks_exact(LINE_BYTES as usize).map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}
