//! The intake is the one door between sources and the journal: it routes a chunk by its tag, asks each
//! output's queue for room, and appends. What it answers is what a source may acknowledge.
//!
//! A record that no output wants is counted as dropped (`no_output`) and is not kept.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::record::{Chunk, Position};

/// Where sources hand chunks in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Intake {
    _todo: Arc<()>,
}

/// A chunk on its way to the disk.
#[derive(Debug)]
pub struct Ticket {
    _todo: Option<oneshot::Receiver<()>>,
}

/// Why a chunk was not taken. None of it may be acknowledged; all of it may be handed in again.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    /// An output's queue is full (`when_full: block`), or the journal's own limit is reached.
    #[error("{what} is full")]
    Full {
        /// `output NAME`, or `the journal`.
        what: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk is full.
    #[error("the disk that holds the data directory is full")]
    DiskFull {
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk failed.
    #[error("the journal could not be written: {0}")]
    Failed(String),
    /// Wharf is stopping.
    #[error("Wharf is stopping")]
    Stopping,
}

impl Intake {
    /// Hands a chunk in, waiting for room where outputs say `block` or the disk is full. When it returns, the chunk has its place: chunks
    /// of one caller keep their order. Await the ticket for durability; several may be under way.
    ///
    /// # Errors
    /// Only where the disk fails or Wharf is stopping.
    pub async fn enqueue(&self, _chunk: Chunk) -> Result<Ticket, Refused> {
        todo!()
    }
    /// The same, but never waits for room.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn try_enqueue(&self, _chunk: Chunk) -> Result<Ticket, Refused> {
        todo!()
    }
    /// The positions of a source as they were at start.
    pub fn positions(&self, _source: &str) -> Vec<Position> {
        todo!()
    }
    /// Forgets positions, for instance of files that are gone.
    pub async fn forget(&self, _source: &str, _keys: Vec<String>) {
        todo!()
    }
    /// A record was taken in by a source but lost a part, or was refused for good: counted as `wharf_source_discarded_records_total{source, reason}`.
    pub fn count_discarded(&self, _source: &str, _reason: &'static str, _records: u64) {
        todo!()
    }
}

impl Ticket {
    /// Waits until the chunk is on the disk (or was counted as dropped, where policy says so).
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn durable(self) -> Result<(), Refused> {
        todo!()
    }
}
