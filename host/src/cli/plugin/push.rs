//! `wharf plugin push`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::super::{Ended, print};
use super::sign::private_key;
use super::{contents, registry};
use crate::plugin::PluginSource;
use crate::plugin::anatomy::Anatomy;

const EXAMPLES: &str = "\
Examples:
  wharf plugin push my-output.wasm oci://registry.example.com/team/my-output:1.2.0
  wharf plugin push my-output.wasm oci://registry.example.com/team/my-output:1.2.0 --key team.key

`wkg oci push` publishes it in the same form. With --key it is signed as `cosign sign --key`
signs it.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// oci://REGISTRY/REPOSITORY:TAG
    #[arg(value_name = "REF")]
    reference: String,
    /// A private key, in PEM, that signs it
    #[arg(long, value_name = "KEY")]
    key: Option<PathBuf>,
    #[command(flatten)]
    registry: registry::RegistryArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let reference = registry::reference(&args.reference)?;
    let key = args.key.as_deref().map(private_key).transpose()?;
    let component = contents(&args.file)?;
    let digest = registry::runtime()?.block_on(async {
        let anatomy = Anatomy::of(&PluginSource::File(args.file.clone()), None).await?;
        if let Some((what, help)) = anatomy.unfit {
            let help = help.map(|help| format!("\n    help: {help}")).unwrap_or_default();
            return Err(Ended::Failed(format!("{}: {what}{help}", args.file.display())));
        }
        let imports: Vec<String> = anatomy.imports.into_iter().map(|import| import.name).collect();
        let registry = args.registry.registry();
        let pushed = registry.push(&reference, &component, &imports, &anatomy.exports, key.as_ref());
        pushed.await.map_err(|fault| registry::failed(&reference, fault))
    })?;
    let signed = match &key {
        Some(key) => format!("signed by   {}\n", key.public()?),
        None => String::new(),
    };
    print(&format!("{reference}\nmanifest    {digest}\n{signed}"))
}
