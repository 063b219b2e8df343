//! What is asked of the end of a quarantine, and what it answers: the same for `POST /quarantine/end` and `wharf quarantine end`.

use serde::{Deserialize, Serialize};

/// Who knows which outputs are held because their component dies of whatever it is given.
pub trait Quarantine: Send + Sync + 'static {
    /// Ends the quarantine of this output's component: what was held is tried at once.
    ///
    /// # Errors
    /// See [`NotEnded`].
    fn end_quarantine(&self, output: &str) -> Result<QuarantineEnded, NotEnded>;
}

/// The body of `POST /quarantine/end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndAsked {
    /// The output, `acme/archive` of a tenant's.
    pub output: String,
}

/// A quarantine is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEnded {
    /// The output.
    pub output: String,
    /// Its component.
    pub plugin: String,
    /// Batches of it that were tried before, and are now tried again; what waits behind them comes next.
    pub batches: usize,
    /// Other outputs that run the same component, were held with this one, and are held no longer.
    pub with: Vec<String>,
}

/// Why no quarantine was ended. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotEnded {
    /// There is no such output.
    #[error("there is no output {output}{}", nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        output: String,
        /// The name that is most like it.
        nearest: Option<String>,
    },
    /// Nothing of it is held.
    #[error("output {0} is not in quarantine")]
    NotQuarantined(String),
    /// The outputs do not run yet.
    #[error("Wharf is starting: its outputs do not run yet")]
    Starting,
}
