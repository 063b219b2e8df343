//! A component that dies of whatever it is given is held, and a person lets it go.

use std::process::Command;

use wharf_e2e::{Place, command, free_port, http, wharf_binary};

use crate::reload_support::{Sender, components};
use crate::support::s3;

fn quarantine(place: &Place, asked: &[&str]) -> (Option<i32>, String) {
    let mut command: Command = command(wharf_binary().unwrap());
    let output = command.arg("quarantine").args(asked).arg("-c").arg(place.config()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn an_output_that_is_held_is_listed_and_let_go_by_name() {
    let (s3, place) = (s3(), Place::new().unwrap());
    std::fs::copy(&components().1, place.root().join("own.wasm")).unwrap();
    let [bad, good] = [free_port().unwrap(), free_port().unwrap()];
    // What it does with a batch is what the batch's tag says. It asks for the grant, and never uses it.
    let grants = "{ s3: [{ bucket: bucket, key_prefix: logs/ }], http: [] }";
    let text = format!(
        "sources:\n  bad: {{ type: http, listen: \"127.0.0.1:{bad}\", tag: trap }}\n  good: {{ type: http, listen: \"127.0.0.1:{good}\", tag: ok }}\n\
         outputs:\n  live:\n    plugin: ./own.wasm\n    grants: {grants}\n    match: \"*\"\n    batch: {{ max_records: 1, max_age: 50ms }}\n    \
         retry: {{ initial: 10ms, max: 50ms }}\n    config: {{}}\n  \
         idle: {{ plugin: ./own.wasm, match: nothing, grants: {grants}, config: {{}} }}\n"
    );
    place.configure(&s3.endpoint(), &text).unwrap();
    let mut wharf = place.start().unwrap();
    assert_eq!(quarantine(&place, &["list"]), (Some(0), "no output is in quarantine\n".into()));

    let mut sender = Sender::connect(bad, "p");
    (0..3).for_each(|_| sender.send(1));
    let is_held = || place.metric("wharf_output_plugin_quarantined", &["output=\"live\""]) == Some(1.0);
    wharf.wait_until("it is quarantined", 30, is_held);
    Sender::connect(good, "g").send(1);
    let waiting = || place.metric("wharf_queue_records", &["output=\"live\""]);
    wharf.wait_until("the good one waits behind it", 30, || waiting() == Some(2.0));
    let (code, told) = quarantine(&place, &["list"]);
    assert_eq!(code, Some(0), "{told}");
    let line = told.lines().nth(1).unwrap();
    assert!(line.starts_with("live") && line.contains("trap: "), "{told}");
    assert!(told.lines().count() == 2, "{told}");

    let refused = |asked: &str, why: &str| {
        let (code, told) = quarantine(&place, &["end", asked]);
        assert_eq!((code, told.contains(why)), (Some(1), true), "{told}");
    };
    refused("lvie", "there is no output lvie; did you mean live?");
    refused("idle", "output idle is not in quarantine");
    let by_text = http::post(place.admin_address(), "/quarantine/end", "text/plain", br#"{"output":"live"}"#).unwrap();
    assert_eq!((by_text.status, is_held()), (415, true));

    let (code, told) = quarantine(&place, &["end", "live"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("the quarantine of live (./own.wasm 0.1.0 (") && told.contains("1 batch"), "{told}");
    wharf.wait_until("nothing is held any more", 30, || waiting() == Some(0.0));
    for (metric, labels, value) in [
        ("wharf_delivered_records_total", &["output=\"live\""][..], 1.0),
        ("wharf_rejected_records_total", &["output=\"live\"", "reason=\"trap\""], 3.0),
        ("wharf_output_plugin_quarantines_ended_total", &["output=\"live\"", "by=\"hand\""], 1.0),
        ("wharf_output_plugin_quarantines_ended_total", &["output=\"idle\""], 0.0),
    ] {
        assert_eq!(place.metric(metric, labels), Some(value), "{metric} {labels:?}");
    }
    wharf.stop();
    let log = std::fs::read_to_string(place.wharf_log()).unwrap();
    assert!(log.contains("the plugin's quarantine was ended by hand"), "{log}");
}
