//! `wharf plugin verify`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::super::{Ended, print};
use super::contents;
use crate::plugin::signature_beside;
use crate::trust::{PublicKey, Signature, TrustedKey, TrustedKeys};

const EXAMPLES: &str = "\
Examples:
  wharf plugin verify my-output.wasm --key team.pub     reads my-output.wasm.sig

Exit codes: 0 one of the keys signed these bytes, 1 none did.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A public key, in PEM; may be repeated
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
    /// The signature [default: FILE.sig]
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let keys = args.keys.iter().map(|file| {
        let shown = file.display().to_string();
        let pem = contents(file)?;
        let key = PublicKey::from_pem(&String::from_utf8_lossy(&pem))
            .map_err(|what| Ended::Failed(format!("{shown} is no public key: {what}")))?;
        Ok(TrustedKey { key, file: Some(shown.into()) })
    });
    let keys = TrustedKeys::new(keys.collect::<Result<_, Ended>>()?);
    let file = args.signature.clone().unwrap_or_else(|| signature_beside(&args.file));
    let signature = Signature::parse(&contents(&file)?)
        .map_err(|what| Ended::Failed(format!("the signature {}: {what}", file.display())))?;
    match keys.signer(&contents(&args.file)?, &signature) {
        Some(trusted) => print(&format!("{} is signed by {}\n", args.file.display(), trusted.key)),
        None => Err(Ended::Failed(format!(
            "the signature {} is not one of {} by any of these keys (tried: {})",
            file.display(),
            args.file.display(),
            keys.listed()
        ))),
    }
}
