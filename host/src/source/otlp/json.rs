//! Requests of JSON.
//!
//! "JSON Protobuf Encoding": keys in lowerCamelCase, trace and span ids in hex, enums as integers, unknown fields ignored; otherwise as the JSON of
//! Protocol Buffers: integers of 64 bits as strings or numbers, bytes as base64 of both alphabets, `null` as if the field were not there. A
//! record that is none costs only itself.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use aws_smithy_types::base64;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::denied::Denied;
use super::gather::{Gather, LARGEST_RECORD};
use super::record;
use super::value::{self, Value};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    resource_logs: Vec<ResourceLogs<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceLogs<'a> {
    resource: Option<Owner>,
    #[serde(borrow, deserialize_with = "nullable")]
    scope_logs: Vec<ScopeLogs<'a>>,
    #[serde(deserialize_with = "nullable")]
    schema_url: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeLogs<'a> {
    scope: Option<Owner>,
    #[serde(borrow, deserialize_with = "nullable")]
    log_records: Vec<&'a RawValue>,
    #[serde(deserialize_with = "nullable")]
    schema_url: String,
}

/// A resource, or a scope, which has a name as well.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owner {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<Pair>,
    #[serde(deserialize_with = "nullable")]
    dropped_attributes_count: Integer<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Record {
    #[serde(deserialize_with = "nullable")]
    time_unix_nano: Integer<u64>,
    #[serde(deserialize_with = "nullable")]
    observed_time_unix_nano: Integer<u64>,
    #[serde(deserialize_with = "nullable")]
    severity_number: Integer<i32>,
    #[serde(deserialize_with = "nullable")]
    severity_text: String,
    body: Option<Any>,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<Pair>,
    #[serde(deserialize_with = "nullable")]
    dropped_attributes_count: Integer<u32>,
    #[serde(deserialize_with = "nullable")]
    flags: Integer<u32>,
    #[serde(deserialize_with = "nullable")]
    trace_id: Hex,
    #[serde(deserialize_with = "nullable")]
    span_id: Hex,
    #[serde(deserialize_with = "nullable")]
    event_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pair {
    #[serde(deserialize_with = "nullable")]
    key: String,
    value: Option<Any>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List<T: Default + for<'a> Deserialize<'a>> {
    #[serde(deserialize_with = "nullable", bound(deserialize = ""))]
    values: Vec<T>,
}

/// Reads an `ExportLogsServiceRequest`.
pub(crate) fn read(request: &[u8], gather: &mut Gather<'_>) -> Result<(), Denied> {
    let text = simdutf8::basic::from_utf8(request).map_err(|_| Denied::Malformed("it is not UTF-8".to_owned()))?;
    // A list would be read as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(Denied::Malformed("it should be an object".to_owned()));
    }
    let request: Request<'_> = serde_json::from_str(text).map_err(|e| Denied::Malformed(e.to_string()))?;
    for resource_logs in request.resource_logs {
        gather.resource(resource_logs.resource.map(Owner::read), resource_logs.schema_url.into())?;
        for scope_logs in resource_logs.scope_logs {
            let ahead = scope_logs.log_records.iter().map(|text| text.get().len()).sum();
            gather.scope(scope_logs.scope.map(Owner::read).as_ref(), &scope_logs.schema_url, ahead)?;
            for text in scope_logs.log_records {
                let text = text.get();
                match record(text) {
                    Ok(record) => gather.record(Ok(&record), text.len())?,
                    Err(why) => gather.record(Err(why), text.len())?,
                }
            }
        }
    }
    Ok(())
}

fn record(text: &str) -> Result<record::Record<'static>, String> {
    if text.len() > LARGEST_RECORD {
        return Err(format!("it has {} bytes; the most is {LARGEST_RECORD}", text.len()));
    }
    if !text.starts_with('{') {
        return Err("it should be an object".to_owned());
    }
    let record: Record = serde_json::from_str(text).map_err(|e| with_its_field(text, &e))?;
    Ok(record::Record {
        time_unix_nano: record.time_unix_nano.0,
        observed_time_unix_nano: record.observed_time_unix_nano.0,
        severity_number: record.severity_number.0,
        severity_text: record.severity_text.into(),
        body: record.body.map(|any| any.0),
        attributes: pairs(record.attributes),
        dropped_attributes_count: record.dropped_attributes_count.0,
        flags: record.flags.0,
        trace_id: record.trace_id.0.into(),
        span_id: record.span_id.0.into(),
        event_name: record.event_name.into(),
    })
}

impl Owner {
    fn read(self) -> record::Owner<'static> {
        record::Owner {
            name: self.name.into(),
            version: self.version.into(),
            attributes: pairs(self.attributes),
            dropped_attributes_count: self.dropped_attributes_count.0,
        }
    }
}

fn pairs(pairs: Vec<Pair>) -> Vec<value::Pair<'static>> {
    let pair = |pair: Pair| value::Pair { key: pair.key.into(), value: pair.value.map(|any| any.0) };
    pairs.into_iter().map(pair).collect()
}

/// What is wrong with a record, and in which of its fields. Looked for only now: it costs more than reading does.
fn with_its_field(text: &str, error: &serde_json::Error) -> String {
    let again = serde_path_to_error::deserialize::<_, Record>(&mut serde_json::Deserializer::from_str(text));
    let field = again.err().map(|e| e.path().to_string()).filter(|path| path != ".");
    format!("{}{error} of the record", field.map_or_else(String::new, |field| format!("{field}: ")))
}

/// `null` is the default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// An integer, as a number or a string; also with a fraction of 0 or an exponent.
#[derive(Default)]
struct Integer<T>(T);

struct IntegerVisitor<T>(PhantomData<T>);

impl<'de, T: FromStr + TryFrom<i128>> Deserialize<'de> for Integer<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(IntegerVisitor(PhantomData))
    }
}

impl<T: FromStr + TryFrom<i128>> Visitor<'_> for IntegerVisitor<T> {
    type Value = Integer<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, or a string with one")
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        within(number.into())
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        within(number.into())
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        // Larger ones would be cut silently.
        let is_whole = number.fract() == 0.0 && number.abs() < 1e30;
        if is_whole { within(number as i128) } else { Err(E::custom(format!("{number} is no integer"))) }
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(Integer).map_err(|_| E::custom(format!("{:?} is no integer of its size", shortened(text))))
    }
}

fn within<T: TryFrom<i128>, E: de::Error>(number: i128) -> Result<Integer<T>, E> {
    T::try_from(number).map(Integer).map_err(|_| E::custom(format!("{number} is out of range")))
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(40)).unwrap_or(text)
}

/// An id in hex, of either case.
#[derive(Default)]
struct Hex(Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        hex::decode(&text)
            .map(Hex)
            .map_err(|e| de::Error::custom(format!("{:?} is no id in hex: {e}", shortened(&text))))
    }
}

/// A number, or a string with one: `NaN`, `Infinity`, `-Infinity`.
struct Double(f64);

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // As text, whose nearest double is found exactly.
        let raw = Box::<RawValue>::deserialize(from)?;
        let text = raw.get().trim_matches('"');
        let is_number = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        let number = match text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ if is_number => text.parse().ok(),
            _ => None,
        };
        number.map(Double).ok_or_else(|| de::Error::custom(format!("{:?} is no number", shortened(text))))
    }
}

/// Base64 of either alphabet, padded or not.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(from)?.replace('-', "+").replace('_', "/");
        text.truncate(text.trim_end_matches('=').len());
        while text.len() % 4 != 0 {
            text.push('=');
        }
        base64::decode(&text).map(Bytes).map_err(|e| de::Error::custom(format!("bytesValue is no base64: {e}")))
    }
}

/// An `AnyValue`. With no field that is known it is empty.
#[derive(Default)]
struct Any(Value<'static>);

struct AnyVisitor;

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyVisitor)
    }
}

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an AnyValue, such as {\"stringValue\":\"…\"}")
    }
    fn visit_unit<E>(self) -> Result<Any, E> {
        Ok(Any::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any, A::Error> {
        let mut value = Value::Empty;
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let found = match &*key {
                "stringValue" => map.next_value::<Option<String>>()?.map(|text| Value::Text(text.into())),
                "boolValue" => map.next_value::<Option<bool>>()?.map(Value::Bool),
                "intValue" => map.next_value::<Option<Integer<i64>>>()?.map(|number| Value::Integer(number.0)),
                "doubleValue" => map.next_value::<Option<Double>>()?.map(|number| Value::Double(number.0)),
                "bytesValue" => map.next_value::<Option<Bytes>>()?.map(|bytes| Value::Bytes(bytes.0.into())),
                "arrayValue" => map
                    .next_value::<Option<List<Any>>>()?
                    .map(|list| Value::List(list.values.into_iter().map(|any| any.0).collect())),
                "kvlistValue" => map.next_value::<Option<List<Pair>>>()?.map(|list| Value::Map(pairs(list.values))),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            value = found.unwrap_or(value);
        }
        Ok(Any(value))
    }
}
