//! Requests of Protocol Buffers.
//!
//! They are read where they lie: texts and bytes are not copied, so that a record costs no memory of its own. A record which is none (text that is no
//! UTF-8, nested too deep) costs only itself; what a resource and a scope say, the schema last, is read before their records. Unknown fields
//! are skipped, a field that comes twice is merged, and one of another type than it should be is a fault, all as Protocol Buffers have it
//! (<https://protobuf.dev/programming-guides/encoding/>).

use std::borrow::Cow;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::denied::Denied;
use super::gather::{Gather, LARGEST_RECORD};
use super::record::{Owner, Record};
use super::value::{Pair, Value};

/// Numbers of fields (opentelemetry/proto/logs/v1/logs.proto). In `ExportLogsServiceRequest`:
const RESOURCE_LOGS: u32 = 1;
/// In `ResourceLogs` and `ScopeLogs` alike: the resource or scope, what is of it, and its schema.
const WHOSE: u32 = 1;
const INSIDE: u32 = 2;
const SCHEMA_URL: u32 = 3;

/// How deep values are read: some deeper than is taken, which is then said by its own error.
const DEEPEST: usize = 50;

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("{0}")]
    Encoding(#[from] prost::DecodeError),
    #[error("it ends inside a field")]
    Short,
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    #[error("{0} has another type than it should have")]
    Type(&'static str),
    #[error("its values are nested more than {DEEPEST} deep")]
    Deep,
}

impl From<Broken> for Denied {
    fn from(broken: Broken) -> Self {
        Self::Malformed(broken.to_string())
    }
}

/// Reads an `ExportLogsServiceRequest`.
pub(super) fn read<'a>(request: &'a [u8], gather: &mut Gather<'a>) -> Result<(), Denied> {
    // One for all of them: its memory is used again.
    let mut record = Record::default();
    each(
        request,
        |number, message| {
            if number == RESOURCE_LOGS { resource_logs(message, gather, &mut record) } else { Ok(()) }
        },
    )
}

fn resource_logs<'a>(message: &'a [u8], gather: &mut Gather<'a>, record: &mut Record<'a>) -> Result<(), Denied> {
    let (resource, schema_url) = whose(message, "a resource", merge_resource)?;
    gather.resource(resource, schema_url)?;
    each(message, |number, message| if number == INSIDE { scope_logs(message, gather, record) } else { Ok(()) })
}

fn scope_logs<'a>(message: &'a [u8], gather: &mut Gather<'a>, record: &mut Record<'a>) -> Result<(), Denied> {
    let (scope, schema_url) = whose(message, "a scope", merge_scope)?;
    gather.scope(scope.as_ref(), &schema_url, message.len())?;
    each(message, |number, message| {
        if number != INSIDE {
            return Ok(());
        }
        let sent = message.len();
        if sent > LARGEST_RECORD {
            return gather.record(Err(format!("it has {sent} bytes; the most is {LARGEST_RECORD}")), sent);
        }
        match read_record(message, record) {
            Ok(()) => gather.record(Ok(record), sent),
            Err(broken) => gather.record(Err(broken.to_string()), sent),
        }
    })
}

/// The first field of a message, and its third.
fn whose<'a>(
    message: &'a [u8],
    what: &str,
    merge: impl Fn(&mut Owner<'a>, &'a [u8]) -> Result<(), Broken>,
) -> Result<(Option<Owner<'a>>, Cow<'a, str>), Denied> {
    let (mut found, mut schema_url) = (None, Cow::default());
    each(message, |number, bytes| {
        match number {
            WHOSE if bytes.len() > LARGEST_RECORD => {
                return Err(Denied::Malformed(format!("{what} has more than {LARGEST_RECORD} bytes")));
            }
            WHOSE => {
                let merged = merge(found.get_or_insert_default(), bytes);
                merged.map_err(|broken| Denied::Malformed(format!("{what}: {broken}")))?;
            }
            SCHEMA_URL => schema_url = String::from_utf8_lossy(bytes),
            _ => {}
        }
        Ok(())
    })?;
    Ok((found, schema_url))
}

/// The fields with bytes of a message, in their order.
fn each<'a>(message: &'a [u8], mut part: impl FnMut(u32, &'a [u8]) -> Result<(), Denied>) -> Result<(), Denied> {
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        if let Field::Bytes(bytes) = field {
            part(number, bytes)?;
        }
    }
    Ok(())
}

fn merge_resource<'a>(resource: &mut Owner<'a>, message: &'a [u8]) -> Result<(), Broken> {
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        match number {
            1 => resource.attributes.push(pair(field.bytes("attributes")?, DEEPEST)?),
            2 => resource.dropped_attributes_count = field.varint("dropped_attributes_count")? as u32,
            _ => {}
        }
    }
    Ok(())
}

fn merge_scope<'a>(scope: &mut Owner<'a>, message: &'a [u8]) -> Result<(), Broken> {
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        match number {
            1 => scope.name = field.text("name")?,
            2 => scope.version = field.text("version")?,
            3 => scope.attributes.push(pair(field.bytes("attributes")?, DEEPEST)?),
            4 => scope.dropped_attributes_count = field.varint("dropped_attributes_count")? as u32,
            _ => {}
        }
    }
    Ok(())
}

/// Reads a `LogRecord`, in the place of what was there.
pub(super) fn read_record<'a>(message: &'a [u8], record: &mut Record<'a>) -> Result<(), Broken> {
    let mut attributes = std::mem::take(&mut record.attributes);
    attributes.clear();
    *record = Record { attributes, ..Record::default() };
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        match number {
            1 => record.time_unix_nano = field.fixed64("time_unix_nano")?,
            2 => record.severity_number = field.varint("severity_number")? as i32,
            3 => record.severity_text = field.text("severity_text")?,
            5 => merge_value(record.body.get_or_insert_default(), field.bytes("body")?, DEEPEST)?,
            6 => record.attributes.push(pair(field.bytes("attributes")?, DEEPEST)?),
            7 => record.dropped_attributes_count = field.varint("dropped_attributes_count")? as u32,
            8 => record.flags = field.fixed32("flags")?,
            9 => record.trace_id = field.bytes("trace_id")?.into(),
            10 => record.span_id = field.bytes("span_id")?.into(),
            11 => record.observed_time_unix_nano = field.fixed64("observed_time_unix_nano")?,
            12 => record.event_name = field.text("event_name")?,
            _ => {}
        }
    }
    Ok(())
}

fn pair(message: &[u8], depth: usize) -> Result<Pair<'_>, Broken> {
    let mut pair = Pair::default();
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        match number {
            1 => pair.key = field.text("key")?,
            2 => merge_value(pair.value.get_or_insert_default(), field.bytes("value")?, depth)?,
            // `key_strindex`: of profiles.
            3 => drop(field.varint("key_strindex")?),
            _ => {}
        }
    }
    Ok(pair)
}

/// Of its fields the last is the value; a list or map after one of its kind goes on with it.
fn merge_value<'a>(value: &mut Value<'a>, message: &'a [u8], depth: usize) -> Result<(), Broken> {
    let depth = depth.checked_sub(1).ok_or(Broken::Deep)?;
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        *value = match number {
            1 => Value::Text(field.text("string_value")?),
            2 => Value::Bool(field.varint("bool_value")? != 0),
            3 => Value::Integer(field.varint("int_value")? as i64),
            4 => Value::Double(f64::from_bits(field.fixed64("double_value")?)),
            5 => {
                let mut values = if let Value::List(values) = value { std::mem::take(values) } else { Vec::new() };
                each_inside(field.bytes("array_value")?, |message| {
                    values.push(Value::Empty);
                    values.last_mut().map_or(Ok(()), |value| merge_value(value, message, depth))
                })?;
                Value::List(values)
            }
            6 => {
                let mut pairs = if let Value::Map(pairs) = value { std::mem::take(pairs) } else { Vec::new() };
                each_inside(field.bytes("kvlist_value")?, |message| {
                    pairs.push(pair(message, depth)?);
                    Ok(())
                })?;
                Value::Map(pairs)
            }
            7 => Value::Bytes(field.bytes("bytes_value")?.into()),
            8 => {
                field.varint("string_value_strindex")?;
                Value::Empty
            }
            _ => continue,
        };
    }
    Ok(())
}

/// `values` of an `ArrayValue` and of a `KeyValueList`.
fn each_inside<'a>(message: &'a [u8], mut inside: impl FnMut(&'a [u8]) -> Result<(), Broken>) -> Result<(), Broken> {
    let mut rest = message;
    while let Some((number, field)) = next_field(&mut rest)? {
        if number == 1 {
            inside(field.bytes("values")?)?;
        }
    }
    Ok(())
}

/// A field as it is on the wire.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Group,
    Fixed32(u32),
}

impl<'a> Field<'a> {
    fn varint(self, name: &'static str) -> Result<u64, Broken> {
        if let Self::Varint(number) = self { Ok(number) } else { Err(Broken::Type(name)) }
    }

    fn fixed64(self, name: &'static str) -> Result<u64, Broken> {
        if let Self::Fixed64(number) = self { Ok(number) } else { Err(Broken::Type(name)) }
    }

    fn fixed32(self, name: &'static str) -> Result<u32, Broken> {
        if let Self::Fixed32(number) = self { Ok(number) } else { Err(Broken::Type(name)) }
    }

    fn bytes(self, name: &'static str) -> Result<&'a [u8], Broken> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Broken::Type(name)) }
    }

    fn text(self, name: &'static str) -> Result<Cow<'a, str>, Broken> {
        let bytes = self.bytes(name)?;
        simdutf8::basic::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Broken::Text(name))
    }
}

/// Takes the next field of a message.
#[inline]
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, Field<'a>)>, Broken> {
    let Some((&first, behind)) = rest.split_first() else { return Ok(None) };
    // Numbers to 15, and lengths to 127, are one byte: nearly all of them. The rest, and what is no key at all, is for the library to read.
    let (number, kind) = (u32::from(first >> 3), WireType::try_from(u64::from(first & 7)));
    let (number, kind) = match kind {
        Ok(kind) if first < 0x80 && number > 0 => {
            *rest = behind;
            (number, kind)
        }
        _ => decode_key(rest)?,
    };
    let field = match kind {
        WireType::Varint => Field::Varint(varint(rest)?),
        WireType::LengthDelimited => {
            let length = usize::try_from(varint(rest)?).map_err(|_| Broken::Short)?;
            let (bytes, behind) = rest.split_at_checked(length).ok_or(Broken::Short)?;
            *rest = behind;
            Field::Bytes(bytes)
        }
        WireType::SixtyFourBit => Field::Fixed64(u64::from_le_bytes(fixed(rest)?)),
        WireType::ThirtyTwoBit => Field::Fixed32(u32::from_le_bytes(fixed(rest)?)),
        WireType::StartGroup | WireType::EndGroup => {
            skip_field(kind, number, rest, DecodeContext::default())?;
            Field::Group
        }
    };
    Ok(Some((number, field)))
}

#[inline]
fn varint(rest: &mut &[u8]) -> Result<u64, Broken> {
    match rest.split_first() {
        Some((&number @ ..0x80, behind)) => {
            *rest = behind;
            Ok(number.into())
        }
        _ => Ok(decode_varint(rest)?),
    }
}

fn fixed<const BYTES: usize>(rest: &mut &[u8]) -> Result<[u8; BYTES], Broken> {
    let (bytes, behind) = rest.split_first_chunk().ok_or(Broken::Short)?;
    *rest = behind;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Theirs;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
    use opentelemetry_proto::tonic::logs::v1::LogRecord;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn value_of(any: AnyValue) -> Value<'static> {
        match any.value {
            None | Some(Theirs::StringValueStrindex(_)) => Value::Empty,
            Some(Theirs::StringValue(text)) => Value::Text(text.into()),
            Some(Theirs::BoolValue(yes)) => Value::Bool(yes),
            Some(Theirs::IntValue(number)) => Value::Integer(number),
            // NaN is not itself.
            Some(Theirs::DoubleValue(number)) => Value::Integer(number.to_bits() as i64),
            Some(Theirs::BytesValue(bytes)) => Value::Bytes(bytes.into()),
            Some(Theirs::ArrayValue(array)) => Value::List(array.values.into_iter().map(value_of).collect()),
            Some(Theirs::KvlistValue(list)) => Value::Map(list.values.into_iter().map(pair_of).collect()),
        }
    }

    fn pair_of(pair: KeyValue) -> Pair<'static> {
        Pair { key: pair.key.into(), value: pair.value.map(value_of) }
    }

    /// What the generated code of the protocol makes of the same bytes.
    fn decoded(bytes: &[u8]) -> Option<Record<'static>> {
        let record = LogRecord::decode(bytes).ok()?;
        Some(Record {
            time_unix_nano: record.time_unix_nano,
            observed_time_unix_nano: record.observed_time_unix_nano,
            severity_number: record.severity_number,
            severity_text: record.severity_text.into(),
            body: record.body.map(value_of),
            attributes: record.attributes.into_iter().map(pair_of).collect(),
            dropped_attributes_count: record.dropped_attributes_count,
            flags: record.flags,
            trace_id: record.trace_id.into(),
            span_id: record.span_id.into(),
            event_name: record.event_name.into(),
        })
    }

    fn doubles_by_bits(value: &mut Value<'_>) {
        match value {
            Value::Double(number) => *value = Value::Integer(number.to_bits() as i64),
            Value::List(values) => values.iter_mut().for_each(doubles_by_bits),
            Value::Map(pairs) => pairs.iter_mut().filter_map(|pair| pair.value.as_mut()).for_each(doubles_by_bits),
            _ => {}
        }
    }

    fn ours(bytes: &[u8]) -> Option<Record<'_>> {
        // Nothing may be left of the one before.
        let left = Record {
            severity_text: "before".into(),
            body: Some(Value::Bool(true)),
            attributes: vec![Pair::default()],
            flags: 7,
            ..Record::default()
        };
        let mut record = left;
        read_record(bytes, &mut record).ok()?;
        let values = record.body.iter_mut().chain(record.attributes.iter_mut().filter_map(|pair| pair.value.as_mut()));
        values.for_each(doubles_by_bits);
        Some(record)
    }

    /// Bytes of fields that are known, with types that are mostly right, so that many a message has several of one.
    fn message(depth: u32) -> BoxedStrategy<Vec<u8>> {
        let varint = |mut number: u64| {
            let mut bytes = Vec::new();
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let inside = if depth == 0 {
            prop_oneof!["[a-zé😀]{0,5}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..5)].boxed()
        } else {
            prop_oneof![2 => message(depth - 1), 1 => "[a-zé]{0,5}".prop_map(String::into_bytes)].boxed()
        };
        let value = prop_oneof![
            1 => any::<u64>().prop_map(move |number| (0_u8, varint(number))),
            1 => any::<[u8; 8]>().prop_map(|bytes| (1, bytes.to_vec())),
            5 => inside.prop_map(|bytes| (2, [vec![u8::try_from(bytes.len() % 128).unwrap()], bytes].concat())),
            1 => any::<[u8; 4]>().prop_map(|bytes| (5, bytes.to_vec())),
        ];
        let field = (1_u8..15, value).prop_map(|(number, (kind, bytes))| [vec![number << 3 | kind], bytes].concat());
        prop::collection::vec(field, 0..4).prop_map(|fields| fields.concat()).boxed()
    }

    fn value() -> impl Strategy<Value = AnyValue> {
        use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};
        let leaf = prop_oneof![
            Just(None),
            any::<String>().prop_map(|text| Some(Theirs::StringValue(text))),
            any::<bool>().prop_map(|yes| Some(Theirs::BoolValue(yes))),
            any::<i64>().prop_map(|number| Some(Theirs::IntValue(number))),
            any::<f64>().prop_map(|number| Some(Theirs::DoubleValue(number))),
            any::<Vec<u8>>().prop_map(|bytes| Some(Theirs::BytesValue(bytes))),
        ];
        let leaf = leaf.prop_map(|value| AnyValue { value });
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|values| Theirs::ArrayValue(ArrayValue { values })),
                prop::collection::vec((any::<String>(), prop::option::of(inner)), 0..4).prop_map(|pairs| {
                    let pair = |(key, value)| KeyValue { key, value, ..KeyValue::default() };
                    Theirs::KvlistValue(KeyValueList { values: pairs.into_iter().map(pair).collect() })
                }),
            ]
            .prop_map(|value| AnyValue { value: Some(value) })
        })
    }

    fn record() -> impl Strategy<Value = LogRecord> {
        let attributes = prop::collection::vec((any::<String>(), prop::option::of(value())), 0..4);
        let ids = (any::<Vec<u8>>(), any::<Vec<u8>>());
        let texts = (any::<String>(), any::<String>());
        (any::<[u64; 2]>(), any::<i32>(), texts, prop::option::of(value()), attributes, any::<[u32; 2]>(), ids)
            .prop_map(
                |(
                    times,
                    severity_number,
                    (severity_text, event_name),
                    body,
                    attributes,
                    numbers,
                    (trace_id, span_id),
                )| {
                    let pair = |(key, value)| KeyValue { key, value, ..KeyValue::default() };
                    LogRecord {
                        time_unix_nano: times[0],
                        observed_time_unix_nano: times[1],
                        severity_number,
                        severity_text,
                        body,
                        attributes: attributes.into_iter().map(pair).collect(),
                        dropped_attributes_count: numbers[0],
                        flags: numbers[1],
                        trace_id,
                        span_id,
                        event_name,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(record in record()) {
            let bytes = record.encode_to_vec();
            prop_assert_eq!(ours(&bytes), decoded(&bytes));
            prop_assert!(decoded(&bytes).is_some());
        }

        #[test]
        fn two_records_in_one_are_merged(one in record(), other in record()) {
            let bytes = [one.encode_to_vec(), other.encode_to_vec()].concat();
            prop_assert_eq!(ours(&bytes), decoded(&bytes));
        }

        #[test]
        fn fields_in_any_order_and_of_any_type_are_read_as_by_generated_code(bytes in message(4)) {
            prop_assert_eq!(ours(&bytes), decoded(&bytes));
        }

        #[test]
        fn a_record_with_a_byte_changed_is_read_as_by_generated_code(
            record in record(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = record.encode_to_vec();
            prop_assume!(!bytes.is_empty());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            prop_assert_eq!(ours(&bytes), decoded(&bytes));
        }
    }
}
