//! From a project's folder to a component: `wharf plugin build`.
//!
//! In: a folder, whose language shows in what is in it. Out: `dist/<name>.wasm` inside of it, a component. Each language has one file
//! here, whose `component` finds the tool chain, runs it, and gives the component's bytes; what all have in common is here.
//!
//! A tool that is missing is never only named: the error says what it is for and the command that gets it, all of them at once.

mod c;
mod error;
mod javascript;
mod python;
mod rust;
mod tool;
mod world;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use error::{BuildError, Missing, Remedy};

use crate::author::embedded;

/// A language that a plugin can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust, with the crate `wharf-plugin`.
    Rust,
    /// JavaScript, by componentize-js.
    JavaScript,
    /// Python, by componentize-py.
    Python,
    /// C, with bindings made from the WIT package.
    C,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 4] = [Self::Rust, Self::JavaScript, Self::Python, Self::C];

    /// As in `--lang`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::C => "C",
        }
    }

    /// How a project says which of its types is the output.
    fn exporting(self) -> &'static str {
        match self {
            Self::Rust => {
                "Write `wharf_plugin::export!(TheType);` once, at the end of src/lib.rs, for the type that implements `Output`"
            }
            Self::C => {
                "Define the functions that wharf_plugin.h declares, as plugin.c of `wharf plugin new NAME --lang c` does"
            }
            Self::JavaScript => {
                "Export what `defineOutput` gives as `output`, as plugin.js of `wharf plugin new NAME --lang js` does"
            }
            Self::Python => {
                "Decorate the class with `@wharf.output`, as plugin.py of `wharf plugin new NAME --lang python` does"
            }
        }
    }

    /// The file in a project's folder that tells its language.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::JavaScript => "package.json",
            Self::Python => "pyproject.toml",
            Self::C => "plugin.c",
        }
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|language| language.as_str() == text || language.title().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("there is no way to build `{text}` here; languages are {}", known()))
    }
}

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The project's language, where the folder does not tell it.
    pub language: Option<Language>,
    /// Ask tools for coloured messages.
    pub colour: bool,
}

/// A component that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// `dist/<name>.wasm` in the project's folder.
    pub component: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it was written in.
    pub language: Language,
    /// What made it, for a person: `cargo, for wasm32-unknown-unknown`.
    pub by: String,
}

/// What a language's `component` gives.
struct Made {
    /// The project's own name: the file is called so.
    name: String,
    /// A component.
    bytes: Vec<u8>,
    /// See [`Built::by`].
    by: String,
}

/// Finds out what a project is written in.
///
/// # Errors
/// [`BuildError::NoProject`] where nothing tells it, [`BuildError::Ambiguous`] where several things do.
pub fn detect(folder: &Path) -> Result<Language, BuildError> {
    let found: Vec<Language> =
        Language::ALL.into_iter().filter(|language| folder.join(language.mark()).is_file()).collect();
    match found.as_slice() {
        [language] => Ok(*language),
        [] => Err(BuildError::NoProject { folder: folder.to_owned() }),
        _ => Err(BuildError::Ambiguous { folder: folder.to_owned(), found }),
    }
}

/// Builds the project in a folder. `report` gets a line for each step, and what tools say as they say it.
///
/// # Errors
/// See [`BuildError`].
pub fn build(folder: &Path, options: &Options, report: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    let folder = fs::canonicalize(folder)
        .map_err(|cause| BuildError::Read { path: folder.to_owned(), cause: cause.to_string() })?;
    let language = options.language.map_or_else(|| detect(&folder), Ok)?;
    let made = match language {
        Language::Rust => rust::component(&folder, options, report),
        Language::JavaScript => javascript::component(&folder, options, report),
        Language::Python => python::component(&folder, options, report),
        Language::C => c::component(&folder, options, report),
    }?;
    if !exports_an_output(&made.bytes) {
        return Err(BuildError::NoOutput { name: made.name, language });
    }
    let component = folder.join("dist").join(format!("{}.wasm", made.name));
    // Anew even where it is the same: `wharf plugin test` asks whether it is younger than what it is made of.
    put(&component, &made.bytes)?;
    Ok(Built { component, bytes: made.bytes.len() as u64, language, by: made.by })
}

/// Whether a component exports what an output exports, of whichever version.
fn exports_an_output(component: &[u8]) -> bool {
    wasmparser::Parser::new(0).parse_all(component).any(|payload| match payload {
        Ok(wasmparser::Payload::ComponentExportSection(exports)) => {
            exports.into_iter().flatten().any(|export| export.name.name.starts_with("wharf:output/output@"))
        }
        _ => false,
    })
}

/// Writes a file that is made at each build. One that would not change keeps its time, so that tools that look at it do nothing.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|there| there == bytes) { Ok(()) } else { put(path, bytes) }
}

/// Writes a file and the folders above it.
fn put(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|cause| BuildError::Write { path: path.to_owned(), cause })
}

/// Bindings for C, as they lie in a project: path and content.
///
/// # Errors
/// Where the WIT package that is inside this binary is wrong.
pub(super) fn c_bindings() -> Result<Vec<(String, Vec<u8>)>, BuildError> {
    c::bindings()
}

/// A project's name where nothing but its folder tells it.
fn name_of_folder(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.is_empty() { "plugin".into() } else { name }
}

/// The files that a project in a script language imports to talk to its host: path in the project's folder, and content. None in other languages.
pub(super) fn helpers(language: Language) -> impl Iterator<Item = (String, Cow<'static, [u8]>)> {
    let embedded = match language {
        Language::JavaScript => "sdk-js/",
        Language::Python => "sdk-python/wharf/",
        Language::Rust | Language::C => "none/",
    };
    embedded::below(embedded).map(|(name, bytes)| (format!("wharf/{name}"), Cow::Borrowed(bytes)))
}

/// Writes them into a project's folder, over what is there: they fit the Wharf that writes them.
fn write_helpers(folder: &Path, language: Language) -> Result<(), BuildError> {
    helpers(language).try_for_each(|(name, bytes)| write(&folder.join(name), &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_s_language_is_told_by_what_is_in_its_folder() {
        for (file, language) in [
            ("Cargo.toml", Language::Rust),
            ("package.json", Language::JavaScript),
            ("pyproject.toml", Language::Python),
            ("plugin.c", Language::C),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(file), "").unwrap();
            assert_eq!(detect(folder.path()).unwrap(), language);
        }
    }

    #[test]
    fn a_folder_without_a_project_is_told_what_would_make_it_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = build(folder.path(), &Options::default(), &mut |_| {}).unwrap_err().to_string();
        for told in ["Cargo.toml", "package.json", "pyproject.toml", "plugin.c", "wharf plugin new"] {
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn two_languages_in_one_folder_need_a_word() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        fs::write(folder.path().join("package.json"), "").unwrap();
        let text = detect(folder.path()).unwrap_err().to_string();
        assert!(text.contains("Cargo.toml and package.json") && text.contains("--lang"), "{text}");
    }

    /// The second is the preamble of a component and nothing more.
    #[test]
    fn what_exports_no_output_is_told_from_what_does() {
        assert!(exports_an_output(crate::plugin::builtin::component("s3").unwrap()));
        assert!(!exports_an_output(b"\0asm\x0d\0\x01\0"));
        let refused = BuildError::NoOutput { name: "tally".into(), language: Language::Rust }.to_string();
        assert!(refused.contains("tally was built, and is no output") && refused.contains("wharf_plugin::export!"));
    }

    #[test]
    fn languages_are_known_by_option_and_by_name() {
        assert_eq!("js".parse(), Ok(Language::JavaScript));
        assert_eq!("JavaScript".parse(), Ok(Language::JavaScript));
        assert_eq!("C".parse(), Ok(Language::C));
        assert!("go".parse::<Language>().unwrap_err().contains("rust, js, python, c"));
    }
}
