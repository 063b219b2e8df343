//! What building and testing need and a fresh machine may not have.

use anyhow::Context as _;

use wharf_task_kit::{show, tools};

/// A tool chain that compiles to WebAssembly: needed to build.
pub fn for_building() -> anyhow::Result<()> {
    wharf_guest_build::ensure_toolchain(&mut |line| println!("  {line}"))?;
    Ok(())
}

/// A Python environment with an S3 server and client: needed by the tests.
pub fn for_testing() -> anyhow::Result<()> {
    println!("  an S3 server and a client that are not ours (Python packages, about a minute the first time) …");
    let venv = tools::venv().context("installing the tests' tools")?;
    println!("  in {}", venv.display());
    Ok(())
}

/// `cargo xtask setup`
pub fn everything() -> anyhow::Result<()> {
    show::step(1, 2, "Building needs");
    for_building()?;
    show::step(2, 2, "Testing needs");
    for_testing()?;
    println!("{}", show::good("Ready: cargo xtask demo, cargo xtask test"));
    Ok(())
}
