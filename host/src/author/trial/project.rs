//! What is tested with what: the component and the tests of a project, or of what was named.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::plugin::{PluginSource, builtin};

/// What a project is built from is not in these.
const NOT_SOURCES: [&str; 7] = ["dist", "target", "tests", "node_modules", "__pycache__", "build", "bindings"];
/// What it is built from ends so, or lies in `src`: whatever else is there (a log, a data file) makes no component old.
const SOURCES: [&str; 11] = ["rs", "toml", "lock", "wit", "c", "h", "js", "mjs", "cjs", "ts", "py"];
/// A project has no more files than this that would have to be looked at.
const MOST_FILES: usize = 20_000;

/// A component and its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The component.
    pub plugin: PluginSource,
    /// Test files, and folders of them.
    pub tests: Vec<PathBuf>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProjectError(String);

impl Project {
    /// Of paths as they are given on the command line: a project's folder, a component, test files or folders of them.
    ///
    /// # Errors
    /// Where there is no component, or one that is older than what it is built from.
    pub fn find(paths: &[PathBuf], plugin: Option<&str>) -> Result<Self, ProjectError> {
        let here = [PathBuf::from(".")];
        let paths = if paths.is_empty() { &here[..] } else { paths };
        let (mut component, mut folder, mut tests) = (None, None, vec![]);
        for path in paths {
            if path.extension().is_some_and(|extension| extension == "wasm") {
                component = Some(path.clone());
            } else if path.is_dir() && (path.join("tests").is_dir() || path.join("dist").is_dir()) {
                folder = Some(path.clone());
            } else if path.exists() {
                tests.push(path.clone());
            } else {
                return Err(ProjectError(format!("there is no {}", path.display())));
            }
        }
        if tests.is_empty() {
            let folder =
                folder.clone().or_else(|| component.as_deref().and_then(project_of)).unwrap_or_else(|| ".".into());
            tests.push(folder.join("tests"));
        }
        let named = plugin.map(|plugin| match builtin::names().contains(&plugin) {
            true => PluginSource::BuiltIn(plugin.to_owned()),
            false => PluginSource::File(plugin.into()),
        });
        let plugin = match (named, component) {
            (Some(named), _) => named,
            (None, Some(component)) => PluginSource::File(component),
            (None, None) => {
                let folder = folder.or_else(|| tests.first().and_then(|test| project_of(test)));
                PluginSource::File(built(&folder.unwrap_or_else(|| ".".into()))?)
            }
        };
        Ok(Self { plugin, tests })
    }
}

/// The nearest folder above that has a `dist`.
fn project_of(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    path.ancestors().skip(1).find(|folder| folder.join("dist").is_dir()).map(Path::to_owned)
}

/// The component of a project, not older than its sources.
fn built(folder: &Path) -> Result<PathBuf, ProjectError> {
    let dist = folder.join("dist");
    let is_component = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wasm");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&dist)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_component).collect())
        .unwrap_or_default();
    found.sort();
    let build = format!("wharf plugin build {}", folder.display());
    let component = match found.as_slice() {
        [one] => one.clone(),
        [] => {
            return Err(ProjectError(format!(
                "there is no component in {}: build it with `{build}`, or name one with --plugin FILE",
                dist.display()
            )));
        }
        many => {
            let names: Vec<String> = many.iter().map(|path| path.display().to_string()).collect();
            return Err(ProjectError(format!(
                "which component? There are {}: name one with --plugin FILE",
                names.join(", ")
            )));
        }
    };
    let modified = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let newest = newest(folder, false, &mut 0);
    if let (Some(built), Some((source, changed))) = (modified(&component), newest)
        && changed > built
    {
        return Err(ProjectError(format!(
            "{} is older than {}: build it anew with `{build}`, or name it with --plugin to test it as it is",
            component.display(),
            source.display()
        )));
    }
    Ok(component)
}

fn is_built_from(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| SOURCES.contains(&extension)) || file.ends_with("package.json")
}

/// The source that was changed last. `is_source`: everything in the folder is.
fn newest(folder: &Path, is_source: bool, seen: &mut usize) -> Option<(PathBuf, SystemTime)> {
    let mut last: Option<(PathBuf, SystemTime)> = None;
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        *seen += 1;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if *seen > MOST_FILES || name.starts_with('.') || NOT_SOURCES.contains(&&*name) {
            continue;
        }
        let found = match entry.file_type() {
            Ok(kind) if kind.is_dir() => newest(&entry.path(), is_source || name == "src", seen),
            Ok(kind) if kind.is_file() && (is_source || is_built_from(&entry.path())) => {
                entry.metadata().and_then(|meta| meta.modified()).ok().map(|time| (entry.path(), time))
            }
            _ => None,
        };
        if let Some(found) = found
            && last.as_ref().is_none_or(|(_, time)| found.1 > *time)
        {
            last = Some(found);
        }
    }
    last
}
