//! What the content of PutLogEvents requests costs: `cargo bench -p wharf --bench messages`. Give a part of a name to run only that.
//!
//! One thread, records in memory. MB/s is of the records' bytes; each figure is the best of several rounds, so that a busy machine
//! disturbs less. Requests are filled as far as the service takes them: 10,000 events or 1 MiB.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot write has nothing to say")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use wharf::capability::PutBody;
use wharf::record::encode::Messages;
use wharf::record::{BodyKind, Chunk, ChunkBuilder};

/// Little, so that a round fits between two interruptions of a busy machine.
const TOTAL: usize = 4 * 1024 * 1024;
const CHUNK: usize = 512 * 1024;
const MAX_EVENTS: usize = 10_000;
const MAX_BYTES: usize = 1_048_576;
const EVENT_BYTES: usize = 26;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let plain = |n: usize| {
        format!(
            "10.0.{}.{} - - GET /api/v1/items/{} 200 {} request took {} us and was fine",
            n % 256,
            n % 200,
            n * 7919 % 1000,
            n % 9000,
            n * 31 % 100_000
        )
    };
    let quoted = |n: usize| format!("10.0.{}.1 - - \"GET /items/{n} HTTP/1.1\" 200 \"-\" \"curl/8.0\"", n % 256);
    let json = |n: usize| serde_json::json!({ "level": "info", "n": n, "log": plain(n) }).to_string();
    for (name, kind, log_key, record) in [
        ("text, log_key log", BodyKind::Text, Some("log"), &plain as &dyn Fn(usize) -> String),
        ("text with quotes, log_key log", BodyKind::Text, Some("log"), &quoted),
        ("text, whole record", BodyKind::Text, None, &plain),
        ("json, log_key log", BodyKind::Json, Some("log"), &json),
        ("json, whole record", BodyKind::Json, None, &json),
    ] {
        if name.contains(&only) {
            run(name, &chunks(kind, record), &Messages::new(log_key));
        }
    }
}

fn chunks(kind: BodyKind, record: &dyn Fn(usize) -> String) -> Vec<Chunk> {
    let (mut chunks, mut total, mut n) = (Vec::new(), 0, 0);
    while total < TOTAL {
        let mut builder = ChunkBuilder::arrived(kind, "app".into(), 0);
        let mut bytes = 0;
        while bytes < CHUNK {
            let body = record(n);
            bytes += body.len();
            builder.push(1_796_056_337_123_456_789 + i64::try_from(n).unwrap() * 1_000, body.as_bytes());
            n += 1;
        }
        total += bytes;
        chunks.extend(builder.finish());
    }
    chunks
}

/// Sizes, then requests: what a delivery does.
fn run(name: &str, chunks: &[Chunk], messages: &Messages) {
    let records: u32 = chunks.iter().map(|chunk| chunk.meta().records).sum();
    let bytes: u64 = chunks.iter().map(|chunk| chunk.meta().body_bytes).sum();
    for (step, once) in [("sizes", &sizes as &dyn Fn(&[Chunk], &Messages) -> usize), ("requests", &requests)] {
        let mut best = Duration::MAX;
        let until = Instant::now() + Duration::from_millis(700);
        while Instant::now() < until {
            let start = Instant::now();
            black_box(once(black_box(chunks), messages));
            best = best.min(start.elapsed());
        }
        let nanos = best.as_nanos() as f64;
        println!(
            "{name:32} {step:9} {:8.1} ns/event {:8.0} MB/s",
            nanos / f64::from(records),
            bytes as f64 * 1e3 / nanos
        );
    }
}

fn sizes(chunks: &[Chunk], messages: &Messages) -> usize {
    let mut made = Vec::new();
    let mut sum = 0;
    for chunk in chunks {
        for record in chunk.iter() {
            sum += messages.of(chunk.meta().kind, record.body, &mut made).map_or(0, |message| message.len());
        }
    }
    sum
}

fn requests(chunks: &[Chunk], messages: &Messages) -> usize {
    let new = || PutBody::new("/app", "host", MAX_BYTES * 3 / 2);
    let (mut made, mut written) = (Vec::new(), 0);
    let (mut body, mut events, mut bytes) = (new(), 0, 0);
    for chunk in chunks {
        for record in chunk.iter() {
            let Some(message) = messages.of(chunk.meta().kind, record.body, &mut made) else { continue };
            if events == MAX_EVENTS || bytes + message.len() + EVENT_BYTES > MAX_BYTES {
                written += black_box(std::mem::replace(&mut body, new()).finish(None)).len();
                (events, bytes) = (0, 0);
            }
            events += 1;
            bytes += message.len() + EVENT_BYTES;
            body.event(record.time_ns.div_euclid(1_000_000), |out| message.write_json(out));
        }
    }
    written + black_box(body.finish(None)).len()
}
