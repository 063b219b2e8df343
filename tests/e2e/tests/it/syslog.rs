//! Syslog, from senders that nobody here wrote: `logger` of util-linux, and Python's `SysLogHandler`.
//!
//! `WHARF_SYSLOG_RECORDS` says how many messages each sends by TCP (20,000 by default).

use std::fs;
use std::process::Command;

use wharf_e2e::{Place, free_port, script, skip, tools};
use wharf_local_aws::S3;

use crate::senders::{content, names};
use crate::support::{archive, delivered, s3};

fn records() -> u64 {
    std::env::var("WHARF_SYSLOG_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

fn syslog_place(s3: &S3, lines: &str) -> Place {
    let place = Place::new().unwrap();
    let batch = "max_bytes: 2MB, max_age: 500ms";
    let source = format!("sources:\n  sys:\n    type: syslog\n{lines}");
    place.configure(&s3.endpoint(), &format!("{source}{}", archive(2, batch, &[]))).unwrap();
    place
}

fn logger(place: &Place, prefix: &str, count: u64, arguments: &[&str]) {
    let file = place.root().join(format!("{prefix}.txt"));
    let text: String = names(prefix, count).map(|name| format!("{name} the quick brown fox\n")).collect();
    fs::write(&file, text).unwrap();
    let sent =
        Command::new("logger").args(arguments).args(["-t", "app", "-p", "local0.warning", "-f"]).arg(&file).output();
    let sent = sent.unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
}

fn has_logger(test: &str) -> bool {
    let there = Command::new("logger").arg("--version").output().is_ok();
    if !there {
        skip::skip(test, "logger is not installed (on Debian: apt-get install -y bsdutils)", false);
    }
    there
}

#[test]
fn everything_that_logger_sends_by_tcp_arrives_once() {
    if !has_logger("everything_that_logger_sends_by_tcp_arrives_once") {
        return;
    }
    let s3 = s3();
    let port = free_port().unwrap();
    let place = syslog_place(&s3, &format!("    tcp: {{ listen: \"127.0.0.1:{port}\" }}\n"));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("it listens", 30, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let (count, port) = (records(), port.to_string());
    let tcp = ["--tcp", "-n", "127.0.0.1", "-P", &port];
    logger(&place, "c", count, &[&tcp[..], &["--octet-count"]].concat());
    logger(&place, "n", count, &tcp);
    logger(&place, "o", 1000, &[&tcp[..], &["--rfc3164"]].concat());
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() as u64 >= 2 * count + 1000);
    wharf.stop();
    delivered(&s3).assert_each_once(names("c", count).chain(names("n", count)).chain(names("o", 1000)));
    for record in content(&s3) {
        let message = record["message"].as_str().unwrap();
        assert!(message.ends_with(" the quick brown fox"), "{record}");
        assert_eq!(
            (&record["facility"], &record["severity"], &record["appname"]),
            (&"local0".into(), &"warning".into(), &"app".into()),
            "{record}"
        );
        assert_eq!(record.get("version").is_some(), !message.starts_with("o-"), "{record}");
        assert!(record["hostname"].as_str().is_some_and(|name| !name.is_empty()), "{record}");
        // The sender's own time, not that of arrival alone.
        assert_eq!(record["date"].as_str().unwrap()[..19], record["timestamp"].as_str().unwrap()[..19], "{record}");
    }
}

#[test]
fn datagrams_arrive_or_are_counted() {
    if !has_logger("datagrams_arrive_or_are_counted") {
        return;
    }
    let s3 = s3();
    let port = free_port().unwrap();
    let place = syslog_place(&s3, &format!("    udp: {{ listen: \"127.0.0.1:{port}\" }}\n"));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("it listens", 30, || place.metric_at_least("wharf_source_accepted_records_total", 0.0));
    let count = 2000;
    logger(&place, "d", count, &["--udp", "-n", "127.0.0.1", "-P", &port.to_string()]);
    let dropped = || {
        let labels = ["source=\"sys\"", "reason=\"udp_dropped\""];
        place.metric("wharf_source_discarded_records_total", &labels).unwrap_or(0.0) as u64
    };
    wharf.wait_until("everything is there", 60, || delivered(&s3).lines() as u64 + dropped() >= count);
    wharf.stop();
    assert!(delivered(&s3).lines() > 0);
}

#[test]
fn the_handler_of_python_sends_by_tcp_udp_and_a_unix_socket() {
    let venv = tools::venv().unwrap();
    let s3 = s3();
    let (tcp, udp) = (free_port().unwrap(), free_port().unwrap());
    let socket = std::env::temp_dir().join(format!("wharf-syslog-{}.sock", std::process::id()));
    let place = syslog_place(
        &s3,
        &format!(
            "    tcp: {{ listen: \"127.0.0.1:{tcp}\" }}\n    udp: {{ listen: \"127.0.0.1:{udp}\" }}\n    unix_path: {}\n",
            socket.display()
        ),
    );
    let mut wharf = place.start().unwrap();
    wharf.wait_until("it listens", 30, || std::net::TcpStream::connect(("127.0.0.1", tcp)).is_ok());
    let send = script("syslog_send.py").unwrap();
    tools::python(&venv, &send, &["tcp", &tcp.to_string(), "t", "5000"]).unwrap();
    tools::python(&venv, &send, &["udp", &udp.to_string(), "u", "200"]).unwrap();
    tools::python(&venv, &send, &["unix", &socket.display().to_string(), "x", "1000"]).unwrap();
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= 6200);
    wharf.stop();
    delivered(&s3).assert_each_once(names("t", 5000).chain(names("u", 200)).chain(names("x", 1000)));
    for record in content(&s3) {
        assert!(record["message"].as_str().unwrap().ends_with(" the quick brown fox é"), "{record}");
        assert_eq!((&record["facility"], &record["severity"]), (&"local1".into(), &"warning".into()), "{record}");
    }
    assert!(!socket.exists());
}
