//! What `parse` costs: `cargo bench -p wharf --bench parse`. Give a part of a name to run only that.
//!
//! One thread, lines in memory. `lines` is what a source does without `parse`: it cuts a block into the records of a chunk. Each format does that
//! and then parses the chunk; its figure is of both, and the ratio is to the same lines without `parse`, measured in the same run and in turn. Each
//! figure is the best of several rounds, so that a busy machine disturbs less.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot parse has nothing to say")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use wharf::config::{ParseConfig, ParseFormat, TimeFormat};
use wharf::record::{BodyKind, Chunk, ChunkBuilder};
use wharf::source::parsed;

/// Little, so that a round fits between two interruptions of a busy machine.
const TOTAL: usize = 4 * 1024 * 1024;
const BLOCK: usize = 512 * 1024;
/// An access log as nginx's documentation has it.
const ACCESS: &str = r#"^(?<host>\S+) \S+ (?<user>\S+) \[(?<time>[^\]]+)\] "(?<method>\S+) (?<path>\S+) [^"]*" (?<status>\d+) (?<bytes>\d+)"#;

struct Case {
    name: &'static str,
    config: ParseConfig,
    line: fn(usize) -> String,
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let pattern = || TimeFormat::Pattern("%d/%b/%Y:%H:%M:%S %z".to_owned());
    let access_log = || ParseFormat::Regex(regex::bytes::Regex::new(ACCESS).unwrap());
    let cases = [
        case("json", ParseFormat::Json, None, json),
        case("json, time rfc3339", ParseFormat::Json, Some(TimeFormat::Auto), json),
        case("regex, 7 groups", access_log(), None, access),
        case("regex, 7 groups, time by a pattern", access_log(), Some(pattern()), access),
        case("regex that does not match", access_log(), None, json),
        case("logfmt", ParseFormat::Logfmt, None, logfmt),
        case("logfmt, time rfc3339", ParseFormat::Logfmt, Some(TimeFormat::Auto), logfmt),
        case("cri, time rfc3339", ParseFormat::Cri, Some(TimeFormat::Auto), cri),
    ];
    println!("{:36} {:>7} {:>12} {:>12} {:>7}", "", "bytes", "ns/record", "of lines", "ratio");
    for case in cases.iter().filter(|case| case.name.contains(&only)) {
        run(case);
    }
}

fn case(name: &'static str, format: ParseFormat, time: Option<TimeFormat>, line: fn(usize) -> String) -> Case {
    let config = ParseConfig {
        format,
        time_key: time.is_some().then(|| "time".to_owned()),
        time_format: time.unwrap_or(TimeFormat::Auto),
        time_zone: jiff::tz::TimeZone::UTC,
        keep_time_key: false,
    };
    Case { name, config, line }
}

fn json(n: usize) -> String {
    format!(
        r#"{{"time":"2026-11-30T16:32:{:02}.{:03}Z","level":"info","host":"10.0.{}.{}","method":"GET","path":"/api/v1/items/{}","status":200,"bytes":{},"message":"request took {} us and was \"fine\""}}"#,
        n % 60,
        n % 1000,
        n % 256,
        n % 200,
        n * 7919 % 1000,
        n % 9000,
        n * 31 % 100_000
    )
}

fn access(n: usize) -> String {
    format!(
        r#"10.0.{}.{} - alice [30/Nov/2026:16:32:{:02} +0100] "GET /api/v1/items/{} HTTP/1.1" 200 {} "https://example.com/" "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101""#,
        n % 256,
        n % 200,
        n % 60,
        n * 7919 % 1000,
        n % 9000
    )
}

fn logfmt(n: usize) -> String {
    format!(
        r#"time=2026-11-30T16:32:{:02}.{:03}Z level=info host=10.0.{}.{} method=GET path=/api/v1/items/{} status=200 bytes={} msg="request took {} us and was \"fine\"""#,
        n % 60,
        n % 1000,
        n % 256,
        n % 200,
        n * 7919 % 1000,
        n % 9000,
        n * 31 % 100_000
    )
}

fn cri(n: usize) -> String {
    format!("2026-11-30T16:32:{:02}.{:09}Z stdout F {}", n % 60, n * 7919 % 1_000_000_000, access(n))
}

/// Blocks of lines, as they are read from a file.
fn blocks(line: fn(usize) -> String) -> Vec<Vec<u8>> {
    let (mut blocks, mut n) = (Vec::new(), 0);
    while blocks.len() * BLOCK < TOTAL {
        let mut block = Vec::new();
        while block.len() < BLOCK {
            block.extend_from_slice(line(n).as_bytes());
            block.push(b'\n');
            n += 1;
        }
        blocks.push(block);
    }
    blocks
}

fn chunk(block: &[u8]) -> Chunk {
    let mut builder = ChunkBuilder::arrived(BodyKind::Text, "app".into(), 0);
    builder.push_lines(1_796_056_337_123_456_789, block);
    builder.finish().unwrap()
}

fn run(case: &Case) {
    let blocks = blocks(case.line);
    let records: u32 = blocks.iter().map(|block| chunk(block).meta().records).sum();
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    let (mut lines, mut both) = (Duration::MAX, Duration::MAX);
    let until = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < until {
        lines = lines.min(time(|| blocks.iter().for_each(|block| drop(black_box(chunk(black_box(block)))))));
        both = both.min(time(|| {
            blocks.iter().for_each(|block| drop(black_box(parsed(&case.config, &chunk(black_box(block))))));
        }));
    }
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(records);
    println!(
        "{:36} {:7.0} {:12.1} {:12.1} {:7.1}",
        case.name,
        bytes as f64 / f64::from(records) - 1.0,
        each(both),
        each(lines),
        each(both) / each(lines)
    );
}

fn time(once: impl FnOnce()) -> Duration {
    let start = Instant::now();
    once();
    start.elapsed()
}
