//! Signals: those that end Wharf, and the one that makes it read its configuration again.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Signals this close together are one request: a terminal, a shell and `timeout` may each pass on the same one.
const ONE_REQUEST: Duration = Duration::from_millis(250);

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub(super) struct Signals {
    term: Signal,
    int: Signal,
    last: Option<Instant>,
}

impl Signals {
    /// From now on neither ends the process by itself.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())?, last: None })
    }

    /// From now on SIGHUP does not end the process; each one gives an item.
    pub(super) fn hangups() -> std::io::Result<Signal> {
        signal(SignalKind::hangup())
    }

    /// The next request's name.
    pub(super) async fn next(&mut self) -> &'static str {
        loop {
            let name = tokio::select! {
                _ = self.term.recv() => "SIGTERM",
                _ = self.int.recv() => "SIGINT",
            };
            let now = Instant::now();
            if self.last.is_none_or(|last| now.duration_since(last) >= ONE_REQUEST) {
                self.last = Some(now);
                return name;
            }
        }
    }
}
