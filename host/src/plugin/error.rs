//! Why a component cannot be used, or a worker does not start.

use std::sync::Arc;

use super::{ConfigFault, Death};

/// Why a component cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Could not be read.
    #[error("plugin {name}: {cause}")]
    Read {
        /// File or name.
        name: String,
        /// Cause.
        cause: std::io::Error,
    },
    /// Not a component, another WIT version, an import that is not there, …
    #[error("plugin {name}: {what}")]
    Unusable {
        /// File or name.
        name: String,
        /// Found, expected, and the remedy.
        what: String,
    },
}

impl LoadError {
    /// What is wrong, without the plugin's name.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Read { cause, .. } => cause.to_string(),
            Self::Unusable { what, .. } => what.clone(),
        }
    }
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error("the configuration of output {output} is wrong: {}", .faults.iter().map(|f| format!("{}: {}", f.path, f.message)).collect::<Vec<_>>().join("; "))]
    Config {
        /// The output.
        output: Arc<str>,
        /// All faults.
        faults: Vec<ConfigFault>,
    },
    /// The component died in `configure`.
    #[error("the plugin of output {output} died while it was configured: {}", .death.message)]
    Died {
        /// The output.
        output: Arc<str>,
        /// How.
        death: Death,
    },
}
