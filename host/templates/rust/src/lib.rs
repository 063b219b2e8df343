//! Delivers batches of records to an HTTP API, each as one JSON array.

use wharf_plugin::http;
use wharf_plugin::prelude::*;

/// Options under `config`. Their comments are what operators read.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// Where events are sent, such as https://api.example.com/v1/events.
    url: String,
    /// The credential to send them with, by its name under `credentials`.
    credential: Option<String>,
}

struct Api(Config);

/// What the API answers: the events that it does not take, by their places in the array.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    rejected: Vec<Rejected>,
}

#[derive(Deserialize)]
struct Rejected {
    index: u32,
    reason: String,
}

impl Output for Api {
    type Config = Config;

    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
        let plan = Plan {
            http: vec![http::destination(&config.url).or_fault("url")?],
            credentials: config.credential.iter().cloned().collect(),
            max_records: Some(1000),
            max_bytes: Some(1 << 20),
            max_age_ms: Some(5000),
            ..Plan::default()
        };
        Ok((Self(config), plan))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        // Written by the host, and kept there: only the answer comes into the plugin's memory.
        let body = batch.encode(&Encoding::json_array()).body()?;
        let answer = http::post(&self.0.url)
            .header("content-type", "application/json")
            // The same in every attempt: the API can tell what it has already.
            .header("idempotency-key", batch.id())
            .credential(self.0.credential.as_deref())
            .body(&body)
            .send()?
            .error_for_status()?;
        let answer: Answer = answer.json()?;
        let mut report = Report::all_delivered();
        for event in answer.rejected {
            report.reject(event.index, event.reason);
        }
        Ok(report)
    }
}

wharf_plugin::export!(Api);
