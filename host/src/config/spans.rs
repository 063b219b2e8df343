//! Where each part of a plugin's `config` is written, so that faults which only the plugin can tell have a place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fault::{Fault, Place};
use super::hidden::{ELSEWHERE, HERE, Hidden};
use super::model::{OutputConfig, output_section};
use super::node::{Meaning, Node, Value};

/// The places of an output's `plugin` and of all that is in its `config`, by JSON Pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginConfigSpans {
    file: Arc<str>,
    output: Arc<str>,
    plugin: Place,
    /// What of `plugin` came from the environment.
    plugin_hidden: Hidden,
    /// Where `sha256` is, or would be, and what of it came from the environment.
    pin: Place,
    pin_hidden: Hidden,
    parts: BTreeMap<String, Part>,
    /// What is written but could not be read, and so is missing in the JSON.
    faulty: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    key: Place,
    value: Place,
    /// What is there, for a message; without what came from the environment.
    found: String,
    /// A number, `true` or `false` as it is written: JSON does not keep `007` or `1e3`.
    unquoted: Option<String>,
    /// A scalar's text, where there was a reference in it.
    from_environment: Option<String>,
    /// What of it came from the environment.
    hidden: Hidden,
}

impl PluginConfigSpans {
    pub(crate) fn new(file: Arc<str>, output: &str, plugin: Place, plugin_hidden: Hidden) -> Self {
        let (pin, pin_hidden) = (plugin, Hidden::default());
        let (parts, faulty) = (BTreeMap::new(), BTreeSet::new());
        Self { file, output: output.into(), plugin, plugin_hidden, pin, pin_hidden, parts, faulty }
    }

    /// Notes where the component's digest is.
    pub(crate) fn note_pin(&mut self, at: Place, hidden: Hidden) {
        (self.pin, self.pin_hidden) = (at, hidden);
    }

    /// Notes what of the folders in which `plugin` is looked for came from the environment: with it they have a part in its name.
    pub(crate) fn note_dirs(&mut self, hidden: &Hidden) {
        self.plugin_hidden = std::mem::take(&mut self.plugin_hidden).and(hidden);
    }

    /// What of the component's digest came from the environment.
    pub(crate) fn pin_hidden(&self) -> &Hidden {
        &self.pin_hidden
    }

    pub(crate) fn note(&mut self, pointer: &str, key: Place, node: &Node) {
        let unquoted = match &node.value {
            Value::Scalar(s) if matches!(s.meaning, Meaning::Bool(_) | Meaning::Int(_) | Meaning::Float(_)) => {
                (!s.from_environment).then(|| s.text.clone())
            }
            _ => None,
        };
        let (from_environment, hidden) = match &node.value {
            Value::Scalar(s) if s.from_environment => (Some(s.text.clone()), s.hidden.clone()),
            _ => (None, Hidden::default()),
        };
        let part = Part { key, value: node.at, found: node.found(), unquoted, from_environment, hidden };
        self.parts.insert(pointer.to_owned(), part);
    }

    /// Notes that there is no `config`; what would be there has the place of the output.
    pub(crate) fn note_missing(&mut self, at: Place) {
        let found = "nothing".into();
        let part =
            Part { key: at, value: at, found, unquoted: None, from_environment: None, hidden: Hidden::default() };
        self.parts.insert(String::new(), part);
    }

    /// Notes that a value could not be read and was reported. "" is the whole `config`.
    pub(crate) fn note_faulty(&mut self, pointer: &str) {
        self.faulty.insert(pointer.to_owned());
    }

    /// What was noted as faulty.
    pub(crate) fn faulty(&self) -> &BTreeSet<String> {
        &self.faulty
    }

    /// A scalar's text, where there was a reference in it.
    pub(crate) fn variable_at(&self, pointer: &str) -> Option<&str> {
        self.parts.get(pointer)?.from_environment.as_deref()
    }

    /// Whether some of what is there came from the environment.
    pub(crate) fn is_hidden(&self, pointer: &str) -> bool {
        self.parts.get(pointer).is_some_and(|part| !part.hidden.is_empty())
    }

    /// What of `plugin` came from the environment.
    pub(crate) fn plugin_hidden(&self) -> &Hidden {
        &self.plugin_hidden
    }

    /// The first value from the environment of which a text shows something. The text is about what is at `pointer`, or about nothing in
    /// particular. Words of `known` may be in it.
    pub(crate) fn shown_in(&self, text: &str, pointer: Option<&str>, known: &str) -> Option<&Hidden> {
        let mut hidden = self.parts.iter().filter(|(_, part)| !part.hidden.is_empty());
        let found = hidden.find(|(at, part)| {
            let least = if pointer.is_some_and(|pointer| is_at_or_below(at, pointer)) { HERE } else { ELSEWHERE };
            part.hidden.is_shown_in(text, least, known)
        });
        found.map(|(_, part)| &part.hidden)
    }

    /// What is there, in words: `the number 5`.
    pub(crate) fn found(&self, pointer: &str) -> String {
        self.parts.get(pointer).map_or_else(|| "nothing".to_owned(), |part| part.found.clone())
    }

    /// A value that is no text but could be one in quotes.
    pub(crate) fn unquoted(&self, pointer: &str) -> Option<&str> {
        self.parts.get(pointer)?.unquoted.as_deref()
    }

    /// Where the value is; where it is not written, its nearest parent.
    pub(crate) fn place(&self, pointer: &str) -> Option<Place> {
        self.part(pointer).map(|part| part.value)
    }

    /// Where the key is.
    pub(crate) fn key_place(&self, pointer: &str) -> Option<Place> {
        self.part(pointer).map(|part| part.key)
    }

    fn part(&self, pointer: &str) -> Option<&Part> {
        let mut pointer = pointer;
        loop {
            match self.parts.get(pointer) {
                Some(part) => return Some(part),
                None if pointer.is_empty() => return None,
                None => pointer = pointer.rsplit_once('/').map_or("", |(parent, _)| parent),
            }
        }
    }

    pub(crate) fn fault(&self, place: Option<Place>, pointer: &str, message: String, help: Option<String>) -> Fault {
        let path = format!("{}.config{}", output_section(&self.output), dotted(pointer));
        Fault { file: self.file.clone(), place, path, message, help }
    }
}

/// A fault of the component itself: it cannot be found, or used.
#[must_use]
pub fn fault_at_plugin(output: &OutputConfig, message: impl Into<String>, help: Option<String>) -> Fault {
    let spans = &output.config_spans;
    let path = format!("{}.plugin", output.section());
    Fault { file: spans.file.clone(), place: Some(spans.plugin), path, message: message.into(), help }
}

/// A fault of the component's digest: it is not the one that is written.
#[must_use]
pub fn fault_at_pin(output: &OutputConfig, message: impl Into<String>, help: Option<String>) -> Fault {
    let spans = &output.config_spans;
    let path = format!("{}.sha256", output.section());
    Fault { file: spans.file.clone(), place: Some(spans.pin), path, message: message.into(), help }
}

/// Whether a pointer is another one, or goes further from there.
pub(crate) fn is_at_or_below(pointer: &str, above: &str) -> bool {
    pointer.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `pointer` with one more step.
pub(crate) fn pointer_to(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// `/tags/0/a~1b` as `.tags[0].a/b`.
fn dotted(pointer: &str) -> String {
    pointer.split('/').skip(1).fold(String::new(), |mut path, step| {
        if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            path.push_str(&format!("[{step}]"));
        } else {
            path.push('.');
            path.push_str(&step.replace("~1", "/").replace("~0", "~"));
        }
        path
    })
}
