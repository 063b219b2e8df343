//! `type: otlp`.

use std::time::Duration;

use super::*;
use crate::config::{OtlpConfig, OtlpFormat, SourceKind};

fn otlp(lines: &str) -> OtlpConfig {
    let config = parse(&source(&format!("type: otlp\n{lines}"))).unwrap();
    let SourceKind::Otlp(otlp) = config.sources[0].kind.clone() else { panic!("an otlp source") };
    *otlp
}

fn fault(lines: &str) -> String {
    faults(&source(&format!("type: otlp\n{lines}")))
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let otlp = otlp("grpc: { listen: 127.0.0.1:4317 }");
    assert_eq!((otlp.grpc, otlp.http), (Some("127.0.0.1:4317".parse().unwrap()), None));
    assert_eq!((otlp.tls, otlp.format, otlp.tag_from), (None, OtlpFormat::Json, None));
    assert_eq!((otlp.max_body_bytes, otlp.max_connections), (16_777_216, 1024));
    assert_eq!((otlp.handshake_timeout, otlp.idle_timeout), (Duration::from_secs(10), Duration::from_secs(75)));
}

#[test]
fn every_key_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tls");
    let otlp = otlp(&format!(
        "grpc: {{ listen: 0.0.0.0:4317 }}\nhttp: {{ listen: 0.0.0.0:4318 }}\nformat: otlp_json\ntag_from: service.name\n\
         tls: {{ cert_file: {0}/server.pem, key_file: {0}/server.key.pem }}\nmax_body_size: 1MiB\nhandshake_timeout: 1s\nidle_timeout: 2s\nmax_connections: 3",
        folder.display()
    ));
    assert_eq!(otlp.http, Some("0.0.0.0:4318".parse().unwrap()));
    assert_eq!((otlp.format, otlp.tag_from.as_deref()), (OtlpFormat::OtlpJson, Some("service.name")));
    assert!(otlp.tls.is_some());
    assert_eq!((otlp.max_body_bytes, otlp.max_connections), (1 << 20, 3));
    assert_eq!((otlp.handshake_timeout, otlp.idle_timeout), (Duration::from_secs(1), Duration::from_secs(2)));
}

#[test]
fn faults_say_what_to_write() {
    assert!(fault("").contains("the key \"grpc\" is missing"), "{}", fault(""));
    assert!(fault("http: {}").contains("listen: 127.0.0.1:4318"), "{}", fault("http: {}"));
    let collector = fault("protocols: { grpc: { endpoint: 0.0.0.0:4317 } }");
    assert!(collector.contains("write grpc: { listen } and http: { listen } without it"), "{collector}");
    let endpoint = fault("grpc: { endpoint: 0.0.0.0:4317 }");
    assert!(endpoint.contains("did you mean \"listen\"?"), "{endpoint}");
    let same = fault("grpc: { listen: 0.0.0.0:4317 }\nhttp: { listen: 127.0.0.1:4317 }");
    assert!(same.contains("is taken"), "{same}");
    assert!(fault("grpc: { listen: 127.0.0.1:1 }\nformat: xml").contains("otlp_json"));
}
