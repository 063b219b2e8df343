//! `wharf plugin`: what an author of a plugin uses at the desk, one file a subcommand, thin, over `author`.

mod against;
mod build;
mod inspect;
mod keygen;
mod new;
mod pull;
mod push;
mod registry;
mod run;
mod sign;
mod test;
mod update_sdk;
mod verify;

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
    /// Show what a component is, what it asks for, and how it is configured; and what an output grants it
    Inspect(inspect::Args),
    /// Make a key to sign components with
    Keygen(keygen::Args),
    /// Sign a component
    Sign(sign::Args),
    /// Say whether a component is signed by a key
    Verify(verify::Args),
    /// Get a component from a registry
    Pull(pull::Args),
    /// Publish a component in a registry
    Push(push::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::New(args) => new::run(&args),
        Action::Build(args) => build::run(&args),
        Action::UpdateSdk(args) => update_sdk::run(&args),
        Action::Test(args) => test::run(&args),
        Action::Inspect(args) => inspect::run(&args),
        Action::Run(args) => run::run(&args),
        Action::Keygen(args) => keygen::run(&args),
        Action::Sign(args) => sign::run(&args),
        Action::Verify(args) => verify::run(&args),
        Action::Pull(args) => pull::run(&args),
        Action::Push(args) => push::run(&args),
    }
}

/// A file that a person named, whole.
fn contents(file: &Path) -> Result<Vec<u8>, Ended> {
    std::fs::read(file).map_err(|cause| Ended::Failed(format!("{} cannot be read: {cause}", file.display())))
}

/// A path for a person: relative to where the command runs, where that is shorter.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
