//! A plugin that does everything a plugin must not do, for the host's tests.
//!
//! A batch's tag says what `deliver` does with it, so that the batch behind a bad one can be a good one. What goes wrong in
//! `configure` is said in the configuration.

use std::hint::black_box;

use std::time::Duration;

use wharf_plugin::prelude::*;
use wharf_plugin::{ConfigFault, http, metrics, records, s3, sequence, storage};

/// What to do wrong.
#[derive(Deserialize, JsonSchema)]
pub struct Config {
    /// What `configure` does: `trap`, `spin`, `refuse`, `ask` (for what is not allowed there), or nothing bad.
    #[serde(default)]
    configure: String,
}

/// The output.
pub struct Misbehaving {
    hoard: Vec<wharf_plugin::Body>,
}

impl Output for Misbehaving {
    type Config = Config;

    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
        match config.configure.as_str() {
            "trap" => trap("configure"),
            "spin" => spin(),
            "refuse" => {
                return Err(vec![ConfigFault::of("a", "is wrong"), ConfigFault::of("b", "is wrong too")].into());
            }
            "ask" => {
                let answers = [
                    storage::get("k").err().map(|error| error.to_string()),
                    storage::set("k", b"v").err().map(|error| error.to_string()),
                    s3::head_object("bucket", "key", None).err().map(|error| error.to_string()),
                    (!records::is_open(&"0".repeat(32))).then(|| "is_open says no".to_owned()),
                ];
                let faults: Vec<_> = answers.into_iter().flatten().map(|text| ConfigFault::of("ask", text)).collect();
                return Err(faults.into());
            }
            _ => {}
        }
        Ok((Self { hoard: Vec::new() }, Plan::default().with_s3("bucket", "logs/")))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let tag = batch.tag();
        if let Some(url) = tag.strip_prefix("post ") {
            return post(batch, url);
        }
        let rejecting = |numbers: &[u32]| {
            let mut report = Report::all_delivered();
            for record in numbers {
                report.reject(*record, "because");
            }
            Ok(report)
        };
        match tag.as_str() {
            "ok" => Ok(Report::all_delivered()),
            "trap" => trap("deliver"),
            "spin" => spin(),
            "recurse" => {
                black_box(recurse(0));
                Ok(Report::all_delivered())
            }
            "eat_memory" => {
                let mut eaten = Vec::new();
                loop {
                    eaten.push(black_box(vec![1u8; 1 << 20]));
                }
            }
            "reject_first" => rejecting(&[0]),
            "reject_all" => rejecting(&(0..batch.count()).collect::<Vec<_>>()),
            "reject_odd" => rejecting(&(0..batch.count()).filter(|number| number % 2 == 1).collect::<Vec<_>>()),
            "reject_twice" => rejecting(&[0, 0]),
            "reject_outside" => rejecting(&[batch.count()]),
            "reject_everything_with_long_reasons" => {
                let reason = "x".repeat(1 << 20);
                let mut report = Report::all_delivered();
                for record in 0..20 {
                    report.reject(record, format!("{record}{reason}"));
                }
                Ok(report)
            }
            "throttled" => Err(Failure::throttled("slow down").retry_after(Duration::from_millis(1500))),
            "transient" => Err(Failure::transient("reset")),
            "auth" => Err(Failure::auth("expired")),
            "misconfigured" => Err(Failure::misconfigured("no such bucket")),
            "rejected" => Err(Failure::rejected("x".repeat(10_000))),
            "hoard" => loop {
                let mut pieces = batch.encode(&Encoding::text()).pieces()?;
                if let Some(body) = pieces.next(64 << 10)? {
                    self.hoard.push(body);
                }
            },
            "flood_log" => {
                for n in 0..2000 {
                    error!("line {n}");
                }
                Ok(Report::all_delivered())
            }
            "too_many_series" => {
                for n in 0..200 {
                    metrics::add("flood", 1, &[("n", &n.to_string())]);
                }
                Ok(Report::all_delivered())
            }
            "put_elsewhere" => put(batch, "bucket", "private/x"),
            "put_in_another_bucket" => put(batch, "other", "logs/x"),
            "put" => put(batch, "bucket", "logs/x"),
            "read" => read(batch),
            "partition" => Err(Failure::transient(format!("{:?}", batch.partition()))),
            "take" => {
                for record in batch.records() {
                    record?;
                }
                Ok(Report::all_delivered())
            }
            "fail_first" if batch.attempt() > 1 => Ok(Report::all_delivered()),
            "fail_first" => Err(Failure::transient("the first attempt")),
            "index" => {
                let index = sequence::assign("output", batch, 7)?;
                Err(Failure::transient(format!("index {index}")))
            }
            "progress" => {
                batch.progress().set("upload", b"id")?;
                let rows = batch.progress().list("")?;
                Err(Failure::transient(format!("{rows:?} open {}", records::is_open(&batch.id()))))
            }
            other => Err(Failure::misconfigured(format!("no behaviour is called {other}"))),
        }
    }

    fn abandon(&mut self, batch: &Batch) {
        metrics::add("abandoned", 1, &[("tag", &batch.tag())]);
        if batch.tag() == "trap" {
            trap("abandon");
        }
    }

    fn close(&mut self) {
        metrics::add("closed", 1, &[]);
    }
}

fn trap(place: &str) -> ! {
    #[expect(clippy::panic, reason = "it is what this plugin is for")]
    {
        panic!("on purpose, in {place}")
    }
}

fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = black_box(n).wrapping_add(1);
    }
}

#[expect(unconditional_recursion, reason = "it is what this plugin is for")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    recurse(depth + 1) + frame[0]
}

fn put(batch: &Batch, bucket: &str, key: &str) -> Result<Report, Failure> {
    let body = batch.encode(&Encoding::text()).body()?;
    s3::put_object(bucket, key, &body, &s3::Attributes::default(), true)?;
    Ok(Report::all_delivered())
}

fn post(batch: &Batch, url: &str) -> Result<Report, Failure> {
    let body = batch.encode(&Encoding::text()).body()?.wrap("[", "]")?;
    http::post(url).header("content-type", "text/plain").body(&body).send()?.error_for_status()?;
    Ok(Report::all_delivered())
}

/// Says what it read, for the test to compare.
fn read(batch: &Batch) -> Result<Report, Failure> {
    let mut seen = format!("{} records, {} bytes, attempt {}:", batch.count(), batch.size(), batch.attempt());
    for record in batch.records() {
        let record = record?;
        seen.push_str(&format!(" {}={}", record.time(), record.text()));
        if record.tag() != batch.tag() {
            seen.push_str(&format!(" of {}", record.tag()));
        }
    }
    Err(Failure::transient(seen))
}

wharf_plugin::export!(Misbehaving, name = "misbehaving");
