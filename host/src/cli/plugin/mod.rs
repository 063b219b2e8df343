//! `wharf plugin`: what an author of a plugin uses at the desk, one file a subcommand, over `author`.

use clap::{Args as ClapArgs, Subcommand};

use super::{Ended, counted, print};

mod run;
mod test;

/// Arguments.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run a plugin's tests: scripted services, the real host, no network
    Test(test::Args),
    /// Run a plugin once, with the real destination
    Run(run::Args),
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::Test(args) => test::run(&args),
        Action::Run(args) => run::run(&args),
    }
}
