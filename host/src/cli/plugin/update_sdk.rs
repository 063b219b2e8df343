//! `wharf plugin update-sdk`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::author::sdk::update;
use crate::cli::{Ended, print};

const EXAMPLES: &str = "\
Example:
  wharf plugin update-sdk

A plugin in Rust has a copy of the SDK in its folder wharf-plugin/, of the Wharf that made it. After
an upgrade of Wharf, this replaces it with the one of this Wharf. Changes made in it are lost.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The project
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let sdk = update(&args.folder)?;
    print(&format!("{} is the SDK of this Wharf ({})\n", sdk.display(), env!("CARGO_PKG_VERSION")))
}
