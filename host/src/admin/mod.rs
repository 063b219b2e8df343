//! The admin server: `GET /health`, `/ready`, `/metrics`, `POST /reload`, `/quarantine/end`.
//!
//! It knows nothing of the rest: what it shows comes from a [`Status`]. `/health` answers 200 as long as the process works, since
//! restarting Wharf mends no destination; what is wrong stands in the answer. `/ready` answers 503 with the reason while records are not
//! taken in. What changes something is only for whoever asks from this machine (`server.rs` says how that is told).

mod health;
mod quarantine;
mod reload;
mod server;

pub use health::{
    Health, JournalHealth, KeptHealth, LastFailure, LastReload, OutputHealth, Phase, QuarantineHealth, RetriesHealth,
    TenantHealth, WorkerHealth,
};
pub use quarantine::{EndAsked, NotEnded, Quarantine, QuarantineEnded};
pub use reload::{Changed, NotNow, Parts, Reload, ReloadAsked, ReloadResult, Reloaded, Undelivered};
pub use server::{AdminError, AdminServer, Doors};

/// What the admin server shows.
pub trait Status: Send + Sync + 'static {
    /// How everything is.
    fn health(&self) -> Health;
    /// Whether records are taken in: recovery is done, sources run, the journal can be written, no queue is full, nothing is stopping.
    ///
    /// # Errors
    /// Why not, for a person.
    fn ready(&self) -> Result<(), String>;
    /// The metrics as text, see [`crate::telemetry::CONTENT_TYPE`].
    fn metrics(&self) -> String;
}
