//! Records as lines, or as the items of one JSON array.
//!
//! An item is written like a line, but with a comma before it in the place of the line feed behind it; the first comma of all then becomes
//! the bracket that opens the array. So it does not matter where windows, chunks and pieces end, or which records are skipped.

use super::object::{self, Key};
use super::{Format, Options, TEXT_KEY, escape};
use crate::record::{BodyKind, Chunk, DateFormat};

/// How many numbers of skipped records are kept.
const MAX_NOTED: usize = 10_000;

/// Writes records as the options say.
#[derive(Debug)]
pub(super) struct Lines {
    text: Way,
    json: Way,
    /// What stands before each record and behind it.
    around: (&'static [u8], &'static [u8]),
    /// Of an array: whether its first item is written.
    array: Option<bool>,
    skipped: u64,
    noted: Vec<u32>,
}

/// How records of one kind become lines.
#[derive(Debug)]
enum Way {
    /// The bodies as they are, with their line feeds.
    Copy,
    /// The bodies, each by itself.
    Each,
    /// Not at all: text has no such key.
    Skip,
    /// A text body as a JSON string, behind a prefix that opens it.
    Text(Prefix, Ending),
    /// An object with the date as its first key, unless it has that key itself.
    Dated(Prefix, Key),
    /// One key's value as JSON.
    Value(Key),
    /// One key's value; if it is a string, what that means.
    ValueText(Key),
}

/// What closes a line whose text is a JSON string.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Object,
    String,
}

impl Lines {
    pub(super) fn new(options: Options) -> Self {
        let Options { format, date_key, date_format, log_key, .. } = options;
        let is_array = format == Format::JsonArray;
        let around: (&[u8], &[u8]) = if is_array { (b",", b"") } else { (b"", b"\n") };
        let copy = if is_array { Way::Each } else { Way::Copy };
        let (text, json) = match (format, log_key, date_key) {
            (Format::Text, None, _) => (Way::Copy, Way::Copy),
            (Format::Text, Some(key), _) => {
                (if key == TEXT_KEY { Way::Copy } else { Way::Skip }, Way::ValueText(Key::new(&key)))
            }
            (Format::JsonLines | Format::JsonArray, Some(key), _) => {
                let text = Way::Text(Prefix::constant(around.0, "\""), Ending::String);
                (if key == TEXT_KEY { text } else { Way::Skip }, Way::Value(Key::new(&key)))
            }
            (Format::JsonLines | Format::JsonArray, None, None) => {
                (Way::Text(Prefix::constant(around.0, "{\"log\":\""), Ending::Object), copy)
            }
            (Format::JsonLines | Format::JsonArray, None, Some(key)) => {
                // A record's own key comes before the date's, and a text record has this one.
                let text = if key == TEXT_KEY {
                    Prefix::constant(around.0, "{\"log\":\"")
                } else {
                    Prefix::dated(around.0, &key, date_format, ",\"log\":\"")
                };
                let json = Way::Dated(Prefix::dated(b"", &key, date_format, ""), Key::new(&key));
                (Way::Text(text, Ending::Object), json)
            }
        };
        Self { text, json, around, array: is_array.then_some(false), skipped: 0, noted: Vec::new() }
    }
    /// Records without the wanted key: how many, and the first numbers.
    pub(super) fn skipped(&self) -> (u64, &[u32]) {
        (self.skipped, &self.noted)
    }
    /// Appends `count` records from `first`. The first one's number in the batch is `number`.
    pub(super) fn write(&mut self, chunk: &Chunk, first: u32, count: u32, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.append(chunk, first, count, number, out);
        if let (Some(begun @ false), Some(comma)) = (&mut self.array, out.get_mut(start)) {
            *comma = b'[';
            *begun = true;
        }
    }
    /// Appends what stands behind the last record.
    pub(super) fn finish(&self, out: &mut Vec<u8>) {
        match self.array {
            None => {}
            Some(true) => out.push(b']'),
            Some(false) => out.extend_from_slice(b"[]"),
        }
    }

    fn append(&mut self, chunk: &Chunk, first: u32, count: u32, number: u64, out: &mut Vec<u8>) {
        let bytes = chunk.bodies().get(chunk.span(first, count)).unwrap_or_default();
        let way = match chunk.meta().kind {
            BodyKind::Text => &mut self.text,
            BodyKind::Json => &mut self.json,
        };
        let (before, behind) = self.around;
        let records = chunk.range(first, count);
        let mut skip = |number: u64| {
            self.skipped += 1;
            if self.noted.len() < MAX_NOTED {
                // Numbers of a batch are u32 wherever they are spoken of.
                self.noted.extend(u32::try_from(number));
            }
        };
        match way {
            Way::Copy => out.extend_from_slice(bytes),
            Way::Each => {
                out.reserve(bytes.len());
                for record in records {
                    out.extend_from_slice(before);
                    out.extend_from_slice(record.body);
                    out.extend_from_slice(behind);
                }
            }
            Way::Skip => (number..).zip(records).for_each(|(number, _)| skip(number)),
            Way::Text(prefix, ending) => match (ending, self.array) {
                (Ending::Object, None) => write_texts(records, bytes, prefix, b"\"}\n", out),
                (Ending::String, None) => write_texts(records, bytes, prefix, b"\"\n", out),
                (Ending::Object, Some(_)) => write_texts(records, bytes, prefix, b"\"}", out),
                (Ending::String, Some(_)) => write_texts(records, bytes, prefix, b"\"", out),
            },
            Way::Dated(prefix, key) => {
                let all_absent = key.is_absent(bytes);
                for record in records {
                    out.extend_from_slice(before);
                    let has_key = !all_absent && !key.is_absent(record.body) && key.value(record.body).is_some();
                    match object::inside(record.body).filter(|_| !has_key) {
                        Some(rest) => {
                            out.extend_from_slice(prefix.at(record.time_ns));
                            out.extend_from_slice(if rest.starts_with(b"}") { b"" } else { b"," });
                            out.extend_from_slice(rest);
                        }
                        None => out.extend_from_slice(record.body),
                    }
                    out.extend_from_slice(behind);
                }
            }
            Way::Value(key) | Way::ValueText(key) if key.is_absent(bytes) => {
                (number..).zip(records).for_each(|(number, _)| skip(number));
            }
            Way::Value(key) => {
                for (number, record) in (number..).zip(records) {
                    let Some(value) = key.value(record.body) else {
                        skip(number);
                        continue;
                    };
                    out.extend_from_slice(before);
                    out.extend_from_slice(value);
                    out.extend_from_slice(behind);
                }
            }
            Way::ValueText(key) => {
                for (number, record) in (number..).zip(records) {
                    let Some(value) = key.value(record.body) else {
                        skip(number);
                        continue;
                    };
                    match object::inside_string(value) {
                        Some(text) => escape::undo(text, out),
                        None => out.extend_from_slice(value),
                    }
                    out.push(b'\n');
                }
            }
        }
    }
}

/// Text records as JSON strings, each behind its prefix. `bytes` are their bodies with separators.
///
/// Most windows are UTF-8 without a byte to escape; two fast passes over the whole window find that out, and the rest is copying.
fn write_texts<'a, const N: usize>(
    records: impl ExactSizeIterator<Item = crate::record::RecordRef<'a>>,
    bytes: &[u8],
    prefix: &mut Prefix,
    ending: &[u8; N],
    out: &mut Vec<u8>,
) {
    let valid = simdutf8::basic::from_utf8(bytes).is_ok();
    // Each record's separator counts as one.
    let clean = valid && escape::count(bytes) == records.len();
    out.reserve(bytes.len() + records.len() * (prefix.usual_length() + N));
    for record in records {
        out.extend_from_slice(prefix.at(record.time_ns));
        if clean {
            out.extend_from_slice(record.body);
        } else if valid {
            escape::write(record.body, out);
        } else {
            escape::write_lossy(record.body, out);
        }
        out.extend_from_slice(ending);
    }
}

/// What stands before a record's own bytes. Rendered anew only when the time changes.
#[derive(Debug)]
struct Prefix {
    bytes: Vec<u8>,
    date: Option<Date>,
}

#[derive(Debug)]
struct Date {
    /// Up to where the date begins in the bytes.
    head: usize,
    format: DateFormat,
    tail: &'static str,
    /// The time in the bytes.
    rendered: Option<i64>,
}

impl Prefix {
    fn constant(before: &[u8], text: &str) -> Self {
        Self { bytes: [before, text.as_bytes()].concat(), date: None }
    }
    /// `before`, `{"key":date` and `tail`.
    fn dated(before: &[u8], key: &str, format: DateFormat, tail: &'static str) -> Self {
        let bytes = [before, b"{", object::quoted(key).as_slice(), b":"].concat();
        Self { date: Some(Date { head: bytes.len(), format, tail, rendered: None }), bytes }
    }
    fn at(&mut self, time_ns: i64) -> &[u8] {
        if let Some(date) = self.date.as_mut().filter(|date| date.rendered != Some(time_ns)) {
            self.bytes.truncate(date.head);
            date.format.write_json(time_ns, &mut self.bytes);
            self.bytes.extend_from_slice(date.tail.as_bytes());
            date.rendered = Some(time_ns);
        }
        &self.bytes
    }
    /// Its length, but for digits.
    fn usual_length(&self) -> usize {
        self.bytes.len() + if self.date.is_some() { 32 } else { 0 }
    }
}
