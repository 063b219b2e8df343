//! Where sources hand chunks in: the [`Intake`], seen through the few calls that a source makes, so that tests can stand in for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::intake::{Intake, Refused};
use crate::record::{Chunk, Position};

/// A future that a source holds on to.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Ends when the chunk is on the disk, or says why it is not.
pub(crate) type Durable = Later<'static, Result<(), Refused>>;

/// What a source asks of the intake. See the methods of the same names there.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Hands a chunk in, waiting for room.
    fn enqueue(&self, chunk: Chunk) -> Later<'_, Result<Durable, Refused>>;
    /// Hands a chunk in, or says that there is no room.
    fn try_enqueue(&self, chunk: Chunk) -> Result<Durable, Refused>;
    /// Why nothing that is handed in would be taken, whoever sends it.
    fn refuses(&self) -> Option<Refused>;
    /// The positions of a source as they were at start.
    fn positions(&self, source: &str) -> Vec<Position>;
    /// Keeps positions that go with no record. Whether they are on the disk.
    fn keep(&self, positions: Vec<Position>) -> Later<'_, bool>;
    /// Forgets positions.
    fn forget<'a>(&'a self, source: &'a str, keys: Vec<String>) -> Later<'a, ()>;
    /// The same for what this tenant sends to the source: its records are the tenant's, whatever their tag is.
    fn of_tenant(&self, tenant: &Arc<str>) -> Arc<dyn Sink>;
    /// Counts records that lost a part, or were refused for good.
    fn count_discarded(&self, source: &str, reason: &'static str, records: u64);
    /// Counts records that could not be parsed as the configuration asks, for a fixed reason: they go on as they are.
    fn count_unparsed(&self, source: &str, reason: &'static str, records: u64);
    /// Counts a request that was not taken.
    fn count_refused(&self, source: &str, reason: &'static str);
    /// Counts connections that were opened, or (with a minus) ended.
    fn count_connections(&self, source: &str, change: i64);
}

impl Sink for Intake {
    fn enqueue(&self, chunk: Chunk) -> Later<'_, Result<Durable, Refused>> {
        Box::pin(async move {
            let ticket = Intake::enqueue(self, chunk).await?;
            Ok(Box::pin(ticket.durable()) as Durable)
        })
    }
    fn try_enqueue(&self, chunk: Chunk) -> Result<Durable, Refused> {
        let ticket = Intake::try_enqueue(self, chunk)?;
        Ok(Box::pin(ticket.durable()))
    }
    fn refuses(&self) -> Option<Refused> {
        Intake::refuses(self)
    }
    fn positions(&self, source: &str) -> Vec<Position> {
        Intake::positions(self, source)
    }
    fn keep(&self, positions: Vec<Position>) -> Later<'_, bool> {
        Box::pin(Intake::keep(self, positions))
    }
    fn forget<'a>(&'a self, source: &'a str, keys: Vec<String>) -> Later<'a, ()> {
        Box::pin(Intake::forget(self, source, keys))
    }
    fn of_tenant(&self, tenant: &Arc<str>) -> Arc<dyn Sink> {
        Arc::new(self.for_tenant(tenant))
    }
    fn count_discarded(&self, source: &str, reason: &'static str, records: u64) {
        Intake::count_discarded(self, source, reason, records);
    }
    fn count_unparsed(&self, source: &str, reason: &'static str, records: u64) {
        Intake::count_unparsed(self, source, reason, records);
    }
    fn count_refused(&self, source: &str, reason: &'static str) {
        Intake::count_refused(self, source, reason);
    }
    fn count_connections(&self, source: &str, change: i64) {
        Intake::count_connections(self, source, change);
    }
}
