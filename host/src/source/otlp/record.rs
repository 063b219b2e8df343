//! A log record as JSON, with what its resource and scope say. `docs/sources.md` has the table.

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::value::{Fields, attributes, string, value};
use crate::config::OtlpFormat;
use crate::record::DateFormat;

/// What is written around the records of one scope.
#[derive(Debug, Default)]
pub(super) struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Around {
    pub(super) fn new(
        format: OtlpFormat,
        resource: Option<&Resource>,
        resource_schema: &str,
        scope: Option<&InstrumentationScope>,
        scope_schema: &str,
    ) -> Self {
        match format {
            OtlpFormat::Json => plain_around(resource, resource_schema, scope, scope_schema),
            OtlpFormat::OtlpJson => typed_around(resource, resource_schema, scope, scope_schema),
        }
    }

    /// Writes a record into `out`, as an object on one line.
    pub(super) fn write(&self, format: OtlpFormat, record: &LogRecord, out: &mut Vec<u8>) {
        out.clear();
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
    resource: Option<&Resource>,
    resource_schema: &str,
    scope: Option<&InstrumentationScope>,
    scope_schema: &str,
) -> Around {
    let (mut of_resource, mut of_scope, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = Fields::new(&mut of_resource);
    if let Some(resource) = resource {
        more(OtlpFormat::Json, &resource.attributes, resource.dropped_attributes_count, &mut fields);
    }
    fields.text("schema_url", resource_schema);
    let mut fields = Fields::new(&mut of_scope);
    if let Some(scope) = scope {
        fields.text("name", &scope.name);
        fields.text("version", &scope.version);
        more(OtlpFormat::Json, &scope.attributes, scope.dropped_attributes_count, &mut fields);
    }
    fields.text("schema_url", scope_schema);
    let mut fields = Fields::new(&mut after);
    for (key, inner) in [("resource", of_resource), ("scope", of_scope)] {
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

fn more(format: OtlpFormat, pairs: &[KeyValue], dropped: u32, fields: &mut Fields<'_>) {
    if !pairs.is_empty() {
        attributes(format, pairs, fields.key("attributes"));
    }
    let key = if format == OtlpFormat::Json { "dropped_attributes_count" } else { "droppedAttributesCount" };
    fields.number(key, dropped.into());
}

fn plain_fields(record: &LogRecord, out: &mut Vec<u8>) {
    let mut fields = Fields::new(out);
    for (key, time) in [("time", record.time_unix_nano), ("observed_time", record.observed_time_unix_nano)] {
        if let Some(time_ns) = time_ns(time) {
            DateFormat::Iso8601Nanos.write_json(time_ns, fields.key(key));
        }
    }
    fields.number("severity_number", record.severity_number.into());
    fields.text("severity_text", &record.severity_text);
    if record.body.is_some() {
        value(OtlpFormat::Json, record.body.as_ref(), fields.key("body"));
    }
    more(OtlpFormat::Json, &record.attributes, record.dropped_attributes_count, &mut fields);
    fields.number("flags", record.flags.into());
    fields.text("trace_id", &id(&record.trace_id, 16));
    fields.text("span_id", &id(&record.span_id, 8));
    fields.text("event_name", &record.event_name);
}

/// `{"resource":{…},"scopeLogs":[{"scope":{…},"logRecords":[{…}],"schemaUrl":"…"}],"schemaUrl":"…"}`
fn typed_around(
    resource: Option<&Resource>,
    resource_schema: &str,
    scope: Option<&InstrumentationScope>,
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
        fields.text("name", &scope.name);
        fields.text("version", &scope.version);
        more(OtlpFormat::OtlpJson, &scope.attributes, scope.dropped_attributes_count, &mut fields);
        before.extend_from_slice(b"},");
    }
    before.extend_from_slice(b"\"logRecords\":[{");
    let mut schema = |text: &str| {
        if !text.is_empty() {
            after.extend_from_slice(b",\"schemaUrl\":");
            string(text, &mut after);
        }
    };
    schema(scope_schema);
    after.extend_from_slice(b"}]");
    let mut schema = |text: &str| {
        if !text.is_empty() {
            after.extend_from_slice(b",\"schemaUrl\":");
            string(text, &mut after);
        }
    };
    schema(resource_schema);
    after.push(b'}');
    Around { before, after }
}

fn typed_fields(record: &LogRecord, out: &mut Vec<u8>) {
    let format = OtlpFormat::OtlpJson;
    let mut fields = Fields::new(out);
    for (key, time) in
        [("timeUnixNano", record.time_unix_nano), ("observedTimeUnixNano", record.observed_time_unix_nano)]
    {
        if time != 0 {
            fields.key(key).extend_from_slice(format!("\"{time}\"").as_bytes());
        }
    }
    fields.number("severityNumber", record.severity_number.into());
    fields.text("severityText", &record.severity_text);
    if record.body.is_some() {
        value(format, record.body.as_ref(), fields.key("body"));
    }
    more(format, &record.attributes, record.dropped_attributes_count, &mut fields);
    fields.number("flags", record.flags.into());
    fields.text("traceId", &id(&record.trace_id, 16));
    fields.text("spanId", &id(&record.span_id, 8));
    fields.text("eventName", &record.event_name);
}

/// A record's time: "Use time_unix_nano if it is present, otherwise use observed_time_unix_nano" (opentelemetry/proto/logs/v1/logs.proto).
pub(super) fn time_of(record: &LogRecord) -> Option<i64> {
    time_ns(record.time_unix_nano).or_else(|| time_ns(record.observed_time_unix_nano))
}

/// 0 is none, and beyond the year 2262 is none that can be kept.
fn time_ns(time: u64) -> Option<i64> {
    i64::try_from(time).ok().filter(|time_ns| *time_ns != 0)
}

/// An id in hex. One that is all zeros, or of another length, is none: "receivers SHOULD assume that the log record is not associated with a
/// trace".
fn id(bytes: &[u8], length: usize) -> String {
    if bytes.len() == length && bytes.iter().any(|byte| *byte != 0) { hex::encode(bytes) } else { String::new() }
}
