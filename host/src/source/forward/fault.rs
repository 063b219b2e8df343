//! Why a connection is closed with what came last on it not taken.

use std::time::Duration;

use crate::source::places::GIVEN_UP;

/// What is wrong. The sender keeps what was not acknowledged, and sends it again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Bytes that are no message of the protocol.
    #[error("byte {at} of a message: {what}")]
    Malformed {
        /// Bytes before it: of the message, or of its entries where those are packed.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Lists and maps in one another.
    #[error("a record is nested more than {} deep", super::json::MAX_DEPTH)]
    TooDeep,
    /// Bytes of a message.
    #[error("a message has more than {0} bytes; raise max_message_size here, or lower the sender's chunk size")]
    TooLarge(usize),
    /// Bytes of its entries.
    #[error(
        "a message's entries have, decompressed, more than {0} bytes; raise max_message_size here, or lower the sender's chunk size"
    )]
    TooLargeDecompressed(usize),
    /// Bytes of its records as JSON.
    #[error(
        "a message's records have, as JSON, more than {0} bytes (twice max_message_size); raise that here, or lower the sender's chunk size"
    )]
    TooLargeAsJson(usize),
    /// Bytes in the journal, and what it may hold in all.
    #[error(
        "a message's records take {bytes} bytes in the journal, which may hold {limit} in all; raise journal.max_size, or lower the sender's chunk size"
    )]
    NeverFits {
        /// What they take.
        bytes: u64,
        /// What the journal may hold.
        limit: u64,
    },
    /// Compressed bytes that cannot be decompressed.
    #[error("a message's entries are not {encoding}: {cause}")]
    Compressed {
        /// gzip or zstd
        encoding: &'static str,
        /// The decompressor's words.
        cause: String,
    },
    /// Something that is sent by this protocol, and not taken here.
    #[error("{0}")]
    Unsupported(String),
    /// Too many bytes in memory, for all connections.
    #[error("too much of other messages is in memory; the sender should try again")]
    Busy,
    /// A message that stood still, or acknowledgements that nobody read.
    #[error("{what} made no progress for {patience:?}")]
    Slow {
        /// What.
        what: &'static str,
        /// How long.
        patience: Duration,
    },
    /// The sender is not who it should be.
    #[error("authentication failed: {0}")]
    Auth(String),
    /// There is no connection by TLS.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// A fault of ours.
    #[error("a fault in Wharf: {0}")]
    Wharf(String),
}

/// Every reason for which what was sent is not taken, or not taken at once.
pub(crate) const REFUSALS: [&str; 17] = [
    GIVEN_UP,
    "tenant_journal",
    "tenant_ingest",
    "queue_full",
    "journal_full",
    "disk_full",
    "journal_failed",
    "stopping",
    "busy",
    "malformed",
    "too_deep",
    "too_large",
    "unsupported",
    "auth",
    "tls",
    "slow",
    "fault",
];

impl Fault {
    pub(crate) fn malformed(at: usize, what: &'static str) -> Self {
        Self::Malformed { at, what }
    }

    /// The same, found in bytes that have so many before them.
    pub(crate) fn behind(self, before: usize) -> Self {
        match self {
            Self::Malformed { at, what } => Self::Malformed { at: before.saturating_add(at), what },
            other => other,
        }
    }

    /// Its kind, as `wharf_source_refused_requests_total` has it: one of [`REFUSALS`].
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } | Self::Compressed { .. } => "malformed",
            Self::TooDeep => "too_deep",
            Self::TooLarge(_) | Self::TooLargeDecompressed(_) | Self::TooLargeAsJson(_) | Self::NeverFits { .. } => {
                "too_large"
            }
            Self::Unsupported(_) => "unsupported",
            Self::Busy => "busy",
            Self::Slow { .. } => "slow",
            Self::Auth(_) => "auth",
            Self::Tls(_) => "tls",
            Self::Wharf(_) => "fault",
        }
    }
}
