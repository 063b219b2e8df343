//! What a request asks for, in the words of the WIT file: for a person, and to be compared.

use std::io::Read as _;

use bytes::Bytes;
use http::request::Parts;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use wharf_local_aws::{Operation, Target};

/// A longer body is told by its size and digest.
const LONGEST_BODY: usize = 256 << 10;
/// Decoded, no body is longer: a bomb is told as it is.
const LONGEST_DECODED: u64 = 64 << 20;

/// A request to AWS: capability, function, and what is to be said of it.
pub(super) struct Asked {
    pub(super) capability: &'static str,
    pub(super) function: String,
    pub(super) said: Map<String, Value>,
}

impl Asked {
    fn new(capability: &'static str, function: String) -> Self {
        let mut said = Map::new();
        said.insert(capability.to_owned(), function.clone().into());
        Self { capability, function, said }
    }

    fn say(&mut self, key: &str, value: impl Into<Value>) {
        self.said.insert(key.to_owned(), value.into());
    }
}

/// Reads a request to either service.
pub(super) fn of_aws(head: &Parts, body: &Bytes) -> Asked {
    match head.headers.get("x-amz-target").and_then(|target| target.to_str().ok()) {
        Some(target) => of_logs(target, head, body),
        None => of_s3(head, body),
    }
}

fn of_s3(head: &Parts, body: &Bytes) -> Asked {
    let query = head.uri.query().unwrap_or_default();
    let target = Target::of(&head.method, head.uri.path(), query);
    let mut asked = Asked::new("s3", kebab(target.operation.name()));
    asked.say("bucket", target.bucket);
    if !target.key.is_empty() {
        asked.say("key", target.key);
    }
    let parameter = |name: &str| {
        url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    if let Some(prefix) = parameter("prefix") {
        asked.say("prefix", prefix);
    }
    if let Some(number) = parameter("partNumber").and_then(|number| number.parse::<u16>().ok()) {
        asked.say("part", number);
    }
    let headers = headers(head);
    if !headers.is_empty() {
        asked.say("headers", headers);
    }
    match target.operation {
        Operation::CompleteMultipartUpload => {
            // Everything in it but the number is the server's own word.
            let parts = String::from_utf8_lossy(body).matches("<PartNumber>").count();
            asked.say("parts", parts);
        }
        _ if !body.is_empty() => asked.say("body", text_of(head, body)),
        _ => {}
    }
    asked
}

fn of_logs(target: &str, head: &Parts, body: &Bytes) -> Asked {
    let function = kebab(target.rsplit('.').next().unwrap_or_default());
    let mut asked = Asked::new("cloudwatch_logs", function);
    let Ok(Value::Object(input)) = serde_json::from_slice(body) else {
        asked.say("body", text_of(head, body));
        return asked;
    };
    if let Some(format) = head.headers.get("x-amzn-logs-format").and_then(|format| format.to_str().ok()) {
        asked.say("format", format);
    }
    for (key, value) in input {
        match (key.as_str(), value) {
            ("logEvents", Value::Array(events)) => {
                let events: Vec<Value> = events.iter().map(event).collect();
                asked.say("events", events);
            }
            (key, value) => asked.say(shorter(key), value),
        }
    }
    asked
}

/// The API's names, as the WIT file and the configuration have them.
fn shorter(key: &str) -> &str {
    match key {
        "logGroupName" => "log_group",
        "logStreamName" => "log_stream",
        "retentionInDays" => "days",
        "logGroupClass" => "class",
        "kmsKeyId" => "kms_key_id",
        other => other,
    }
}

fn event(event: &Value) -> Value {
    let millis = event.get("timestamp").and_then(Value::as_i64).unwrap_or_default();
    let time = Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"));
    json!({ "time": time, "message": event.get("message") })
}

/// Headers that are not of the transport, the signature or the SDK's own.
pub(super) fn headers(head: &Parts) -> Map<String, Value> {
    const TRANSPORT: [&str; 8] = [
        "authorization",
        "host",
        "content-length",
        "user-agent",
        "x-amz-date",
        "x-amz-user-agent",
        "x-amz-content-sha256",
        "x-amz-security-token",
    ];
    let mut all: Vec<(String, String)> = head
        .headers
        .iter()
        .filter(|(name, _)| !TRANSPORT.contains(&name.as_str()) && !name.as_str().starts_with("amz-sdk-"))
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    all.sort();
    all.into_iter().map(|(name, value)| (name, value.into())).collect()
}

/// A body for a person: decompressed, as text where it is some.
pub(crate) fn text_of(head: &Parts, body: &Bytes) -> Value {
    let encoding = head.headers.get(http::header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let decoded = match decoded(encoding.unwrap_or_default(), body) {
        Ok(decoded) => decoded,
        Err(what) => {
            return format!("{} bytes that are no {}: {what}", body.len(), encoding.unwrap_or_default()).into();
        }
    };
    match String::from_utf8(decoded) {
        Ok(text) if text.len() <= LONGEST_BODY => text.into(),
        Ok(text) => told(text.as_bytes()),
        Err(error) => told(error.as_bytes()),
    }
}

fn told(bytes: &[u8]) -> Value {
    format!("{} bytes, sha256 {}", bytes.len(), hex::encode(Sha256::digest(bytes))).into()
}

fn decoded(encoding: &str, body: &Bytes) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // What is compressed says so in its first bytes, whatever the headers say: S3 objects often come without the header.
    match encoding {
        "gzip" => flate2::read::MultiGzDecoder::new(body.as_ref()).take(LONGEST_DECODED).read_to_end(&mut bytes)?,
        _ if body.starts_with(&[0x1f, 0x8b]) => {
            flate2::read::MultiGzDecoder::new(body.as_ref()).take(LONGEST_DECODED).read_to_end(&mut bytes)?
        }
        _ if encoding == "zstd" || body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
            zstd::stream::read::Decoder::new(body.as_ref())?.take(LONGEST_DECODED).read_to_end(&mut bytes)?
        }
        _ => {
            bytes.extend_from_slice(body);
            bytes.len()
        }
    };
    Ok(bytes)
}

/// `PutObject` is `put-object` in the WIT file.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for (n, c) in name.char_indices() {
        if c.is_ascii_uppercase() && n > 0 {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    kebab
}
