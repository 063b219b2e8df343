//! A plugin that does what a plugin spends its time with, for `host/benches/plugin.rs`.
//!
//! A batch's tag says what is done with it. Nothing is sent: what it costs to send is the host's.

use std::hint::black_box;

use wharf_plugin::prelude::*;

/// As many options as a plugin has that is configured in earnest.
#[derive(Deserialize, JsonSchema)]
pub struct Config {
    /// Where to.
    #[serde(default)]
    url: String,
    /// Key that is sent alone.
    #[serde(default)]
    log_key: Option<String>,
    /// Compression.
    #[serde(default)]
    compression: Option<String>,
}

/// What a JSON record is read into.
#[derive(Deserialize)]
struct Event<'a> {
    level: &'a str,
    n: u64,
}

/// The output.
#[derive(Debug)]
pub struct Bench;

impl Output for Bench {
    type Config = Config;

    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
        black_box((config.url, config.log_key, config.compression));
        Ok((Self, Plan::default()))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let mut sum = 0;
        match batch.tag().as_str() {
            "nothing" => {}
            "bytes" => {
                for record in batch.records() {
                    sum += look(record?.bytes());
                }
            }
            "bytes and times" => {
                for record in batch.records() {
                    let record = record?;
                    sum += look(record.bytes()) + (record.time() & 0xff) as u64;
                }
            }
            "text" => {
                for record in batch.records() {
                    sum += look(record?.text().as_bytes());
                }
            }
            "json" => {
                for record in batch.records() {
                    let record = record?;
                    let event: Event = record.json().or_rejected("reading an event")?;
                    sum += look(event.level.as_bytes()) + event.n;
                }
            }
            "encode" => sum += pieces(batch, &Encoding::json_lines())?,
            "encode gzip" => sum += pieces(batch, &Encoding::json_lines().gzip())?,
            "encode array" => sum += pieces(batch, &Encoding::json_array())?,
            other => return Err(Failure::misconfigured(format!("no behaviour is called {other}"))),
        }
        black_box(sum);
        Ok(Report::all_delivered())
    }
}

/// As little as can be done with a body so that it has to be there.
fn look(body: &[u8]) -> u64 {
    let ends = body.first().zip(body.last());
    body.len() as u64 + ends.map_or(0, |(first, last)| u64::from(*first) + u64::from(*last))
}

fn pieces(batch: &Batch, encoding: &Encoding) -> Result<u64, Failure> {
    let (mut pieces, mut bytes) = (batch.encode(encoding).pieces()?, 0);
    while let Some(body) = pieces.next(8 << 20)? {
        bytes += body.size();
    }
    Ok(bytes)
}

wharf_plugin::export!(Bench, name = "bench");
