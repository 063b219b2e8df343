//! Finding, or installing, what compiles Rust to WebAssembly.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target of all guests: no operating system, not even WASI. What a plugin may do is in its WIT imports alone.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's second tool chain (packages `rustc-web`, `cargo-web`, `rust-web-src`): a recent one whose standard library comes as source.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";
const SYSTEM_CARGO: &str = "/usr/bin/cargo";
/// `lld` is for a machine whose other Rust has no rust-lld.
const SYSTEM_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld"];

/// What compiles guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toolchain {
    /// The one that also compiles the host: its sysroot has the target.
    Own {
        /// Its cargo.
        cargo: PathBuf,
        /// Its rustc.
        rustc: PathBuf,
    },
    /// The system's, which compiles the standard library from its source.
    FromSource {
        /// Its cargo.
        cargo: PathBuf,
        /// Its rustc.
        rustc: PathBuf,
        /// The linker for WebAssembly.
        linker: PathBuf,
    },
}

/// No tool chain that compiles guests.
#[derive(Debug, thiserror::Error)]
#[error(
    "Wharf's plugins are WebAssembly, and no Rust on this machine can compile to {TARGET} ({own}; {system}). Run this one command, and build again:\n\n    cargo xtask setup\n"
)]
pub struct ToolchainError {
    own: String,
    system: String,
}

impl ToolchainError {
    /// What was looked at, and what is missing there.
    #[must_use]
    pub fn found(&self) -> String {
        format!("{}; {}", self.own, self.system)
    }
}

/// Why nothing could be installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not install what compiles to {TARGET}:\n{}\nInstall the target by hand: `rustup target add {TARGET}` where Rust is from rustup, else your distribution's package of Rust's WebAssembly target.",
    .tried.iter().map(|line| format!("  - {line}\n")).collect::<String>()
)]
pub struct SetupError {
    /// What was tried, and why it did not work.
    pub tried: Vec<String>,
}

impl Toolchain {
    /// Looks for one.
    ///
    /// # Errors
    /// Where there is none: the text names the one command to run.
    pub fn find() -> Result<Self, ToolchainError> {
        Self::find_in(Path::new("."))
    }

    /// Looks for the one that compiles a project's folder: where Rust is from rustup, files there may choose it.
    ///
    /// # Errors
    /// Where there is none.
    pub fn find_in(folder: &Path) -> Result<Self, ToolchainError> {
        let own = match Self::own(folder) {
            Ok(own) => return Ok(own),
            Err(why) => why,
        };
        match Self::system() {
            Ok(system) => Ok(system),
            Err(system) => Err(ToolchainError { own, system }),
        }
    }

    fn own(folder: &Path) -> Result<Self, String> {
        let rustc = from_env("RUSTC", "rustc");
        let cargo = from_env("CARGO", "cargo");
        let sysroot = sysroot_in(folder, &rustc)?;
        if has_std(&sysroot, TARGET) {
            Ok(Self::Own { cargo, rustc })
        } else {
            Err(format!("{} has no {TARGET}", sysroot.display()))
        }
    }

    fn system() -> Result<Self, String> {
        let (rustc, cargo) = (PathBuf::from(SYSTEM_RUSTC), PathBuf::from(SYSTEM_CARGO));
        if !rustc.is_file() || !cargo.is_file() {
            return Err(format!("there is no {SYSTEM_RUSTC} with {SYSTEM_CARGO}"));
        }
        let sysroot = sysroot(&rustc)?;
        if has_std(&sysroot, TARGET) {
            return Ok(Self::Own { cargo, rustc });
        }
        let source = sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml");
        if !source.is_file() {
            return Err(format!("{SYSTEM_RUSTC} has neither {TARGET} nor the standard library's source"));
        }
        let linker =
            linker(&sysroot).ok_or_else(|| format!("there is no rust-lld or wasm-ld beside {SYSTEM_RUSTC}"))?;
        Ok(Self::FromSource { cargo, rustc, linker })
    }

    /// Its cargo, free of what a surrounding cargo meant for the host.
    #[must_use]
    pub fn cargo(&self) -> Command {
        let (cargo, rustc) = match self {
            Self::Own { cargo, rustc } | Self::FromSource { cargo, rustc, .. } => (cargo, rustc),
        };
        let mut command = Command::new(cargo);
        for (name, _) in std::env::vars_os() {
            if meant_for_the_host(&name) {
                command.env_remove(name);
            }
        }
        command.env("RUSTC", rustc);
        command
    }

    /// A cargo command that builds for [`TARGET`].
    #[must_use]
    pub fn build(&self) -> Command {
        let mut command = self.cargo();
        command.args(["build", "--target", TARGET]);
        if let Self::FromSource { linker, .. } = self {
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command
    }
}

/// Whether a variable of a surrounding cargo, or of whoever called it, would change how guests are compiled.
/// Registry, network and home settings stay, and so does a compiler wrapper (`sccache`), which works for any target.
fn meant_for_the_host(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    const KEPT: [&str; 9] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
        "CARGO_BUILD_JOBS",
        "CARGO_MAKEFLAGS",
    ];
    const DROPPED: [&str; 20] = [
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_LINKER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_BOOTSTRAP",
        "CLIPPY_ARGS",
        "CLIPPY_CONF_DIR",
        "TARGET",
        "HOST",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
        "OUT_DIR",
        "NUM_JOBS",
        "LD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "CARGO",
    ];
    DROPPED.contains(&name) || (name.starts_with("CARGO_") && !KEPT.iter().any(|kept| name.starts_with(kept)))
}

fn from_env(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map_or_else(|| default.into(), PathBuf::from)
}

fn sysroot(rustc: &Path) -> Result<PathBuf, String> {
    sysroot_in(Path::new("."), rustc)
}

fn sysroot_in(folder: &Path, rustc: &Path) -> Result<PathBuf, String> {
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .output()
        .map_err(|cause| format!("{} cannot be run: {cause}", rustc.display()))?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !path.is_empty() {
        Ok(path.into())
    } else {
        Err(format!("{} does not tell its sysroot", rustc.display()))
    }
}

fn has_std(sysroot: &Path, target: &str) -> bool {
    let lib = sysroot.join("lib/rustlib").join(target).join("lib");
    let Ok(mut entries) = lib.read_dir() else { return false };
    entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libstd-")))
}

/// LLVM's linker for WebAssembly: in the tool chain, in rustup's, or on the machine.
fn linker(sysroot: &Path) -> Option<PathBuf> {
    let rustups = sysroot_of_rustup();
    let bundled = [Some(sysroot.to_owned()), rustups]
        .into_iter()
        .flatten()
        .filter_map(|sysroot| sysroot.join("lib/rustlib").read_dir().ok())
        .flat_map(|targets| targets.flatten())
        .map(|target| target.path().join("bin/rust-lld"));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&search)
        .flat_map(|folder| [folder.join("rust-lld"), folder.join("wasm-ld")])
        .collect::<Vec<_>>();
    bundled.chain(on_path).chain(versioned_wasm_ld()).find(|linker| linker.is_file())
}

fn sysroot_of_rustup() -> Option<PathBuf> {
    sysroot(Path::new("rustc")).ok()
}

/// Debian installs `wasm-ld-19` and the like.
fn versioned_wasm_ld() -> impl Iterator<Item = PathBuf> {
    let entries = Path::new("/usr/bin").read_dir().ok();
    entries
        .into_iter()
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wasm-ld-")))
}

/// Finds a tool chain that compiles guests, or installs one: rustup's target, else, as root where there is apt-get, Debian's
/// packages. `report` gets a line for each step.
///
/// # Errors
/// What was tried and why it did not work, and what to do by hand.
pub fn ensure_toolchain(report: &mut dyn FnMut(&str)) -> Result<Toolchain, SetupError> {
    if let Ok(toolchain) = Toolchain::find() {
        report(&format!("{TARGET}: {}", toolchain.describe()));
        return Ok(toolchain);
    }
    let mut tried = Vec::new();
    for step in [add_rustup_target, install_packages] {
        match step(report) {
            Ok(()) => match Toolchain::find() {
                Ok(toolchain) => {
                    report(&format!("{TARGET}: {}", toolchain.describe()));
                    return Ok(toolchain);
                }
                Err(error) => tried.push(format!("installed, and still: {}; {}", error.own, error.system)),
            },
            Err(why) => tried.push(why),
        }
    }
    Err(SetupError { tried })
}

impl Toolchain {
    /// For a person.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Own { rustc, .. } => format!("in the tool chain of {}", rustc.display()),
            Self::FromSource { rustc, .. } => {
                format!("built from the standard library's source by {}", rustc.display())
            }
        }
    }
}

fn add_rustup_target(report: &mut dyn FnMut(&str)) -> Result<(), String> {
    run(report, Command::new("rustup").args(["target", "add", TARGET]))
}

fn install_packages(report: &mut dyn FnMut(&str)) -> Result<(), String> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if !is_root {
        return Err(format!("not root, so no `apt-get install {}`", SYSTEM_PACKAGES.join(" ")));
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    run(report, apt().args(["update", "-q"]))?;
    run(report, apt().args(["install", "-y", "-q", "--no-install-recommends"]).args(SYSTEM_PACKAGES))
}

/// Runs a command; gives the end of what it said where it fails.
fn run(report: &mut dyn FnMut(&str), command: &mut Command) -> Result<(), String> {
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    report(&line);
    let output = command.stdin(Stdio::null()).output().map_err(|cause| format!("`{line}`: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word why");
    Err(format!("`{line}`: {last}"))
}

#[cfg(test)]
mod tests {
    use super::meant_for_the_host;

    #[test]
    fn flags_for_the_host_stay_away_from_guests_and_the_network_settings_reach_them() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_PKG_NAME",
            "CARGO_MANIFEST_DIR",
            "CARGO_CFG_TARGET_OS",
            "CARGO_FEATURE_X",
            "CARGO_INCREMENTAL",
            "RUSTC",
            "RUSTC_WORKSPACE_WRAPPER",
            "TARGET",
        ] {
            assert!(meant_for_the_host(name.as_ref()), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MINE_INDEX",
            "CARGO_SOURCE_CRATES_IO_REPLACE_WITH",
            "RUSTC_WRAPPER",
            "RUSTUP_TOOLCHAIN",
            "HTTPS_PROXY",
        ] {
            assert!(!meant_for_the_host(name.as_ref()), "{name}");
        }
    }
}
