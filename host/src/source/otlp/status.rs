//! The messages of answers: `ExportLogsServiceResponse`, and `google.rpc.Status` with `RetryInfo`.

use std::time::Duration;

use prost::Message as _;

use super::denied::Denied;
use super::gather::Rejected;
use super::http::Wire;
use crate::record::encode::write_json_string;

/// `google.rpc.Status` (googleapis, google/rpc/status.proto).
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Any>,
}

/// `google.protobuf.Any`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// `google.rpc.RetryInfo` (google/rpc/error_details.proto), and its `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) retry_delay: Option<Delay>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Delay {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

pub(super) const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

impl Status {
    pub(super) fn of(denied: &Denied) -> Self {
        let details = denied.retry_after().map(|after| Any {
            type_url: RETRY_INFO.to_owned(),
            value: RetryInfo { retry_delay: Some(delay(after)) }.encode_to_vec(),
        });
        Self { code: denied.grpc() as i32, message: denied.to_string(), details: details.into_iter().collect() }
    }

    /// "The response body for all HTTP 4xx and HTTP 5xx responses MUST be a Protobuf-encoded Status message", or the same as JSON.
    pub(super) fn written(&self, wire: Wire) -> Vec<u8> {
        match wire {
            Wire::Protobuf => self.encode_to_vec(),
            Wire::Json => {
                let mut out = format!("{{\"code\":{},\"message\":", self.code).into_bytes();
                write_json_string(&self.message, &mut out);
                out.push(b'}');
                out
            }
        }
    }
}

fn delay(after: Duration) -> Delay {
    Delay { seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX), nanos: after.subsec_nanos() as i32 }
}

/// Of opentelemetry/proto/collector/logs/v1/logs_service.proto.
#[derive(Clone, PartialEq, prost::Message)]
struct ExportLogsServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<ExportLogsPartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExportLogsPartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_log_records: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// An `ExportLogsServiceResponse`. "Full Success": "the server MUST leave the `partial_success` field unset".
pub(super) fn response(rejected: Option<&Rejected>, wire: Wire) -> Vec<u8> {
    let (records, message) = rejected.map_or((0, String::new()), |rejected| (rejected.records, rejected.message()));
    match wire {
        Wire::Protobuf => {
            let rejected_log_records = i64::try_from(records).unwrap_or(i64::MAX);
            let partial = ExportLogsPartialSuccess { rejected_log_records, error_message: message };
            ExportLogsServiceResponse { partial_success: rejected.map(|_| partial) }.encode_to_vec()
        }
        Wire::Json if rejected.is_none() => b"{}".to_vec(),
        Wire::Json => {
            let mut out =
                format!("{{\"partialSuccess\":{{\"rejectedLogRecords\":\"{records}\",\"errorMessage\":").into_bytes();
            write_json_string(&message, &mut out);
            out.extend_from_slice(b"}}");
            out
        }
    }
}
