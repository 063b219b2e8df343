//! From a file, or its text, to a [`Config`].

use std::io::Read;
use std::path::Path;

use super::fault::{Fault, Faults, Place, Sink};
use super::model::Config;
use super::{top, yaml};

/// No configuration is larger; what is, is something else.
const LARGEST: u64 = 4 << 20;

impl Config {
    /// Reads and checks a file. References read this process's environment.
    ///
    /// # Errors
    /// Every fault at once. A file that cannot be read is one fault.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let whole = |message: String, help: Option<&str>| {
            Faults::one(Fault {
                file: path.display().to_string().into(),
                place: None,
                path: String::new(),
                message,
                help: help.map(str::to_owned),
            })
        };
        let mut bytes = vec![];
        let read = std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
        if let Err(cause) = read {
            let help = match cause.kind() {
                std::io::ErrorKind::NotFound => Some("name the file with -c FILE"),
                std::io::ErrorKind::PermissionDenied => Some("let the user that runs Wharf read it"),
                _ => None,
            };
            return Err(whole(format!("cannot be read: {cause}"), help));
        }
        if bytes.len() as u64 > LARGEST {
            return Err(whole("is larger than 4 MiB, so it is no configuration".into(), None));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let before = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default());
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                let sink = Sink::new(&path.display().to_string());
                sink.add_with_help(Place { line, column }, "", "not UTF-8", "save the file as UTF-8");
                return Err(sink.into_faults().unwrap_or_else(|| whole("not UTF-8".into(), None)));
            }
        };
        Self::parse(&text, path, &|name| std::env::var(name).ok())
    }

    /// Reads and checks a configuration's text. `path` names it in faults; `env` gives the value of a variable.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn parse(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let sink = Sink::new(&path.display().to_string());
        let start = Place { line: 1, column: 1 };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let config = if text.len() as u64 > LARGEST {
            sink.add(start, "", "is larger than 4 MiB, so it is no configuration");
            None
        } else {
            let root = yaml::read(text, &sink, env);
            match root {
                Some(root) if !root.is_empty() => top::read(&root, &sink),
                Some(_) => {
                    sink.add_with_help(start, "", "the file is empty", "`wharf --help` shows a first configuration");
                    None
                }
                None => None,
            }
        };
        let file = sink.file().clone();
        match (sink.into_faults(), config) {
            (Some(faults), _) => Err(faults),
            (None, Some(config)) => Ok(config),
            // Reading gives up only with a fault, but an empty stream of events has none.
            (None, None) => Err(Faults::one(Fault {
                file,
                place: Some(start),
                path: String::new(),
                message: "the file is empty".into(),
                help: Some("`wharf --help` shows a first configuration".into()),
            })),
        }
    }
}
