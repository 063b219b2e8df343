//! Typed reading of a map, key by key. What is wrong goes to the [`Sink`], and reading goes on.
//!
//! A [`Section`] notes each key that it was asked for; [`Section::finish`] reports the keys that nobody asked for, and those that must be
//! there and are not. `values` reads what is behind a key.

mod values;

use super::fault::{Place, Sink, nearest};
use super::hidden::Hidden;
use super::node::{Entry, MERGE, Meaning, Node, Scalar, Value};

/// Names that other shippers use, and where the same thing is here.
pub(crate) type Elsewhere = &'static [(&'static str, &'static str)];

/// A map of the file that is being read.
pub(crate) struct Section<'a> {
    sink: &'a Sink,
    path: String,
    at: Place,
    entries: &'a [Entry],
    /// Something could not be merged into it.
    incomplete: bool,
    asked: Vec<&'static str>,
    /// Keys that must be there and are not, with remedies.
    missing: Vec<(&'static str, String)>,
}

impl<'a> Section<'a> {
    /// The map in `node`; a value that was left out is an empty map. `at` is the place of its key.
    pub(crate) fn of(sink: &'a Sink, path: String, at: Place, node: &'a Node) -> Option<Self> {
        let entries: &[Entry] = match &node.value {
            Value::Map(entries) => entries,
            Value::Scalar(Scalar { meaning: Meaning::Missing | Meaning::Null, .. }) => &[],
            Value::Faulty => return None,
            _ => {
                sink.add(node.at, &path, format!("expected a map of keys, found {}", node.found()));
                return None;
            }
        };
        let (entries, incomplete) = match entries.split_last() {
            Some((last, rest)) if last.key == MERGE => (rest, true),
            _ => (entries, false),
        };
        Some(Self { sink, path, at, entries, incomplete, asked: vec![], missing: vec![] })
    }

    pub(crate) fn sink(&self) -> &'a Sink {
        self.sink
    }
    pub(crate) fn at(&self) -> Place {
        self.at
    }
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// Whether it has no keys, and would have none whatever could be merged into it.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.incomplete
    }

    /// Whether it may have more keys than can be seen: something could not be merged into it.
    pub(crate) fn is_open(&self) -> bool {
        self.incomplete
    }

    /// `section.key`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where a key is, or the section where it is not.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.entries.iter().find(|e| e.key == key).map_or(self.at, |e| e.value.at)
    }

    /// A fault of one key's value.
    pub(crate) fn fault(&self, key: &str, message: impl Into<String>, help: Option<String>) {
        self.sink.push(self.place_of(key), &self.path_of(key), message.into(), help);
    }

    /// The key's entry, whatever it holds.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.asked.push(key);
        self.entries.iter().find(|e| e.key == key)
    }

    /// Whether the key is there with something behind it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|e| e.key == key)
    }

    fn node(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// Whether something is written for the key, be it faulty.
    pub(crate) fn is_written(&self, key: &str) -> bool {
        self.node(key).is_some_and(|node| !matches!(&node.value, Value::Scalar(s) if s.meaning == Meaning::Null))
    }

    /// What is written for the key, in words, without what came from the environment.
    pub(crate) fn found(&self, key: &str) -> String {
        self.node(key).map(Node::found).unwrap_or_default()
    }

    /// Whether some of what is written for the key came from the environment.
    pub(crate) fn is_hidden(&self, key: &str) -> bool {
        self.node(key).is_some_and(Node::is_hidden)
    }

    /// What of the key's text, or of a list of texts, came from the environment.
    pub(crate) fn hidden(&self, key: &str) -> Hidden {
        let of = |node: &Node| match &node.value {
            Value::Scalar(scalar) => scalar.hidden.clone(),
            _ => Hidden::default(),
        };
        match self.node(key) {
            Some(Node { value: Value::List(items), .. }) => {
                items.iter().fold(Hidden::default(), |all, item| all.and(&of(item)))
            }
            Some(node) => of(node),
            None => Hidden::default(),
        }
    }

    /// Notes a key that must be there. Where it is not, [`finish`](Self::finish) reports it, unless an unknown key seems to be it.
    pub(crate) fn missing(&mut self, key: &'static str, help: &str) {
        // `null` is as if the key were not there.
        if !self.is_written(key) && !self.incomplete {
            self.missing.push((key, help.to_owned()));
        }
    }

    /// Reports what was noted as missing, for readers that end before [`finish`](Self::finish).
    pub(crate) fn report_missing(&mut self) {
        for (key, help) in self.missing.drain(..) {
            self.sink.add_with_help(self.at, &self.path, format!("the key {key:?} is missing"), help);
        }
    }

    /// A map inside this one; none where it is not there.
    pub(crate) fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let path = self.path_of(key);
        let entry = self.entry(key)?;
        Section::of(self.sink, path, entry.key_at, &entry.value)
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self, elsewhere: Elsewhere) {
        self.unknown(elsewhere, None, |_| false);
    }

    /// The same, with a remedy for keys that are like no known one. Gives how many there were.
    pub(crate) fn finish_with(self, elsewhere: Elsewhere, otherwise: &str) -> usize {
        self.unknown(elsewhere, Some(otherwise), |_| false)
    }

    /// The same, but for keys that may be anything.
    pub(crate) fn finish_but(self, elsewhere: Elsewhere, allowed: fn(&str) -> bool) {
        self.unknown(elsewhere, None, allowed);
    }

    fn unknown(mut self, elsewhere: Elsewhere, otherwise: Option<&str>, allowed: fn(&str) -> bool) -> usize {
        let mut unknown = 0;
        for entry in self.entries {
            if self.asked.contains(&entry.key.as_str()) || allowed(&entry.key) {
                continue;
            }
            unknown += 1;
            let mut message = format!("unknown key {:?}", entry.key);
            let mut help = None;
            let same = |a: &str| a.eq_ignore_ascii_case(&entry.key);
            if let Some((_, place)) = elsewhere.iter().find(|(name, _)| same(name)) {
                message.push_str(&format!("; {place}"));
                self.missing.retain(|(key, _)| !place.starts_with(&format!("did you mean {key:?}")));
            } else if let Some(name) = nearest(&entry.key, &self.asked) {
                message.push_str(&format!("; did you mean {name:?}?"));
                self.missing.retain(|(key, _)| *key != name);
            } else {
                let known = format!("known keys: {}", self.asked.join(", "));
                help = Some(match otherwise {
                    Some(otherwise) => format!("{otherwise}; {known}"),
                    None => known,
                });
            }
            self.sink.push(entry.key_at, &self.path, message, help);
        }
        self.report_missing();
        unknown
    }
}
