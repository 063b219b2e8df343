//! `wharf plugin sign`.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::super::{Ended, print};
use super::contents;
use crate::plugin::signature_beside;
use crate::trust::PrivateKey;

const EXAMPLES: &str = "\
Examples:
  wharf plugin sign my-output.wasm --key team.key     writes my-output.wasm.sig

Others that Wharf takes:
  openssl pkeyutl -sign -rawin -inkey team.key -in my-output.wasm -out my-output.wasm.sig
  cosign sign-blob --key cosign.key my-output.wasm > my-output.wasm.sig";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The private key, in PEM
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Where the signature goes [default: FILE.sig]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let key = private_key(&args.key)?;
    let signature = key.sign(&contents(&args.file)?);
    let to = args.to.clone().unwrap_or_else(|| signature_beside(&args.file));
    std::fs::write(&to, signature.to_text())
        .map_err(|cause| Ended::Failed(format!("{} cannot be written: {cause}", to.display())))?;
    print(&format!("{}  signed by {}\n", to.display(), key.public()?))
}

/// A private key of a file.
pub(super) fn private_key(file: &Path) -> Result<PrivateKey, Ended> {
    let pem = contents(file)?;
    PrivateKey::from_pem(&String::from_utf8_lossy(&pem))
        .map_err(|what| Ended::Failed(format!("{} is no private key: {what}", file.display())))
}
