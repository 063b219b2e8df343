//! Python: componentize-py puts the project's modules and an interpreter (CPython) into one component. It is found in the project's own
//! virtual environment, the active one, or on `PATH`. The helpers that the project imports, `wharf/`, come from here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BuildError, Language, Made, Missing, Options, name_of_folder, tool, world, write, write_helpers};

const SCAN: &str = include_str!("python/imports.py");

pub(super) fn component(folder: &Path, _: &Options, report: &mut dyn FnMut(&str)) -> Result<Made, BuildError> {
    let project = Project::read(folder)?;
    let tools = Tools::find(folder)?;
    write_helpers(folder, Language::Python)?;
    let work = folder.join("build");
    let scan = work.join("imports.py");
    write(&scan, SCAN.as_bytes())?;

    let mut python = tools.command(&tools.python, folder);
    python.arg(&scan).arg(folder).arg(&project.module);
    let used = tool::run("reading the plugin's modules", &mut python, report)?;
    let used: BTreeSet<String> = String::from_utf8_lossy(&used).lines().map(str::to_owned).collect();
    let wit = work.join("wit");
    world::write_package(&wit, &used, &project.entry)?;

    report(&format!("putting {} and a Python interpreter into one component", project.name));
    let component = work.join(format!("{}.wasm", project.name));
    let mut componentize = tools.command(&tools.componentize, folder);
    componentize
        .args(["--quiet", "--world", "plugin", "--wit-path"])
        .arg(&wit)
        .args(["componentize", &project.module, "--python-path", ".", "--output"])
        .arg(&component);
    // What it prints where a module fails to load is on its standard output.
    let said = tool::run("making the component", &mut componentize, report)?;
    String::from_utf8_lossy(&said).lines().for_each(&mut *report);
    let bytes = fs::read(&component).map_err(|cause| BuildError::Read { path: component, cause: cause.to_string() })?;
    Ok(Made { name: project.name, bytes, by: "componentize-py".into() })
}

/// What builds.
#[derive(Debug, PartialEq, Eq)]
struct Tools {
    componentize: PathBuf,
    python: PathBuf,
    /// The virtual environment that componentize-py is in: its packages can be imported.
    environment: Option<PathBuf>,
}

impl Tools {
    fn find(folder: &Path) -> Result<Self, BuildError> {
        let active = std::env::var_os("VIRTUAL_ENV").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(tools) = Self::in_environments([Some(folder.join(".venv")), active]) {
            return Ok(tools);
        }
        let python = tool::find("python3");
        match (tool::find("componentize-py"), &python) {
            (Some(componentize), Some(python)) => Ok(Self { componentize, python: python.clone(), environment: None }),
            _ => Err(missing(python.is_some())),
        }
    }

    fn in_environments(environments: impl IntoIterator<Item = Option<PathBuf>>) -> Option<Self> {
        environments.into_iter().flatten().find_map(|environment| {
            let [componentize, python] = ["componentize-py", "python3"].map(|name| environment.join("bin").join(name));
            let there = componentize.is_file() && python.exists();
            there.then_some(Self { componentize, python, environment: Some(environment) })
        })
    }

    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1");
        if let Some(environment) = &self.environment {
            command.env("VIRTUAL_ENV", environment);
        }
        command
    }
}

fn missing(has_python: bool) -> BuildError {
    let mut missing = Vec::new();
    if !has_python {
        missing.push(Missing::new(
            "python3",
            "Python 3.10 or newer, which runs componentize-py",
            &[("on Debian, as root", "apt-get install python3 python3-venv")],
        ));
    }
    missing.push(Missing::new(
        "componentize-py",
        "it puts Python into a component (looked for in .venv, $VIRTUAL_ENV and PATH)",
        &[
            ("in the project's folder", "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1"),
            ("for all projects", "pipx install componentize-py==0.25.1"),
        ],
    ));
    BuildError::Missing { language: Language::Python, missing }
}

#[derive(Debug, PartialEq, Eq)]
struct Project {
    name: String,
    /// Its main module's name.
    module: String,
    /// And file.
    entry: PathBuf,
}

impl Project {
    fn read(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join("pyproject.toml");
        // Without one, where --lang says so: a folder with a plugin.py.
        let text = if path.exists() {
            fs::read_to_string(&path)
                .map_err(|cause| BuildError::Read { path: path.clone(), cause: cause.to_string() })?
        } else {
            String::new()
        };
        let name = value(&text, "project", "name").unwrap_or_else(|| name_of_folder(folder));
        let module = value(&text, "tool.wharf", "module").unwrap_or_else(|| "plugin".into());
        let entry = folder.join(module.replace('.', "/")).with_extension("py");
        if entry.is_file() {
            return Ok(Self { name, module, entry });
        }
        let what = format!(
            "there is no {}: the plugin's main module is `plugin`, or what `module` in [tool.wharf] names",
            entry.display()
        );
        Err(BuildError::Project { path, what })
    }
}

/// The text that a key has in a table of a TOML document that a person wrote: `key = "text"` on a line of its own.
fn value(toml: &str, table: &str, key: &str) -> Option<String> {
    let mut inside = false;
    toml.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            inside = line.strip_prefix('[').and_then(|line| line.split(']').next()).map(str::trim) == Some(table);
        }
        let rest = line.strip_prefix(key).filter(|_| inside)?.trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        rest.get(1..)?.split(quote).next().filter(|text| !text.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_named_in_its_pyproject() {
        let toml = "# name = \"no\"\n[build-system]\nname = \"no\"\n[project]\nversion = \"1\"\nname = 'to-acme' # ours\n\n[tool.wharf]\nmodule=\"acme.output\"\n";
        assert_eq!(value(toml, "project", "name").as_deref(), Some("to-acme"));
        assert_eq!(value(toml, "tool.wharf", "module").as_deref(), Some("acme.output"));
        assert_eq!(value(toml, "project", "module"), None);
    }

    #[test]
    fn the_main_module_is_plugin_unless_the_project_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Project::read(folder.path());
        let text = read().unwrap_err().to_string();
        assert!(text.contains("plugin.py") && text.contains("[tool.wharf]"), "{text}");
        fs::write(folder.path().join("plugin.py"), "").unwrap();
        assert_eq!(read().unwrap().module, "plugin");
        fs::create_dir(folder.path().join("acme")).unwrap();
        fs::write(folder.path().join("acme/output.py"), "").unwrap();
        fs::write(
            folder.path().join("pyproject.toml"),
            "[project]\nname = \"x\"\n[tool.wharf]\nmodule = \"acme.output\"\n",
        )
        .unwrap();
        let entry = folder.path().join("acme/output.py");
        assert_eq!(read().unwrap(), Project { name: "x".into(), module: "acme.output".into(), entry });
    }

    #[test]
    fn the_first_environment_that_has_the_tool_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, good] = ["empty", "good"].map(|name| folder.path().join(name));
        for name in ["componentize-py", "python3"] {
            fs::create_dir_all(good.join("bin")).unwrap();
            fs::write(good.join("bin").join(name), "").unwrap();
        }
        let found = Tools::in_environments([Some(empty.clone()), None, Some(good.clone())]).unwrap();
        assert_eq!(found.environment, Some(good));
        assert_eq!(Tools::in_environments([Some(empty)]), None);
    }

    #[test]
    fn what_is_missing_is_told_with_exact_commands() {
        let text = missing(false).to_string();
        assert!(text.contains("apt-get install python3") && text.contains("pip install componentize-py=="), "{text}");
        assert!(!missing(true).to_string().contains("apt-get install python3 "), "{text}");
    }
}
