//! A new plugin project: `wharf plugin new`.
//!
//! In: a folder's path, whose last part is the plugin's name, and a language. Out: a project that builds, passes its own tests, and
//! delivers to an HTTP API. Its files are the embedded templates: what all languages share (`templates/common`), then what the language
//! has of its own, which goes first where both have a file; in all of them `{{name}}` is the plugin's name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::build::{BuildError, Language, c_bindings, helpers};
use super::{embedded, sdk};
use crate::plugin::builtin;

/// Longest name.
const LONGEST_NAME: usize = 64;

/// Names that cargo refuses for a package, those of Rust's own crates, and those of what a plugin in Rust depends on.
const TAKEN: &[&str] = &[
    "alloc",
    "as",
    "async",
    "await",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "plugin",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "schemars",
    "self",
    "serde",
    "serde_json",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "type",
    "unsafe",
    "use",
    "wharf",
    "wharf-plugin",
    "wharf_plugin",
    "where",
    "while",
];

/// Why a project could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// No plugin can be called so.
    #[error("a plugin cannot be called {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not, and what to write instead.
        why: String,
    },
    /// Something is there already.
    #[error("{} is there already, and is not empty: nothing was written. Choose another name, or remove it first", .0.display())]
    Exists(PathBuf),
    /// This Wharf has no template for the language.
    #[error("there is no template for {} in this Wharf", .0.title())]
    NoTemplate(Language),
    /// A file could not be written.
    #[error("writing {}: {cause}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The bindings could not be made.
    #[error(transparent)]
    Bindings(#[from] BuildError),
}

/// A project that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its folder.
    pub folder: PathBuf,
    /// The plugin's name.
    pub name: String,
    /// Its author's own file, inside the folder.
    pub begin_with: &'static str,
}

/// Makes a project. What is there already stays as it is: only a folder that is not there, or is empty, becomes one.
///
/// # Errors
/// See [`NewError`]. Nothing is left behind.
pub fn create(folder: &Path, language: Language) -> Result<Created, NewError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    check_name(&name)?;
    if folder.symlink_metadata().is_ok() && !is_empty_folder(folder) {
        return Err(NewError::Exists(folder.to_owned()));
    }
    let files = files(&name, language)?;

    // Made beside it and moved at the end, so that a full disk leaves no half of a project.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = parent.join(format!(".{name}.new-{}", std::process::id()));
    let done = write_all(&unfinished, &files).and_then(|()| {
        fs::rename(&unfinished, folder).map_err(|cause| NewError::Write { path: folder.to_owned(), cause })
    });
    if let Err(error) = done {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    Ok(Created { folder: folder.to_owned(), name, begin_with: begin_with(language) })
}

fn begin_with(language: Language) -> &'static str {
    match language {
        Language::Rust => "src/lib.rs",
        Language::JavaScript => "plugin.js",
        Language::Python => "plugin.py",
        Language::C => "plugin.c",
    }
}

/// Whether a plugin may be called so. WIT has lower-case letters, digits, `_` and `-`; a name that begins with a letter is also one that
/// every tool chain takes for a package.
fn check_name(name: &str) -> Result<(), NewError> {
    let wrong = |why: &str| Err(NewError::Name { name: name.to_owned(), why: why.to_owned() });
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() {
        return wrong("write a name, such as to-acme");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(letters) {
        return wrong(
            "a name begins with a lower-case letter, and has lower-case letters, digits, - and _, such as to-acme",
        );
    }
    if name.len() > LONGEST_NAME {
        return wrong(&format!("it is longer than {LONGEST_NAME} letters"));
    }
    if builtin::names().contains(&name) {
        return wrong("that is a built-in plugin, and `plugin:` in a configuration would mean that one");
    }
    if TAKEN.contains(&name) {
        return wrong("the tool chain keeps that name for itself: add something, such as to-acme");
    }
    Ok(())
}

fn is_empty_folder(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// Every file of a project: path inside its folder, and content.
fn files(name: &str, language: Language) -> Result<BTreeMap<String, Cow<'static, [u8]>>, NewError> {
    let own = format!("templates/{}/", language.as_str());
    if embedded::below(&own).next().is_none() {
        return Err(NewError::NoTemplate(language));
    }
    let templates = embedded::below("templates/common/").chain(embedded::below(&own));
    let mut files: BTreeMap<String, Cow<'static, [u8]>> =
        templates.map(|(path, bytes)| (real_name(path), filled_in(bytes, name))).collect();
    match language {
        Language::Rust => files.extend(sdk::files().chain(sdk::lock())),
        Language::C => {
            let bindings = c_bindings()?;
            files.extend(bindings.into_iter().map(|(path, bytes)| (path, Cow::Owned(bytes))));
        }
        Language::JavaScript | Language::Python => files.extend(helpers(language)),
    }
    Ok(files)
}

/// Files that would mean something in the repository itself have another name there.
fn real_name(path: &str) -> String {
    match path.strip_suffix("gitignore") {
        Some(before) if before.is_empty() || before.ends_with('/') => format!("{before}.gitignore"),
        _ => path.to_owned(),
    }
}

fn filled_in(bytes: &'static [u8], name: &str) -> Cow<'static, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains("{{name}}") => Cow::Owned(text.replace("{{name}}", name).into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

pub(super) fn write_all(folder: &Path, files: &BTreeMap<String, Cow<'static, [u8]>>) -> Result<(), NewError> {
    for (name, bytes) in files {
        let path = folder.join(name);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
        written.map_err(|cause| NewError::Write { path: path.clone(), cause })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_wit_and_every_tool_chain_take() {
        for name in ["to-acme", "acme", "a", "a1", "http_json"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for (name, told) in [
            ("", "write a name"),
            ("To-Acme", "lower-case letter"),
            ("1st", "begins with a lower-case letter"),
            ("-x", "begins with"),
            ("a b", "has lower-case letters, digits"),
            ("böse", "has lower-case letters, digits"),
            ("s3", "built-in plugin"),
            ("cloudwatch_logs", "built-in plugin"),
            ("serde", "keeps that name"),
            ("fn", "keeps that name"),
        ] {
            let text = check_name(name).unwrap_err().to_string();
            assert!(text.contains(told), "{name}: {text}");
        }
        assert!(check_name(&"a".repeat(65)).unwrap_err().to_string().contains("longer than 64"));
    }

    #[test]
    fn what_is_there_already_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("to-acme");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mine.txt"), "mine").unwrap();
        let text = create(&folder, Language::Rust).unwrap_err().to_string();
        assert!(text.contains("is there already"), "{text}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn an_empty_folder_becomes_a_project() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("to-acme");
        fs::create_dir(&folder).unwrap();
        let created = create(&folder, Language::Rust).unwrap();
        assert!(created.folder.join(created.begin_with).is_file());
    }

    #[test]
    fn a_project_has_everything_that_building_and_trying_it_takes() {
        for (language, own) in [
            (
                Language::Rust,
                &["Cargo.toml", "Cargo.lock", "src/lib.rs", "wharf-plugin/Cargo.toml", "wharf-plugin/wit/output.wit"][..],
            ),
            (Language::C, &["plugin.c", "bindings/wharf.h", "bindings/wharf_plugin.h"][..]),
            (Language::JavaScript, &["plugin.js", "package.json", "wharf/index.js", "wharf/http.js"][..]),
            (Language::Python, &["plugin.py", "pyproject.toml", "wharf/__init__.py", "wharf/http.py"][..]),
        ] {
            let place = tempfile::tempdir().unwrap();
            let created = create(&place.path().join("to-acme"), language).unwrap();
            for file in own.iter().chain(&["README.md", ".gitignore", "wharf.yaml", "tests/delivers.yaml"]) {
                assert!(created.folder.join(file).is_file(), "{language:?}: {file}");
            }
            assert!(created.folder.join(created.begin_with).is_file(), "{language:?}");
        }
    }

    #[test]
    fn no_placeholder_is_left_in_a_project() {
        for language in [Language::Rust, Language::C] {
            for (path, bytes) in files("to-acme", language).unwrap() {
                assert!(!String::from_utf8_lossy(&bytes).contains("{{name}}"), "{language:?}: {path}");
            }
        }
    }

    /// What an author of a plugin in Rust has to write: no blank lines, no comments.
    #[test]
    fn the_author_s_own_code_in_rust_is_under_sixty_lines() {
        let files = files("to-acme", Language::Rust).unwrap();
        let text = std::str::from_utf8(&files["src/lib.rs"]).unwrap();
        let code = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let lines = code.count();
        assert!((1..60).contains(&lines), "{lines}");
    }
}
