//! The benchmark: what one machine can move through Wharf, beside the least that any program would need for the same work.
//! `cargo xtask bench` builds everything with optimisation and runs it.
//!
//! Every figure is of one process, Wharf's own: user and system time and peak memory as the kernel counts them. The log lines come from
//! memory (`/dev/shm`), the data directory is on a disk, and what is delivered goes to a sink on loopback that checks nothing
//! and runs in this process. Objects are JSON lines with the date, the default.

mod input;
mod limit;
mod measure;
mod scenario;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use wharf_task_kit::show;

use crate::input::Input;
use crate::measure::Measured;
use crate::scenario::{Scenario, Source};

/// Measures Wharf.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to measure
    #[arg(long, value_name = "PATH")]
    wharf: PathBuf,
    /// Megabytes of log lines in each scenario
    #[arg(long, value_name = "MB", default_value_t = 500)]
    megabytes: u64,
    /// Where the data directory is made: a real disk
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    disk: PathBuf,
    /// Only scenarios whose names contain one of these (`tail`, `gzip`, `1 worker`, …)
    filters: Vec<String>,
}

fn main() -> ExitCode {
    // The limit is measured as a process of its own, like everything else.
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, limit::COMMAND, input, copy, sink] = arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return exit(limit::run(input.as_ref(), copy.as_ref(), sink));
    }
    exit(run(&Arguments::parse()))
}

fn exit(done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{}: {error:#}", show::bad("The benchmark failed"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    std::fs::create_dir_all(&arguments.disk)?;
    let disk = arguments.disk.canonicalize()?;
    let input = Input::make(arguments.megabytes * 1_000_000)?;
    println!(
        "{} of log lines, {} lines of {} bytes; data directory in {}\n",
        show::bytes(input.bytes()),
        input.lines(),
        input::LINE_BYTES,
        disk.display()
    );
    println!("{}", show::strong(Measured::HEADING));
    let limit = limit::measure(&input, &disk)?;
    println!("{}", limit.row("the limit: read, copy with fdatasync, send", None));
    for scenario in Scenario::all() {
        let name = scenario.name();
        if arguments.filters.is_empty() || arguments.filters.iter().any(|filter| name.contains(filter.as_str())) {
            let measured = match scenario.source {
                Source::Tail => scenario.run_tail(&arguments.wharf, &input, &disk),
                Source::Http => scenario.run_http(&arguments.wharf, &input, &disk),
            };
            println!("{}", measured?.row(&name, Some(&limit)));
        }
    }
    println!(
        "\nCPU is user and system time of the process in seconds for each GB (10⁹ bytes) of log lines; guest is the part of it that was"
    );
    println!("spent inside calls of the component, the host's functions that it calls included.");
    Ok(())
}
