//! Reads an `otlp` source.

use std::net::SocketAddr;
use std::time::Duration;

use super::forward;
use super::model::{OtlpConfig, OtlpFormat};
use super::reader::{Elsewhere, Section};
use super::top::MOMENT;

pub(crate) const ELSEWHERE: Elsewhere = &[
    ("name", "the source's name is its key under \"sources\"; what it does is \"type\""),
    ("protocols", "write grpc: { listen } and http: { listen } without it"),
    ("listen", "write grpc: { listen: 127.0.0.1:4317 } or http: { listen: 127.0.0.1:4318 }, or both"),
    ("max_recv_msg_size_mib", "did you mean \"max_body_size\"?"),
    ("max_request_body_size", "did you mean \"max_body_size\"?"),
    ("max_body_bytes", "did you mean \"max_body_size\"?"),
    ("tag_from_uri", "every record has the source's \"tag\", or that of \"tag_from\""),
];

const OF_AN_EAR: Elsewhere = &[
    ("endpoint", "did you mean \"listen\"?"),
    ("address", "did you mean \"listen\"?"),
    ("port", "did you mean \"listen\"?"),
    ("tls", "it belongs to the source, and is for both"),
];

pub(crate) fn otlp(section: &mut Section<'_>) -> Option<OtlpConfig> {
    if !section.is_written("http") {
        section.missing("grpc", "write grpc: { listen: 127.0.0.1:4317 } or http: { listen: 127.0.0.1:4318 }, or both");
    }
    let grpc = ear(section, "grpc", "write for example listen: 127.0.0.1:4317");
    let http = ear(section, "http", "write for example listen: 127.0.0.1:4318");
    let has_tls = section.is_written("tls");
    let tls = section.section("tls").filter(|_| has_tls).and_then(forward::tls);
    let waits = MOMENT..=Duration::from_secs(3600);
    let config = OtlpConfig {
        grpc,
        http,
        tls,
        format: section
            .one_of("format", &[("json", OtlpFormat::Json), ("otlp_json", OtlpFormat::OtlpJson)])
            .unwrap_or(OtlpFormat::Json),
        tag_from: section.text("tag_from"),
        max_body_bytes: section.size("max_body_size", 1024..=1 << 30).unwrap_or(16 << 20),
        handshake_timeout: section.duration("handshake_timeout", waits.clone()).unwrap_or(Duration::from_secs(10)),
        idle_timeout: section.duration("idle_timeout", waits).unwrap_or(Duration::from_secs(75)),
        max_connections: usize::try_from(section.count("max_connections", 1..=1_000_000).unwrap_or(1024))
            .unwrap_or(usize::MAX),
    };
    (config.grpc.is_some() || config.http.is_some()).then_some(config)
}

fn ear(section: &mut Section<'_>, key: &'static str, help: &str) -> Option<SocketAddr> {
    let is_written = section.is_written(key);
    let mut ear = section.section(key).filter(|_| is_written)?;
    ear.missing("listen", help);
    let address = ear.address("listen");
    ear.finish(OF_AN_EAR);
    address
}
