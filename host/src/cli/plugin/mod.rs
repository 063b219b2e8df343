//! `wharf plugin`: for those who write plugins. One file a subcommand, thin: what they do is in `author`.

mod inspect;

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
    /// Show what a component is, what it asks for, and how it is configured
    Inspect(inspect::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::Inspect(args) => inspect::run(&args),
    }
}
