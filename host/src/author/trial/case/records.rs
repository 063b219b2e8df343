//! `records` of a test: inline, or a file beside it.
//!
//! A string is a text record, a map a JSON record. Keys of a map that begin with `$` are about the record and not in it: `$time`, `$tag`,
//! and `$text`, `$json` or `$base64` for a body that is written as it is. A file of JSON lines has the same notation.

use std::path::Path;
use std::sync::Arc;

use aws_smithy_types::base64;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::config::{Entry, Meaning, Node, NodeValue, Place, Scalar, Section, Sink, json_value, nearest};
use crate::record::BodyKind;

/// Bytes of a file of records. The largest batch has 100 MB where nothing else is said.
const LARGEST_FILE: u64 = 1 << 30;
/// What is about a record and not in it.
const ABOUT: [&str; 5] = ["$time", "$tag", "$text", "$json", "$base64"];

/// One record of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: BodyKind,
    pub(crate) tag: Arc<str>,
    pub(crate) time_ns: i64,
    pub(crate) body: Vec<u8>,
}

/// What a record has that says nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Usual {
    pub(crate) tag: Arc<str>,
    pub(crate) time_ns: i64,
}

/// The time behind a key, nanoseconds since 1970 UTC.
pub(crate) fn time(section: &mut Section<'_>, key: &'static str) -> Option<i64> {
    let written = section.text(key)?;
    match parse_time(&written) {
        Ok(time) => Some(time),
        Err(what) => {
            section.fault(key, what, None);
            None
        }
    }
}

fn parse_time(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a time such as 2026-01-02T03:04:05.678Z");
    let time: Timestamp = text.parse().map_err(|_| wrong())?;
    i64::try_from(time.as_nanosecond()).map_err(|_| wrong())
}

/// Reads `records`.
pub(crate) fn read(top: &mut Section<'_>, folder: &Path, usual: &Usual) -> Vec<Record> {
    let Some(entry) = top.entry("records") else { return vec![] };
    let sink = top.sink();
    match &entry.value.value {
        NodeValue::List(list) => {
            let record = |(n, item)| inline(item, &format!("records[{n}]"), sink, usual);
            list.iter().enumerate().filter_map(record).collect()
        }
        NodeValue::Map(_) => match Section::of(sink, "records".into(), entry.key_at, &entry.value) {
            Some(section) => file(section, folder, usual),
            None => vec![],
        },
        NodeValue::Faulty => vec![],
        _ => {
            let help = "write - before each record, or records: { file: records.ndjson }";
            let message = format!("expected a list of records, found {}", entry.value.found());
            sink.add_with_help(entry.value.at, "records", message, help);
            vec![]
        }
    }
}

fn inline(node: &Node, path: &str, sink: &Sink, usual: &Usual) -> Option<Record> {
    match &node.value {
        NodeValue::Scalar(Scalar { text, meaning: Meaning::Text, .. }) => {
            checked(BodyKind::Text, text.clone().into_bytes(), usual).map_err(|what| sink.add(node.at, path, what)).ok()
        }
        NodeValue::Map(entries) => {
            // Places of what is about the record are those of the file.
            let place = |key: &str| entries.iter().find(|e| e.key == key).map_or(node.at, |e| e.value.at);
            unknown_about(entries, path, sink);
            let Some(Value::Object(map)) = json_value(node, path, sink) else { return None };
            from_map(map, None, usual).map_err(|(key, what)| sink.add(place(key), path, what)).ok()
        }
        NodeValue::Faulty => None,
        _ => {
            let message = format!("expected text or a map, found {}", node.found());
            sink.add_with_help(node.at, path, message, "a text record is a string: put it in quotes");
            None
        }
    }
}

fn unknown_about(entries: &[Entry], path: &str, sink: &Sink) {
    for entry in entries.iter().filter(|e| e.key.starts_with('$') && !ABOUT.contains(&e.key.as_str())) {
        let meant = nearest(&entry.key, &ABOUT).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        let message = format!("unknown key {:?}{meant}", entry.key);
        let help = format!(
            "keys with $ are about the record: {}; a JSON record that has such a key is written as $json: '{{…}}'",
            ABOUT.join(", ")
        );
        sink.add_with_help(entry.key_at, path, message, help);
    }
}

/// A record of a map. `written` is how it is written in a file, and so the body where nothing in it is about the record.
fn from_map(
    mut map: Map<String, Value>,
    written: Option<&str>,
    usual: &Usual,
) -> Result<Record, (&'static str, String)> {
    let mut about = |key: &'static str| match map.shift_remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err((key, format!("expected text behind {key}, found {other}"))),
    };
    let (time, tag) = (about("$time")?, about("$tag")?);
    let (text, json, encoded) = (about("$text")?, about("$json")?, about("$base64")?);
    let own = Usual {
        tag: tag.map_or_else(|| usual.tag.clone(), Into::into),
        time_ns: match time {
            Some(time) => parse_time(&time).map_err(|what| ("$time", what))?,
            None => usual.time_ns,
        },
    };
    let given = [text.is_some(), json.is_some(), encoded.is_some()].into_iter().filter(|it| *it).count();
    if given > 1 || (given == 1 && !map.is_empty()) {
        let what = "a record is one of: a map, or $text, $json or $base64 alone with $time and $tag";
        return Err(("", what.into()));
    }
    let (kind, body) = if let Some(text) = text {
        (BodyKind::Text, text.into_bytes())
    } else if let Some(json) = json {
        (BodyKind::Json, json.into_bytes())
    } else if let Some(encoded) = encoded {
        let bytes = base64::decode(encoded).map_err(|_| ("$base64", "$base64 is not base64".to_owned()))?;
        (BodyKind::Text, bytes)
    } else {
        let unchanged = written.filter(|_| own.tag == usual.tag && own.time_ns == usual.time_ns);
        let body = unchanged.map_or_else(|| Value::Object(map).to_string(), str::to_owned);
        (BodyKind::Json, body.into_bytes())
    };
    checked(kind, body, &own).map_err(|what| ("", what))
}

/// What the journal could hold.
fn checked(kind: BodyKind, body: Vec<u8>, usual: &Usual) -> Result<Record, String> {
    if body.contains(&b'\n') {
        return Err("a record is one line, and this has a line feed in it".into());
    }
    let object = || serde_json::from_slice::<Map<String, Value>>(&body).is_ok() && body.ends_with(b"}");
    if kind == BodyKind::Json && !(body.starts_with(b"{") && object()) {
        return Err("a JSON record is one object: { … }".into());
    }
    if usual.tag.is_empty() || usual.tag.contains(char::is_whitespace) {
        return Err(format!("the tag {:?} is empty or has blanks", usual.tag));
    }
    Ok(Record { kind, tag: usual.tag.clone(), time_ns: usual.time_ns, body })
}

/// What the lines of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each is a text record.
    Text,
    /// Each is JSON.
    Json,
}

impl Form {
    /// What the lines of a file of this name are where nobody says.
    pub(crate) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json" | "ndjson" | "jsonl") => Self::Json,
            _ => Self::Text,
        }
    }
}

fn file(mut section: Section<'_>, folder: &Path, usual: &Usual) -> Vec<Record> {
    section.missing("file", "name a file that lies beside the test");
    let name = section.text("file");
    let form = section.one_of("as", &[("text", Form::Text), ("json", Form::Json)]);
    let at = section.place_of("file");
    let records = name.map(|name| {
        let path = folder.join(&name);
        lines(section.sink(), at, &path, form.unwrap_or_else(|| Form::of(&path)), usual)
    });
    section.finish(&[("path", "did you mean \"file\"?"), ("format", "did you mean \"as\"?")]);
    records.unwrap_or_default()
}

fn lines(sink: &Sink, at: Place, path: &Path, form: Form, usual: &Usual) -> Vec<Record> {
    let bytes = match crate::regular_file::read(path, LARGEST_FILE) {
        Ok(bytes) => bytes,
        Err(cause) => {
            let message = format!("{} cannot be read: {cause}", path.display());
            sink.add_with_help(at, "records.file", message, "a relative path begins at the test's folder");
            return vec![];
        }
    };
    let (records, faults) = of_lines(&bytes, form, usual);
    for (line, what) in faults {
        sink.add(at, "records.file", format!("{}, line {line}: {what}", path.display()));
    }
    records
}

/// The records of a file's lines, and what is wrong with which.
pub(crate) fn of_lines(bytes: &[u8], form: Form, usual: &Usual) -> (Vec<Record>, Vec<(usize, String)>) {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let (mut records, mut faults) = (vec![], vec![]);
    if bytes.is_empty() {
        return (records, faults);
    }
    for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let record = match form {
            Form::Text => checked(BodyKind::Text, line.to_vec(), usual),
            Form::Json => of_json(line, usual),
        };
        match record {
            Ok(record) => records.push(record),
            Err(what) => faults.push((number, what)),
        }
    }
    (records, faults)
}

fn of_json(line: &[u8], usual: &Usual) -> Result<Record, String> {
    let written = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?.trim();
    match serde_json::from_str(written) {
        Ok(Value::Object(map)) => match map.keys().find(|k| k.starts_with('$') && !ABOUT.contains(&k.as_str())) {
            Some(key) if map.keys().any(|k| ABOUT.contains(&k.as_str())) => Err(format!("unknown key {key:?}")),
            _ => from_map(map, Some(written), usual).map_err(|(_, what)| what),
        },
        Ok(Value::String(text)) => checked(BodyKind::Text, text.into_bytes(), usual),
        Ok(_) => Err("expected a JSON object, or a JSON string for a text record".into()),
        Err(cause) => Err(format!("not JSON: {cause}")),
    }
}
