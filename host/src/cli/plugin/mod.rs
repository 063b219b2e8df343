//! `wharf plugin`: for those who write plugins. One file a subcommand, thin: what they do is in `author`.

mod build;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};

use super::Ended;

/// Arguments.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a component of a plugin project
    Build(build::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::Build(args) => build::run(&args),
    }
}

/// A path for a person: relative to where the command runs, where that is shorter.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
