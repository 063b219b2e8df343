//! `AnyValue`, with its texts where they lie in the request, and as JSON: as itself, or as OTLP/JSON has it.

use std::borrow::Cow;
use std::io::Write as _;

use aws_smithy_types::base64;

use crate::config::OtlpFormat;
use crate::record::encode::write_json_string;

/// What an `AnyValue` can be (opentelemetry/proto/common/v1/common.proto).
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Value<'a> {
    /// There, and without a value; also what refers to a dictionary of profiles: that is, in logs, to be taken as absent.
    #[default]
    Empty,
    Text(Cow<'a, str>),
    Bool(bool),
    Integer(i64),
    Double(f64),
    Bytes(Cow<'a, [u8]>),
    List(Vec<Value<'a>>),
    Map(Vec<Pair<'a>>),
}

impl Value<'_> {
    /// Whether lists and maps in it are nested less than so deep.
    pub(super) fn is_shallow(&self, depth: usize) -> bool {
        let Some(deeper) = depth.checked_sub(1) else { return false };
        match self {
            Self::List(values) => values.iter().all(|value| value.is_shallow(deeper)),
            Self::Map(pairs) => pairs.iter().all(|pair| pair.is_shallow(deeper)),
            _ => true,
        }
    }
}

/// A `KeyValue`: an attribute, or what is in a map.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pair<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: Option<Value<'a>>,
}

impl Pair<'_> {
    pub(super) fn is_shallow(&self, depth: usize) -> bool {
        self.value.as_ref().is_none_or(|value| value.is_shallow(depth))
    }
}

/// A key that needs no escapes, with the comma before it and the colon behind.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(super) use key;

/// The fields of an object, with the commas between them.
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> Fields<'a> {
    /// Goes on where `out` ends; the braces are the caller's.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let begin = out.len();
        Self { out, begin }
    }

    /// Writes a [`key!`]; the value is the caller's.
    #[inline]
    pub(super) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        let key = if self.out.len() > self.begin { key } else { key.get(1..).unwrap_or_default() };
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    /// A text, where there is one.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            write_json_string(text, self.key(key));
        }
    }

    /// A number, where it is not 0.
    pub(super) fn number(&mut self, key: &str, number: i64) {
        if number != 0 {
            integer(number, self.key(key));
        }
    }
}

/// Appends attributes: an object, or OTLP/JSON's list of pairs.
pub(super) fn attributes(format: OtlpFormat, pairs: &[Pair<'_>], out: &mut Vec<u8>) {
    match format {
        OtlpFormat::Json => {
            out.push(b'{');
            for (number, pair) in pairs.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                write_json_string(&pair.key, out);
                out.push(b':');
                value(format, pair.value.as_ref(), out);
            }
            out.push(b'}');
        }
        OtlpFormat::OtlpJson => {
            out.push(b'[');
            for (number, pair) in pairs.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(b"{\"key\":");
                write_json_string(&pair.key, out);
                if pair.value.is_some() {
                    out.extend_from_slice(b",\"value\":");
                    value(format, pair.value.as_ref(), out);
                }
                out.push(b'}');
            }
            out.push(b']');
        }
    }
}

/// Appends a value. It is nested no deeper than was read.
pub(super) fn value(format: OtlpFormat, of: Option<&Value<'_>>, out: &mut Vec<u8>) {
    let of = of.unwrap_or(&Value::Empty);
    match format {
        OtlpFormat::Json => plain(of, out),
        OtlpFormat::OtlpJson => {
            out.push(b'{');
            typed(of, out);
            out.push(b'}');
        }
    }
}

fn plain(of: &Value<'_>, out: &mut Vec<u8>) {
    match of {
        Value::Empty => out.extend_from_slice(b"null"),
        Value::Text(text) => write_json_string(text, out),
        Value::Bool(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
        Value::Integer(number) => integer(*number, out),
        Value::Double(number) => double(*number, out),
        Value::Bytes(bytes) => write_json_string(&base64::encode(bytes), out),
        Value::List(values) => list(OtlpFormat::Json, values, out),
        Value::Map(pairs) => attributes(OtlpFormat::Json, pairs, out),
    }
}

fn list(format: OtlpFormat, values: &[Value<'_>], out: &mut Vec<u8>) {
    out.push(b'[');
    for (number, one) in values.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        value(format, Some(one), out);
    }
    out.push(b']');
}

/// "JSON Protobuf Encoding": integers of 64 bits are strings, bytes base64.
fn typed(of: &Value<'_>, out: &mut Vec<u8>) {
    match of {
        Value::Empty => {}
        Value::Text(text) => {
            out.extend_from_slice(b"\"stringValue\":");
            write_json_string(text, out);
        }
        Value::Bool(yes) => {
            out.extend_from_slice(if *yes { b"\"boolValue\":true" } else { b"\"boolValue\":false" });
        }
        Value::Integer(number) => {
            out.extend_from_slice(b"\"intValue\":\"");
            integer(*number, out);
            out.push(b'"');
        }
        Value::Double(number) => {
            out.extend_from_slice(b"\"doubleValue\":");
            double(*number, out);
        }
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"\"bytesValue\":");
            write_json_string(&base64::encode(bytes), out);
        }
        Value::List(values) => {
            out.extend_from_slice(b"\"arrayValue\":{\"values\":");
            list(OtlpFormat::OtlpJson, values, out);
            out.push(b'}');
        }
        Value::Map(pairs) => {
            out.extend_from_slice(b"\"kvlistValue\":{\"values\":");
            attributes(OtlpFormat::OtlpJson, pairs, out);
            out.push(b'}');
        }
    }
}

/// Without a text of its own on the way.
fn integer(number: i64, out: &mut Vec<u8>) {
    // Into a Vec: it cannot fail.
    let _ = write!(out, "{number}");
}

/// The shortest digits that are this number again. What is none is a string, as the JSON of Protocol Buffers has it.
fn double(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        // A number into a Vec: it cannot fail.
        let _ = serde_json::to_writer(&mut *out, &number);
        return;
    }
    let text = match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    write_json_string(text, out);
}
