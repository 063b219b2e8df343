//! `answers` of a test: what the services answer, by capability and operation.
//!
//! A list is gone through answer by answer, and its last one stays. What is not named is answered as by a service that works.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use crate::config::{Meaning, Node, NodeValue, Scalar, Section, Sink, json_value, nearest};

/// S3's functions in the WIT file.
pub(crate) const S3: [&str; 7] = [
    "put-object",
    "head-object",
    "create-multipart-upload",
    "upload-part",
    "complete-multipart-upload",
    "abort-multipart-upload",
    "list-multipart-uploads",
];
/// CloudWatch Logs' functions in the WIT file that go over the wire.
pub(crate) const CLOUDWATCH_LOGS: [&str; 4] =
    ["put-log-events", "create-log-group", "create-log-stream", "put-retention-policy"];

const WORDS: [&str; 6] = ["ok", "reset", "lost", "timeout", "hang", "no-credentials"];

/// What comes back for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What a service that works says, having done it.
    Ok,
    /// The connection breaks, and nothing was done.
    Reset,
    /// It was done, and then the connection broke.
    Lost,
    /// The host gave the request up after its time.
    Timeout,
    /// Nothing, ever: only the call's own time limit ends it.
    Hang,
    /// The host finds no credentials.
    NoCredentials,
    /// This, and nothing was done.
    Says(Says),
}

/// An answer that a test writes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Says {
    pub(crate) status: u16,
    /// The service's own word for it.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    /// How long it takes.
    pub(crate) after: Duration,
}

/// The answers of one operation, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines(pub(crate) Vec<Answer>);

/// All that a test scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) s3: HashMap<&'static str, Lines>,
    pub(crate) cloudwatch_logs: HashMap<&'static str, Lines>,
    /// By request lines in which `…` stands for anything.
    pub(crate) http: Vec<(String, Lines)>,
}

/// Lines that are gone through.
#[derive(Debug, Default)]
pub(crate) struct Script {
    lines: Lines,
    next: usize,
}

impl Script {
    pub(crate) fn new(lines: Lines) -> Self {
        Self { lines, next: 0 }
    }

    /// The next answer; the last one stays, and without any all is well.
    pub(crate) fn next(&mut self) -> Answer {
        let Lines(lines) = &self.lines;
        let answer = lines.get(self.next).or(lines.last()).cloned().unwrap_or(Answer::Ok);
        self.next += 1;
        answer
    }

    /// How many answers it has, and how many of them were ever given.
    pub(crate) fn given(&self) -> (usize, usize) {
        let Lines(lines) = &self.lines;
        (lines.len(), self.next.min(lines.len()))
    }
}

/// Reads `answers`.
pub(crate) fn read(mut section: Section<'_>) -> Answers {
    let s3 = section.section("s3").map(|s3| operations(s3, &S3)).unwrap_or_default();
    let logs = section.section("cloudwatch_logs").map(|logs| operations(logs, &CLOUDWATCH_LOGS)).unwrap_or_default();
    let http = http(&mut section);
    section.finish(&[
        ("logs", "did you mean \"cloudwatch_logs\"?"),
        ("cloudwatch-logs", "did you mean \"cloudwatch_logs\"?"),
    ]);
    Answers { s3, cloudwatch_logs: logs, http }
}

/// Answers to all requests in their order, or by request line.
fn http(section: &mut Section<'_>) -> Vec<(String, Lines)> {
    let (path, sink) = (section.path_of("http"), section.sink());
    let Some(entry) = section.entry("http") else { return vec![] };
    let by_line = match &entry.value.value {
        NodeValue::Map(entries) if entries.iter().any(|entry| is_request_line(&entry.key)) => entries,
        _ => return vec![("…".to_owned(), lines(&entry.value, &path, sink))],
    };
    let mut all = vec![];
    for entry in by_line {
        if is_request_line(&entry.key) {
            all.push((entry.key.clone(), lines(&entry.value, &format!("{path}.{}", entry.key), sink)));
        } else {
            let help = "write it as in POST https://api.example.com/v1/… where … stands for anything";
            sink.add_with_help(entry.key_at, &path, format!("{:?} is no request line", entry.key), help);
        }
    }
    all
}

fn is_request_line(key: &str) -> bool {
    key == "…" || key.split_once(' ').is_some_and(|(_, url)| url.contains("://") || url.starts_with('…'))
}

fn operations(mut section: Section<'_>, known: &'static [&'static str]) -> HashMap<&'static str, Lines> {
    let mut all = HashMap::new();
    for operation in known {
        let path = section.path_of(operation);
        if let Some(entry) = section.entry(operation) {
            all.insert(*operation, lines(&entry.value, &path, section.sink()));
        }
    }
    section.finish(&[
        ("put", "did you mean \"put-object\"?"),
        ("head", "did you mean \"head-object\"?"),
        ("create-stream", "did you mean \"create-log-stream\"?"),
        ("create-group", "did you mean \"create-log-group\"?"),
    ]);
    all
}

fn lines(node: &Node, path: &str, sink: &Sink) -> Lines {
    match &node.value {
        NodeValue::List(list) => {
            let one = |(n, item)| answer(item, &format!("{path}[{n}]"), sink);
            Lines(list.iter().enumerate().filter_map(one).collect())
        }
        _ => Lines(answer(node, path, sink).into_iter().collect()),
    }
}

fn answer(node: &Node, path: &str, sink: &Sink) -> Option<Answer> {
    match &node.value {
        NodeValue::Scalar(scalar) => match word(&scalar.text) {
            Ok(answer) => Some(answer),
            Err(help) => {
                let message = format!("expected an answer, found {}", node.found());
                sink.add_with_help(node.at, path, message, help);
                None
            }
        },
        NodeValue::Map(_) => Section::of(sink, path.to_owned(), node.at, node).and_then(written_out),
        NodeValue::Faulty => None,
        NodeValue::List(_) => {
            sink.add(node.at, path, "expected an answer, found a list".to_owned());
            None
        }
    }
}

fn word(text: &str) -> Result<Answer, String> {
    let simple = match text {
        "ok" => Answer::Ok,
        "reset" => Answer::Reset,
        "lost" => Answer::Lost,
        "timeout" => Answer::Timeout,
        "hang" => Answer::Hang,
        "no-credentials" => Answer::NoCredentials,
        _ => return status_and_code(text),
    };
    Ok(simple)
}

/// `503`, or `503 SlowDown`.
fn status_and_code(text: &str) -> Result<Answer, String> {
    let (status, code) = text.split_once(' ').unwrap_or((text, ""));
    let code = code.trim();
    match status.parse() {
        Ok(status @ 100..=599) if !code.contains(char::is_whitespace) => {
            let code = (!code.is_empty()).then(|| code.to_owned());
            Ok(Answer::Says(Says { status, code, message: None, headers: vec![], body: None, after: Duration::ZERO }))
        }
        _ => {
            let meant = nearest(text, &WORDS).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
            let words = WORDS.join(", ");
            Err(format!(
                "{meant}an answer is one of {words}, a status with the service's code such as 503 SlowDown, or a map of status, headers, body"
            ))
        }
    }
}

fn written_out(mut section: Section<'_>) -> Option<Answer> {
    let status = section.count("status", 100..=599);
    let wrong = section.has("status") && status.is_none();
    let code = section.text("code");
    let message = section.text("message");
    let after = section.duration("after", Duration::ZERO..=Duration::from_secs(3600)).unwrap_or_default();
    let headers = headers(&mut section);
    let body = body(&mut section);
    section.finish(&[("text", "did you mean \"body\"?"), ("header", "did you mean \"headers\"?")]);
    let status = u16::try_from(status.unwrap_or(200)).ok().filter(|_| !wrong)?;
    Some(Answer::Says(Says { status, code, message, headers, body, after }))
}

fn headers(section: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(map) = section.section("headers") else { return vec![] };
    let mut headers = vec![];
    for entry in map.entries() {
        match &entry.value.value {
            NodeValue::Scalar(Scalar { text, .. }) => headers.push((entry.key.to_ascii_lowercase(), text.clone())),
            _ => {
                let message = format!("expected text, found {}", entry.value.found());
                map.sink().add(entry.value.at, &map.path_of(&entry.key), message);
            }
        }
    }
    headers
}

/// A text as it is, anything else as JSON.
fn body(section: &mut Section<'_>) -> Option<String> {
    let path = section.path_of("body");
    let sink = section.sink();
    let entry = section.entry("body")?;
    match &entry.value.value {
        NodeValue::Scalar(Scalar { text, meaning: Meaning::Text, .. }) => Some(text.clone()),
        _ => json_value(&entry.value, &path, sink).filter(|json| *json != Value::Null).map(|json| json.to_string()),
    }
}
