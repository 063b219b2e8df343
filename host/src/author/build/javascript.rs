//! JavaScript: componentize-js, out of the project's own `node_modules`, puts the modules and an engine (SpiderMonkey) into one component. The
//! helpers that the project imports, `wharf/`, come from here.
//!
//! componentize-js loads modules by relative paths. Where a project imports npm packages, or is written in TypeScript, it has esbuild among its
//! own packages, which makes one module of all first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{BuildError, Language, Made, Missing, Options, name_of_folder, tool, world, write, write_helpers};

const DRIVER: &str = include_str!("javascript/componentize.mjs");
const COMPONENTIZE: &str = "@bytecodealliance/componentize-js";
/// componentize-js 0.23 imports this and does not say so in its `package.json`: whether npm installs it is chance.
const SHIM: &str = "@bytecodealliance/preview2-shim";
const ESBUILD: &str = "esbuild";
/// componentize-js runs on nothing older.
const OLDEST_NODE: u32 = 20;

pub(super) fn component(folder: &Path, _: &Options, report: &mut dyn FnMut(&str)) -> Result<Made, BuildError> {
    let project = Project::read(folder)?;
    let node = tools(folder)?;
    write_helpers(folder, Language::JavaScript)?;
    let work = folder.join("build");
    let driver = work.join("componentize.mjs");
    write(&driver, DRIVER.as_bytes())?;
    let run = |doing: &str, command: &str, paths: &[&Path], report: &mut dyn FnMut(&str)| {
        let mut node = std::process::Command::new(&node);
        node.arg(&driver).arg(command).args(paths).current_dir(folder);
        tool::run(doing, &mut node, report)
    };

    let bundled = work.join("bundle.js");
    let bundles = package(folder, ESBUILD).is_some();
    let entry = if bundles {
        report("bundling with esbuild");
        run("bundling the plugin", "bundle", &[&project.entry, &bundled], report)?;
        &bundled
    } else {
        &project.entry
    };
    let scanned = run("reading the plugin's modules", "scan", &[entry], report)?;
    let imports = Imports::parse(&scanned).map_err(|what| BuildError::Project { path: entry.clone(), what })?;
    imports.check(bundles).map_err(|what| BuildError::Project { path: project.entry.clone(), what })?;

    let wit = work.join("wit");
    world::write_package(&wit, &imports.interfaces, &project.entry)?;
    let component = work.join(format!("{}.wasm", project.name));
    report(&format!("putting {} and a JavaScript engine into one component", project.name));
    run("making the component", "componentize", &[entry, &wit, &component], report)?;
    let bytes = fs::read(&component).map_err(|cause| BuildError::Read { path: component, cause: cause.to_string() })?;
    Ok(Made { name: project.name, bytes, by: "componentize-js".into() })
}

/// node, where componentize-js is there as well.
fn tools(folder: &Path) -> Result<PathBuf, BuildError> {
    let mut missing = Vec::new();
    let node = tool::find("node").ok_or_else(|| "there is no `node` on PATH".to_owned()).and_then(|node| {
        let said = std::process::Command::new(&node).arg("--version").output();
        let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        match major(&said) {
            Some(major) if major >= OLDEST_NODE => Ok(node),
            _ => Err(format!("{} is {said}", node.display())),
        }
    });
    if let Err(why) = &node {
        missing.push(Missing::new(
            "node",
            format!("Node.js {OLDEST_NODE} or newer, which runs componentize-js ({why})"),
            &[
                ("on Debian 13 or newer, as root", "apt-get install nodejs npm"),
                ("anywhere", "curl -fsSL https://fnm.vercel.app/install | bash && fnm install 22"),
            ],
        ));
    }
    for (package_name, why) in
        [(COMPONENTIZE, "it puts JavaScript into a component"), (SHIM, "componentize-js imports it")]
    {
        if package(folder, package_name).is_none() {
            missing.push(Missing::new(
                package_name,
                format!("{why} (not in {})", folder.join("node_modules").display()),
                &[
                    ("where package.json names it, in the project's folder", "npm install"),
                    (
                        "where it does not",
                        "npm install --save-dev @bytecodealliance/componentize-js@0.23 @bytecodealliance/preview2-shim@0.25",
                    ),
                ],
            ));
        }
    }
    node.ok().filter(|_| missing.is_empty()).ok_or(BuildError::Missing { language: Language::JavaScript, missing })
}

/// `v22.9.0`
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// A package's folder, as node finds it from a project's folder: in its `node_modules`, or in one above.
fn package(folder: &Path, name: &str) -> Option<PathBuf> {
    let at = |folder: &Path| folder.join("node_modules").join(name);
    folder.ancestors().map(at).find(|package| package.join("package.json").is_file())
}

#[derive(Debug, PartialEq, Eq)]
struct Project {
    name: String,
    /// Its main module.
    entry: PathBuf,
}

/// What is wanted of `package.json`.
#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    main: Option<String>,
}

impl Project {
    fn read(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join("package.json");
        let text = fs::read_to_string(&path)
            .map_err(|cause| BuildError::Read { path: path.clone(), cause: cause.to_string() })?;
        let project = Self::of(&text, folder).map_err(|what| BuildError::Project { path: path.clone(), what })?;
        if project.entry.is_file() {
            return Ok(project);
        }
        let what = format!("there is no {}: name the plugin's main module in `main`", project.entry.display());
        Err(BuildError::Project { path, what })
    }

    fn of(manifest: &str, folder: &Path) -> Result<Self, String> {
        let Manifest { name, main } = serde_json::from_str(manifest).map_err(|error| error.to_string())?;
        // A package's name may have a scope: `@acme/to-acme`.
        let name = name.as_deref().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| name_of_folder(folder));
        let main = main.unwrap_or_else(|| "plugin.js".into());
        Ok(Self { name, entry: folder.join(main.trim_start_matches("./")) })
    }
}

/// What a project's modules import, as the driver tells it.
#[derive(Debug, Deserialize)]
struct Imports {
    /// Of the host, without package and version.
    interfaces: BTreeSet<String>,
    /// Whatever is no relative path.
    packages: BTreeSet<String>,
}

impl Imports {
    fn parse(told: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(told).map_err(|error| format!("its imports cannot be told: {error}"))
    }

    /// Whether everything can be had.
    fn check(&self, bundled: bool) -> Result<(), String> {
        let mut strange = self.packages.iter().filter(|name| !name.starts_with("wasi:"));
        let Some(package) = strange.next() else { return Ok(()) };
        Err(match package {
            own if own.starts_with("wharf:") => {
                format!("it imports `{own}`; interfaces of the host are `wharf:output/<name>@<version>`")
            }
            node if node.starts_with("node:") => {
                format!("it imports `{node}`: a plugin does not run in Node.js, and has none of its modules")
            }
            package if bundled => format!("it imports `{package}`, which esbuild left out"),
            package => format!(
                "it imports `{package}`. Packages of npm have to become one module with the plugin: \
                 `npm install --save-dev esbuild`, and `wharf plugin build` does that with it"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_named_by_its_package_and_begins_at_its_main_module() {
        let of = |manifest: &str| Project::of(manifest, Path::new("/p/folder")).unwrap();
        let project = of(r#"{"name": "@acme/to-acme", "main": "./src/main.js"}"#);
        assert_eq!(project, Project { name: "to-acme".into(), entry: "/p/folder/src/main.js".into() });
        assert_eq!(of("{}"), Project { name: "folder".into(), entry: "/p/folder/plugin.js".into() });
    }

    #[test]
    fn imports_that_cannot_be_had_are_told_with_what_to_do() {
        let check = |package: &str, bundled| {
            let told = format!(r#"{{"interfaces": ["log"], "packages": [{package:?}]}}"#);
            Imports::parse(told.as_bytes()).unwrap().check(bundled)
        };
        assert_eq!(check("wasi:random/random@0.2.0", false), Ok(()));
        for (package, told) in [
            ("lodash", "npm install --save-dev esbuild"),
            ("node:fs", "does not run in Node.js"),
            ("wharf:log", "wharf:output/<name>"),
        ] {
            let text = check(package, false).unwrap_err();
            assert!(text.contains(told) && text.contains(package), "{text}");
        }
    }

    #[test]
    fn a_package_is_found_as_node_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("a/b");
        fs::create_dir_all(folder.path().join("a/node_modules/x")).unwrap();
        fs::create_dir_all(&project).unwrap();
        assert_eq!(package(&project, "x"), None, "an empty folder is no package");
        fs::write(folder.path().join("a/node_modules/x/package.json"), "{}").unwrap();
        assert_eq!(package(&project, "x"), Some(folder.path().join("a/node_modules/x")));
    }

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!((major("v20.20.2"), major("v9.1"), major(""), major("20")), (Some(20), Some(9), None, None));
    }
}
