//! Reads a `syslog` source.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::forward;
use super::model::SyslogConfig;
use super::reader::{Elsewhere, Section};
use super::top::{MOMENT, YEAR};

pub(crate) const ELSEWHERE: Elsewhere = &[
    ("name", "the source's name is its key under \"sources\"; what it does is \"type\""),
    ("listen", "write tcp: { listen: 127.0.0.1:514 } or udp: { listen: 127.0.0.1:514 }, or both"),
    ("port", "write tcp: { listen: 127.0.0.1:514 } or udp: { listen: 127.0.0.1:514 }, or both"),
    ("mode", "write tcp: { listen }, udp: { listen } or unix_path, or several"),
    ("path", "did you mean \"unix_path\"?"),
    ("parser", "RFC 5424 and RFC 3164 are told apart by themselves"),
    ("framing", "octet counting and line feeds are told apart by themselves"),
    ("buffer_max_size", "did you mean \"max_message_size\"?"),
    ("max_length", "did you mean \"max_message_size\"?"),
    ("timezone", "did you mean \"time_zone\"?"),
];

const OF_AN_EAR: Elsewhere = &[
    ("address", "did you mean \"listen\"?"),
    ("port", "did you mean \"listen\"?"),
    ("tls", "it belongs to the source, and is for tcp"),
];

pub(crate) fn syslog(section: &mut Section<'_>) -> Option<SyslogConfig> {
    if !["udp", "unix_path"].into_iter().any(|key| section.is_written(key)) {
        section.missing("tcp", "write tcp: { listen: 127.0.0.1:514 }, udp: { listen: 127.0.0.1:514 }, or unix_path");
    }
    let tcp = ear(section, "tcp");
    let udp = ear(section, "udp");
    let unix_path = forward::unix_path(section);
    let has_tls = section.is_written("tls");
    if has_tls && !section.is_written("tcp") {
        section.fault("tls", "there is no \"tcp\" that it could be for", None);
    }
    let tls = section.section("tls").filter(|_| has_tls).and_then(forward::tls);
    let waits = MOMENT..=Duration::from_secs(3600);
    let config = SyslogConfig {
        tcp,
        udp,
        unix_path,
        tls,
        max_message_bytes: section.size("max_message_size", 480..=64 << 20).unwrap_or(64 << 10),
        time_zone: time_zone(section),
        handshake_timeout: section.duration("handshake_timeout", waits).unwrap_or(Duration::from_secs(10)),
        idle_timeout: section.duration("idle_timeout", MOMENT..=YEAR),
        max_connections: usize::try_from(section.count("max_connections", 1..=1_000_000).unwrap_or(1024))
            .unwrap_or(usize::MAX),
    };
    let has_one = config.tcp.is_some() || config.udp.is_some() || config.unix_path.is_some();
    has_one.then_some(config)
}

fn ear(section: &mut Section<'_>, key: &'static str) -> Option<SocketAddr> {
    let is_written = section.is_written(key);
    let mut ear = section.section(key).filter(|_| is_written)?;
    ear.missing("listen", "write for example listen: 127.0.0.1:514");
    let address = ear.address("listen");
    ear.finish(OF_AN_EAR);
    address
}

/// A zone by its name in the IANA database; UTC where none is named.
pub(crate) fn time_zone(section: &mut Section<'_>) -> TimeZone {
    let help = "write a name such as Europe/Berlin, or UTC";
    let is_known = |name: &str| TimeZone::get(name).is_ok();
    let name = section.text_like("time_zone", "a time zone that this system knows", is_known, help);
    name.and_then(|name| TimeZone::get(&name).ok()).unwrap_or(TimeZone::UTC)
}
