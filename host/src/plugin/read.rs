//! Finding a component and reading its bytes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{LoadError, PluginSource, Requirements, builtin, compatible};
use crate::capability::{blocking, one_line};
use crate::registry::{Reference, Registry};
use crate::regular_file;
use crate::trust::simple_signing::Signed;

/// Most names that an error lists.
const MOST_NAMES: usize = 20;

/// A component's bytes, and what it is called in messages: a built-in's name, or the file.
#[derive(Debug)]
pub(super) struct Bytes {
    pub(super) name: String,
    pub(super) bytes: Cow<'static, [u8]>,
    pub(super) origin: Origin,
}

/// Where a component came from, and so where its signature may be.
#[derive(Debug)]
pub(super) enum Origin {
    BuiltIn,
    File(PathBuf),
    Registry { manifest_digest: String, signed: Vec<Signed> },
}

/// Reads a component, from a registry where one can be asked.
pub(super) async fn read(
    source: &PluginSource,
    required: &Requirements<'_>,
    registry: Option<&Registry>,
) -> Result<Bytes, LoadError> {
    let path = match source {
        PluginSource::BuiltIn(name) => {
            return match builtin::component(name) {
                Some(bytes) => Ok(Bytes { name: name.clone(), bytes: Cow::Borrowed(bytes), origin: Origin::BuiltIn }),
                None => Err(unknown(name, &[])),
            };
        }
        PluginSource::File(path) => path.clone(),
        PluginSource::Registry(reference) => return pulled(reference, required, registry).await,
        PluginSource::Named { name, dirs } => {
            match dirs.iter().map(|dir| file_of(dir, name)).find(|path| path.is_file()) {
                Some(path) => path,
                None => return Err(unknown(name, dirs)),
            }
        }
    };
    let name = path.display().to_string();
    let failed = |cause: std::io::Error| LoadError::Read { name: name.clone(), cause };
    let file = path.clone();
    let bytes = blocking(move || regular_file::begin(&path, compatible::MAX_BYTES))
        .await
        .map_err(|error| failed(std::io::Error::other(error.to_string())))?;
    match bytes {
        Ok(bytes) => Ok(Bytes { name, bytes: Cow::Owned(bytes), origin: Origin::File(file) }),
        Err(cause) => Err(failed(cause)),
    }
}

async fn pulled(
    reference: &Reference,
    required: &Requirements<'_>,
    registry: Option<&Registry>,
) -> Result<Bytes, LoadError> {
    let name = reference.to_string();
    let refused = |what: String, help| LoadError::Registry { name: name.clone(), what, help };
    let Some(registry) = registry else {
        return Err(refused(
            "no registry is asked here".into(),
            Some("pull it into a file: `wharf plugin pull`".into()),
        ));
    };
    let wants_signatures = required.keys.is_some() && required.signature.is_none();
    match registry.pull(reference, required.pull, wants_signatures).await {
        Ok(pulled) => Ok(Bytes {
            name,
            bytes: Cow::Owned(pulled.bytes),
            origin: Origin::Registry { manifest_digest: pulled.manifest_digest, signed: pulled.signed },
        }),
        Err(fault) => Err(refused(fault.what, fault.help)),
    }
}

fn file_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.wasm"))
}

/// Names of the components in a folder, ascending.
///
/// # Errors
/// Where the folder cannot be read.
pub fn names_in(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names = vec![];
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm")
            && path.is_file()
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What there is instead.
fn unknown(name: &str, dirs: &[PathBuf]) -> LoadError {
    let mut known: Vec<String> = builtin::names().iter().map(|name| (*name).to_owned()).collect();
    let mut told = vec![format!("built in are {}", known.join(" and "))];
    for dir in dirs {
        let shown = dir.display();
        told.push(match names_in(dir) {
            Ok(names) if names.is_empty() => format!("{shown} has no .wasm file"),
            Ok(names) => {
                let more = if names.len() > MOST_NAMES { ", …" } else { "" };
                let first: Vec<String> = names.iter().take(MOST_NAMES).map(|name| one_line(name, 100)).collect();
                known.extend(names);
                format!("{shown} has {}{more}", first.join(", "))
            }
            Err(cause) => format!("{shown} cannot be read: {cause}"),
        });
    }
    let help = match crate::config::nearest(name, &known) {
        Some(meant) => format!("did you mean {meant:?}? "),
        None if dirs.is_empty() => format!(
            "write the path of a component (./{name}.wasm), or name the folder that has {name}.wasm: `plugins: {{ dir: … }}` in a configuration, `--dir` on the command line"
        ),
        None => format!("write the path of a component, or put {name}.wasm into one of these folders"),
    };
    LoadError::Unknown { name: name.to_owned(), known: told.join("; "), help: Some(help.trim_end().to_owned()) }
}
