//! What is wrong with a new configuration is told, and the old one goes on; what is undelivered goes only when that is said.

use std::process::Command;

use serde_json::json;
use wharf_e2e::{Delivered, Place, Wharf, command, free_port, wharf_binary};
use wharf_local_aws::S3;

use crate::reload_support::{Sender, build, components, put_plugin};
use crate::support::s3;

fn configure(place: &Place, s3: &S3, port: u16, more: &str) {
    let text = format!(
        "sources:\n  posts: {{ type: http, listen: \"127.0.0.1:{port}\" }}\noutputs:\n  archive:\n    plugin: ./own.wasm\n    match: \"*\"\n    \
         batch: {{ max_age: 50ms }}\n    grants: {{ s3: [{{ bucket: logs, key_prefix: archive/ }}] }}\n    \
         config: {{ bucket: logs, key_format: /archive/$INDEX }}\n{more}"
    );
    place.configure(&s3.endpoint(), &text).unwrap();
}

fn place() -> (S3, Place, u16) {
    let (s3, place, port) = (s3(), Place::new().unwrap(), free_port().unwrap());
    put_plugin(&place, &build(1));
    configure(&place, &s3, port, "");
    (s3, place, port)
}

fn reload_by_command(place: &Place, more: &[&str]) -> (Option<i32>, String) {
    let mut asked: Command = command(wharf_binary().unwrap());
    let output = asked.arg("reload").arg("-c").arg(place.config()).args(more).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The sender's next lines are delivered, so the output works.
fn works(wharf: &mut Wharf, s3: &S3, sender: &mut Sender) {
    sender.send(3);
    let wanted = sender.names().len();
    wharf.wait_until("it is delivered", 30, || Delivered::of(s3, "archive/").lines() == wanted);
}

#[test]
fn what_is_wrong_is_told_and_the_old_one_goes_on() {
    let (s3, place, port) = place();
    let mut wharf = place.start().unwrap();
    let mut sender = Sender::connect(port, "p");
    works(&mut wharf, &s3, &mut sender);

    // Two faults, both told, and the file's place with each.
    configure(&place, &s3, port, "    workres: 2\n    retry: { initial: soon }\n");
    let (status, answer) = place.reload("{}").unwrap();
    let faults = answer["faults"].to_string();
    assert_eq!((status, &answer["result"]), (422, &json!("refused")));
    assert!(faults.contains("unknown key \\\"workres\\\"; did you mean \\\"workers\\\"?"), "{faults}");
    assert!(faults.contains("outputs.archive.retry.initial"), "{faults}");
    let (code, told) = reload_by_command(&place, &[]);
    assert_eq!(code, Some(78), "{told}");
    assert!(
        told.contains("did you mean \"workers\"?") && told.contains("the configuration before it goes on"),
        "{told}"
    );
    works(&mut wharf, &s3, &mut sender);

    configure(&place, &s3, port, "");
    for (component, why) in
        [(b"no component".to_vec(), "own.wasm"), (std::fs::read(&components().1).unwrap(), "outputs.archive.config")]
    {
        put_plugin(&place, &component);
        let (status, answer) = place.reload("{}").unwrap();
        assert_eq!((status, &answer["result"]), (422, &json!("refused")));
        assert!(answer["faults"].to_string().contains(why), "{answer:#}");
        works(&mut wharf, &s3, &mut sender);
    }

    // One whose first worker dies.
    let trapping = "  other:\n    plugin: ./own.wasm\n    match: nothing\n    config: { configure: trap }\n";
    configure(&place, &s3, port, trapping);
    let (_, answer) = place.reload("{}").unwrap();
    assert!(answer["faults"].to_string().contains("died while it was configured"), "{answer:#}");
    works(&mut wharf, &s3, &mut sender);
    let health: serde_json::Value = serde_json::from_slice(&place.admin("/health").unwrap().body).unwrap();
    assert_eq!(health["last_reload"]["result"], "refused");
    assert!(health["problems"][0].as_str().unwrap().starts_with("the last reload was refused"), "{health:#}");

    // An address that somebody else has: found only when it is asked for, and all is as before.
    put_plugin(&place, &build(2));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = std::fs::read_to_string(place.config()).unwrap().replace(trapping, "");
    std::fs::write(place.config(), text.replace(&format!("127.0.0.1:{port}"), &address.to_string())).unwrap();
    let (status, answer) = place.reload("{}").unwrap();
    assert_eq!((status, &answer["result"]), (500, &json!("failed")), "{answer:#}");
    assert!(answer["faults"][0].as_str().unwrap().contains("listening on"), "{answer:#}");
    let mut again = Sender::connect(port, "q");
    again.send(1);
    drop(again);

    // And a good one.
    configure(&place, &s3, port, "");
    let (code, told) = reload_by_command(&place, &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("changed: output archive (plugin)"), "{told}");
    let (_, answer) = place.reload("{}").unwrap();
    assert_eq!(answer["result"], "unchanged", "{answer:#}");
    assert_eq!(place.metric("wharf_reloads_total", &["result=\"refused\""]), Some(5.0));
    wharf.stop();
}

/// An output whose destination does not answer.
const STUCK: &str = "  stuck:\n    plugin: s3\n    match: \"*\"\n    batch: { max_age: 10ms }\n    aws: { endpoint: \"http://127.0.0.1:1\" }\n    \
                     config: { bucket: logs, key_format: /stuck/$INDEX }\n";
/// The same, with one that does.
fn mended(s3: &S3) -> String {
    STUCK.replace("http://127.0.0.1:1", &s3.endpoint())
}

#[test]
fn an_output_goes_with_undelivered_records_only_when_that_is_said_and_its_numbers_go_on() {
    let (s3, place, port) = place();
    configure(&place, &s3, port, &mended(&s3));
    let mut wharf = place.start().unwrap();
    let mut sender = Sender::connect(port, "p");
    works(&mut wharf, &s3, &mut sender);
    wharf.wait_until("it is delivered there too", 30, || place.all_settled());
    let before = Delivered::of(&s3, "stuck/").objects.len() as u64;

    configure(&place, &s3, port, STUCK);
    assert_eq!(place.reload("{}").unwrap().0, 200);
    works(&mut wharf, &s3, &mut sender);

    configure(&place, &s3, port, "");
    let (status, answer) = place.reload("{}").unwrap();
    assert_eq!((status, &answer["result"]), (422, &json!("refused")));
    assert_eq!(
        (&answer["undelivered"][0]["output"], &answer["undelivered"][0]["records"]),
        (&json!("stuck"), &json!(3))
    );
    let (code, told) = reload_by_command(&place, &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("output stuck is not configured any more and has 3 undelivered records"), "{told}");
    assert!(told.contains("wharf reload --discard stuck"), "{told}");
    works(&mut wharf, &s3, &mut sender);
    let (_, answer) = place.reload(r#"{"discard": ["archive"]}"#).unwrap();
    assert!(
        answer["faults"][0].as_str().unwrap().contains("nothing is dropped of one that is configured"),
        "{answer:#}"
    );

    let (status, answer) = place.reload(r#"{"discard": ["stuck"]}"#).unwrap();
    assert_eq!((status, &answer["outputs"]["removed"]), (200, &json!(["stuck"])), "{answer:#}");
    assert_eq!((&answer["discarded"][0]["output"], &answer["discarded"][0]["records"]), (&json!("stuck"), &json!(6)));
    assert_eq!(place.metric("wharf_dropped_records_total", &["stuck", "discarded"]), Some(6.0));
    works(&mut wharf, &s3, &mut sender);

    // It comes again: nothing of the old is there, and its numbers were used.
    configure(&place, &s3, port, &mended(&s3));
    assert_eq!(place.reload("{}").unwrap().0, 200);
    works(&mut wharf, &s3, &mut sender);
    wharf.wait_until("it is delivered there again", 30, || place.all_settled());
    let after = Delivered::of(&s3, "stuck/");
    let newest = after.objects.last().unwrap().index.unwrap();
    assert!(newest > before, "{newest} after {before}");
    assert_eq!(after.lines(), 6, "what was dropped does not come");
    wharf.stop();
}

#[test]
fn what_a_start_finds_of_an_output_that_is_not_configured_is_kept_until_somebody_decides() {
    let (s3, place, port) = place();
    configure(&place, &s3, port, STUCK);
    let wharf = place.start().unwrap();
    let mut sender = Sender::connect(port, "p");
    sender.send(5);
    drop(sender);
    wharf.kill9();

    configure(&place, &s3, port, "");
    let mut wharf = place.start().unwrap();
    let kept = || {
        let health: serde_json::Value = serde_json::from_slice(&place.admin("/health").unwrap().body).unwrap();
        health["kept"].clone()
    };
    assert_eq!((&kept()[0]["output"], &kept()[0]["records"]), (&json!("stuck"), &json!(5)));
    // An output of its name delivers it.
    configure(&place, &s3, port, &mended(&s3));
    let (status, answer) = place.reload("{}").unwrap();
    assert_eq!((status, &answer["outputs"]["added"]), (200, &json!(["stuck"])), "{answer:#}");
    wharf.wait_until("it is delivered", 30, || Delivered::of(&s3, "stuck/").lines() == 5);
    assert_eq!(kept(), json!(null));

    // And where it is given up at a start, it is counted.
    configure(&place, &s3, port, STUCK);
    assert_eq!(place.reload("{}").unwrap().0, 200);
    Sender::connect(port, "q").send(2);
    wharf.kill9();
    configure(&place, &s3, port, "");
    let mut again = command(wharf_binary().unwrap())
        .args(["run", "--discard", "stuck", "-c"])
        .arg(place.config())
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wharf_e2e::wait_until("it runs", 60, || place.admin("/ready").is_ok_and(|answer| answer.status == 200));
    let dropped = place.metric("wharf_dropped_records_total", &["stuck", "discarded"]);
    let left = kept();
    again.kill().unwrap();
    again.wait().unwrap();
    assert_eq!((dropped, left), (Some(2.0), json!(null)));
}
