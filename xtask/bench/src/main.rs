//! The benchmark: what one machine can move through Wharf, beside the least that any program would need for the same work.
//! `cargo xtask bench` builds everything with optimisation and runs it.
//!
//! Every figure is of one process, Wharf's own: user and system time and peak memory as the kernel counts them. The log lines come from
//! memory (`/dev/shm`), the data directory is on a disk, and what is delivered goes to a sink on loopback that checks nothing
//! and runs in this process. Objects are JSON lines with the date, the default.
//!
//! `scenario` runs one way through Wharf; `s3` and `logs` list them. `input` makes records, `send` sends them by HTTP, forward and OTLP, `service` stands for
//! AWS, `limit` is the simplest program; `measure` and `table` are numbers and how they are shown. `neighbour` is about tenants side by side (`steady`
//! is the load of the one that is looked at), `scale` about many of them.

mod input;
mod limit;
mod logs;
mod measure;
mod neighbour;
mod s3;
mod scale;
mod scenario;
mod send;
mod service;
mod steady;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use wharf_task_kit::show;

use crate::input::{Inputs, Shape};
use crate::scenario::{Destination, Scenario, Source};

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
    /// A CloudWatch Logs that reads every event and refuses what AWS refuses, in place of a sink that looks at nothing: shows that the calls are
    /// right, and takes CPU from what is measured
    #[arg(long)]
    strict: bool,
    /// A tenant with a steady load, alone and beside others that behave badly, in place of everything else
    #[arg(long)]
    neighbours: bool,
    /// Seconds for which the steady load is measured beside each
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Many outputs over many tenants, idle: memory, and time from start to ready, in place of everything else
    #[arg(long, conflicts_with = "neighbours")]
    scale: bool,
    /// Tenants for --scale, each with five outputs
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    tenants: u32,
    /// Only scenarios whose names contain one of these (`tail`, `S3`, `gzip`, `Logs`, `4 streams`, `1 worker`, …)
    filters: Vec<String>,
}

fn main() -> ExitCode {
    // The limit is measured as a process of its own, like everything else.
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, limit::COMMAND, steps, input, copy, sink] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return exit(limit::run(steps, input.as_ref(), copy.as_ref(), sink));
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
    if arguments.neighbours {
        let window = Duration::from_secs(arguments.seconds.max(1));
        let (wharf, filters) = (&*arguments.wharf, &*arguments.filters);
        return neighbour::Bench { wharf, disk: &disk, window, filters }.run();
    }
    if arguments.scale {
        return scale::run(&arguments.wharf, &disk, arguments.tenants);
    }
    let mut inputs = Inputs::new(arguments.megabytes * 1_000_000)?;
    let lines = inputs.of(Shape::LINES)?;
    println!(
        "{} of log lines, {} lines of {} bytes; data directory in {}",
        show::bytes(lines.bytes()),
        lines.lines(),
        input::LINE_BYTES,
        disk.display()
    );
    let limits = limit::Steps::ALL.into_iter().map(|steps| Ok((steps.title(), limit::measure(steps, lines, &disk)?)));
    let limits = limits.collect::<anyhow::Result<Vec<_>>>()?;
    let limit = limits.first().map(|(_, measured)| measured);
    for (to, mut scenarios) in [(Destination::S3, s3::scenarios()), (Destination::Logs, logs::scenarios())] {
        let filters = &arguments.filters;
        scenarios.retain(|one| filters.is_empty() || filters.iter().any(|filter| one.name.contains(filter.as_str())));
        if scenarios.is_empty() {
            continue;
        }
        println!("\n{}", show::strong(&table::heading(to)));
        for (title, measured) in &limits {
            println!("{}", table::row(to, title, measured, None));
        }
        for scenario in &scenarios {
            let measured = scenario.run(&arguments.wharf, inputs.of(scenario.shape)?, &disk, arguments.strict);
            let measured = measured.with_context(|| scenario.name.clone())?;
            println!("{}", table::row(to, &scenario.name, &measured, limit));
        }
        show_what_is_sent(&scenarios);
    }
    println!(
        "\nCPU is user and system time of the process in seconds for each GB (10⁹ bytes) of log lines; guest is the part of it that was"
    );
    println!(
        "spent inside calls of the component, the host's functions that it calls included. calls/1000 is calls of PutLogEvents"
    );
    println!(
        "for 1,000 events; filled is how much of 1,048,576 bytes or 10,000 events a call carries, on average. received is what"
    );
    println!("was read or came in, with what a protocol has around the lines.");
    Ok(())
}

/// What the senders of these scenarios send, each once.
fn show_what_is_sent(scenarios: &[Scenario]) {
    let mut said = Vec::new();
    for scenario in scenarios {
        let Source::Sent(way) = scenario.from else { continue };
        if !said.contains(&way) {
            said.push(way);
            println!("{}", way.says());
        }
    }
}
