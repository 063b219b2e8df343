//! To S3: compression by workers, from files and by HTTP.

use std::time::Duration;

use crate::input::Shape;
use crate::scenario::{Destination, Scenario, Source, workers};

pub fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (from, source) in [(Source::Tail, "tail"), (Source::Http, "http")] {
        for compression in ["none", "gzip", "zstd"] {
            all.extend([1, 2].map(|count| Scenario {
                name: format!("{source} → S3, {compression}, {}", workers(count)),
                from,
                to: Destination::S3,
                shape: Shape::LINES,
                as_objects: false,
                distance: Duration::ZERO,
                output: output(compression, count),
            }));
        }
    }
    all
}

fn output(compression: &str, workers: u32) -> String {
    format!(
        "outputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    workers: {workers}\n    batch: {{ max_bytes: 32MiB, max_age: 500ms }}\n    \
         config:\n      bucket: bench\n      key_format: /bench/segment_$INDEX\n      compression: {compression}\n"
    )
}
