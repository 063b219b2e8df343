//! `wharf plugin`: for those who write plugins. One file a subcommand, thin: what they do is in `author`.

mod build;
mod new;
mod update_sdk;

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
    /// Make a new plugin project: one that builds, passes its own tests, and delivers to an HTTP API
    New(new::Args),
    /// Make a component of a plugin project
    Build(build::Args),
    /// Put this Wharf's copy of the Rust SDK in the place of a project's
    UpdateSdk(update_sdk::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::New(args) => new::run(&args),
        Action::Build(args) => build::run(&args),
        Action::UpdateSdk(args) => update_sdk::run(&args),
    }
}

/// A path for a person: relative to where the command runs, where that is shorter.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
