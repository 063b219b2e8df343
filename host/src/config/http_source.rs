//! Reads an `http` source.

use std::time::Duration;

use super::forward;
use super::model::{HttpSourceConfig, HttpTag};
use super::reader::{Elsewhere, Section};
use super::tokens::{self, Named};
use super::top::MOMENT;

/// The header that names the tag, where nothing else is said: as in the examples of Fluent Bit's `header_tag`.
const TAG_HEADER: &str = "fluent-tag";

pub(crate) const ELSEWHERE: Elsewhere = &[
    ("name", "the source's name is its key under \"sources\"; what it does is \"type\""),
    ("port", "did you mean \"listen\"?"),
    ("address", "did you mean \"listen\"?"),
    ("max_body_bytes", "did you mean \"max_body_size\"?"),
    ("token", "write tokens: [{ token: … }]"),
    ("auth", "write tokens: [{ token: … }]"),
    ("username", "requests carry a token: write tokens: [{ token: … }]"),
    ("password", "requests carry a token: write tokens: [{ token: … }]"),
    ("tag_key", "the tag is that of the source, of the path or of a header: write tag_from: path, or header"),
    ("path_key", "write tag_from: path"),
    ("header_tag", "write tag_from: header, and tag_header: its name"),
    ("health", "did you mean \"health_path\"?"),
    ("cors", "browsers of other sites may not send here (CORS is off)"),
    ("method", "records are taken by POST"),
    ("path", "records are taken at any path; the tag can be of it: tag_from: path"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TagFrom {
    Path,
    Header,
}

/// `tenant` is the one whose the source is. `tenants` gets those that it names.
pub(crate) fn http(
    section: &mut Section<'_>,
    tenant: Option<&str>,
    tenants: &mut Vec<Named>,
) -> Option<HttpSourceConfig> {
    section.missing("listen", "write for example listen: 127.0.0.1:9880");
    let listen = section.address("listen");
    let waits = MOMENT..=Duration::from_secs(3600);
    let defaults = HttpSourceConfig::of(listen.unwrap_or(std::net::SocketAddr::from(([127, 0, 0, 1], 0))));
    let has_tls = section.is_written("tls");
    let tls = section.section("tls").filter(|_| has_tls).and_then(forward::tls);
    let config = HttpSourceConfig {
        tls,
        tag: tag(section),
        health_path: health_path(section, defaults.health_path),
        max_body_bytes: section.size("max_body_size", 1..=1 << 30).unwrap_or(defaults.max_body_bytes),
        handshake_timeout: section.duration("handshake_timeout", waits.clone()).unwrap_or(defaults.handshake_timeout),
        header_timeout: section.duration("header_timeout", waits.clone()).unwrap_or(defaults.header_timeout),
        idle_timeout: section.duration("idle_timeout", waits).unwrap_or(defaults.idle_timeout),
        max_connections: usize::try_from(section.count("max_connections", 1..=1_000_000).unwrap_or(1024))
            .unwrap_or(usize::MAX),
        tokens: tokens::read(section, tenant, tenants),
        ..defaults
    };
    if !has_tls && section.is_written("handshake_timeout") {
        section.fault("handshake_timeout", "there is no \"tls\" that it could be for", None);
    }
    listen.map(|_| config)
}

fn tag(section: &mut Section<'_>) -> HttpTag {
    let from = section.one_of("tag_from", &[("path", TagFrom::Path), ("header", TagFrom::Header)]);
    let is_header = |name: &str| http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    let name =
        section.text_like("tag_header", "the name of a header", is_header, "write for example tag_header: X-Tag");
    let prefix = section.text_like(
        "tag_prefix",
        "a text without blanks",
        |t| !t.contains(char::is_whitespace),
        "tags have no blanks",
    );
    for (key, needed) in [("tag_header", from == Some(TagFrom::Header)), ("tag_prefix", from.is_some())] {
        if section.is_written(key) && !needed && (from.is_some() || !section.is_written("tag_from")) {
            let help = if key == "tag_header" { "write tag_from: header" } else { "write tag_from: path, or header" };
            section.fault(key, "is for tags that are sent, and the source's own is used", Some(help.into()));
        }
    }
    let prefix = prefix.unwrap_or_default();
    match from {
        None => HttpTag::OfSource,
        Some(TagFrom::Path) => HttpTag::Path { prefix },
        Some(TagFrom::Header) => {
            let name = name.map_or_else(|| TAG_HEADER.to_owned(), |name| name.to_ascii_lowercase());
            HttpTag::Header { name, prefix }
        }
    }
}

/// Null is none.
fn health_path(section: &mut Section<'_>, default: Option<String>) -> Option<String> {
    let is_path =
        |path: &str| path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'?' && b != b'#');
    let path = section.text_like("health_path", "a path such as /health", is_path, "null is none");
    let is_null = section.has("health_path") && !section.is_written("health_path");
    path.or(default.filter(|_| !is_null))
}
