//! Building, with a progress display.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::Value;

use wharf_task_kit::show::Progress;
use wharf_task_kit::{repository, tools};

use crate::cargo;

/// How a build is optimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Builds fast.
    Development,
    /// Runs fast.
    Release,
}

/// Builds these binaries (each named as its package), and gives where they are, in the same order.
pub fn binaries(names: &[&str], profile: Profile) -> anyhow::Result<Vec<PathBuf>> {
    let packages = packages_below(names).unwrap_or(500);
    let mut progress = Progress::new(packages, "building (the first time takes some minutes)");
    progress.message("starting cargo");
    let mut command = cargo()?;
    // `--workspace` gives dependencies the features that `cargo test --workspace` gives them: nothing is built twice.
    command.args(["build", "--workspace", "--quiet", "--message-format=json-render-diagnostics"]);
    command.args(names.iter().flat_map(|name| ["--bin", name]));
    if profile == Profile::Release {
        command.arg("--release");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo build")?;
    let mut built: HashMap<String, PathBuf> = HashMap::new();
    let mut seen = HashSet::new();
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines() {
            let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            let package = message["package_id"].as_str().unwrap_or_default().to_owned();
            let target = message["target"]["name"].as_str().unwrap_or_default();
            if let Some(executable) = message["executable"].as_str() {
                built.insert(target.to_owned(), PathBuf::from(executable));
            }
            progress.message(match (target, message["target"]["kind"][0].as_str()) {
                ("build-script-build", _) if package.contains("host#") => {
                    "the components, compiled to WebAssembly".to_owned()
                }
                _ => target.to_owned(),
            });
            seen.insert(package);
            progress.at(seen.len() as u64);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        progress.done("");
        bail!("building Wharf failed ({status}); cargo's message is above");
    }
    let binaries =
        names.iter().map(|name| built.remove(*name).with_context(|| format!("cargo names no binary {name}")));
    let binaries = binaries.collect::<anyhow::Result<Vec<_>>>()?;
    let shown: Vec<String> = binaries.iter().map(|binary| binary.display().to_string()).collect();
    progress.done(&format!("built {}", shown.join(", ")));
    Ok(binaries)
}

/// How many packages a build of these needs: what the progress bar goes up to.
fn packages_below(names: &[&str]) -> Option<u64> {
    let output =
        cargo().ok()?.args(["metadata", "--format-version=1", "--quiet"]).stderr(Stdio::null()).output().ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    let nodes = metadata["resolve"]["nodes"].as_array()?;
    let needs: HashMap<&str, Vec<&str>> = nodes
        .iter()
        .filter_map(|node| {
            let below = node["deps"].as_array()?.iter().filter(|dep| {
                // Everything but what only tests need.
                dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
            });
            Some((node["id"].as_str()?, below.filter_map(|dep| dep["pkg"].as_str()).collect()))
        })
        .collect();
    let packages = metadata["packages"].as_array()?;
    let wanted = packages.iter().filter(|package| package["name"].as_str().is_some_and(|name| names.contains(&name)));
    let mut next: Vec<&str> = wanted.filter_map(|package| package["id"].as_str()).collect();
    let mut seen: HashSet<&str> = next.iter().copied().collect();
    while let Some(id) = next.pop() {
        next.extend(needs.get(id)?.iter().filter(|id| seen.insert(**id)));
    }
    Some(seen.len() as u64)
}

/// `cargo xtask build-plugins`
pub fn plugins() -> anyhow::Result<()> {
    crate::setup::for_building()?;
    let target = tools::target_folder()?;
    let built = wharf_guest_build::build_all(&repository()?, &target.join("components"), &target.join("guests"))?;
    for component in built {
        println!("{}", component.display());
    }
    Ok(())
}
