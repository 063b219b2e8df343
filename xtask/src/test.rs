//! `cargo xtask test`: installs what the tests need, and runs all of them.

use std::path::Path;

use anyhow::Context as _;
use wharf_task_kit::{repository, show, tools};

use crate::{build, cargo, setup};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How often the crash tests kill the process, in all
    #[arg(long, value_name = "N", default_value_t = 60)]
    crash_cycles: u64,
    /// How often those of CloudWatch Logs do, in all
    #[arg(long, value_name = "N", default_value_t = 40)]
    logs_crash_cycles: u64,
    /// How often the power is cut
    #[arg(long, value_name = "N", default_value_t = 20)]
    power_cuts: u64,
    /// How many records each sender of OTLP and of syslog sends; 100000 is what is promised
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    sender_records: u64,
    /// Only tests whose names contain one of these
    filters: Vec<String>,
}

pub fn run(options: &Options) -> anyhow::Result<()> {
    show::step(1, 5, "What the tests need");
    setup::for_building()?;
    setup::for_testing()?;

    show::step(2, 5, "Building Wharf");
    let built = build::binaries(&["wharf"], build::Profile::Development)?;
    let binary = built.first().context("cargo built no binary")?;

    let skipped = tools::tools_folder()?.join("skipped.txt");
    let _ = std::fs::remove_file(&skipped);
    let result = tests(options, binary, &skipped);

    if let Ok(list) = std::fs::read_to_string(&skipped) {
        println!("\n{}", show::strong("Not run on this machine:"));
        list.lines().for_each(|line| println!("  {line}"));
    }
    result
}

fn tests(options: &Options, binary: &Path, skipped: &Path) -> anyhow::Result<()> {
    show::step(3, 5, "Tests of the workspace");
    // The same selection of packages as in the last step, so that dependencies have the same features and are built once.
    crate::run(
        with_filters(cargo()?.args(["test", "--workspace", "--exclude", "wharf-e2e"]), options),
        "tests of the workspace",
    )?;

    show::step(4, 5, "Tests of the components, natively");
    let target = tools::target_folder()?.join("guests-native");
    let mut guests = cargo()?;
    guests.current_dir(repository()?.join("guest-plugins")).args(["test", "--locked", "--target-dir"]).arg(target);
    crate::run(with_filters(&mut guests, options), "tests of the components")?;

    show::step(5, 5, "End to end: the real binary, real servers, kills, power cuts, faults");
    let mut whole = cargo()?;
    whole
        .args(["test", "--workspace", "--test", "e2e"])
        .env("WHARF_BIN", binary)
        .env("WHARF_CRASH_CYCLES", options.crash_cycles.to_string())
        .env("WHARF_LOGS_CRASH_CYCLES", options.logs_crash_cycles.to_string())
        .env("WHARF_POWER_CUTS", options.power_cuts.to_string())
        .env("WHARF_OTLP_RECORDS", options.sender_records.to_string())
        .env("WHARF_SYSLOG_RECORDS", options.sender_records.to_string())
        .env("WHARF_SKIPPED_FILE", skipped);
    crate::run(with_filters(&mut whole, options), "end-to-end tests")
}

fn with_filters<'a>(command: &'a mut std::process::Command, options: &Options) -> &'a mut std::process::Command {
    if !options.filters.is_empty() {
        command.arg("--").args(&options.filters);
    }
    command
}
