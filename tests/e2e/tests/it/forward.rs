//! The forward protocol, from senders that nobody here wrote: `fluent-logger` (PyPI), which cannot ask for acknowledgements, and
//! `@fluent-org/logger` (npm), which can.
//!
//! `WHARF_FORWARD_RECORDS` says how many records (100,000 by default).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use wharf_e2e::{Place, free_port, script, tools};
use wharf_local_aws::{Fault, Operation, Rule, S3};

use crate::senders::{Sending, content, has_node, names, survives_five_kills};
use crate::support::{archive, delivered, s3};

const BATCH: &str = "max_bytes: 2MB, max_age: 500ms";

fn records() -> u64 {
    std::env::var("WHARF_FORWARD_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

/// A place that takes events on a free port, into an `archive` on `s3`. `more` is further lines of the source.
fn forward_place(s3: &S3, more: &str) -> (Place, u16) {
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    let source = format!("sources:\n  fw:\n    type: forward\n    listen: \"127.0.0.1:{port}\"\n{more}");
    place.configure(&s3.endpoint(), &format!("{source}{}", archive(2, BATCH, &[]))).unwrap();
    (place, port)
}

/// Each record is as it was sent, with a time of today.
fn assert_content(s3: &S3, prefix: &str) {
    for record in content(s3) {
        let n = record["n"].as_u64().unwrap();
        assert_eq!(record["log"], format!("{prefix}-{n:08} the quick brown fox"));
        assert_eq!(record.as_object().unwrap().len(), 3, "{record}");
        let year: u32 = record["date"].as_str().unwrap()[..4].parse().unwrap();
        assert!((2026..2200).contains(&year), "{record}");
    }
}

#[test]
fn everything_that_fluent_logger_sends_arrives_once() {
    let venv = tools::venv().unwrap();
    let s3 = s3();
    let (place, port) = forward_place(&s3, "");
    let mut wharf = place.start().unwrap();
    let count = records();
    let arguments = ["127.0.0.1", &port.to_string(), "f", &count.to_string()];
    let said = tools::python(&venv, &script("forward_send.py").unwrap(), &arguments).unwrap();
    assert_eq!(said.trim(), format!("sent {count}"));
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() as u64 >= count);
    assert_eq!(place.metric("wharf_source_accepted_records_total", &["source=\"fw\""]), Some(count as f64));
    wharf.stop();
    let all = delivered(&s3);
    all.assert_each_once(names("f", count));
    all.assert_contiguous(0);
    assert_content(&s3, "f");
}

#[test]
fn fluent_logger_sends_by_a_unix_socket() {
    let venv = tools::venv().unwrap();
    let s3 = s3();
    let place = Place::new().unwrap();
    let socket = place.root().join("forward.sock");
    let source = format!("sources:\n  fw:\n    type: forward\n    unix_path: {}\n    tag: events\n", socket.display());
    place.configure(&s3.endpoint(), &format!("{source}{}", archive(1, BATCH, &[]))).unwrap();
    let mut wharf = place.start().unwrap();
    let host = format!("unix://{}", socket.display());
    tools::python(&venv, &script("forward_send.py").unwrap(), &[&host, "0", "u", "1000"]).unwrap();
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= 1000);
    wharf.stop();
    delivered(&s3).assert_each_once(names("u", 1000));
    assert!(!socket.exists());
}

#[test]
fn what_was_acknowledged_survives_five_kills() {
    let Some(sender) = Sender::find("what_was_acknowledged_survives_five_kills") else { return };
    let s3 = s3();
    let (place, port) = forward_place(&s3, "");
    // Five starts take their time; CI has less of it.
    let count = if std::env::var_os("CI").is_some() { records().min(30_000) } else { records() };
    let client = client(port, "PackedForward");
    survives_five_kills(&s3, &place, (count, 120), "@fluent-org/logger", || sender.start(&place, "k", count, &client));
    assert_content(&s3, "k");
}

#[test]
fn nothing_is_acknowledged_that_finds_no_room_and_all_is_once_there_is() {
    let Some(sender) = Sender::find("nothing_is_acknowledged_that_finds_no_room_and_all_is_once_there_is") else {
        return;
    };
    let s3 = s3();
    s3.faults().add(Rule::on(Operation::PutObject, Fault::Error("ServiceUnavailable")));
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    let source = format!("sources:\n  fw:\n    type: forward\n    listen: \"127.0.0.1:{port}\"\n");
    let outputs = archive(1, "max_bytes: 10KB, max_age: 1s", &[])
        .replace("    retry:", "    queue: { max_size: 200KB }\n    retry:");
    place.configure(&s3.endpoint(), &format!("{source}{outputs}")).unwrap();
    let mut wharf = place.start().unwrap();
    let mut sending = sender.start(&place, "q", 10_000, &client(port, "Forward"));
    let refused = || place.metric("wharf_source_refused_requests_total", &["reason=\"queue_full\""]);
    wharf.wait_until("the queue is full", 60, || refused().is_some_and(|times| times > 0.0));
    let acked = sending.acked().len();
    assert!(acked < 10_000, "500 KB were taken into a queue of 200 KB");

    s3.faults().clear();
    wharf.wait_until("all is acknowledged", 120, || sending.acked().len() == 10_000);
    sending.end();
    wharf.wait_until("everything is delivered", 60, || place.all_settled());
    wharf.stop();
    assert_eq!(delivered(&s3).distinct(), names("q", 10_000).collect());
}

#[test]
fn every_mode_comes_by_tls_from_a_user_with_its_password() {
    let Some(sender) = Sender::find("every_mode_comes_by_tls_from_a_user_with_its_password") else { return };
    let tls = repository().join("host/testdata/tls");
    let s3 = s3();
    let more = format!(
        "    tag_prefix: \"edge.\"\n    tls: {{ cert_file: {0}/server.pem, key_file: {0}/server.key.pem }}\n    shared_key: geheim\n    \
         self_hostname: server.local\n    users: [{{ username: alice, password: secret-of-alice }}]\n",
        tls.display()
    );
    let (place, port) = forward_place(&s3, &more);
    let mut wharf = place.start().unwrap();
    for (mode, prefix) in [("Message", "m"), ("Forward", "f"), ("PackedForward", "p"), ("CompressedPackedForward", "c")]
    {
        let mut client = client(port, mode);
        client["socket"]["ca"] = json!(tls.join("ca.pem"));
        client["security"] = json!({
            "clientHostname": "client.local", "sharedKey": "geheim", "username": "alice", "password": "secret-of-alice",
        });
        let mut sending = sender.start(&place, prefix, 2000, &client);
        wharf.wait_until(mode, 60, || sending.acked().len() == 2000);
        sending.end();
    }
    wharf.wait_until("everything is delivered", 60, || delivered(&s3).lines() >= 8000);
    wharf.stop();
    delivered(&s3).assert_each_once(["m", "f", "p", "c"].into_iter().flat_map(|prefix| names(prefix, 2000)));
    let log = fs::read_to_string(place.wharf_log()).unwrap();
    assert!(!log.contains("geheim") && !log.contains("secret-of-alice"), "a secret is in the log:\n{log}");
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn client(port: u16, mode: &str) -> Value {
    json!({
        "eventMode": mode,
        "milliseconds": true,
        "flushInterval": 5,
        "ack": { "ackTimeout": 5000 },
        "socket": {
            "host": "127.0.0.1", "port": port, "timeout": -1,
            "reconnect": { "backoff": 1, "delay": 100, "minDelay": 100, "maxDelay": 200 },
        },
    })
}

/// `@fluent-org/logger` in a folder of its own.
struct Sender {
    modules: PathBuf,
}

impl Sender {
    fn find(test: &str) -> Option<Self> {
        has_node(test).then(|| Self { modules: tools::node_modules().unwrap() })
    }

    fn start(&self, place: &Place, prefix: &str, count: u64, client: &Value) -> Sending {
        Sending::start(place, prefix, |acked| {
            let options = json!({ "client": client, "prefix": prefix, "count": count, "acked": acked });
            let mut command = Command::new("node");
            command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("node/forward_send.js")).arg(options.to_string());
            command.env("NODE_PATH", &self.modules);
            command
        })
    }
}
