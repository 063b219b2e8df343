//! Builds the built-in components, to be embedded (`src/plugin/builtin.rs`), and packs what new plugin projects are made of
//! (`src/author/embedded.rs`): the SDK crate, the WIT package, the templates.
//!
//! `WHARF_COMPONENTS_DIR` takes ready ones from a folder instead, where nothing can compile to WebAssembly.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wharf_guest_build::{BUILT_IN, build_all, sources};

const READY_MADE: &str = "WHARF_COMPONENTS_DIR";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{error}\n");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed={READY_MADE}");
    let out_dir = PathBuf::from(std::env::var("OUT_DIR")?);
    let manifest_dir = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let repo_root = manifest_dir.parent().ok_or("the host crate has no folder above it")?;
    pack(repo_root, &out_dir)?;
    if let Some(folder) = std::env::var_os(READY_MADE).filter(|folder| !folder.is_empty()) {
        return copy_ready_made(Path::new(&folder), &out_dir);
    }

    for source in sources(repo_root) {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    build_all(repo_root, &out_dir, &guest_target_dir(&out_dir))?;
    Ok(())
}

/// What is embedded: a path in the binary, and the file or folder of the repository.
const PACKED: [(&str, &str); 5] = [
    ("sdk", "guest-plugins/sdk"),
    ("sdk-js", "guest-plugins/sdk-js"),
    ("sdk-python", "guest-plugins/sdk-python"),
    ("sdk.lock", "guest-plugins/Cargo.lock"),
    ("templates", "host/templates"),
];

/// Writes `embedded.rs`: a table of paths and contents. rustc notes the files that it takes in, so a change of one compiles the host
/// again; one that comes or goes runs this again.
fn pack(repo_root: &Path, out_dir: &Path) -> Result<(), Box<dyn Error>> {
    // The SDK has a link to it.
    println!("cargo:rerun-if-changed={}", repo_root.join("wit").display());
    let mut table = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    for (path, source) in PACKED {
        let source = repo_root.join(source);
        println!("cargo:rerun-if-changed={}", source.display());
        add(path, &source, &mut table)?;
    }
    table.push_str("];\n");
    let file = out_dir.join("embedded.rs");
    // A new time on an equal file would compile the host again.
    if std::fs::read_to_string(&file).is_ok_and(|there| there == table) {
        return Ok(());
    }
    Ok(std::fs::write(file, table)?)
}

/// Adds a file, or all files of a folder in the order of their names.
fn add(path: &str, source: &Path, table: &mut String) -> Result<(), Box<dyn Error>> {
    if !source.is_dir() {
        let source = source.to_str().ok_or("a path that is no UTF-8")?;
        table.push_str(&format!("    ({path:?}, include_bytes!({source:?})),\n"));
        return Ok(());
    }
    let mut entries = source.read_dir()?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        // What cargo and Python make where an SDK is used in its place.
        if name != "target" && name != "__pycache__" {
            add(&format!("{path}/{}", name.to_str().ok_or("a name that is no UTF-8")?), &entry.path(), table)?;
        }
    }
    Ok(())
}

fn copy_ready_made(folder: &Path, out_dir: &Path) -> Result<(), Box<dyn Error>> {
    for (name, _) in BUILT_IN {
        let from = folder.join(format!("{name}.wasm"));
        println!("cargo:rerun-if-changed={}", from.display());
        std::fs::copy(&from, out_dir.join(format!("{name}.wasm")))
            .map_err(|cause| format!("{READY_MADE}: copying {}: {cause}", from.display()))?;
    }
    Ok(())
}

/// `target/guests` of the workspace, the same for all its profiles: guests are always optimised, whatever the host is.
/// `OUT_DIR` is `target/[<triple>/]<profile>/build/<package>/out`.
fn guest_target_dir(out_dir: &Path) -> PathBuf {
    let profile = out_dir.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"));
    let target = profile.and_then(Path::parent).and_then(Path::parent);
    target.unwrap_or(out_dir).join("guests")
}
