//! Builds the built-in components, to be embedded (`src/plugin/builtin.rs`).
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
    if let Some(folder) = std::env::var_os(READY_MADE).filter(|folder| !folder.is_empty()) {
        return copy_ready_made(Path::new(&folder), &out_dir);
    }

    let manifest_dir = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let repo_root = manifest_dir.parent().ok_or("the host crate has no folder above it")?;
    for source in sources(repo_root) {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    // The tool chain can come or go (`cargo xtask setup`) without any source changing.
    println!("cargo:rerun-if-env-changed=PATH");
    build_all(repo_root, &out_dir, &guest_target_dir(&out_dir))?;
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
