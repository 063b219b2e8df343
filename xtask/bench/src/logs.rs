//! To CloudWatch Logs: one stream, whose batches go one after the other, and several, which workers share.

use std::time::Duration;

use crate::input::{Records, Shape};
use crate::scenario::{Destination, Scenario, Source, workers};
use crate::send::Way;

/// A service that is not on this machine: with it a worker mostly waits, and others can work meanwhile.
const DISTANCE: Duration = Duration::from_millis(20);

const STREAMS: u64 = 4;

pub fn scenarios() -> Vec<Scenario> {
    let one = Scenario {
        name: format!("tail → Logs, lines, 1 stream, {}", workers(1)),
        from: Source::Tail,
        to: Destination::Logs,
        shape: Shape::LINES,
        as_objects: false,
        distance: Duration::ZERO,
        output: output(1, true),
    };
    let whole = Scenario {
        name: format!("tail → Logs, whole records, 1 stream, {}", workers(1)),
        as_objects: true,
        output: output(1, false),
        ..one.clone()
    };
    let json = Scenario {
        name: format!("http → Logs, JSON records, 1 stream, {}", workers(1)),
        from: Source::Sent(Way::Http),
        shape: Shape { records: Records::Json, files: 1 },
        output: output(1, false),
        ..one.clone()
    };
    let mut all = vec![one.clone(), whole];
    for (distance, far) in [(Duration::ZERO, ""), (DISTANCE, ", 20 ms away")] {
        all.extend([1, 2, 4].map(|count| Scenario {
            name: format!("tail → Logs, lines, {STREAMS} streams{far}, {}", workers(count)),
            shape: Shape { records: Records::Text, files: STREAMS },
            distance,
            output: output(count, true),
            ..one.clone()
        }));
    }
    all.push(json);
    all
}

/// Batches are as large as by default. `lines` sends the lines themselves, else each record is sent whole, as a JSON object.
fn output(workers: u32, lines: bool) -> String {
    let log_key = if lines { "      log_key: log\n" } else { "" };
    format!(
        "outputs:\n  live:\n    plugin: cloudwatch_logs\n    match: \"*\"\n    workers: {workers}\n    batch: {{ max_age: 500ms }}\n    \
         config:\n      log_group_name: /bench\n      log_stream_prefix: bench-\n      auto_create_group: true\n{log_key}"
    )
}
