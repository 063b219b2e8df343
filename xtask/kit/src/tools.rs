//! The tests' tools from outside: a Python environment and packages of Node.js, with a server, clients and senders that nobody here wrote, and
//! what builds plugins in languages other than Rust.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::repository;

/// What is installed, with versions.
const REQUIREMENTS: &str = include_str!("../requirements.txt");
const NPM_PACKAGE: &str = include_str!("../npm/package.json");
const NPM_LOCK: &str = include_str!("../npm/package-lock.json");
/// componentize-js runs on nothing older.
const OLDEST_NODE: u32 = 20;

/// The folder of the Python environment, `target/test-tools/venv`, made where it is not or where it is older than its list of
/// packages. Processes that do this at the same time wait for one another.
///
/// # Errors
/// Where Python is missing or packages cannot be had, with what to do.
pub fn venv() -> anyhow::Result<PathBuf> {
    let folder = tools_folder()?;
    let venv = folder.join("venv");
    fs::create_dir_all(&folder).with_context(|| format!("making {} failed", folder.display()))?;
    let lock = File::create(folder.join("venv.lock"))?;
    lock.lock().context("locking the folder of test tools failed")?;
    let mark = venv.join("installed.txt");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == REQUIREMENTS) {
        return Ok(venv);
    }
    run(
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv),
        "install Python 3 with venv (on Debian: apt-get install -y python3-venv)",
    )?;
    let list = folder.join("requirements.txt");
    fs::write(&list, REQUIREMENTS)?;
    run(
        Command::new(venv.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "--no-input", "-r"])
            .arg(&list),
        "PyPI must be reachable, or a mirror be set in pip's configuration",
    )?;
    fs::write(&mark, REQUIREMENTS)?;
    Ok(venv)
}

/// The folder of npm's packages, `target/test-tools/npm/node_modules`, made as [`venv`] is. Versions and digests are those of
/// `xtask/kit/npm/package-lock.json`.
///
/// # Errors
/// Where there is no Node.js, or an older one, or packages cannot be had, with what to do.
pub fn node_modules() -> anyhow::Result<PathBuf> {
    node()?;
    let folder = tools_folder()?.join("npm");
    fs::create_dir_all(&folder).with_context(|| format!("making {} failed", folder.display()))?;
    let lock = File::create(folder.join("npm.lock"))?;
    lock.lock().context("locking the folder of test tools failed")?;
    let mark = folder.join("installed.json");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == NPM_LOCK) {
        return Ok(folder.join("node_modules"));
    }
    fs::write(folder.join("package.json"), NPM_PACKAGE)?;
    fs::write(folder.join("package-lock.json"), NPM_LOCK)?;
    run(
        Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder),
        "npm's registry must be reachable, or a mirror be set in npm's configuration",
    )?;
    fs::write(&mark, NPM_LOCK)?;
    Ok(folder.join("node_modules"))
}

/// Whether Node.js is there, and new enough.
fn node() -> anyhow::Result<()> {
    let remedy = format!(
        "plugins in JavaScript are built with Node.js {OLDEST_NODE} or newer: https://nodejs.org, or on Debian 13 `apt-get install nodejs npm`"
    );
    let output =
        Command::new("node").arg("--version").output().with_context(|| format!("running node failed; {remedy}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = version.strip_prefix('v').and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    ensure!(major.is_some_and(|major| major >= OLDEST_NODE), "node is {version}; {remedy}");
    Ok(())
}

/// `target/test-tools`, or `WHARF_TEST_TOOLS`.
///
/// # Errors
/// As [`target_folder`].
pub fn tools_folder() -> anyhow::Result<PathBuf> {
    match std::env::var_os("WHARF_TEST_TOOLS") {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(target_folder()?.join("test-tools")),
    }
}

/// Cargo's target folder, as seen from a binary inside it.
///
/// # Errors
/// Where only the repository could tell, and there is none around.
pub fn target_folder() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from) {
        return if folder.is_absolute() { Ok(folder) } else { Ok(repository()?.join(folder)) };
    }
    let inside = std::env::current_exe()
        .ok()
        .and_then(|path| path.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf));
    match inside {
        Some(folder) => Ok(folder),
        None => Ok(repository()?.join("target")),
    }
}

fn run(command: &mut Command, remedy: &str) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {shown} failed; {remedy}"))?;
    if !output.status.success() {
        bail!("{shown} ended with {}; {remedy}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Runs a Python script in the environment and gives what it prints.
///
/// # Errors
/// Where it fails, with what it said.
pub fn python(venv: &Path, script: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(venv.join("bin/python")).arg(script).args(arguments).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{} ended with {}:\n{}", script.display(), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
