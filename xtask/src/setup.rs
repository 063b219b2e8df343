//! What building and testing need and a fresh machine may not have.

use anyhow::Context as _;

use wharf_task_kit::{show, tools};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only what building needs
    #[arg(long)]
    build: bool,
}

/// A tool chain that compiles to WebAssembly: needed to build.
pub fn for_building() -> anyhow::Result<()> {
    wharf_guest_build::ensure_toolchain(&mut |line| println!("  {line}"))?;
    Ok(())
}

/// A Python environment with an S3 server and client, and what builds plugins in Python, C and JavaScript: needed by the tests.
pub fn for_testing() -> anyhow::Result<()> {
    println!(
        "  an S3 server and a client that are not ours, and what builds plugins in Python and C (Python packages, about a minute the first time) …"
    );
    let venv = tools::venv().context("installing the tests' tools")?;
    println!("  in {}", venv.display());
    println!("  what builds plugins in JavaScript (npm packages, about a minute the first time) …");
    match tools::node_modules() {
        Ok(modules) => println!("  in {}", modules.display()),
        // Whoever has no Node.js can test everything else: those tests say that they did not run. CI must run them.
        Err(error) if !in_ci() => println!("  {}: {error:#}", show::bad("not installed")),
        Err(error) => return Err(error.context("installing the tests' tools")),
    }
    system_package("docker-registry", "a registry for components that is not ours")?;
    system_package("zstd", "a compressor that is not ours")
}

/// A program out of the system's package of its name. Only who is root on a machine of Debian's kind can have it installed; the others' tests say that
/// they did not run, or fail for want of it.
fn system_package(name: &'static str, what: &str) -> anyhow::Result<()> {
    if std::process::Command::new(name).arg("--version").output().is_ok() {
        return Ok(());
    }
    println!("  {what} ({name}, of the system's packages) …");
    let apt = |arguments: &[&str]| {
        let mut apt = std::process::Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(std::process::Stdio::null());
        crate::run(&mut apt, &format!("installing {name}"))
    };
    let install = ["install", "-y", "-qq", "--no-install-recommends", name];
    // A fresh machine may not know the packages yet.
    let installed = apt(&install).or_else(|_| apt(&["update", "-qq"]).and_then(|()| apt(&install)));
    match installed {
        Err(error) if !in_ci() => println!("  {}: {error:#}", show::bad("not installed")),
        installed => installed?,
    }
    Ok(())
}

fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// `cargo xtask setup`
pub fn run(options: &Options) -> anyhow::Result<()> {
    if options.build {
        return for_building();
    }
    show::step(1, 2, "Building needs");
    for_building()?;
    show::step(2, 2, "Testing needs");
    for_testing()?;
    println!("{}", show::good("Ready: cargo xtask demo, cargo xtask test"));
    Ok(())
}
