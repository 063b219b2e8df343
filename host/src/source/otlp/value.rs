//! `AnyValue` as JSON: as itself, or as OTLP/JSON has it.

use std::io::Write as _;

use aws_smithy_types::base64;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

use crate::config::OtlpFormat;
use crate::record::encode::escape_lossy;

/// A string in quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape_lossy(text.as_bytes(), out);
    out.push(b'"');
}

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

    /// Writes a key that needs no escapes, and its colon; the value is the caller's.
    pub(super) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if self.out.len() > self.begin {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A text, where there is one.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            string(text, self.key(key));
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
pub(super) fn attributes(format: OtlpFormat, pairs: &[KeyValue], out: &mut Vec<u8>) {
    match format {
        OtlpFormat::Json => {
            out.push(b'{');
            for (number, pair) in pairs.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                string(&pair.key, out);
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
                string(&pair.key, out);
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

/// Appends a value. It is nested no deeper than was read: Protocol Buffers to 100 messages, JSON to 128 levels.
pub(super) fn value(format: OtlpFormat, of: Option<&AnyValue>, out: &mut Vec<u8>) {
    let of = of.and_then(|any| any.value.as_ref());
    match format {
        OtlpFormat::Json => plain(of, out),
        OtlpFormat::OtlpJson => {
            out.push(b'{');
            typed(of, out);
            out.push(b'}');
        }
    }
}

fn plain(of: Option<&Value>, out: &mut Vec<u8>) {
    match of {
        // What refers to a dictionary of profiles is, in logs, to be taken as absent (opentelemetry/proto/common/v1/common.proto).
        None | Some(Value::StringValueStrindex(_)) => out.extend_from_slice(b"null"),
        Some(Value::StringValue(text)) => string(text, out),
        Some(Value::BoolValue(yes)) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
        Some(Value::IntValue(number)) => integer(*number, out),
        Some(Value::DoubleValue(number)) => double(*number, out),
        Some(Value::BytesValue(bytes)) => string(&base64::encode(bytes), out),
        Some(Value::ArrayValue(array)) => list(OtlpFormat::Json, &array.values, out),
        Some(Value::KvlistValue(list)) => attributes(OtlpFormat::Json, &list.values, out),
    }
}

fn list(format: OtlpFormat, values: &[AnyValue], out: &mut Vec<u8>) {
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
fn typed(of: Option<&Value>, out: &mut Vec<u8>) {
    match of {
        None | Some(Value::StringValueStrindex(_)) => {}
        Some(Value::StringValue(text)) => {
            out.extend_from_slice(b"\"stringValue\":");
            string(text, out);
        }
        Some(Value::BoolValue(yes)) => {
            out.extend_from_slice(if *yes { b"\"boolValue\":true" } else { b"\"boolValue\":false" });
        }
        Some(Value::IntValue(number)) => {
            out.extend_from_slice(b"\"intValue\":\"");
            integer(*number, out);
            out.push(b'"');
        }
        Some(Value::DoubleValue(number)) => {
            out.extend_from_slice(b"\"doubleValue\":");
            double(*number, out);
        }
        Some(Value::BytesValue(bytes)) => {
            out.extend_from_slice(b"\"bytesValue\":");
            string(&base64::encode(bytes), out);
        }
        Some(Value::ArrayValue(array)) => {
            out.extend_from_slice(b"\"arrayValue\":{\"values\":");
            list(OtlpFormat::OtlpJson, &array.values, out);
            out.push(b'}');
        }
        Some(Value::KvlistValue(list)) => {
            out.extend_from_slice(b"\"kvlistValue\":{\"values\":");
            attributes(OtlpFormat::OtlpJson, &list.values, out);
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
    string(text, out);
}
