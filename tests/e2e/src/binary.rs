//! Finding the `wharf` binary, or building it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, bail, ensure};
use wharf_task_kit::repository;

/// The binary under test: `WHARF_BIN`, or the workspace's own, brought up to date once a process. Cargo's lock keeps
/// processes that do this at the same time apart.
///
/// # Errors
/// Where it does not build.
pub fn wharf_binary() -> anyhow::Result<&'static Path> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BINARY.get_or_init(|| find_or_build().map_err(|error| format!("{error:#}"))) {
        Ok(path) => Ok(path),
        Err(error) => bail!("{error}"),
    }
}

fn find_or_build() -> anyhow::Result<PathBuf> {
    if let Some(binary) = std::env::var_os("WHARF_BIN") {
        let binary = PathBuf::from(binary);
        ensure!(binary.is_file(), "WHARF_BIN names {}, which is not there", binary.display());
        return Ok(binary);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        // `--workspace` gives dependencies the features that `cargo test --workspace` gave them: nothing is built twice.
        .args(["build", "--quiet", "--workspace", "--bin", "wharf", "--message-format=json-render-diagnostics"])
        .current_dir(repository()?)
        .output()
        .context("running cargo build failed")?;
    ensure!(output.status.success(), "building wharf failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let named = message["reason"] == "compiler-artifact" && message["target"]["name"] == "wharf";
            named.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        });
    executable.context("cargo built wharf, but names no binary")
}
