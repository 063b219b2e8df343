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

/// Writes records.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    metadata: Option<MetadataKey>,
}

/// Under which key an event's metadata is put into its record.
#[derive(Debug, Clone)]
struct MetadataKey {
    key: String,
    /// With quotes and a colon.
    written: Vec<u8>,
}

impl Records {
    /// Records with their events' metadata under this key; with none, without.
    pub(crate) fn new(metadata_key: Option<&str>) -> Self {
        let metadata = metadata_key.map(|key| {
            let mut written = Vec::new();
            string(key.as_bytes(), &mut written);
            written.push(b':');
            MetadataKey { key: key.to_owned(), written }
        });
        Self { metadata }
    }

    /// Appends a record as an object on one line. `metadata` are the bytes of the event's metadata.
    pub(crate) fn write(
        &self,
        record: &mut Reader<'_>,
        metadata: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        out.push(b'{');
        let begin = out.len();
        let mut has_key = false;
        if let Head::Map(pairs) = record.peek()? {
            record.head()?;
            for number in 0..pairs {
                if number > 0 {
                    out.push(b',');
                }
                let before = out.len();
                key(record, out)?;
                if let Some(metadata) = &self.metadata {
                    has_key |= out.get(before..) == Some(metadata.written.as_slice());
                }
                value(record, out, MAX_DEPTH - 1)?;
            }
        } else {
            out.extend_from_slice(NO_MAP);
            has_key = self.metadata.as_ref().is_some_and(|metadata| metadata.key == "message");
            value(record, out, MAX_DEPTH - 1)?;
        }
        if let (Some(key), Some(metadata), false) = (&self.metadata, metadata, has_key) {
            let mut metadata = Reader::new(metadata);
            if !matches!(metadata.peek()?, Head::Map(0) | Head::Nil) {
                if out.len() > begin {
                    out.push(b',');
                }
                out.extend_from_slice(&key.written);
                value(&mut metadata, out, MAX_DEPTH - 1)?;
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// Appends a value, with lists and maps at most so deep.
fn value(from: &mut Reader<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), Fault> {
    match from.head()? {
        Head::List(values) => {
            let depth = depth.checked_sub(1).ok_or(Fault::TooDeep)?;
            out.push(b'[');
            for number in 0..values {
                if number > 0 {
                    out.push(b',');
                }
                value(from, out, depth)?;
            }
            out.push(b']');
        }
        Head::Map(pairs) => {
            let depth = depth.checked_sub(1).ok_or(Fault::TooDeep)?;
            out.push(b'{');
            for number in 0..pairs {
                if number > 0 {
                    out.push(b',');
                }
                key(from, out)?;
                value(from, out, depth)?;
            }
            out.push(b'}');
        }
        scalar => write_scalar(scalar, from, out)?,
    }
    Ok(())
}

/// Appends a key and its colon.
fn key(from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match from.peek()? {
        // Written as JSON, each level in quotes would double the escapes of those inside.
        Head::List(_) | Head::Map(_) => data_url("application/x-msgpack", from.value(MAX_DEPTH)?, out),
        Head::Nil | Head::Bool(_) | Head::Unsigned(_) | Head::Signed(_) => {
            out.push(b'"');
            let head = from.head()?;
            write_scalar(head, from, out)?;
            out.push(b'"');
        }
        Head::Single(number) if number.is_finite() => {
            from.head()?;
            out.push(b'"');
            finite(number, out);
            out.push(b'"');
        }
        Head::Double(number) if number.is_finite() => {
            from.head()?;
            out.push(b'"');
            finite(number, out);
            out.push(b'"');
        }
        _ => {
            let head = from.head()?;
            write_scalar(head, from, out)?;
        }
    }
    out.push(b':');
    Ok(())
}

fn write_scalar(head: Head, from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match head {
        Head::Nil => out.extend_from_slice(b"null"),
        Head::Bool(true) => out.extend_from_slice(b"true"),
        Head::Bool(false) => out.extend_from_slice(b"false"),
        Head::Unsigned(number) => digits(number, out),
        Head::Signed(number) => {
            if number < 0 {
                out.push(b'-');
            }
            digits(number.unsigned_abs(), out);
        }
        Head::Single(number) => match number.is_finite() {
            true => finite(number, out),
            false => not_finite(number.into(), out),
        },
        Head::Double(number) => match number.is_finite() {
            true => finite(number, out),
            false => not_finite(number, out),
        },
        Head::Text(length) => string(from.take(length)?, out),
        Head::Binary(length) => {
            let bytes = from.take(length)?;
            match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => string(text.as_bytes(), out),
                // RFC 2397.
                Err(_) => data_url("", bytes, out),
            }
        }
        Head::Extension(kind, length) => {
            let bytes = from.take(length)?;
            match time::of_extension(kind, bytes) {
                Some(time_ns) => DateFormat::Iso8601Nanos.write_json(time_ns, out),
                None => data_url(&format!("application/x-msgpack-ext;type={kind}"), bytes, out),
            }
        }
        // A caller that takes what is inside has seen to these.
        Head::List(_) | Head::Map(_) => return Err(from.fault("a list or map is no scalar")),
    }
    Ok(())
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    escape_lossy(text, out);
    out.push(b'"');
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
