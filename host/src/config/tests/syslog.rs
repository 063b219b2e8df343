//! `type: syslog`, and `parse`.

use super::*;
use crate::config::{ParseFormat, SourceKind, TimeFormat};

fn fault(lines: &str) -> String {
    faults(&source(lines))
}

#[test]
fn a_syslog_source_has_the_documented_defaults() {
    let config = parse(&source("type: syslog\nudp: { listen: 127.0.0.1:514 }")).unwrap();
    let SourceKind::Syslog(syslog) = &config.sources[0].kind else { panic!("a syslog source") };
    assert_eq!((syslog.tcp, syslog.udp), (None, Some("127.0.0.1:514".parse().unwrap())));
    assert_eq!((syslog.max_message_bytes, syslog.max_connections, syslog.idle_timeout), (65_536, 1024, None));
    assert_eq!(syslog.time_zone, jiff::tz::TimeZone::UTC);
}

#[test]
fn faults_of_syslog_say_what_to_write() {
    assert!(fault("type: syslog").contains("the key \"tcp\" is missing"));
    assert!(fault("type: syslog\nlisten: 0.0.0.0:514").contains("write tcp: { listen: 127.0.0.1:514 }"));
    assert!(
        fault("type: syslog\nudp: { listen: 0.0.0.0:514 }\ntime_zone: Mars/Olympus")
            .contains("a time zone that this system knows")
    );
    assert!(
        fault("type: syslog\nudp: { listen: 0.0.0.0:514 }\ntls: { cert_file: a, key_file: b }")
            .contains("there is no \"tcp\"")
    );
}

#[test]
fn every_key_of_parse_is_read() {
    let text = "type: stdin\nparse:\n  format: regex\n  pattern: '(?<a>x)(?<t>.*)'\n  time_key: t\n  time_format: epoch_ms\n  time_zone: Europe/Berlin\n  keep_time_key: true";
    let config = parse(&source(text)).unwrap();
    let parse = config.sources[0].parse.as_deref().unwrap();
    assert!(matches!(&parse.format, ParseFormat::Regex(regex) if regex.as_str() == "(?<a>x)(?<t>.*)"));
    assert_eq!((parse.time_key.as_deref(), parse.keep_time_key), (Some("t"), true));
    assert_eq!(parse.time_format, TimeFormat::Epoch(1_000_000));
    assert_eq!(parse.time_zone.iana_name(), Some("Europe/Berlin"));
}

#[test]
fn faults_of_parse_say_what_to_write() {
    assert!(fault("type: stdin\nparse: {}").contains("the key \"format\" is missing"));
    assert!(fault("type: stdin\nparse: { format: regex }").contains("the key \"pattern\" is missing"));
    assert!(fault("type: stdin\nparse: { format: regex, pattern: '(' }").contains("is no regular expression"));
    assert!(fault("type: stdin\nparse: { format: regex, pattern: 'a(b)' }").contains("has no named group"));
    assert!(fault("type: stdin\nparse: { format: json, pattern: 'a' }").contains("is for format: regex"));
    assert!(fault("type: stdin\nparse: { format: json, time_format: epoch }").contains("there is no \"time_key\""));
    assert!(
        fault("type: stdin\nparse: { format: json, time_key: t, time_format: soon }").contains("is no format of times")
    );
    assert!(fault("type: generate\nparse: { format: json }").contains("unknown key \"parse\""));
}
