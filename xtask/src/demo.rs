//! `cargo xtask demo`: builds everything, then runs the demo, which is a program of its own.

use std::process::Command;

use wharf_task_kit::show;

use crate::{build, run as run_command, setup};

pub fn run() -> anyhow::Result<()> {
    println!(
        "Wharf follows log files and delivers them to S3 and to CloudWatch Logs, through a WebAssembly component each. This demo\n\
         shows it at work, stops it half way, and starts it again: nothing is lost, and the object numbers go on.\n"
    );
    show::step(1, 4, "What building needs");
    setup::for_building()?;
    show::step(2, 4, "Building Wharf, its components, and an S3 and a CloudWatch Logs for this machine");
    let built = build::binaries(&["wharf", "wharf-demo"], build::Profile::Development)?;
    let [wharf, demo] = built.as_slice() else { anyhow::bail!("cargo built {built:?} instead of two binaries") };
    run_command(Command::new(demo).arg(wharf), "the demo")
}
