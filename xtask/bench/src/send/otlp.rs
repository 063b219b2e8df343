//! Lines as requests of OTLP: what a log appender of an SDK, or a collector that reads a file, makes of them.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use super::each_line;

/// What a record has.
pub const A_RECORD: &str = "a record has its line as body, two times, a severity and an attribute, and a resource with two and a scope around it";

/// 2026-11-30, 12:00 UTC.
const BEGIN_NS: u64 = 1_796_040_000_000_000_000;

/// Lines as requests of so many records.
pub fn requests(lines: &[u8], records: usize) -> Vec<Bytes> {
    let mut each = (0_u64..).zip(each_line(lines)).map(|(number, line)| record(number, line)).peekable();
    let mut requests = Vec::new();
    while each.peek().is_some() {
        let log_records = each.by_ref().take(records).collect();
        requests.push(request(log_records).encode_to_vec().into());
    }
    requests
}

fn request(log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let attributes = vec![pair("service.name", "shop"), pair("host.name", "web-7")];
    let scope = InstrumentationScope { name: "access".to_owned(), ..InstrumentationScope::default() };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_logs: vec![ScopeLogs { scope: Some(scope), log_records, ..ScopeLogs::default() }],
            ..ResourceLogs::default()
        }],
    }
}

fn record(number: u64, line: &[u8]) -> LogRecord {
    let time_ns = BEGIN_NS + number * 1_000_003;
    LogRecord {
        time_unix_nano: time_ns,
        observed_time_unix_nano: time_ns + 54_321,
        severity_number: SeverityNumber::Info.into(),
        severity_text: "INFO".to_owned(),
        body: text(&String::from_utf8_lossy(line)),
        attributes: vec![pair("log.file.name", "access.log")],
        ..LogRecord::default()
    }
}

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: text(value), ..KeyValue::default() }
}

fn text(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_record_of_some_request() {
        let lines = [[b'y'; 199].as_slice(), b"\n"].concat().repeat(1_000);
        let made = requests(&lines, 512);
        let counts: Vec<usize> = made
            .iter()
            .map(|bytes| {
                let request = ExportLogsServiceRequest::decode(bytes.clone()).unwrap();
                request.resource_logs[0].scope_logs[0].log_records.len()
            })
            .collect();
        assert_eq!(counts, [512, 488]);
    }
}
