//! One line, and the object that it is.

use std::borrow::Cow;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::time;
use crate::config::{ParseConfig, ParseFormat};
use crate::record::encode::escape_lossy;
use crate::source::http::Scanner;

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// It is an object, with this time where one was asked for and is there.
    Object(Option<i64>),
    /// It is an object whose time cannot be read.
    Timeless,
    /// It is not what it should be.
    Text,
}

/// Parses lines.
pub(super) struct Parser<'a> {
    config: &'a ParseConfig,
    /// Of a regular expression: the groups that have names, and where they were found.
    groups: Vec<(usize, &'a str)>,
    places: Option<regex::bytes::CaptureLocations>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(config: &'a ParseConfig) -> Self {
        let (groups, places) = match &config.format {
            ParseFormat::Regex(regex) => {
                let named = regex.capture_names().enumerate().filter_map(|(number, name)| Some((number, name?)));
                (named.collect(), Some(regex.capture_locations()))
            }
            _ => (Vec::new(), None),
        };
        Self { config, groups, places }
    }

    /// Parses a line; the object is in `out`.
    pub(super) fn parse(&mut self, line: &[u8], out: &mut Vec<u8>) -> Parsed {
        match &self.config.format {
            ParseFormat::Json => self.json(line, out),
            ParseFormat::Regex(regex) => {
                let Some(places) = &mut self.places else { return Parsed::Text };
                if regex.captures_read(places, line).is_none() {
                    return Parsed::Text;
                }
                let mut object = Object::new(self.config, out);
                for (number, name) in &self.groups {
                    if let Some(value) = places.get(*number).and_then(|(begin, end)| line.get(begin..end)) {
                        object.text(name.as_bytes(), value);
                    }
                }
                object.finish()
            }
            ParseFormat::Logfmt => logfmt(line, Object::new(self.config, out)),
            ParseFormat::Cri => cri(line, Object::new(self.config, out)),
        }
    }

    /// As it is written; without the key of the time, where that is asked for.
    fn json(&self, line: &[u8], out: &mut Vec<u8>) -> Parsed {
        let Ok(text) = simdutf8::basic::from_utf8(line) else { return Parsed::Text };
        let mut scanner = Scanner::new(line);
        let Ok(object) = scanner.object() else { return Parsed::Text };
        if scanner.peek().is_some() {
            return Parsed::Text;
        }
        let Some(key) = &self.config.time_key else {
            out.extend_from_slice(object);
            return Parsed::Object(None);
        };
        // Most lines have no such key: then nothing is taken apart.
        let Ok(fields) = serde_json::Deserializer::from_str(text).deserialize_map(Fields) else { return Parsed::Text };
        let Some((_, value)) = fields.iter().find(|(name, _)| name == key) else {
            out.extend_from_slice(object);
            return Parsed::Object(None);
        };
        let unquoted = serde_json::from_str::<Cow<'_, str>>(value.get()).unwrap_or(Cow::Borrowed(value.get()));
        let time_ns = time::read(&self.config.time_format, &self.config.time_zone, &unquoted);
        if time_ns.is_none() || self.config.keep_time_key {
            out.extend_from_slice(object);
            return time_ns.map_or(Parsed::Timeless, |time_ns| Parsed::Object(Some(time_ns)));
        }
        out.push(b'{');
        for (name, value) in fields.iter().filter(|(name, _)| name != key) {
            if out.len() > 1 {
                out.push(b',');
            }
            string(name.as_bytes(), out);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        Parsed::Object(time_ns)
    }
}

/// The fields of an object in their order, values as they are written.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(fields)
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object whose values are texts, while it is written.
struct Object<'a> {
    config: &'a ParseConfig,
    out: &'a mut Vec<u8>,
    time: Option<Option<i64>>,
}

impl<'a> Object<'a> {
    fn new(config: &'a ParseConfig, out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { config, out, time: None }
    }

    fn key(&mut self, key: &[u8]) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        string(key, self.out);
        self.out.push(b':');
    }

    fn text(&mut self, key: &[u8], value: &[u8]) {
        if self.time.is_none() && self.config.time_key.as_ref().is_some_and(|name| name.as_bytes() == key) {
            let text = std::str::from_utf8(value).ok();
            let time_ns = text.and_then(|text| time::read(&self.config.time_format, &self.config.time_zone, text));
            self.time = Some(time_ns);
            if time_ns.is_some() && !self.config.keep_time_key {
                return;
            }
        }
        self.key(key);
        string(value, self.out);
    }

    fn finish(self) -> Parsed {
        self.out.push(b'}');
        match self.time {
            None => Parsed::Object(None),
            Some(None) => Parsed::Timeless,
            Some(time_ns) => Parsed::Object(time_ns),
        }
    }
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    escape_lossy(text, out);
    out.push(b'"');
}

/// `key=value`, `key="a \"quoted\" value"`, `key=` (empty) and `key` (true), with blanks between: <https://brandur.org/logfmt>, and what
/// <https://pkg.go.dev/github.com/kr/logfmt> says of its grammar. A line without any `=` is none.
fn logfmt(line: &[u8], mut object: Object<'_>) -> Parsed {
    let mut rest = line;
    let (mut pairs, mut value) = (0, Vec::new());
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let end = rest.iter().position(|byte| *byte <= b' ' || matches!(byte, b'=' | b'"')).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(end);
        if key.is_empty() {
            return Parsed::Text;
        }
        match behind {
            [b'=', b'"', quoted @ ..] => {
                value.clear();
                let Some(behind) = unquote(quoted, &mut value) else { return Parsed::Text };
                if behind.first().is_some_and(|byte| *byte > b' ') {
                    return Parsed::Text;
                }
                object.text(key, &value);
                (rest, pairs) = (behind, pairs + 1);
            }
            [b'=', bare @ ..] => {
                let end = bare.iter().position(|byte| *byte <= b' ').unwrap_or(bare.len());
                let (bare, behind) = bare.split_at(end);
                object.text(key, bare);
                (rest, pairs) = (behind, pairs + 1);
            }
            [b'"', ..] => return Parsed::Text,
            _ => {
                object.key(key);
                object.out.extend_from_slice(b"true");
                rest = behind;
            }
        }
    }
    if pairs == 0 { Parsed::Text } else { object.finish() }
}

/// Up to the quote that ends it, which is left out; gives what is behind.
fn unquote<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (plain, special) = rest.split_at_checked(memchr::memchr2(b'"', b'\\', rest)?)?;
        out.extend_from_slice(plain);
        rest = match special {
            [b'"', more @ ..] => return Some(more),
            [b'\\', escaped @ (b'n' | b't' | b'r' | b'"' | b'\\'), more @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    itself => *itself,
                });
                more
            }
            // Any other is no escape.
            [other, more @ ..] => {
                out.push(*other);
                more
            }
            [] => return None,
        };
    }
}

/// `2016-10-06T00:17:09.669794202Z stdout F a line`: time, stream, tags (`F` is a full line, `P` a part of one), and the line
/// (Kubernetes, "CRI: Log format", kubelet's `pkg/kubelet/kuberuntime/logs`).
fn cri(line: &[u8], mut object: Object<'_>) -> Parsed {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (Some(time), Some(stream), Some(tags)) = (parts.next(), parts.next(), parts.next()) else {
        return Parsed::Text;
    };
    let log = parts.next().unwrap_or_default();
    let is_cri =
        matches!(stream, b"stdout" | b"stderr") && matches!(tags.first(), Some(b'F' | b'P')) && !time.is_empty();
    if !is_cri {
        return Parsed::Text;
    }
    object.text(b"time", time);
    object.text(b"stream", stream);
    object.text(b"logtag", tags);
    object.text(b"log", log);
    object.finish()
}
