//! Rust: cargo compiles the crate to a core module for `wasm32-unknown-unknown`, which becomes a component here. Where the author's own
//! `.cargo/config.toml` says `wasm32-wasip2`, rustc makes the component, and that is taken.
//!
//! The tool chain is found as for the built-in components (`xtask/guest-build`): the author's own, else Debian's second one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_guest_build::{TARGET, Toolchain, ToolchainError, from_module};

use super::{BuildError, Language, Made, Missing, Options, tool};

/// The other target: a component comes out of rustc itself.
const WASI_TARGET: &str = "wasm32-wasip2";

pub(super) fn component(folder: &Path, options: &Options, report: &mut dyn FnMut(&str)) -> Result<Made, BuildError> {
    let toolchain = Toolchain::find_in(folder).map_err(|error| missing(&error))?;
    let package = Package::of(&toolchain, folder, report)?;
    let target = if wants_wasi(folder) { WASI_TARGET } else { TARGET };
    report(&format!("compiling {} for {target}", package.name));

    let mut cargo = if target == TARGET { toolchain.build() } else { toolchain.cargo() };
    if target == WASI_TARGET {
        cargo.args(["build", "--target", WASI_TARGET]);
    }
    cargo
        .args(["--release", "--message-format=json-render-diagnostics", "--target-dir"])
        .arg(folder.join("target"))
        .arg("--manifest-path")
        .arg(&package.manifest)
        .current_dir(folder)
        .env("CARGO_TERM_COLOR", if options.colour { "always" } else { "never" });
    let messages = tool::run("compiling the plugin", &mut cargo, report)?;
    let module = module(&messages, &package).ok_or_else(|| BuildError::Component {
        what: package.name.clone(),
        cause: "cargo names no WebAssembly module among what it made".into(),
    })?;

    let bytes =
        fs::read(&module).map_err(|cause| BuildError::Read { path: module.clone(), cause: cause.to_string() })?;
    let bytes = if is_component(&bytes) {
        bytes
    } else {
        from_module(&module)
            .map_err(|error| BuildError::Component { what: package.name.clone(), cause: error.to_string() })?
    };
    Ok(Made { name: package.name, bytes, by: format!("cargo, for {target}") })
}

/// Component layer 1, version 0x0d.
fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x0d\0\x01\0")
}

fn missing(error: &ToolchainError) -> BuildError {
    let rust = Missing::new(
        TARGET,
        format!("what Rust needs to compile to WebAssembly ({})", error.found()),
        &[
            ("where Rust is from rustup", "rustup target add wasm32-unknown-unknown"),
            ("on Debian, as root", "apt-get install rustc-web cargo-web rust-web-src lld"),
            (
                "where there is no Rust at all",
                "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -t wasm32-unknown-unknown",
            ),
        ],
    );
    BuildError::Missing { language: Language::Rust, missing: vec![rust] }
}

/// The project's crate.
#[derive(Debug)]
struct Package {
    name: String,
    manifest: PathBuf,
}

impl Package {
    /// As cargo reads it: the one package of this folder, which has to be a `cdylib`.
    fn of(toolchain: &Toolchain, folder: &Path, report: &mut dyn FnMut(&str)) -> Result<Self, BuildError> {
        let manifest = folder.join("Cargo.toml");
        let mut cargo = toolchain.cargo();
        cargo
            .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
            .arg(&manifest)
            .current_dir(folder);
        let output = tool::run("reading the project", &mut cargo, report)?;
        let metadata: Value = serde_json::from_slice(&output).unwrap_or_default();
        Self::in_metadata(&metadata, &manifest).map_err(|what| BuildError::Project { path: manifest, what })
    }

    fn in_metadata(metadata: &Value, manifest: &Path) -> Result<Self, String> {
        let packages = metadata.get("packages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let here = |package: &&Value| {
            package.get("manifest_path").and_then(Value::as_str).is_some_and(|path| Path::new(path) == manifest)
        };
        let Some(package) = packages.iter().find(here) else {
            let names: Vec<&str> = packages.iter().filter_map(|package| package.get("name")?.as_str()).collect();
            return Err(format!("it is a workspace: build one of its members ({}), by its folder", names.join(", ")));
        };
        let name = package.get("name").and_then(Value::as_str).unwrap_or("plugin").to_owned();
        let targets = package.get("targets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if targets.iter().any(is_cdylib) {
            return Ok(Self { name, manifest: manifest.to_owned() });
        }
        Err("a plugin is a `cdylib`: write\n\n    [lib]\n    crate-type = [\"cdylib\"]\n".to_owned())
    }
}

fn is_cdylib(target: &Value) -> bool {
    let kinds = target.get("crate_types").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
}

/// The module among what cargo says that it made.
fn module(messages: &[u8], package: &Package) -> Option<PathBuf> {
    messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()).find_map(
        |message| {
            let ours = message.get("reason")? == "compiler-artifact"
                && Path::new(message.get("manifest_path")?.as_str()?) == package.manifest
                && is_cdylib(message.get("target")?);
            let files = message.get("filenames")?.as_array()?;
            let wasm = files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".wasm"));
            wasm.filter(|_| ours).map(PathBuf::from)
        },
    )
}

/// Whether the author's own settings of cargo choose the other target.
fn wants_wasi(folder: &Path) -> bool {
    let text =
        ["config.toml", "config"].iter().find_map(|name| fs::read_to_string(folder.join(".cargo").join(name)).ok());
    text.is_some_and(|text| chooses_wasi(&text))
}

/// `target = "wasm32-wasip2"` in the table `[build]`, or in one line with it.
fn chooses_wasi(text: &str) -> bool {
    let mut in_build = false;
    text.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            in_build = line == "[build]";
        }
        let value = if in_build { line.strip_prefix("target") } else { line.strip_prefix("build.target") };
        value.and_then(|rest| rest.trim_start().strip_prefix('=')).is_some_and(|value| value.contains(WASI_TARGET))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(crate_types: &[&str]) -> Value {
        json!({ "packages": [{
            "name": "to-acme", "manifest_path": "/p/Cargo.toml",
            "targets": [{ "name": "to_acme", "crate_types": crate_types }],
        }] })
    }

    #[test]
    fn the_project_is_the_package_of_its_folder() {
        let package = Package::in_metadata(&metadata(&["cdylib", "rlib"]), Path::new("/p/Cargo.toml")).unwrap();
        assert_eq!(package.name, "to-acme");
        let text = Package::in_metadata(&metadata(&["cdylib"]), Path::new("/Cargo.toml")).unwrap_err();
        assert!(text.contains("workspace") && text.contains("to-acme"), "{text}");
    }

    #[test]
    fn a_crate_that_makes_no_module_is_told_what_to_write() {
        let text = Package::in_metadata(&metadata(&["lib"]), Path::new("/p/Cargo.toml")).unwrap_err();
        assert!(text.contains("crate-type = [\"cdylib\"]"), "{text}");
    }

    /// Lines as cargo 1.95 writes them, shortened.
    #[test]
    fn the_module_is_found_among_what_cargo_made() {
        let package = Package { name: "to-acme".into(), manifest: "/p/Cargo.toml".into() };
        let messages = br#"{"reason":"compiler-artifact","manifest_path":"/r/serde/Cargo.toml","target":{"crate_types":["lib"]},"filenames":["/t/libserde.rlib"]}
{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","target":{"crate_types":["cdylib","rlib"]},"filenames":["/t/to_acme.wasm","/t/libto_acme.rlib"]}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(module(messages, &package), Some("/t/to_acme.wasm".into()));
    }

    #[test]
    fn the_author_s_own_target_is_seen_in_cargo_s_settings() {
        assert!(chooses_wasi("[build]\ntarget = \"wasm32-wasip2\"\n"));
        assert!(chooses_wasi("build.target=\"wasm32-wasip2\""));
        assert!(!chooses_wasi("[target.wasm32-wasip2]\nlinker = \"x\"\n"));
        assert!(!chooses_wasi("[build]\ntarget = \"wasm32-unknown-unknown\"\n[net]\noffline = true\n"));
    }
}
