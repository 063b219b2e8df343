//! What `pull`, `push` and `inspect` know of registries.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::super::Ended;
use crate::config::RegistryConfig;
use crate::registry::{Reference, Registry, RegistryOptions, default_credentials_file};

/// Arguments.
#[derive(Debug, ClapArgs)]
pub(super) struct RegistryArgs {
    /// A file with credentials of registries, as `docker login` writes it [default: $DOCKER_CONFIG/config.json or ~/.docker/config.json]
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
    /// A registry that is asked without TLS; one on this machine always is. May be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    plain_http: Vec<String>,
    /// Certificates (PEM) of authorities that are trusted beside the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl RegistryArgs {
    /// What asks them; nothing is kept.
    pub(super) fn registry(&self) -> Registry {
        let mut options = RegistryOptions::default();
        options.http.ca_file.clone_from(&self.ca_file);
        options.registry = RegistryConfig {
            credentials_file: self.credentials_file.clone().or_else(default_credentials_file),
            plain_http: (!self.plain_http.is_empty()).then(|| self.plain_http.clone()),
            ..RegistryConfig::default()
        };
        Registry::new(options)
    }
}

pub(super) fn reference(text: &str) -> Result<Reference, Ended> {
    Reference::parse(text).map_err(|what| {
        Ended::Failed(format!(
            "{text} is no reference to a registry: {what}\n    help: write it as in oci://registry.example.com/team/to-acme:1.2.0"
        ))
    })
}

pub(super) fn failed(reference: &Reference, fault: crate::registry::RegistryFault) -> Ended {
    let help = fault.help.map(|help| format!("\n    help: {help}")).unwrap_or_default();
    Ended::Failed(format!("{reference}: {}{help}", fault.what))
}

pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
