//! What arrived, for a person: `GET /_wharf`, a plain page in a browser and JSON otherwise. No bucket can have that name.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::http::{HeaderValue, Response, header};
use s3s::Body;
use serde::Serialize;

use crate::exchange::Answer;
use crate::logs::Totals;
use crate::port::Services;

/// Where it is.
pub(crate) const PATH: &str = "/_wharf";

/// Keys of a bucket, and refused requests, that are shown one by one: the last ones.
const SHOWN: usize = 200;

#[derive(Debug, Default, Serialize)]
struct Status {
    note: &'static str,
    buckets: Vec<Bucket>,
    unfinished_uploads: usize,
    log_groups: Vec<LogGroup>,
    put_log_events: Calls,
    /// By operation, then by what came of it.
    requests: BTreeMap<&'static str, BTreeMap<String, u64>>,
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Bucket {
    name: String,
    objects: usize,
    bytes: u64,
    last: Vec<Object>,
}

#[derive(Debug, Serialize)]
struct Object {
    key: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct LogGroup {
    name: String,
    class: String,
    retention_days: Option<i64>,
    streams: Vec<Stream>,
}

#[derive(Debug, Serialize)]
struct Stream {
    name: String,
    events: u64,
    message_bytes: u64,
}

#[derive(Debug, Default, Serialize)]
struct Calls {
    calls: u64,
    events: u64,
    bytes: u64,
    average_fill: f64,
}

#[derive(Debug, Serialize)]
struct Refused {
    operation: &'static str,
    on: String,
    code: String,
    message: String,
    by_fault: bool,
}

pub(crate) fn answer(services: &Services, request: &hyper::Request<Body>) -> Answer {
    let status = Status::of(services);
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (kind, body) = if accept.contains("text/html") {
        ("text/html; charset=utf-8", status.page())
    } else {
        ("application/json", serde_json::to_string_pretty(&status)? + "\n")
    };
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

impl Status {
    fn of(services: &Services) -> Self {
        let mut status = Self { note: "everything is in memory, and gone when this server ends", ..Self::default() };
        if let Some(s3) = &services.s3 {
            let held = s3.store.lock();
            status.unfinished_uploads = held.uploads.len();
            status.buckets = held
                .buckets
                .iter()
                .map(|(name, objects)| {
                    let last = objects.values().rev().take(SHOWN);
                    Bucket {
                        name: name.clone(),
                        objects: objects.len(),
                        bytes: objects.values().map(|object| object.size).sum(),
                        last: last.map(|object| Object { key: object.key.clone(), bytes: object.size }).collect(),
                    }
                })
                .collect();
            drop(held);
            for request in s3.requests.all() {
                let on = format!("{}/{}", request.bucket, request.key);
                let by_fault = request.fault.is_some();
                status.count(request.operation.name(), on, request.status, request.code, None, by_fault);
            }
        }
        if let Some(logs) = &services.logs {
            status.log_groups = logs
                .store
                .views()
                .into_iter()
                .map(|group| LogGroup {
                    name: group.name,
                    class: group.class,
                    retention_days: group.retention_days,
                    streams: group
                        .streams
                        .into_iter()
                        .map(|stream| Stream {
                            name: stream.name,
                            events: stream.events,
                            message_bytes: stream.message_bytes,
                        })
                        .collect(),
                })
                .collect();
            let totals: Totals = logs.requests.totals();
            status.put_log_events =
                Calls { calls: totals.calls, events: totals.events, bytes: totals.bytes, average_fill: totals.fill() };
            for request in logs.requests.all() {
                let on = format!("{}:{}", request.group, request.stream);
                let by_fault = request.fault.is_some();
                status.count(request.operation.name(), on, request.status, request.code, request.message, by_fault);
            }
        }
        let surplus = status.refused.len().saturating_sub(SHOWN);
        status.refused.drain(..surplus);
        status
    }
    fn count(
        &mut self,
        operation: &'static str,
        on: String,
        status: Option<u16>,
        code: Option<String>,
        message: Option<String>,
        by_fault: bool,
    ) {
        let outcome = match (status, &code) {
            (None, _) => "no answer".to_owned(),
            (Some(status), None) => status.to_string(),
            (Some(status), Some(code)) => format!("{status} {code}"),
        };
        *self.requests.entry(operation).or_default().entry(outcome).or_default() += 1;
        if let Some(code) = code {
            self.refused.push(Refused { operation, on, code, message: message.unwrap_or_default(), by_fault });
        }
    }
    fn page(&self) -> String {
        let mut page = String::from(
            "<!doctype html><title>wharf dev-aws</title><style>body{font:14px sans-serif;margin:2em}\
             td,th{padding:.15em 1em .15em 0;text-align:left;vertical-align:top}td.n{text-align:right}</style>\
             <h1>Local S3 and CloudWatch Logs</h1>",
        );
        let _ = write!(page, "<p>{}. The same as JSON: <code>curl HOST{PATH}</code></p>", self.note);
        let objects = self.buckets.iter().flat_map(|bucket| {
            let total = vec![bucket.name.clone(), format!("{} objects", bucket.objects), bucket.bytes.to_string()];
            let last = bucket.last.iter();
            std::iter::once(total).chain(last.map(|one| vec![String::new(), one.key.clone(), one.bytes.to_string()]))
        });
        table(&mut page, "Buckets", &["bucket", "key", "bytes"], objects);
        let streams = self.log_groups.iter().flat_map(|group| {
            let days = group.retention_days.map_or_else(String::new, |days| format!(", {days} days"));
            let total = vec![group.name.clone(), format!("{}{days}", group.class), String::new(), String::new()];
            std::iter::once(total).chain(group.streams.iter().map(|stream| {
                let (events, bytes) = (stream.events.to_string(), stream.message_bytes.to_string());
                vec![String::new(), stream.name.clone(), events, bytes]
            }))
        });
        table(&mut page, "Log groups", &["group", "stream", "events", "message bytes"], streams);
        let requests = self.requests.iter().flat_map(|(operation, outcomes)| {
            outcomes.iter().map(|(outcome, count)| vec![(*operation).to_owned(), outcome.clone(), count.to_string()])
        });
        table(&mut page, "Requests", &["operation", "answer", "count"], requests);
        let refused = self.refused.iter().rev().map(|one| {
            let by = if one.by_fault { " (a fault that was asked for)" } else { "" };
            vec![one.operation.to_owned(), one.on.clone(), format!("{}{by}", one.code), one.message.clone()]
        });
        table(&mut page, "Refused, the last first", &["operation", "on", "code", "why"], refused);
        page
    }
}

fn table(page: &mut String, heading: &str, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = write!(page, "<h2>{heading}</h2><table><tr>");
    for column in columns {
        let _ = write!(page, "<th>{column}</th>");
    }
    page.push_str("</tr>");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            let kind = if cell.parse::<u64>().is_ok() { " class=n" } else { "" };
            let _ = write!(page, "<td{kind}>{}</td>", escape(&cell));
        }
        page.push_str("</tr>");
    }
    page.push_str("</table>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
