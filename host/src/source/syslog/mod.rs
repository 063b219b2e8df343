//! Messages by syslog: RFC 5424 and RFC 3164, by TCP (RFC 6587: octet counted, or ended by line feeds), TLS (RFC 5425), UDP (RFC 5426), and a Unix
//! datagram socket such as `/dev/log`.
//!
//! Syslog has no acknowledgements. What can be promised, is: nothing more is read from a connection while what came before finds no room, and what was
//! read is handed in when Wharf stops. What a kill or a broken network catches on its way is lost, as is what the kernel drops of UDP.
//!
//! Pure, over bytes: [`framing`] finds messages, [`message`] reads them. [`listen`] is around them, [`collect`] makes chunks.

mod collect;
mod framing;
mod listen;
mod message;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::collect::Door;
use super::places::Places;
use super::sink::Sink;
use super::{Running, SourceEnded, SourceError};
use crate::config::{SourceConfig, SyslogConfig};

/// Every reason for which a connection is closed.
pub(super) const REFUSALS: [&str; 3] = ["malformed", "tls", "slow"];

/// Starts listening.
pub(super) fn spawn(
    source: &SourceConfig,
    syslog: &SyslogConfig,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<Running, SourceError> {
    let ears = listen::Ears::open(&source.name, syslog)?;
    let address = ears.address();
    let places = Places::new(source.name.clone(), Arc::clone(&sink), syslog.max_connections);
    let door = Arc::new(Door::new(source, syslog, sink, shutdown));
    let mut running = Running::new(source.name.clone(), async move {
        ears.serve(door, places).await;
        SourceEnded::Stopped
    });
    running.address = address;
    Ok(running)
}

/// Bytes as [`crate::fuzz`] has them read.
#[cfg(test)]
pub(super) mod fuzzed {
    use super::framing::{Framer, NoFrame};
    use super::message::Reading;

    pub(crate) fn message(bytes: &[u8]) -> Option<String> {
        let (mut out, now) = (Vec::new(), "2026-12-01T00:00:00Z".parse().unwrap());
        let _ = Reading { zone: jiff::tz::TimeZone::UTC }.read(bytes, now, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    /// The messages, when bytes come in pieces of this size.
    pub(crate) fn frames(bytes: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, NoFrame> {
        let (mut framer, mut buffer, mut found) = (Framer::new(64), Vec::new(), Vec::new());
        for part in bytes.chunks(piece.min(bytes.len().max(1))) {
            buffer.extend_from_slice(part);
            loop {
                let skipped = framer.skip(&buffer);
                buffer.drain(..skipped);
                let Some(frame) = framer.next(&buffer)? else { break };
                assert!(frame.end - frame.begin <= 64 && frame.taken > 0);
                found.push(buffer[frame.begin..frame.end].to_vec());
                buffer.drain(..frame.taken);
            }
        }
        found.extend(framer.last(&buffer).map(|frame| buffer[frame.begin..frame.end].to_vec()));
        Ok(found)
    }
}
