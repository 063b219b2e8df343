//! A client as small as can be, that signs as AWS's SDK does.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use serde_json::Value;

use crate::logs::Logs;

/// What to sign with.
#[derive(Debug, Clone)]
pub(super) struct Client {
    host: String,
    pub(super) access_key: String,
    pub(super) secret_key: String,
    pub(super) region: String,
    pub(super) service: String,
    pub(super) time: Option<SystemTime>,
    pub(super) headers: Vec<(String, String)>,
    /// Sent instead of the body that was signed.
    pub(super) forged_body: Option<String>,
}

impl Client {
    pub(super) fn of(logs: &Logs) -> Self {
        Self {
            host: logs.endpoint().trim_start_matches("http://").to_owned(),
            access_key: "test".into(),
            secret_key: "testsecret".into(),
            region: "us-east-1".into(),
            service: "logs".into(),
            time: None,
            headers: Vec::new(),
            forged_body: None,
        }
    }
    /// The bytes that come back, whatever they are; an error where the connection broke before its end was announced.
    pub(super) fn raw(&self, operation: &str, body: &str) -> std::io::Result<Vec<u8>> {
        let identity = Credentials::new(&self.access_key, &self.secret_key, None, None, "test").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service)
            .time(self.time.unwrap_or_else(SystemTime::now))
            .settings(SigningSettings::default())
            .build()
            .unwrap()
            .into();
        let target = format!("Logs_20140328.{operation}");
        let mut headers = vec![
            ("host", self.host.as_str()),
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", target.as_str()),
        ];
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let signable = SignableRequest::new(
            "POST",
            format!("http://{}/", self.host),
            headers.iter().copied(),
            SignableBody::Bytes(body.as_bytes()),
        );
        let (signed, _) = sign(signable.unwrap(), &params).unwrap().into_parts();
        headers.extend(signed.headers());
        let body = self.forged_body.as_deref().unwrap_or(body);
        let mut request = format!("POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut socket = TcpStream::connect(&self.host)?;
        socket.write_all(request.as_bytes())?;
        socket.write_all(b"\r\n")?;
        socket.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer)?;
        Ok(answer)
    }
    /// Status and content.
    pub(super) fn call_text(&self, operation: &str, body: &str) -> (u16, Value) {
        let answer = String::from_utf8(self.raw(operation, body).unwrap()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() })
    }
    /// The content of an answer that must be good.
    pub(super) fn ok(&self, operation: &str, input: &Value) -> Value {
        let (status, content) = self.call_text(operation, &input.to_string());
        assert_eq!(status, 200, "{operation}: {content}");
        content
    }
    /// Status, code and message of an answer that must be none.
    pub(super) fn refused(&self, operation: &str, input: &Value) -> (u16, String, String) {
        let (status, content) = self.call_text(operation, &input.to_string());
        assert_ne!(status, 200, "{operation} was accepted: {content}");
        (status, content["__type"].as_str().unwrap().into(), content["message"].as_str().unwrap().into())
    }
    /// The code alone; `ok` where it is accepted.
    pub(super) fn code(&self, operation: &str, input: &Value) -> String {
        let (status, content) = self.call_text(operation, &input.to_string());
        if status == 200 { "ok".into() } else { content["__type"].as_str().unwrap().into() }
    }
}
