//! Why a project could not be built, for the person at the desk.

use std::fmt;
use std::path::PathBuf;

use super::Language;

/// Why a project could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing in the folder tells a language.
    #[error(
        "{} holds no plugin project: there is none of {}. `wharf plugin new NAME` makes one",
        .folder.display(),
        listed(Language::ALL.map(|language| format!("{} ({})", language.mark(), language.title())))
    )]
    NoProject {
        /// The folder.
        folder: PathBuf,
    },
    /// Several languages.
    #[error(
        "{} holds {}, so it could be a project of {}: say which with --lang",
        .folder.display(),
        listed(.found.iter().map(|language| language.mark().to_owned())),
        listed(.found.iter().map(|language| language.title().to_owned()))
    )]
    Ambiguous {
        /// The folder.
        folder: PathBuf,
        /// What it could be.
        found: Vec<Language>,
    },
    /// A file of the project cannot be read.
    #[error("reading {}: {cause}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The project's own files say something that cannot be built.
    #[error("{}: {what}", .path.display())]
    Project {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// What builds this language is not on this machine.
    #[error("building a plugin in {} needs what is not here:\n{}", .language.title(), .missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Missing {
        /// The project's language.
        language: Language,
        /// Everything that is missing.
        missing: Vec<Missing>,
    },
    /// A tool could not be started.
    #[error("starting `{command}`: {cause}")]
    Start {
        /// Its command line.
        command: String,
        /// Why.
        cause: std::io::Error,
    },
    /// A tool failed. What it said went to the report.
    #[error("{what} failed: `{command}` ended with {status}; its messages are above")]
    Failed {
        /// What it was run for.
        what: String,
        /// Its command line.
        command: String,
        /// How it ended.
        status: String,
    },
    /// What the tools made is no component, and cannot become one.
    #[error("making a component of {what}: {cause}")]
    Component {
        /// What was to become one.
        what: String,
        /// Why not, and what to do.
        cause: String,
    },
    /// A component that is no output.
    #[error("{name} was built, and is no output: it exports no wharf:output/output. {}", .language.exporting())]
    NoOutput {
        /// The component's name.
        name: String,
        /// The project's language.
        language: Language,
    },
    /// A file could not be written.
    #[error("writing {}: {cause}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

/// A tool that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name: `cargo`.
    pub tool: String,
    /// What it is for, and where it was looked for.
    pub why: String,
    /// Ways to get it, the simplest first. One is enough.
    pub remedies: Vec<Remedy>,
}

/// One way to get a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// For whom: `with rustup`, `on Debian, as root`.
    pub when: String,
    /// The exact command.
    pub command: String,
}

impl Missing {
    /// With ways to get it: when, and the command.
    pub(super) fn new(tool: &str, why: impl Into<String>, remedies: &[(&str, &str)]) -> Self {
        let remedies =
            remedies.iter().map(|(when, command)| Remedy { when: (*when).into(), command: (*command).into() });
        Self { tool: tool.into(), why: why.into(), remedies: remedies.collect() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  {}: {}", self.tool, self.why)?;
        for (number, Remedy { when, command }) in self.remedies.iter().enumerate() {
            let or = if number == 0 { "" } else { "or " };
            write!(f, "\n    {or}{when}:\n        {command}")?;
        }
        Ok(())
    }
}

/// `a, b and c`.
fn listed(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    match items.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_every_way_to_get_it() {
        let error = BuildError::Missing {
            language: Language::C,
            missing: vec![
                Missing::new(
                    "clang",
                    "it compiles",
                    &[("on Debian", "apt-get install clang"), ("anywhere", "pip install ziglang")],
                ),
                Missing::new("wasm-ld", "it links", &[("on Debian", "apt-get install lld")]),
            ],
        };
        assert_eq!(
            error.to_string(),
            "building a plugin in C needs what is not here:\n\
             \n  clang: it compiles\n    on Debian:\n        apt-get install clang\n    or anywhere:\n        pip install ziglang\
             \n\n  wasm-ld: it links\n    on Debian:\n        apt-get install lld"
        );
    }
}
