//! `cargo xtask`: everything that one command is for.

mod bench;
mod build;
mod demo;
mod docs;
mod fuzz;
mod setup;
mod test;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};
use wharf_task_kit::{repository, show};

/// Builds, shows and tests Wharf.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Shows Wharf at work: builds it, follows files that are being written, delivers them to an S3 and a CloudWatch Logs on this
    /// machine, stops half way, starts again. Needs nothing but Rust; leaves its results in ./wharf-demo
    Demo,
    /// Installs what the tests need, and runs all of them
    Test(test::Options),
    /// Installs what building and testing need: a WebAssembly target, a Python environment with an S3 server, packages of npm
    Setup(setup::Options),
    /// Builds the built-in components into target/components, each as NAME.wasm
    BuildPlugins,
    /// Feeds damaged input to a parser of outside bytes
    Fuzz(fuzz::Options),
    /// Measures throughput, CPU and memory
    Bench(bench::Options),
    /// Writes docs/plugins/reference.md anew from the files in wit/
    Docs,
    /// What CI runs: formatting, lints, and the tests
    Ci,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Demo => demo::run(),
        Task::Test(options) => test::run(&options),
        Task::Setup(options) => setup::run(&options),
        Task::BuildPlugins => build::plugins(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Docs => docs::write(),
        Task::Ci => ci(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{}: {error:#}", show::bad("failed"));
            ExitCode::FAILURE
        }
    }
}

/// cargo, in the repository.
fn cargo() -> anyhow::Result<Command> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(repository()?);
    // What this cargo was told about its own package is nobody else's business.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(name);
        }
    }
    Ok(cargo)
}

/// Runs a command to its end, with its output on the terminal.
fn run(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{what}: starting {:?}", command.get_program()))?;
    ensure!(status.success(), "{what}: {status}");
    Ok(())
}

fn ci() -> anyhow::Result<()> {
    let repository = repository()?;
    run(Command::new("bash").arg(repository.join(".ci/run")).current_dir(repository), "what CI runs")
}
