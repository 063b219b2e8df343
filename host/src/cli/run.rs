//! `wharf run`.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::{ConfigFile, Ended};
use crate::run::{Asked, RunError};
use crate::telemetry::init_logging;

const EXAMPLES: &str = "\
Examples:
  wharf run -c /etc/wharf/wharf.yaml
  WHARF_LOG=debug wharf run -c wharf.yaml    a more talkative log, whatever log.level says

SIGHUP, or wharf reload: the configuration is read again and takes over without a stop.
SIGTERM or SIGINT: sources stop, open batches are delivered within `grace`, what is left stays
on disk for the next start. A second signal ends at once; nothing is lost either way.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// Drop the undelivered records of an output that is not configured; acme/ is all of tenant acme's (may be repeated)
    #[arg(long, value_name = "NAME")]
    discard: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let config = super::load(&args.file)?;
    init_logging(&config.log)?;
    crate::allocator::limit_arenas();
    let threads = crate::fair::runtime_threads();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let asked = Asked { file: Some(args.file.config.clone()), discard: args.discard.clone() };
    let ended = runtime.block_on(crate::run::run(config, asked));
    // What still runs in a thread after a second signal has nothing that was acknowledged; it is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match ended {
        Ok(()) => Ok(()),
        Err(RunError::Config(faults)) => Err(Ended::Config(faults)),
        Err(error @ RunError::Failed(_)) => Err(Ended::Failed(error.to_string())),
    }
}
