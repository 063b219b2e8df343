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
    /// Not a component, another WIT version, an import that is not there, a function of another type, …
    #[error("plugin {name}: {what}{}", in_help(.help))]
    Unusable {
        /// File or name.
        name: String,
        /// What was found, and what was expected. More than one thing has a line each, indented by four blanks.
        what: String,
        /// What to do: mostly a command.
        help: Option<String>,
    },
    /// There is no plugin of that name.
    #[error("there is no plugin {name:?}: {known}{}", in_help(.help))]
    Unknown {
        /// The name.
        name: String,
        /// Which there are, and where was looked.
        known: String,
        /// What to do.
        help: Option<String>,
    },
    /// It could not be had from its registry.
    #[error("plugin {name}: {what}{}", in_help(.help))]
    Registry {
        /// The reference.
        name: String,
        /// What is wrong.
        what: String,
        /// What to do.
        help: Option<String>,
    },
    /// It has to be signed, and nobody who is trusted has signed it.
    #[error("plugin {name}: {what}\n    help: {help}")]
    Untrusted {
        /// File, name or reference.
        name: String,
        /// What is missing or wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// It is not what it is pinned to.
    #[error("plugin {name} is pinned to the SHA-256 {pinned}, and what is there has {found}{}", in_help(&self.help()))]
    OtherDigest {
        /// File or name.
        name: String,
        /// What the configuration says, hexadecimal.
        pinned: String,
        /// What was read.
        found: String,
    },
}

fn in_help(help: &Option<String>) -> String {
    help.as_deref().map(|help| format!("\n    help: {help}")).unwrap_or_default()
}

impl LoadError {
    /// What is wrong, without the plugin's name.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Read { cause, .. } => cause.to_string(),
            Self::Unusable { what, .. } | Self::Registry { what, .. } | Self::Untrusted { what, .. } => what.clone(),
            Self::Unknown { known, .. } => format!("there is no plugin of this name: {known}"),
            Self::OtherDigest { found, .. } => {
                format!("it is pinned to another SHA-256 than that of what is there, which is {found}")
            }
        }
    }

    /// The same with the plugin's name, without what to do.
    #[must_use]
    pub fn headline(&self) -> String {
        let shown = self.to_string();
        match self.help() {
            Some(help) => shown.strip_suffix(&format!("\n    help: {help}")).unwrap_or(&shown).to_owned(),
            None => shown,
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::Unusable { help, .. } | Self::Unknown { help, .. } | Self::Registry { help, .. } => help.clone(),
            Self::Untrusted { help, .. } => Some(help.clone()),
            Self::OtherDigest { name, found, .. } => Some(format!(
                "put the component that was meant back; if this one is meant (`wharf plugin inspect {name}` shows it), write sha256: {found}"
            )),
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
