//! From a file, or its text, to a [`Config`], or to a [`Draft`] of one where it has faults.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::fault::{Fault, Faults, Place, Sink};
use super::model::Config;
use super::node::{MERGE, Node, Value};
use super::{top, yaml};

/// No configuration is larger; what is, is something else.
const LARGEST: u64 = 4 << 20;

/// A configuration as far as it could be read, and what is wrong with it. What is whole in it can be checked further, so that no fault
/// hides another.
#[derive(Debug)]
pub struct Draft {
    config: Option<Config>,
    faults: Vec<Fault>,
}

impl Draft {
    /// Reads and checks a file. References read this process's environment.
    #[must_use]
    pub fn load(path: &Path) -> Self {
        match text_of(path) {
            Ok(text) => Self::parse(&text, path, &|name| std::env::var(name).ok()),
            Err(fault) => Self { config: None, faults: vec![fault] },
        }
    }

    /// Reads and checks a configuration's text. `path` names it in faults; `env` gives the value of a variable.
    #[must_use]
    pub fn parse(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::with_tree(text, path, env).0
    }

    /// The same, and the tree that it was read from.
    fn with_tree(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> (Self, Option<Node>) {
        let sink = Sink::new(&path.display().to_string());
        let start = Place { line: 1, column: 1 };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() as u64 > LARGEST {
            sink.add(start, "", "is larger than 4 MiB, so it is no configuration");
            return (Self { config: None, faults: sink.into_vec() }, None);
        }
        let root = yaml::read(text, &sink, env).filter(|root| !root.is_empty());
        let config = root.as_ref().and_then(|root| top::read(root, path.parent().unwrap_or(Path::new("")), &sink, env));
        if config.is_none() && sink.len() == 0 {
            sink.add_with_help(start, "", "the file is empty", "`wharf --help` shows a first configuration");
        }
        (Self { config, faults: sink.into_vec() }, root)
    }

    /// What could be read. It may be used only for further checks: where there is a fault it says less than the file.
    #[must_use]
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// What is wrong so far.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The whole configuration.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn finish(self) -> Result<Config, Faults> {
        match (Faults::of(self.faults), self.config) {
            (None, Some(config)) => Ok(config),
            (Some(faults), _) => Err(faults),
            // Reading gives up only with a fault.
            (None, None) => Err(Faults::one(Fault::of_file("", "could not be read".into(), None))),
        }
    }
}

impl Config {
    /// Reads and checks a file. References read this process's environment.
    ///
    /// # Errors
    /// Every fault at once. A file that cannot be read is one fault.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        Draft::load(path).finish()
    }

    /// Reads and checks a configuration's text. `path` names it in faults; `env` gives the value of a variable.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn parse(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        Draft::parse(text, path, env).finish()
    }
}

/// Where a configuration's dead letters are, and which outputs it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LettersPlace {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Names of the outputs.
    pub outputs: Vec<String>,
}

impl LettersPlace {
    /// Reads it of a file. Only what it needs has to be right: a variable that holds a secret need not be set, nor has an output to be whole.
    ///
    /// # Errors
    /// The faults of `data_dir` and of the file as a whole, such as a key that nobody knows at its top level: it may be the one that was meant.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        Self::parse(&text_of(path).map_err(Faults::one)?, path, &|name| std::env::var(name).ok())
    }

    /// The same of a configuration's text. `path` names it in faults; `env` gives the value of a variable.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn parse(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let (draft, root) = Draft::with_tree(text, path, env);
        let top = root.as_ref().map_or(&[][..], |root| entries(root));
        // What is faulty there was told of elsewhere, perhaps at an anchor.
        let is_known = !top
            .iter()
            .any(|entry| entry.key == MERGE || (entry.key == "data_dir" && matches!(entry.value.value, Value::Faulty)));
        // A fault of a tenant's file says nothing of the data directory.
        let main: &str = &path.display().to_string();
        let matters = |f: &Fault| !is_known || f.path.is_empty() || f.is_in("data_dir");
        let faults = draft.faults.into_iter().filter(|f| *f.file == *main && matters(f));
        match (Faults::of(faults.collect()), draft.config) {
            (None, Some(config)) => {
                let outputs = root.as_ref().and_then(|root| root.below("outputs"));
                let mut names: Vec<String> = outputs.into_iter().flat_map(Node::keys).map(str::to_owned).collect();
                let tenants = root.as_ref().and_then(|root| root.below("tenants"));
                for (tenant, it) in tenants.into_iter().flat_map(|all| all.keys().zip(entries(all))) {
                    let outputs = it.value.below("outputs");
                    names.extend(outputs.into_iter().flat_map(Node::keys).map(|name| format!("{tenant}/{name}")));
                }
                names.extend(config.tenants_dir.iter().flat_map(|dir| super::tenants::output_names(dir)));
                Ok(Self { data_dir: config.data_dir, outputs: names })
            }
            (Some(faults), _) => Err(faults),
            // Reading gives up only with a fault.
            (None, None) => Err(Faults::one(Fault::of_file("", "could not be read".into(), None))),
        }
    }
}

/// The keys of a map; none of what is no map.
fn entries(node: &Node) -> &[super::node::Entry] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => &[],
    }
}

/// The text of a file that a person wrote.
pub(crate) fn text_of(path: &Path) -> Result<String, Fault> {
    let file = path.display().to_string();
    let mut bytes = vec![];
    let read = std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    if let Err(cause) = read {
        let help = match cause.kind() {
            std::io::ErrorKind::NotFound => Some("name the file with -c FILE"),
            std::io::ErrorKind::PermissionDenied => Some("let the user that runs Wharf read it"),
            _ => None,
        };
        return Err(Fault::of_file(&file, format!("cannot be read: {cause}"), help));
    }
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::of_file(&file, "is larger than 4 MiB, so it is no configuration".into(), None));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let fault = Fault::of_file(&file, "not UTF-8".into(), Some("save the file as UTF-8"));
        Fault { place: Some(Place { line, column }), ..fault }
    })
}
