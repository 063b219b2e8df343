//! The guest on whose behalf host functions run: one for each store.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{Resource, ResourceTable, ResourceTableError};

use super::Reached;
use super::Services;
use super::bindings::types::HostError;
use super::body::{BodyBudget, Charge};
use super::log::GuestLog;
use super::s3::Uploads;
use super::services::Work;
use crate::config::Limit;

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
    /// What the running call asked for and was not granted, how often.
    pub(crate) refused: u64,
}

/// A limit of the host that ends the guest, because the WIT function that ran into it has no way to say so.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LimitReached(pub(crate) Reached);

/// Trouble of the host itself, that ends the guest but is not its fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HostTrouble(pub(crate) String);

impl Caller {
    pub(crate) fn new(services: Arc<Services>, log: GuestLog) -> Self {
        let mut table = ResourceTable::new();
        let limits = services.limits();
        // Batches, encoders, bodies, pending parts, streams. An output holds a handful, and sixteen parts on their way; a guest that forgets to
        // drop them should be told soon.
        table.set_max_capacity(limits.size(Limit::HostObjects));
        let bodies = BodyBudget::new(limits.of(Limit::HostBytes));
        Self {
            table,
            services,
            phase: Phase::Configure,
            deadline: None,
            log,
            bodies,
            uploads: Uploads::default(),
            refused: 0,
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

    /// Counts a refusal of something that was not granted. `capability` is the interface's name.
    pub(super) fn note_refused<T>(&mut self, capability: &'static str, checked: &Result<T, HostError>) {
        if let Err(HostError::Denied(_)) = checked {
            self.refused += 1;
            if let Some(work) = self.services.work() {
                work.metrics.plugin_refused(self.services.output(), capability);
            }
        }
    }

    /// Sets bytes of bodies aside.
    pub(super) fn reserve(&self, bytes: u64) -> Result<Charge, HostError> {
        self.bodies.reserve(bytes).map_err(|used| {
            self.services
                .reached(Limit::HostBytes, used, bytes)
                .refusal_with("take smaller pieces, or drop bodies that were sent")
        })
    }

    /// Hands a host object to the guest.
    pub(crate) fn hand_out<T: Send + 'static>(&mut self, object: T) -> Result<Resource<T>, HostError> {
        let services = &self.services;
        self.table.push(object).map_err(|error| match error {
            ResourceTableError::Full => {
                let most = services.limits().of(Limit::HostObjects);
                let reached = services.reached(Limit::HostObjects, most, 1);
                reached.refusal_with("drop encoders, bodies and pending parts that are done")
            }
            other => HostError::Unavailable(other.to_string()),
        })
    }
}

impl super::bindings::types::Host for Caller {}
