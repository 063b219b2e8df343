//! The guest on whose behalf host functions run: one for each store.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{Resource, ResourceTable, ResourceTableError};

use super::Services;
use super::bindings::types::HostError;
use super::body::BodyBudget;
use super::log::GuestLog;
use super::s3::Uploads;
use super::services::Work;

/// Host objects (batches, encoders, bodies, pending parts, streams) that a store may hold at once. An output holds a handful, and
/// sixteen parts on their way; a guest that forgets to drop them should be told soon.
pub(crate) const MAX_HOST_OBJECTS: usize = 256;

/// Which export is running, and so what it may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `describe` and `configure`, which also serve `wharf validate`: nothing but `log` and `clock`.
    Configure,
    /// Everything that was granted.
    Work,
}

/// What the host knows of one store.
pub(crate) struct Caller {
    pub(crate) table: ResourceTable,
    pub(crate) services: Arc<Services>,
    pub(crate) phase: Phase,
    /// When the running call is given up; none is never.
    pub(crate) deadline: Option<Instant>,
    pub(crate) log: GuestLog,
    pub(crate) bodies: BodyBudget,
    pub(crate) uploads: Uploads,
}

/// A limit of the host that ends the guest, because the WIT function that ran into it has no way to say so.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LimitReached(pub(crate) String);

/// Trouble of the host itself, that ends the guest but is not its fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HostTrouble(pub(crate) String);

impl Caller {
    pub(crate) fn new(services: Arc<Services>, log: GuestLog) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HOST_OBJECTS);
        Self {
            table,
            services,
            phase: Phase::Configure,
            deadline: None,
            log,
            bodies: BodyBudget::default(),
            uploads: Uploads::default(),
        }
    }

    /// The output at work, or why this call is refused.
    pub(crate) fn work(&self) -> Result<&Work, HostError> {
        let refused = "only log and clock may be called from describe and configure: they also serve `wharf validate`";
        match (self.phase, self.services.work()) {
            (Phase::Work, Some(work)) => Ok(work),
            _ => Err(HostError::Denied(refused.into())),
        }
    }

    /// Hands a host object to the guest.
    pub(crate) fn hand_out<T: Send + 'static>(&mut self, object: T) -> Result<Resource<T>, HostError> {
        self.table.push(object).map_err(|error| match error {
            ResourceTableError::Full => HostError::Limit(format!(
                "this worker holds {MAX_HOST_OBJECTS} host objects, and may not hold more: drop encoders, bodies and pending parts that are done"
            )),
            other => HostError::Unavailable(other.to_string()),
        })
    }
}

impl super::bindings::types::Host for Caller {}
