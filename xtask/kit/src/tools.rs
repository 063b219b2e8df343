//! The tests' tools from outside: a Python environment with an S3 server, a client, and a sender that nobody here wrote; another sender for
//! Node.js.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::repository;

/// What is installed, with versions.
const REQUIREMENTS: &str = include_str!("../requirements.txt");

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

/// What is installed from npm, with versions: a sender of the forward protocol that nobody here wrote.
const NODE_PACKAGES: &[&str] = &["@fluent-org/logger@1.0.10"];

/// The folder of packages for Node.js, `target/test-tools/node/node_modules`, made the same way.
///
/// # Errors
/// Where npm is missing or packages cannot be had, with what to do.
pub fn node_modules() -> anyhow::Result<PathBuf> {
    let folder = tools_folder()?.join("node");
    fs::create_dir_all(&folder).with_context(|| format!("making {} failed", folder.display()))?;
    let lock = File::create(folder.join("install.lock"))?;
    lock.lock().context("locking the folder of test tools failed")?;
    let (mark, wanted) = (folder.join("installed.txt"), NODE_PACKAGES.join("\n"));
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder.join("node_modules"));
    }
    run(
        Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&folder)
            .args(NODE_PACKAGES),
        "install Node.js with npm (on Debian: apt-get install -y nodejs npm); the npm registry must be reachable",
    )?;
    fs::write(&mark, wanted)?;
    Ok(folder.join("node_modules"))
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
