//! What is read from disk: configurations, chunks, dead letters. They are ours, or the operator's, and may be damaged.

use std::fmt::Write as _;

use bytes::Bytes;

use super::run;
use crate::config::Config;
use crate::dead_letter::StoredLetter;
use crate::record::{BodyKind, Chunk, ChunkBuilder, Position};

#[test]
fn configuration() {
    let whole = include_str!("../../../examples/tail-to-s3.yaml");
    let more = "x-a: &a { type: http, listen: \"127.0.0.1:1\" }\nsources:\n  a: *a\n  b: { <<: *a, listen: \"127.0.0.1:2\" }\n  c:\n    type: otlp\n    \
                grpc: { listen: \"[::]:4317\" }\n  d: { type: syslog, udp: { listen: \"0.0.0.0:514\" }, time_zone: Europe/Berlin }\n  e: { type: stdin, parse: \
                { format: regex, pattern: '(?<a>.)', time_key: a, time_format: \"%Y\" } }\noutputs:\n  o: { plugin: s3, match: [\"*\"], config: { bucket: \"${B:-b}\" } }\n";
    run(&[whole.as_bytes(), more.as_bytes(), b"a: [1, {b: |\n  x\n}]"], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match Config::parse(&text, "wharf.yaml".as_ref(), &|name| (name == "SEVEN").then(|| "7".to_owned())) {
            Ok(config) => assert!(!config.data_dir.as_os_str().is_empty()),
            Err(faults) => {
                let mut shown = String::new();
                write!(shown, "{faults}").unwrap();
                assert!(!shown.is_empty());
            }
        }
    });
}

#[test]
fn chunk() {
    let encoded = |kind, bodies: &[&[u8]], step: i64| {
        let mut chunk = ChunkBuilder::arrived(kind, "tag".into(), 5);
        for (number, body) in bodies.iter().enumerate() {
            chunk.push(7 + step * number as i64, body);
        }
        chunk.position(Position { source: "s".into(), key: "k".into(), value: vec![1, 2] });
        let (head, bodies) = chunk.finish().unwrap().encode();
        [head, bodies].concat()
    };
    let text = encoded(BodyKind::Text, &[b"one", b"", b"three"], 0);
    let json = encoded(BodyKind::Json, &[b"{}", b"{\"a\":1}"], 3);
    run(&[&text, &json], |bytes| {
        let _ = Chunk::decode_meta(bytes);
        if let Ok(chunk) = Chunk::decode(&Bytes::copy_from_slice(bytes)) {
            let (head, bodies) = chunk.encode();
            let again = Chunk::decode(&[head, bodies].concat().into()).unwrap();
            assert_eq!(again.meta(), chunk.meta());
            assert!(again.iter().map(|r| r.body).eq(chunk.iter().map(|r| r.body)));
        }
    });
}

#[test]
fn dead_letter() {
    let one = br#"{"output":"o","batch":"b","record":1,"time":"2026-11-30T16:32:17.123456789Z","tag":"t","kind":"json","reason":"r","failure":"f","body":"{}"}"#;
    let two = br#"{"output":"o","batch":"b","record":2,"time":"2026-11-30T16:32:17Z","tag":"t","kind":"text","reason":"r","failure":"f","body_base64":"/w=="}"#;
    assert!(StoredLetter::parse(one).is_ok() && StoredLetter::parse(two).is_ok());
    run(&[one, two], |bytes| {
        if let Ok(letter) = StoredLetter::parse(bytes) {
            assert_eq!(StoredLetter::parse(letter.to_json().as_bytes()), Ok(letter));
        }
    });
}
