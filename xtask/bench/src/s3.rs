//! To S3: compression by workers, from files and by HTTP; and without compression, from the protocols that have to be made JSON of.

use std::time::Duration;

use crate::input::Shape;
use crate::scenario::{Destination, Scenario, Source, workers};
use crate::send::Way;

const FILES: (Source, &str) = (Source::Tail, "tail");
const HTTP: (Source, &str) = (Source::Sent(Way::Http), "http");

/// Requests of 512 records are those of the SDKs' processors, which hold no more; 8,192 are a batch of the Collector.
const PROTOCOLS: [(Source, &str); 6] = [
    (Source::Sent(Way::Forward { gzip: false }), "forward"),
    (Source::Sent(Way::Forward { gzip: true }), "forward, gzip,"),
    (Source::Sent(Way::OtlpGrpc { records: 512 }), "otlp gRPC, by 512,"),
    (Source::Sent(Way::OtlpGrpc { records: 8192 }), "otlp gRPC, by 8192,"),
    (Source::Sent(Way::OtlpHttp { records: 512 }), "otlp HTTP, by 512,"),
    (Source::Sent(Way::OtlpHttp { records: 8192 }), "otlp HTTP, by 8192,"),
];

pub fn scenarios() -> Vec<Scenario> {
    let compressed = [FILES, HTTP].into_iter().flat_map(|from| ["none", "gzip", "zstd"].map(|to| (from, to)));
    let protocols = PROTOCOLS.into_iter().map(|from| (from, "none"));
    let all = compressed
        .chain(protocols)
        .flat_map(|(from, compression)| [1, 2].map(|count| scenario(from, compression, count)));
    all.collect()
}

fn scenario((from, source): (Source, &str), compression: &str, count: u32) -> Scenario {
    Scenario {
        name: format!("{source} → S3, {compression}, {}", workers(count)),
        from,
        to: Destination::S3,
        shape: Shape::LINES,
        as_objects: false,
        distance: Duration::ZERO,
        output: output(compression, count),
    }
}

fn output(compression: &str, workers: u32) -> String {
    format!(
        "outputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    workers: {workers}\n    batch: {{ max_bytes: 32MiB, max_age: 500ms }}\n    \
         config:\n      bucket: bench\n      key_format: /bench/segment_$INDEX\n      compression: {compression}\n"
    )
}
