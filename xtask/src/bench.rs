//! `cargo xtask bench`: builds everything with optimisation, then runs the benchmark, which is a program of its own.

use std::process::Command;

use wharf_task_kit::{repository, show};

use crate::{build, run as run_command, setup};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// What the benchmark is told: --megabytes MB, --disk FOLDER, filters (see `-- --help`)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub fn run(options: &Options) -> anyhow::Result<()> {
    show::step(1, 3, "What building needs");
    setup::for_building()?;
    show::step(2, 3, "Building with optimisation");
    let built = build::binaries(&["wharf", "wharf-bench"], build::Profile::Release)?;
    let [wharf, bench] = built.as_slice() else { anyhow::bail!("cargo built {built:?} instead of two binaries") };
    show::step(3, 3, "Measuring");
    let mut command = Command::new(bench);
    command.current_dir(repository()?).arg("--wharf").arg(wharf).args(&options.arguments);
    run_command(&mut command, "the benchmark")
}
