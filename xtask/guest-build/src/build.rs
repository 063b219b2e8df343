//! Compiling the guests and making components of them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::component::{ComponentError, from_module};
use crate::toolchain::{TARGET, Toolchain, ToolchainError};

/// Each built-in plugin: its name, as in `plugin: <name>`, and the cargo package that it is built from.
pub const BUILT_IN: &[(&str, &str)] = &[("s3", "wharf-s3"), ("cloudwatch_logs", "wharf-cloudwatch-logs")];

/// Plugins that only the host's tests load.
pub const FOR_TESTS: &[(&str, &str)] = &[("misbehaving", "wharf-misbehaving"), ("hostile", "wharf-hostile")];

/// Plugins that only the host's benchmarks load.
pub const FOR_BENCHES: &[(&str, &str)] = &[("bench", "wharf-bench-plugin")];

/// Why the components could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing here compiles to WebAssembly.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// cargo could not be started.
    #[error("starting {cargo} for the plugins: {cause}")]
    Start {
        /// The command.
        cargo: String,
        /// The cause.
        cause: std::io::Error,
    },
    /// cargo failed.
    #[error("compiling the plugins in guest-plugins/ failed:\n{said}")]
    Compile {
        /// What it said.
        said: String,
    },
    /// A module is no component.
    #[error(transparent)]
    Component(#[from] ComponentError),
    /// A component could not be written.
    #[error("writing the component {path}: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

/// Builds all built-in components into `out_dir`, as `<name>.wasm`. `target_dir` keeps what cargo makes on the way, so that the next
/// build is fast. Gives the files in the order of [`BUILT_IN`]. A file that would not change is left alone.
///
/// # Errors
/// See [`BuildError`].
pub fn build_all(repo_root: &Path, out_dir: &Path, target_dir: &Path) -> Result<Vec<PathBuf>, BuildError> {
    build(BUILT_IN, repo_root, out_dir, target_dir)
}

/// The same for the plugins that only the host's tests load, [`FOR_TESTS`].
///
/// # Errors
/// See [`BuildError`].
pub fn build_for_tests(repo_root: &Path, out_dir: &Path, target_dir: &Path) -> Result<Vec<PathBuf>, BuildError> {
    build(FOR_TESTS, repo_root, out_dir, target_dir)
}

/// The same for the plugins that only the host's benchmarks load, [`FOR_BENCHES`].
///
/// # Errors
/// See [`BuildError`].
pub fn build_for_benches(repo_root: &Path, out_dir: &Path, target_dir: &Path) -> Result<Vec<PathBuf>, BuildError> {
    build(FOR_BENCHES, repo_root, out_dir, target_dir)
}

fn build(
    plugins: &[(&str, &str)],
    repo_root: &Path,
    out_dir: &Path,
    target_dir: &Path,
) -> Result<Vec<PathBuf>, BuildError> {
    let toolchain = Toolchain::find()?;
    let mut cargo = toolchain.build();
    cargo
        .args(["--release", "--locked", "--quiet", "--target-dir"])
        .arg(target_dir)
        .args(plugins.iter().flat_map(|(_, package)| ["--package", package]))
        .current_dir(repo_root.join("guest-plugins"))
        .stdin(Stdio::null());
    let output = cargo
        .output()
        .map_err(|cause| BuildError::Start { cargo: cargo.get_program().to_string_lossy().into_owned(), cause })?;
    if !output.status.success() {
        return Err(BuildError::Compile { said: String::from_utf8_lossy(&output.stderr).into_owned() });
    }

    let modules = target_dir.join(TARGET).join("release");
    plugins
        .iter()
        .map(|(name, _)| {
            let component = from_module(&modules.join(format!("{name}.wasm")))?;
            let path = out_dir.join(format!("{name}.wasm"));
            write_if_changed(&path, &component).map_err(|cause| BuildError::Write { path: path.clone(), cause })?;
            Ok(path)
        })
        .collect()
}

/// A new time on an equal file would compile whatever embeds it again.
fn write_if_changed(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes)
}

/// What the components are made of: files and folders for `cargo:rerun-if-changed`. The guests' own `target/` is not among them.
#[must_use]
pub fn sources(repo_root: &Path) -> Vec<PathBuf> {
    let guests = repo_root.join("guest-plugins");
    let mut sources = vec![repo_root.join("wit"), guests.join("Cargo.toml"), guests.join("Cargo.lock")];
    let folders = guests.read_dir().into_iter().flat_map(|entries| entries.flatten()).map(|entry| entry.path());
    sources.extend(folders.filter(|folder| folder.join("Cargo.toml").is_file()));
    sources
}
