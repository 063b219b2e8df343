//! Dead letters that are replayed go into the intake, past its routing.

use crate::dead_letter::{REPLAY_SOURCE, replay::Target};
use crate::intake::{Intake, Refused};
use crate::record::{Chunk, Position};

/// The intake as replay sees it.
#[derive(Debug, Clone)]
pub(super) struct ReplayInto(pub(super) Intake);

impl Target for ReplayInto {
    fn has_output(&self, output: &str) -> bool {
        self.0.has_output(output)
    }

    async fn submit(&self, output: &str, chunk: Chunk) -> Result<(), Refused> {
        self.0.enqueue_for(output, chunk).await?.durable().await
    }

    fn positions(&self) -> Vec<Position> {
        self.0.positions(REPLAY_SOURCE)
    }

    async fn forget(&self, keys: Vec<String>) {
        self.0.forget(REPLAY_SOURCE, keys).await;
    }
}
