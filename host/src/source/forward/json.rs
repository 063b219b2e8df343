//! MessagePack as JSON text, in one way. `docs/sources.md` has the table.
//!
//! What JSON has, is that. What it has not (bytes that are no text, ext types, numbers that are none) becomes a string that says what it was,
//! so that nothing is lost and a field is never sometimes a string and sometimes an object.

use std::io::Write as _;

use aws_smithy_types::base64;

use super::fault::Fault;
use super::msgpack::{Head, Reader};
use super::time;
use crate::record::DateFormat;
use crate::record::encode::escape_lossy;

/// How deep lists and maps may be nested, the record itself included. As in the `http` source.
pub(crate) const MAX_DEPTH: usize = 128;

/// Under this key is a record that is no map.
const NO_MAP: &[u8] = b"\"message\":";

/// Long strings are written in pieces of this size, so that one which grows sixfold by its escapes is noticed on the way.
const PIECE: usize = 64 << 10;

/// Writes records.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    metadata: Option<MetadataKey>,
    most_bytes: usize,
}

/// Under which key an event's metadata is put into its record.
#[derive(Debug, Clone)]
struct MetadataKey {
    /// With quotes and a colon.
    written: Vec<u8>,
}

impl Records {
    /// Records of at most so many bytes, with their events' metadata under this key; with none, without.
    pub(crate) fn new(metadata_key: Option<&str>, most_bytes: usize) -> Self {
        let metadata = metadata_key.map(|key| {
            let mut written = Vec::new();
            written.push(b'"');
            escape_lossy(key.as_bytes(), &mut written);
            written.extend_from_slice(b"\":");
            MetadataKey { written }
        });
        Self { metadata, most_bytes }
    }

    /// The most bytes that the records of a message may have together.
    pub(crate) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Writes a record into `out`, as an object on one line. `metadata` are the bytes of the event's metadata.
    pub(crate) fn write(
        &self,
        record: &mut Reader<'_>,
        metadata: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        out.clear();
        let mut writer = Writer { out, most_bytes: self.most_bytes };
        writer.out.push(b'{');
        let mut has_key = false;
        if let Head::Map(pairs) = record.peek()? {
            record.head()?;
            for number in 0..pairs {
                if number > 0 {
                    writer.out.push(b',');
                }
                let before = writer.out.len();
                writer.key(record)?;
                if let Some(metadata) = &self.metadata {
                    has_key |= writer.out.get(before..) == Some(metadata.written.as_slice());
                }
                writer.value(record, MAX_DEPTH - 1)?;
            }
        } else {
            writer.out.extend_from_slice(NO_MAP);
            has_key = self.metadata.as_ref().is_some_and(|metadata| metadata.written == NO_MAP);
            writer.value(record, MAX_DEPTH - 1)?;
        }
        if let (Some(key), Some(metadata), false) = (&self.metadata, metadata, has_key) {
            let mut metadata = Reader::new(metadata);
            if !matches!(metadata.peek()?, Head::Map(0) | Head::Nil) {
                if writer.out.len() > 1 {
                    writer.out.push(b',');
                }
                writer.out.extend_from_slice(&key.written);
                writer.value(&mut metadata, MAX_DEPTH - 1)?;
            }
        }
        writer.out.push(b'}');
        Ok(())
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    most_bytes: usize,
}

impl Writer<'_> {
    /// Appends a value, with lists and maps at most so deep.
    fn value(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<(), Fault> {
        match from.head()? {
            Head::List(values) => {
                let depth = depth.checked_sub(1).ok_or(Fault::TooDeep)?;
                self.out.push(b'[');
                for number in 0..values {
                    if number > 0 {
                        self.out.push(b',');
                    }
                    self.value(from, depth)?;
                }
                self.out.push(b']');
            }
            Head::Map(pairs) => {
                let depth = depth.checked_sub(1).ok_or(Fault::TooDeep)?;
                self.out.push(b'{');
                for number in 0..pairs {
                    if number > 0 {
                        self.out.push(b',');
                    }
                    self.key(from)?;
                    self.value(from, depth)?;
                }
                self.out.push(b'}');
            }
            scalar => self.scalar(scalar, from)?,
        }
        self.within()
    }

    /// Appends a key and its colon.
    fn key(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        let head = from.peek()?;
        let is_string = match head {
            // Written as JSON, each level in quotes would double the escapes of those inside.
            Head::List(_) | Head::Map(_) => {
                data_url("application/x-msgpack", from.value(MAX_DEPTH)?, self.out);
                self.out.push(b':');
                return self.within();
            }
            Head::Nil | Head::Bool(_) | Head::Unsigned(_) | Head::Signed(_) => false,
            Head::Single(number) => !number.is_finite(),
            Head::Double(number) => !number.is_finite(),
            Head::Text(_) | Head::Binary(_) | Head::Extension(..) => true,
        };
        from.head()?;
        if !is_string {
            self.out.push(b'"');
        }
        self.scalar(head, from)?;
        if !is_string {
            self.out.push(b'"');
        }
        self.out.push(b':');
        self.within()
    }

    fn scalar(&mut self, head: Head, from: &mut Reader<'_>) -> Result<(), Fault> {
        match head {
            Head::Nil => self.out.extend_from_slice(b"null"),
            Head::Bool(true) => self.out.extend_from_slice(b"true"),
            Head::Bool(false) => self.out.extend_from_slice(b"false"),
            Head::Unsigned(number) => digits(number, self.out),
            Head::Signed(number) => {
                if number < 0 {
                    self.out.push(b'-');
                }
                digits(number.unsigned_abs(), self.out);
            }
            Head::Single(number) if number.is_finite() => finite(number, self.out),
            Head::Single(number) => not_finite(number.into(), self.out),
            Head::Double(number) if number.is_finite() => finite(number, self.out),
            Head::Double(number) => not_finite(number, self.out),
            Head::Text(length) => self.string(from.take(length)?)?,
            Head::Binary(length) => {
                let bytes = from.take(length)?;
                match simdutf8::basic::from_utf8(bytes) {
                    Ok(text) => self.string(text.as_bytes())?,
                    // RFC 2397.
                    Err(_) => data_url("", bytes, self.out),
                }
            }
            Head::Extension(kind, length) => {
                let bytes = from.take(length)?;
                match time::of_extension(kind, bytes) {
                    Some(time_ns) => DateFormat::Iso8601Nanos.write_json(time_ns, self.out),
                    None => data_url(&format!("application/x-msgpack-ext;type={kind}"), bytes, self.out),
                }
            }
            // A caller that takes what is inside has seen to these.
            Head::List(_) | Head::Map(_) => return Err(from.fault("a list or map is no scalar")),
        }
        Ok(())
    }

    fn string(&mut self, mut text: &[u8]) -> Result<(), Fault> {
        self.out.push(b'"');
        while text.len() > PIECE {
            // Between two characters, where it is UTF-8: before a byte that does not continue one.
            let begins = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xc0 != 0x80);
            let cut = (PIECE - 3..=PIECE).rev().find(begins).unwrap_or(PIECE);
            let (piece, rest) = text.split_at(cut);
            escape_lossy(piece, self.out);
            self.within()?;
            text = rest;
        }
        escape_lossy(text, self.out);
        self.out.push(b'"');
        Ok(())
    }

    fn within(&self) -> Result<(), Fault> {
        if self.out.len() > self.most_bytes { Err(Fault::TooLargeAsJson(self.most_bytes)) } else { Ok(()) }
    }
}

fn data_url(media_type: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"data:");
    out.extend_from_slice(media_type.as_bytes());
    out.extend_from_slice(b";base64,");
    out.extend_from_slice(base64::encode(bytes).as_bytes());
    out.push(b'"');
}

fn digits(mut number: u64, out: &mut Vec<u8>) {
    // The largest has 20.
    let mut text = [0; 20];
    let mut begin = text.len();
    for place in text.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
        begin -= 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(text.get(begin..).unwrap_or_default());
}

/// The shortest digits that are this number again, read with as many bits as it has.
fn finite(number: impl serde::Serialize, out: &mut Vec<u8>) {
    // A number into a Vec: neither can fail.
    let _ = serde_json::to_writer(&mut *out, &number);
}

/// As the JSON of Protocol Buffers has them.
fn not_finite(number: f64, out: &mut Vec<u8>) {
    let text = match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    let _ = write!(out, "\"{text}\"");
}
