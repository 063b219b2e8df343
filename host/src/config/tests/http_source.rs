//! `type: http`, among sources.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::config::{HttpSourceConfig, HttpTag, SourceKind, TlsConfig};

fn http(lines: &str) -> HttpSourceConfig {
    let config = parse(&source(&format!("type: http\nlisten: 127.0.0.1:9880\n{lines}"))).unwrap();
    let SourceKind::Http(http) = config.sources[0].kind.clone() else { panic!("an http source") };
    *http
}

fn fault(lines: &str) -> String {
    faults(&source(&format!("type: http\nlisten: 127.0.0.1:9880\n{lines}")))
}

fn tls(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    assert_eq!(
        http(""),
        HttpSourceConfig {
            listen: "127.0.0.1:9880".parse().unwrap(),
            tls: None,
            tag: HttpTag::OfSource,
            health_path: Some("/health".into()),
            max_body_bytes: 16_777_216,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            max_connections: 1024,
            tokens: vec![],
        }
    );
}

#[test]
fn every_key_is_read() {
    let [cert, key, ca] = ["server.pem", "server.key.pem", "ca.pem"].map(tls);
    let files = format!(
        "tls: {{ cert_file: {}, key_file: {}, client_ca_file: {} }}",
        cert.display(),
        key.display(),
        ca.display()
    );
    let http_ = http(&format!("{files}\nhandshake_timeout: 2s\ntag_from: path\ntag_prefix: edge.\nhealth_path: /up"));
    assert_eq!(http_.tls, Some(TlsConfig { cert_file: cert, key_file: key, client_ca_file: Some(ca) }));
    assert_eq!((http_.handshake_timeout, http_.health_path.as_deref()), (Duration::from_secs(2), Some("/up")));
    assert_eq!(http_.tag, HttpTag::Path { prefix: "edge.".into() });
    let header = |name: &str| HttpTag::Header { name: name.into(), prefix: String::new() };
    assert_eq!(http("tag_from: header").tag, header("fluent-tag"));
    assert_eq!(http("tag_from: header\ntag_header: X-Tag").tag, header("x-tag"));
    assert_eq!(http("health_path: null").health_path, None);
}

#[test]
fn what_cannot_be_is_said() {
    for (lines, says) in [
        ("tag_from: paht", "tag_from"),
        ("tag_header: X-Tag", "write tag_from: header"),
        ("tag_from: path\ntag_header: X-Tag", "write tag_from: header"),
        ("tag_prefix: edge.", "write tag_from: path, or header"),
        ("tag_from: path\ntag_prefix: \"a b\"", "expected a text without blanks"),
        ("tag_from: header\ntag_header: \"X Tag\"", "expected the name of a header"),
        ("health_path: health", "expected a path such as /health"),
        ("health_path: /health?x=1", "expected a path such as /health"),
        ("handshake_timeout: 1s", "there is no \"tls\" that it could be for"),
        ("tls: { cert_file: /nowhere.pem, key_file: /nowhere.pem }", "cannot be read"),
        ("tls: {}", "cert_file"),
        ("header_tag: X-Tag", "write tag_from: header"),
    ] {
        let found = fault(lines);
        assert!(found.contains(says), "{lines}: {found}");
    }
}

/// Which tags will be sent is not known, so nothing can be said of records that no output wants.
#[test]
fn a_tag_that_is_sent_is_not_the_sources() {
    let of = |lines: &str| SourceKind::Http(Box::new(http(lines))).has_tags_of_its_own();
    assert_eq!((of(""), of("tag_from: path"), of("tag_from: header")), (false, true, true));
}
