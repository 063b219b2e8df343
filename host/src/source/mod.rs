//! Sources take records in: files that grow, standard input, HTTP, the Fluentd forward protocol, OTLP, syslog, and made-up records for trials.
//!
//! Each parses its input into chunks and hands them to the [`Intake`]. Whoever sent a record is answered only when its
//! chunk is durable; where a source reads from something that stays (files), its position is in the chunk. A source stops when
//! its token is cancelled, and then has nothing in hand that it answered for. `docs/sources.md` is for those who set them up.

mod compressed;
mod forward;
#[cfg(test)]
pub(crate) mod fuzzed;
mod generate;
mod http;
mod lane;
mod lines;
mod otlp;
mod parse;
mod places;
mod room;
mod secured;
mod sink;
mod stdin;
mod syslog;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_tls;
#[cfg(test)]
mod with_intake;

use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::sink::Sink;
use crate::config::{ParseConfig, SourceConfig, SourceKind};
use crate::intake::Intake;
use crate::record::Chunk;

/// Starts a source. What can be wrong with its address or its patterns is found before this returns. Must be called within
/// a tokio runtime.
///
/// Cancelling `shutdown` stops it: it takes nothing new, waits until what it handed in is durable, and ends. Waiting
/// longer than a grace period for that is the caller's to refuse.
///
/// # Errors
/// See [`SourceError`].
pub fn spawn(config: SourceConfig, intake: Intake, shutdown: CancellationToken) -> Result<Running, SourceError> {
    let intake = intake.for_source(&config.name);
    spawn_into(&config, Arc::new(intake), shutdown)
}

fn spawn_into(config: &SourceConfig, sink: Arc<dyn Sink>, shutdown: CancellationToken) -> Result<Running, SourceError> {
    let sink = match &config.parse {
        None => sink,
        Some(parse) => {
            let within = matches!(&config.kind, SourceKind::Tail(tail) if tail.path_key.is_some() || tail.kubernetes);
            Arc::new(parse::Parsing::new(config.name.clone(), parse.clone(), within, sink)) as Arc<dyn Sink>
        }
    };
    match &config.kind {
        SourceKind::Tail(tail) => tail::spawn(config, tail, sink, shutdown),
        SourceKind::Stdin => stdin::spawn(config, sink, shutdown),
        SourceKind::Http(http) => http::spawn(config, http, sink, shutdown),
        SourceKind::Forward(forward) => forward::spawn(config, forward, sink, shutdown),
        SourceKind::Otlp(otlp) => otlp::spawn(config, otlp, sink, shutdown),
        SourceKind::Syslog(syslog) => syslog::spawn(config, syslog, sink, shutdown),
        SourceKind::Generate(generate) => Ok(generate::spawn(config, generate, sink, shutdown)),
    }
}

/// What `parse` makes of a chunk of lines: the chunk of those that are objects, and that of those that stay text, as far as there are any.
#[must_use]
pub fn parsed(config: &ParseConfig, chunk: &Chunk) -> Vec<Chunk> {
    parse::parse(config, chunk).chunks
}

/// The reasons for which sources of this kind count records as discarded.
#[must_use]
pub fn discard_reasons(kind: &SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Tail(_) => &[
            "line_too_long",
            "line_split",
            "line_skipped",
            "record_split",
            "truncated",
            "truncated_unseen",
            "compressed_damaged",
            "compressed_cut_off",
        ],
        SourceKind::Stdin => &["line_too_long", "stopped"],
        SourceKind::Http(_) => &["invalid"],
        SourceKind::Forward(_) => &["group_mark"],
        SourceKind::Otlp(_) => &["invalid"],
        SourceKind::Syslog(_) => &["message_too_long", "udp_dropped", "stopped"],
        SourceKind::Generate(_) => &[],
    }
}

/// The reasons for which sources of this kind refuse requests.
#[must_use]
pub fn refusal_reasons(kind: &SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Http(_) => &http::REFUSALS,
        SourceKind::Forward(_) => &forward::REFUSALS,
        SourceKind::Otlp(_) => &otlp::REFUSALS,
        SourceKind::Syslog(_) => &syslog::REFUSALS,
        SourceKind::Tail(_) | SourceKind::Stdin | SourceKind::Generate(_) => &[],
    }
}

/// The reasons for which a source counts records as not parsed.
#[must_use]
pub fn unparsed_reasons(source: &SourceConfig) -> &'static [&'static str] {
    match (&source.kind, &source.parse) {
        (SourceKind::Syslog(_), _) => &["format"],
        (_, Some(_)) => &["format", "time"],
        (_, None) => &[],
    }
}

/// A source at work.
#[derive(Debug)]
pub struct Running {
    name: Arc<str>,
    address: Option<SocketAddr>,
    end: watch::Receiver<Option<SourceEnded>>,
}

/// Why a source has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceEnded {
    /// Its input has an end, and all before it is durable.
    Finished,
    /// It was told to stop.
    Stopped,
    /// It could not go on, for this reason.
    Failed(String),
}

impl Running {
    fn new(name: Arc<str>, work: impl Future<Output = SourceEnded> + Send + 'static) -> Self {
        let (ended, end) = watch::channel(None);
        tokio::spawn(async move { ended.send_replace(Some(work.await)) });
        Self { name, address: None, end }
    }

    /// The source's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
    /// Where it listens, if it does: with port 0 in the configuration, the port that it got.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
    /// Waits for its end. Any number may wait, and it may be asked again.
    pub async fn wait_ended(&self) -> SourceEnded {
        let mut end = self.end.clone();
        let ended = end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        ended.unwrap_or_else(|| SourceEnded::Failed("a fault in Wharf ended its task".to_owned()))
    }
    /// How it ended, if it has.
    pub fn ended_now(&self) -> Option<SourceEnded> {
        self.end.borrow().clone()
    }
    /// Waits for its end, and gives up the source.
    pub async fn ended(self) -> SourceEnded {
        self.wait_ended().await
    }
}

impl fmt::Display for SourceEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("its input has ended"),
            Self::Stopped => f.write_str("it was stopped"),
            Self::Failed(why) => write!(f, "it failed: {why}"),
        }
    }
}

/// Why a Unix socket is not to be had in a folder that is not there.
fn no_folder(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path).display();
    format!("there is no folder {folder}; make it, for this user to write in")
}

/// What an operator does about an address that is not to be had.
fn what_to_do(address: SocketAddr, cause: &std::io::Error) -> String {
    match cause.kind() {
        ErrorKind::AddrInUse => format!(
            "something else listens there: stop it, or take another port (`ss -lntup 'sport = :{}'` shows it)",
            address.port()
        ),
        ErrorKind::AddrNotAvailable => format!(
            "{} is no address of this machine: take one that `ip address` shows, or 0.0.0.0 or [::] for all",
            address.ip()
        ),
        ErrorKind::PermissionDenied => {
            "this user may not have that port: take one from 1024, or give Wharf CAP_NET_BIND_SERVICE".to_owned()
        }
        _ => "take another address or port".to_owned(),
    }
}

/// Why a source does not start.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Its address is not to be had.
    #[error(
        "source {source_name}: listening on {address} failed: {cause}; {}", what_to_do(*.address, .cause)
    )]
    Listen {
        /// The source.
        source_name: Arc<str>,
        /// The address.
        address: SocketAddr,
        /// The cause.
        cause: std::io::Error,
    },
    /// Its Unix socket is not to be had.
    #[error("source {source_name}: listening on {} failed: {why}", .path.display())]
    ListenUnix {
        /// The source.
        source_name: Arc<str>,
        /// The socket's path.
        path: PathBuf,
        /// The cause, and what to do.
        why: String,
    },
    /// Its TLS files are of no use.
    #[error("source {source_name}: tls.{key}: {why}")]
    Tls {
        /// The source.
        source_name: Arc<str>,
        /// The key that names the file.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A path pattern is none.
    #[error("source {source_name}: {pattern:?} is not a path pattern: {why}")]
    Pattern {
        /// The source.
        source_name: Arc<str>,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system gives no thread.
    #[error(
        "source {source_name}: the system gives no thread for it: {cause}; a limit on processes or memory may be too low"
    )]
    Thread {
        /// The source.
        source_name: Arc<str>,
        /// The cause.
        cause: std::io::Error,
    },
}
