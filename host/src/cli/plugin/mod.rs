//! `wharf plugin`: what an author of a plugin uses at the desk, one file a subcommand, thin, over `author`.

mod build;
mod inspect;
mod new;
mod run;
mod test;
mod update_sdk;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};

use super::{Ended, counted, print};

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
    /// Run a plugin's tests: scripted services, the real host, no network
    Test(test::Args),
    /// Run a plugin once, with the real destination
    Run(run::Args),
    /// Show what a component is, what it asks for, and how it is configured
    Inspect(inspect::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::New(args) => new::run(&args),
        Action::Build(args) => build::run(&args),
        Action::UpdateSdk(args) => update_sdk::run(&args),
        Action::Test(args) => test::run(&args),
        Action::Inspect(args) => inspect::run(&args),
        Action::Run(args) => run::run(&args),
    }
}

/// A path for a person: relative to where the command runs, where that is shorter.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
