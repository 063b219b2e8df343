//! C: bindings are made from the WIT package into `bindings/`, then the project's `*.c` files and they are compiled to a WASI module
//! without a `main` (a reactor), which becomes a component here. What the C library asks of WASI is answered by wasmtime's adapter.

mod bindings;
mod compiler;

use std::fs;
use std::path::{Path, PathBuf};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;

use super::{BuildError, Made, Options, name_of_folder, tool, write};
use compiler::Compiler;

/// Where bindings go, in the project's folder. All of it is made anew at each build.
const BINDINGS: &str = "bindings";

pub(super) fn component(folder: &Path, options: &Options, report: &mut dyn FnMut(&str)) -> Result<Made, BuildError> {
    let compiler = Compiler::find(report)?;
    let name = name_of_folder(folder);
    for (path, bytes) in bindings()? {
        write(&folder.join(path), &bytes)?;
    }
    let bindings = folder.join(BINDINGS);
    let module = folder.join("build").join(format!("{name}.module.wasm"));
    write(&module, b"")?;

    report(&format!("compiling {name} with {}", compiler.name));
    let mut command = compiler.command();
    command
        .args(["-mexec-model=reactor", "-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter"])
        .args(if options.colour { &["-fcolor-diagnostics"][..] } else { &[] })
        .args(["-Wl,--strip-debug", "-o"])
        .arg(&module)
        .arg("-I")
        .arg(&bindings)
        .args(sources(folder)?)
        .args(sources(&bindings)?)
        .arg(bindings.join(bindings::TYPE_OBJECT))
        .current_dir(folder);
    tool::run("compiling the plugin", &mut command, report)?;

    let bytes =
        fs::read(&module).map_err(|cause| BuildError::Read { path: module.clone(), cause: cause.to_string() })?;
    let bytes = encode(&bytes).map_err(|cause| BuildError::Component { what: name.clone(), cause })?;
    Ok(Made { name, bytes, by: compiler.name })
}

/// Bindings, as they lie in a project's folder: path and content.
///
/// # Errors
/// Where the WIT package that is inside this binary is wrong.
pub(super) fn bindings() -> Result<Vec<(String, Vec<u8>)>, BuildError> {
    let files = bindings::files()
        .map_err(|cause| BuildError::Component { what: "the WIT package's bindings for C".into(), cause })?;
    Ok(files.into_iter().map(|(name, bytes)| (format!("{BINDINGS}/{name}"), bytes)).collect())
}

/// C files of a folder, by name.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let read = |cause: std::io::Error| BuildError::Read { path: folder.to_owned(), cause: cause.to_string() };
    let mut sources = Vec::new();
    for entry in folder.read_dir().map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| {
            encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
        })
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("{error:#}"))
}
