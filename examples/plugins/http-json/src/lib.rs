//! Delivers records to an HTTP API that takes JSON in requests of a limited size, and answers for each event by itself.
//!
//! What it shows: options that are checked, bodies that the host writes and compresses, a batch in several requests, answers that are no
//! success for the plugin's own reasons, and records that are rejected one by one.

use std::collections::BTreeMap;
use std::ops::Range;

use wharf_plugin::http::{self, Response};
use wharf_plugin::prelude::*;

/// Options under `config`.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// Where events are sent, such as https://api.example.com/v1/bulk.
    url: String,
    /// The credential to send them with, by its name under `credentials`.
    credential: Option<String>,
    /// How a request carries its events: one JSON array, or one JSON object a line.
    #[serde(default)]
    format: Format,
    /// Whether requests are compressed with gzip.
    #[serde(default)]
    gzip: bool,
    /// Most events in one request: what the API takes.
    #[serde(default = "events_per_request")]
    #[schemars(range(min = 1, max = 100_000))]
    events_per_request: u32,
    /// Headers that every request has besides, such as `x-team: ingest`.
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    JsonArray,
    JsonLines,
}

fn events_per_request() -> u32 {
    1000
}

struct HttpJson {
    config: Config,
    encoding: Encoding,
    content_type: &'static str,
}

/// What the API answers: events that it does not take, by their places in the request.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    errors: Vec<EventError>,
}

#[derive(Deserialize)]
struct EventError {
    index: u32,
    message: String,
}

impl Output for HttpJson {
    type Config = Config;

    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
        let mut faults = Faults::default();
        let destination = faults.note("url", http::destination(&config.url), String::new());
        for name in config.headers.keys().filter(|name| name.eq_ignore_ascii_case("authorization")) {
            faults.add_at(&["headers", name], "secrets are no options: name a `credential`, which Wharf adds itself");
        }
        faults.finish()?;

        let (encoding, content_type) = match config.format {
            Format::JsonArray => (Encoding::json_array(), "application/json"),
            Format::JsonLines => (Encoding::json_lines(), "application/x-ndjson"),
        };
        let encoding = if config.gzip { encoding.gzip() } else { encoding };
        let plan = Plan {
            http: vec![destination],
            credentials: config.credential.iter().cloned().collect(),
            // Batches that fill a request, or two.
            max_records: Some(config.events_per_request.saturating_mul(2)),
            max_bytes: Some(4 << 20),
            max_age_ms: Some(5000),
            ..Plan::default()
        };
        Ok((Self { config, encoding, content_type }, plan))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let mut report = Report::all_delivered();
        for records in portions(batch.count(), self.config.events_per_request) {
            self.send(batch, records, &mut report)?;
        }
        Ok(report)
    }
}

impl HttpJson {
    /// Sends some of a batch's records. What the API finds too large is sent in halves.
    fn send(&self, batch: &Batch, records: Range<u32>, report: &mut Report) -> Result<(), Failure> {
        let answer = self.ask(batch, &records)?;
        let count = records.end - records.start;
        match answer.status() {
            413 if count > 1 => {
                let middle = records.start + count / 2;
                info!("{} events are more than the API takes at once: sending them in halves", count);
                self.send(batch, records.start..middle, report)?;
                self.send(batch, middle..records.end, report)
            }
            413 => {
                report.reject(records.start, "the API takes no event of this size");
                Ok(())
            }
            _ => self.judge(answer.error_for_status()?, records, report),
        }
    }

    fn ask(&self, batch: &Batch, records: &Range<u32>) -> Result<Response, Failure> {
        let body = batch.encode(&self.encoding).only(records.clone()).body()?;
        let mut request = http::post(&self.config.url)
            .header("content-type", self.content_type)
            // The same events have the same key in every attempt: whatever is sent again, the API takes once.
            .header("idempotency-key", format!("{}-{}-{}", batch.id(), records.start, records.end))
            .credential(self.config.credential.as_deref());
        if self.config.gzip {
            request = request.header("content-encoding", "gzip");
        }
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        Ok(request.body(&body).send()?)
    }

    /// Notes the events that the API does not take.
    fn judge(&self, answer: Response, records: Range<u32>, report: &mut Report) -> Result<(), Failure> {
        if answer.bytes().is_empty() {
            return Ok(());
        }
        let answer: Answer = answer.json()?;
        for EventError { index, message } in answer.errors {
            let record = records.start.saturating_add(index);
            if !records.contains(&record) {
                return Err(Failure::transient(format!("the API refuses event {index}, which it was not sent")));
            }
            report.reject(record, message);
        }
        Ok(())
    }
}

/// Numbers of so many records, at most `size` at a time.
fn portions(count: u32, size: u32) -> impl Iterator<Item = Range<u32>> {
    (0..count).step_by(size as usize).map(move |first| first..count.min(first.saturating_add(size)))
}

wharf_plugin::export!(HttpJson);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_in_one_portion() {
        assert_eq!(portions(5, 2).collect::<Vec<_>>(), [0..2, 2..4, 4..5]);
        assert_eq!(portions(4, 2).collect::<Vec<_>>(), [0..2, 2..4]);
        assert_eq!(portions(1, 1000).collect::<Vec<_>>(), vec![0..1]);
    }

    #[test]
    fn an_answer_that_names_an_event_which_was_not_sent_is_not_believed() {
        let config = Config {
            url: "https://api.example.com".into(),
            credential: None,
            format: Format::JsonArray,
            gzip: false,
            events_per_request: 10,
            headers: BTreeMap::new(),
        };
        let context = Context { output: "test".into(), hostname: "test".into(), worker: 0 };
        let (output, _) = HttpJson::configure(config, &context).unwrap();
        let mut report = Report::all_delivered();
        let answer = Response::new(200, &[], r#"{"errors":[{"index":1,"message":"no"}]}"#);
        output.judge(answer.clone(), 10..12, &mut report).unwrap();
        assert_eq!(report.rejected(), [(11, "no")]);
        assert!(output.judge(answer, 10..11, &mut report).is_err());
    }
}
