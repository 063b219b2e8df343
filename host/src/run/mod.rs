//! A whole Wharf at work: every room wired to the next, from start to stop.
//!
//! PLACEHOLDER: the wiring is not here yet; [`run`] says so and ends with an error.

use crate::config::{Config, Faults};

/// Why Wharf ended other than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong in a way that only its plugins could tell.
    #[error("{0}")]
    Config(Faults),
    /// Something else; the message has the cause and the remedy.
    #[error("{0}")]
    Failed(String),
}

/// Runs until a signal ends it.
///
/// # Errors
/// See [`RunError`].
pub async fn run(config: Config) -> Result<(), RunError> {
    let outputs = config.outputs.len();
    Err(RunError::Failed(format!("this build cannot run its {outputs} output(s) yet: the rooms are not wired")))
}
