//! A source at work, and what is sent to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tokio_util::sync::CancellationToken;

use crate::config::{OtlpConfig, OtlpFormat, SourceConfig, SourceKind};
use crate::source::testing::FakeSink;
use crate::source::{Running, SourceEnded, spawn_into};

const LONG: Duration = Duration::from_secs(3600);

pub(super) fn any(value: Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

pub(super) fn text(text: &str) -> Option<AnyValue> {
    any(Value::StringValue(text.to_owned()))
}

pub(super) fn pair(key: &str, value: Option<AnyValue>) -> KeyValue {
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

pub(super) fn record(body: &str) -> LogRecord {
    LogRecord { body: text(body), ..LogRecord::default() }
}

/// Records of a service.
pub(super) fn of_service(service: &str, records: Vec<LogRecord>) -> ResourceLogs {
    let resource = Resource { attributes: vec![pair("service.name", text(service))], ..Resource::default() };
    let scope_logs = vec![ScopeLogs { log_records: records, ..ScopeLogs::default() }];
    ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() }
}

pub(super) fn request(records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let scope_logs = vec![ScopeLogs { log_records: records, ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

pub(super) struct Server {
    pub(super) running: Running,
    pub(super) shutdown: CancellationToken,
    pub(super) sink: Arc<FakeSink>,
}

impl Server {
    pub(super) fn grpc(change: impl FnOnce(&mut OtlpConfig)) -> Self {
        Self::start(|otlp| {
            otlp.grpc = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
            change(otlp);
        })
    }

    pub(super) fn http(change: impl FnOnce(&mut OtlpConfig)) -> Self {
        Self::start(|otlp| {
            otlp.http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
            change(otlp);
        })
    }

    fn start(change: impl FnOnce(&mut OtlpConfig)) -> Self {
        let mut otlp = OtlpConfig {
            grpc: None,
            http: None,
            tls: None,
            format: OtlpFormat::Json,
            tag_from: None,
            max_body_bytes: 1 << 20,
            handshake_timeout: LONG,
            idle_timeout: LONG,
            max_connections: 1024,
        };
        change(&mut otlp);
        let kind = SourceKind::Otlp(Box::new(otlp));
        let source = SourceConfig { name: "otlp".into(), tenant: None, parse: None, tag: "otlp.tag".into(), kind };
        let (sink, shutdown) = (FakeSink::new(), CancellationToken::new());
        let running = spawn_into(&source, Arc::new(sink.clone()), shutdown.clone()).unwrap();
        Self { running, shutdown, sink }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.running.address().unwrap()
    }

    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(30), self.running.ended()).await;
        assert_eq!(ended.expect("the stop waits"), SourceEnded::Stopped);
        assert_eq!(self.sink.connections(), 0);
    }
}
