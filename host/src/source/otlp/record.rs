//! A log record as JSON, with what its resource and scope say. `docs/sources.md` has the table.

use std::borrow::Cow;

use super::value::{Fields, Pair, Value, attributes, key, value};
use crate::config::OtlpFormat;
use crate::record::DateFormat;
use crate::record::encode::write_json_string;

/// A `LogRecord` (opentelemetry/proto/logs/v1/logs.proto), with its texts where they lie in the request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Record<'a> {
    pub(super) time_unix_nano: u64,
    pub(super) observed_time_unix_nano: u64,
    pub(super) severity_number: i32,
    pub(super) severity_text: Cow<'a, str>,
    pub(super) body: Option<Value<'a>>,
    pub(super) attributes: Vec<Pair<'a>>,
    pub(super) dropped_attributes_count: u32,
    pub(super) flags: u32,
    pub(super) trace_id: Cow<'a, [u8]>,
    pub(super) span_id: Cow<'a, [u8]>,
    pub(super) event_name: Cow<'a, str>,
}

/// A `Resource`, or an `InstrumentationScope`, which has a name as well.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Owner<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) attributes: Vec<Pair<'a>>,
    pub(super) dropped_attributes_count: u32,
}

/// What is written around the records of one scope.
#[derive(Debug, Default)]
pub(super) struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Around {
    pub(super) fn new(
        format: OtlpFormat,
        resource: Option<&Owner<'_>>,
        resource_schema: &str,
        scope: Option<&Owner<'_>>,
        scope_schema: &str,
    ) -> Self {
        match format {
            OtlpFormat::Json => plain_around(resource, resource_schema, scope, scope_schema),
            OtlpFormat::OtlpJson => typed_around(resource, resource_schema, scope, scope_schema),
        }
    }

    /// Appends a record, as an object on one line.
    pub(super) fn write(&self, format: OtlpFormat, record: &Record<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.before);
        let begin = out.len();
        match format {
            OtlpFormat::Json => plain_fields(record, out),
            OtlpFormat::OtlpJson => typed_fields(record, out),
        }
        if format == OtlpFormat::Json && out.len() > begin && self.after.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&self.after);
    }

    /// Bytes that every record has of it.
    pub(super) fn bytes(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// `{…,"resource":{…},"scope":{…}}`
fn plain_around(
    resource: Option<&Owner<'_>>,
    resource_schema: &str,
    scope: Option<&Owner<'_>>,
    scope_schema: &str,
) -> Around {
    let (mut of_resource, mut of_scope, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = Fields::new(&mut of_resource);
    if let Some(resource) = resource {
        more(OtlpFormat::Json, &resource.attributes, resource.dropped_attributes_count, &mut fields);
    }
    fields.text(key!("schema_url"), resource_schema);
    let mut fields = Fields::new(&mut of_scope);
    if let Some(scope) = scope {
        fields.text(key!("name"), &scope.name);
        fields.text(key!("version"), &scope.version);
        more(OtlpFormat::Json, &scope.attributes, scope.dropped_attributes_count, &mut fields);
    }
    fields.text(key!("schema_url"), scope_schema);
    let mut fields = Fields::new(&mut after);
    for (key, inner) in [(key!("resource"), of_resource), (key!("scope"), of_scope)] {
        if !inner.is_empty() {
            let out = fields.key(key);
            out.push(b'{');
            out.extend_from_slice(&inner);
            out.push(b'}');
        }
    }
    after.push(b'}');
    Around { before: b"{".to_vec(), after }
}

fn more(format: OtlpFormat, pairs: &[Pair<'_>], dropped: u32, fields: &mut Fields<'_>) {
    if !pairs.is_empty() {
        attributes(format, pairs, fields.key(key!("attributes")));
    }
    let key =
        if format == OtlpFormat::Json { key!("dropped_attributes_count") } else { key!("droppedAttributesCount") };
    fields.number(key, dropped.into());
}

fn plain_fields(record: &Record<'_>, out: &mut Vec<u8>) {
    let mut fields = Fields::new(out);
    for (key, time) in [(key!("time"), record.time_unix_nano), (key!("observed_time"), record.observed_time_unix_nano)]
    {
        if let Some(time_ns) = time_ns(time) {
            DateFormat::Iso8601Nanos.write_json(time_ns, fields.key(key));
        }
    }
    fields.number(key!("severity_number"), record.severity_number.into());
    fields.text(key!("severity_text"), &record.severity_text);
    if record.body.is_some() {
        value(OtlpFormat::Json, record.body.as_ref(), fields.key(key!("body")));
    }
    more(OtlpFormat::Json, &record.attributes, record.dropped_attributes_count, &mut fields);
    fields.number(key!("flags"), record.flags.into());
    id::<16, 32>(key!("trace_id"), &record.trace_id, &mut fields);
    id::<8, 16>(key!("span_id"), &record.span_id, &mut fields);
    fields.text(key!("event_name"), &record.event_name);
}

/// `{"resource":{…},"scopeLogs":[{"scope":{…},"logRecords":[{…}],"schemaUrl":"…"}],"schemaUrl":"…"}`
fn typed_around(
    resource: Option<&Owner<'_>>,
    resource_schema: &str,
    scope: Option<&Owner<'_>>,
    scope_schema: &str,
) -> Around {
    let (mut before, mut after) = (b"{".to_vec(), b"}]".to_vec());
    if let Some(resource) = resource {
        before.extend_from_slice(b"\"resource\":{");
        let mut fields = Fields::new(&mut before);
        more(OtlpFormat::OtlpJson, &resource.attributes, resource.dropped_attributes_count, &mut fields);
        before.extend_from_slice(b"},");
    }
    before.extend_from_slice(b"\"scopeLogs\":[{");
    if let Some(scope) = scope {
        before.extend_from_slice(b"\"scope\":{");
        let mut fields = Fields::new(&mut before);
        fields.text(key!("name"), &scope.name);
        fields.text(key!("version"), &scope.version);
        more(OtlpFormat::OtlpJson, &scope.attributes, scope.dropped_attributes_count, &mut fields);
        before.extend_from_slice(b"},");
    }
    before.extend_from_slice(b"\"logRecords\":[{");
    let mut schema = |text: &str| {
        if !text.is_empty() {
            after.extend_from_slice(b",\"schemaUrl\":");
            write_json_string(text, &mut after);
        }
    };
    schema(scope_schema);
    after.extend_from_slice(b"}]");
    let mut schema = |text: &str| {
        if !text.is_empty() {
            after.extend_from_slice(b",\"schemaUrl\":");
            write_json_string(text, &mut after);
        }
    };
    schema(resource_schema);
    after.push(b'}');
    Around { before, after }
}

fn typed_fields(record: &Record<'_>, out: &mut Vec<u8>) {
    let format = OtlpFormat::OtlpJson;
    let mut fields = Fields::new(out);
    for (key, time) in
        [(key!("timeUnixNano"), record.time_unix_nano), (key!("observedTimeUnixNano"), record.observed_time_unix_nano)]
    {
        if time != 0 {
            fields.key(key).extend_from_slice(format!("\"{time}\"").as_bytes());
        }
    }
    fields.number(key!("severityNumber"), record.severity_number.into());
    fields.text(key!("severityText"), &record.severity_text);
    if record.body.is_some() {
        value(format, record.body.as_ref(), fields.key(key!("body")));
    }
    more(format, &record.attributes, record.dropped_attributes_count, &mut fields);
    fields.number(key!("flags"), record.flags.into());
    id::<16, 32>(key!("traceId"), &record.trace_id, &mut fields);
    id::<8, 16>(key!("spanId"), &record.span_id, &mut fields);
    fields.text(key!("eventName"), &record.event_name);
}

/// A record's time: "Use time_unix_nano if it is present, otherwise use observed_time_unix_nano" (opentelemetry/proto/logs/v1/logs.proto).
pub(super) fn time_of(record: &Record<'_>) -> Option<i64> {
    time_ns(record.time_unix_nano).or_else(|| time_ns(record.observed_time_unix_nano))
}

/// 0 is none, and beyond the year 2262 is none that can be kept.
fn time_ns(time: u64) -> Option<i64> {
    i64::try_from(time).ok().filter(|time_ns| *time_ns != 0)
}

/// An id in hex. One that is all zeros, or of another length, is none: "receivers SHOULD assume that the log record is not associated with a
/// trace".
fn id<const BYTES: usize, const DIGITS: usize>(key: &str, bytes: &[u8], fields: &mut Fields<'_>) {
    if bytes.len() != BYTES || bytes.iter().all(|byte| *byte == 0) {
        return;
    }
    let mut digits = [0; DIGITS];
    if hex::encode_to_slice(bytes, &mut digits).is_ok() {
        let out = fields.key(key);
        out.push(b'"');
        out.extend_from_slice(&digits);
        out.push(b'"');
    }
}
