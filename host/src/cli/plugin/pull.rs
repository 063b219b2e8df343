//! `wharf plugin pull`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use sha2::{Digest as _, Sha256};

use super::super::{Ended, print};
use super::registry;
use crate::config::Config;
use crate::registry::Pull;

const EXAMPLES: &str = "\
Examples:
  wharf plugin pull oci://registry.example.com/team/my-output:1.2.0 --to my-output.wasm
  wharf plugin pull oci://registry.example.com/team/my-output:1.2.0 -c wharf.yaml

With -c it is asked for as that configuration says, and kept in its data directory, so that the next
start needs no registry: run it as the user that runs Wharf.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// oci://REGISTRY/REPOSITORY:TAG or …@sha256:DIGEST
    #[arg(value_name = "REF")]
    reference: String,
    /// Where the component goes
    #[arg(long, value_name = "FILE", required_unless_present = "config")]
    to: Option<PathBuf>,
    /// The configuration
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    registry: registry::RegistryArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let reference = registry::reference(&args.reference)?;
    let from = match &args.config {
        None => args.registry.registry(),
        Some(file) => {
            let config = Config::load(file).map_err(Ended::Config)?;
            crate::run::registry(&config).with_store(&crate::run::registry_store(&config), true)
        }
    };
    let pulled = registry::runtime()?
        .block_on(from.pull(&reference, Pull::Always, false))
        .map_err(|fault| registry::failed(&reference, fault))?;
    if let Some(to) = &args.to {
        std::fs::write(to, &pulled.bytes)
            .map_err(|cause| Ended::Failed(format!("{} cannot be written: {cause}", to.display())))?;
    }
    print(&format!(
        "manifest    {}\nsha256      {}\nsize        {} bytes\nsignatures  {}\n",
        pulled.manifest_digest,
        hex::encode(Sha256::digest(&pulled.bytes)),
        pulled.bytes.len(),
        pulled.signatures()
    ))
}
