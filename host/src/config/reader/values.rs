//! What is behind a key, by type. A value that is not as it should be is reported, and is none.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::Section;
use crate::config::fault::{choices, nearest};
use crate::config::hidden::HERE;
use crate::config::node::{Meaning, Node, Scalar, Value};
use crate::config::units::{format_duration, format_size, parse_duration, parse_size};

impl<'a> Section<'a> {
    /// The key's value. `null` is as if the key were not there; nothing at all is a fault.
    fn value(&mut self, key: &'static str) -> Option<&'a Node> {
        let entry = self.entry(key)?;
        match &entry.value.value {
            Value::Scalar(Scalar { meaning: Meaning::Null, .. }) | Value::Faulty => None,
            Value::Scalar(Scalar { meaning: Meaning::Missing, .. }) => {
                self.fault(key, "has no value", Some("write one, or leave the key out".into()));
                None
            }
            _ => Some(&entry.value),
        }
    }

    fn wrong_type(&self, key: &str, expected: &str, node: &Node, help: Option<String>) {
        let message = format!("expected {expected}, found {}", node.found());
        self.sink.push(node.at, &self.path_of(key), message, help);
    }

    fn text_of(&self, key: &str, node: &'a Node) -> Option<&'a str> {
        match &node.value {
            Value::Scalar(s) if s.meaning == Meaning::Text || s.from_environment => Some(&s.text),
            Value::Scalar(s) if !matches!(s.meaning, Meaning::Missing | Meaning::Null) => {
                self.wrong_type(key, "text", node, Some(format!("put it in quotes: \"{}\"", s.text)));
                None
            }
            Value::Faulty => None,
            _ => {
                self.wrong_type(key, "text", node, None);
                None
            }
        }
    }

    /// A text, not empty.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        let node = self.value(key)?;
        let text = self.text_of(key, node)?;
        if text.trim().is_empty() {
            self.fault(key, "is empty", None);
            return None;
        }
        self.without(char::is_control, key, node, text)
    }

    /// The path of a file that is read. What is written in a tenant's own file leads into the tenant's folder, and nowhere else.
    pub(crate) fn file(&mut self, key: &'static str) -> Option<std::path::PathBuf> {
        let text = self.text(key)?;
        match self.sink.path(&text) {
            Ok(path) => Some(path),
            Err((what, help)) => {
                self.fault(key, format!("{} {what}", self.found(key)), help);
                None
            }
        }
    }

    /// A text that no message shows. What looks like a number is one too.
    pub(crate) fn secret(&mut self, key: &'static str) -> Option<String> {
        let node = self.value(key)?;
        let Value::Scalar(scalar) = &node.value else {
            self.wrong_type(key, "text", node, None);
            return None;
        };
        if scalar.text.trim().is_empty() {
            self.fault(key, "is empty", None);
            return None;
        }
        self.without(char::is_control, key, node, &scalar.text)
    }

    /// A text of a certain form.
    pub(crate) fn text_like(
        &mut self,
        key: &'static str,
        what: &str,
        fine: impl FnOnce(&str) -> bool,
        help: &str,
    ) -> Option<String> {
        let text = self.text(key)?;
        if fine(&text) {
            return Some(text);
        }
        self.fault(key, format!("expected {what}, found {}", self.found(key)), Some(help.into()));
        None
    }

    /// The text, where it has no NUL, line break or the like: no name, path or tag has, and headers and files cannot.
    fn without(&self, refused: fn(char) -> bool, key: &str, node: &Node, text: &str) -> Option<String> {
        let Some(control) = text.chars().find(|c| refused(*c)) else { return Some(text.to_owned()) };
        let message = format!("has a control character, U+{:04X}", u32::from(control));
        self.sink.push(node.at, &self.path_of(key), message, Some("leave it out".into()));
        None
    }

    /// A list of texts, or one text alone. One that is empty is as an empty list; none where one of them is faulty.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.texts_with(key, char::is_control)
    }

    /// The same, where each text may be several words with blanks or line breaks between.
    pub(crate) fn words(&mut self, key: &'static str) -> Option<Vec<String>> {
        let texts = self.texts_with(key, |c| c.is_control() && !c.is_whitespace())?;
        Some(texts.iter().flat_map(|t| t.split_whitespace()).map(str::to_owned).collect())
    }

    fn texts_with(&mut self, key: &'static str, refused: fn(char) -> bool) -> Option<Vec<String>> {
        let node = self.value(key)?;
        let Value::List(list) = &node.value else {
            let expected = "text or a list of texts";
            return match &node.value {
                Value::Scalar(_) => match self.text_of(key, node)? {
                    text if text.trim().is_empty() => Some(vec![]),
                    text => self.without(refused, key, node, text).map(|text| vec![text]),
                },
                _ => {
                    self.wrong_type(key, expected, node, None);
                    None
                }
            };
        };
        let mut texts = vec![];
        for (n, item) in list.iter().enumerate() {
            let path = format!("{key}[{n}]");
            texts.push(match self.text_of(&path, item) {
                Some(text) if text.trim().is_empty() => {
                    self.sink.add(item.at, &self.path_of(&path), "is empty");
                    None
                }
                Some(text) => self.without(refused, &path, item, text),
                None => None,
            });
        }
        texts.into_iter().collect()
    }

    /// A scalar read by `parse`, which gives the reason where it refuses.
    fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl FnOnce(&Scalar) -> Option<Result<T, String>>,
    ) -> Option<T> {
        let node = self.value(key)?;
        let parsed = match &node.value {
            Value::Scalar(scalar) => parse(scalar),
            _ => None,
        };
        match parsed {
            Some(Ok(value)) => Some(value),
            Some(Err(reason)) => {
                let reason = match &node.value {
                    Value::Scalar(scalar) if scalar.hidden.is_shown_in(&reason, HERE, "") => String::new(),
                    _ => format!(": {reason}"),
                };
                let message = format!("{} is not {expected}{reason}", node.found());
                self.sink.add(node.at, &self.path_of(key), message);
                None
            }
            None => {
                self.wrong_type(key, expected, node, None);
                None
            }
        }
    }

    /// A size in bytes within a range.
    pub(crate) fn size(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let size = self.parsed(key, "a size such as 50MB", |scalar| match scalar.meaning {
            Meaning::Bool(_) => None,
            _ => Some(parse_size(&scalar.text)),
        })?;
        self.within(key, size, range, format_size)
    }

    /// A duration within a range.
    pub(crate) fn duration(&mut self, key: &'static str, range: RangeInclusive<Duration>) -> Option<Duration> {
        let duration = self.parsed(key, "a duration such as 10s", |scalar| match scalar.meaning {
            Meaning::Bool(_) => None,
            _ => Some(parse_duration(&scalar.text)),
        })?;
        self.within(key, duration, range, format_duration)
    }

    /// A whole number within a range.
    pub(crate) fn count(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        // A number that no integer can hold is out of every range.
        let digits = |text: &str| text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit());
        let number = self.parsed(key, "a whole number", |scalar| match scalar.as_written() {
            Meaning::Int(number) => Some(Ok(u64::try_from(number).ok())),
            Meaning::Float(_) if digits(&scalar.text) => Some(Ok(None)),
            _ => None,
        })?;
        if let Some(number) = number.filter(|n| range.contains(n)) {
            return Some(number);
        }
        let limit = if *range.end() == u64::MAX {
            format!("it must be at least {}", range.start())
        } else {
            format!("it must be {} to {}", range.start(), range.end())
        };
        self.fault(key, format!("{} is out of range; {limit}", self.found(key)), None);
        None
    }

    fn within<T: PartialOrd + Copy>(
        &self,
        key: &str,
        value: T,
        range: RangeInclusive<T>,
        show: fn(T) -> String,
    ) -> Option<T> {
        let found = if self.is_hidden(key) { self.found(key) } else { show(value) };
        if value < *range.start() {
            self.fault(key, format!("{found} is too small; the least is {}", show(*range.start())), None);
            return None;
        }
        if value > *range.end() {
            self.fault(key, format!("{found} is too large; the most is {}", show(*range.end())), None);
            return None;
        }
        Some(value)
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.parsed(key, "true or false", |scalar| match scalar.as_written() {
            Meaning::Bool(value) => Some(Ok(value)),
            _ => None,
        })
    }

    /// One of a few words.
    pub(crate) fn one_of<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let node = self.value(key)?;
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let Value::Scalar(scalar) = &node.value else {
            self.wrong_type(key, &choices(&names), node, None);
            return None;
        };
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == scalar.text) {
            return Some(*value);
        }
        let guess = nearest(&scalar.text, &names).filter(|_| scalar.hidden.is_empty());
        let guess = guess.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        let message = format!("expected {}, found {}{guess}", choices(&names), node.found());
        self.sink.add(node.at, &self.path_of(key), message);
        None
    }

    /// An address to listen on.
    pub(crate) fn address(&mut self, key: &'static str) -> Option<SocketAddr> {
        let node = self.value(key)?;
        let Value::Scalar(scalar) = &node.value else {
            self.wrong_type(key, "an address such as 127.0.0.1:9880", node, None);
            return None;
        };
        if let Ok(address) = scalar.text.parse() {
            return Some(address);
        }
        let port = scalar.text.rsplit(':').next().and_then(|p| p.parse::<u16>().ok());
        let port = port.filter(|_| scalar.hidden.is_empty());
        let help = port.map(|port| {
            format!("write 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} or [::]:{port} for all")
        });
        self.wrong_type(key, "an address such as 127.0.0.1:9880", node, help);
        None
    }
}
