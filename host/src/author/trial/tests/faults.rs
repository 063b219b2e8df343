//! What is wrong in a test's own file is told with its place.

use std::path::Path;

use super::super::case::Case;
use super::{s3, told_of};
use crate::record::BodyKind;

fn faults(text: &str) -> String {
    Case::parse(text, Path::new("t.yaml"), &|_| None).map(|_| String::new()).unwrap_or_else(|faults| faults.to_string())
}

#[test]
fn every_fault_has_its_place_and_a_remedy() {
    for (text, told) in [
        ("", "t.yaml: the file is empty"),
        ("config: {}\n", "t.yaml:1:1: the key \"records\" is missing"),
        ("record: [a]\n", "t.yaml:1:1: unknown key \"record\"; did you mean \"records\"?"),
        ("records: [a]\ns3: {}\n", "t.yaml:2:1: unknown key \"s3\"; it belongs under \"answers\""),
        ("records:\n  - 5\n", "t.yaml:2:5: records[0]: expected text or a map, found the number 5"),
        (
            "records:\n  - { $tiem: x, a: 1 }\n",
            "t.yaml:2:7: records[0]: unknown key \"$tiem\"; did you mean \"$time\"?",
        ),
        (
            "records:\n  - { $time: noon, a: 1 }\n",
            "t.yaml:2:14: records[0]: \"noon\" is not a time such as 2026-01-02T03:04:05.678Z",
        ),
        ("records:\n  - { $text: a, b: 1 }\n", "t.yaml:2:5: records[0]: a record is one of"),
        ("records: [\"a\\nb\"]\n", "t.yaml:1:11: records[0]: a record is one line"),
        ("records: { file: not-there.txt }\n", "t.yaml:1:18: records.file: not-there.txt cannot be read"),
        (
            "records: [a]\nanswers: { s3: { put: ok } }\n",
            "t.yaml:2:18: answers.s3: unknown key \"put\"; did you mean \"put-object\"?",
        ),
        (
            "records: [a]\nanswers: { s3: { put-object: [rest] } }\n",
            "t.yaml:2:31: answers.s3.put-object[0]: expected an answer, found text \"rest\"\n    help: did you mean \"reset\"?",
        ),
        (
            "records: [a]\nanswers: { http: { status: 2000 } }\n",
            "t.yaml:2:28: answers.http.status: the number 2000 is out of range; it must be 100 to 599",
        ),
        (
            "records: [a]\nanswers: { http: { staus: 200 } }\n",
            "answers.http: unknown key \"staus\"; did you mean \"status\"?",
        ),
        ("records: [a]\nexpect: { calls: [{ put: x }] }\n", "t.yaml:2:19: expect.calls[0]: expected a call"),
        (
            "records: [a]\nexpect: { calls: [{ s3: put-object, bukcet: x }] }\n",
            "t.yaml:2:37: expect.calls[0]: unknown key \"bukcet\"; did you mean \"bucket\"?",
        ),
        (
            "records: [a]\nexpect: { batches: [{ outcom: x }] }\n",
            "expect.batches[0]: unknown key \"outcom\"; did you mean \"outcome\"?",
        ),
        (
            "records: [a]\nexpect: { outcome: deliverd }\n",
            "t.yaml:2:20: expect.outcome: unknown word \"deliverd\"; did you mean \"delivered\"?\n    help: it is one of delivered, ",
        ),
        (
            "records: [a]\nexpect: { outcome: [delivered, waitng] }\n",
            "t.yaml:2:32: expect.outcome[1]: unknown word \"waitng\"; did you mean \"waiting\"?",
        ),
        ("records: [a]\nexpect: { batches: [rejectd] }\n", "expect.batches[0]: unknown word \"rejectd\"; did you mean"),
        (
            "records: [a]\nexpect: { batches: [{ outcome: trp }] }\n",
            "expect.batches[0].outcome: unknown word \"trp\"; did you mean \"trap\"?",
        ),
        (
            "records: [a]\nexpect: { batches: [{ attempts: [deliverd] }] }\n",
            "t.yaml:2:34: expect.batches[0].attempts[0]: unknown word \"deliverd\"; did you mean \"delivered\"?",
        ),
        (
            "records: [a]\nexpect: { batches: [{ attempts: [{ ended: throtled }] }] }\n",
            "expect.batches[0].attempts[0].ended: unknown word \"throtled\"; did you mean \"throttled\"?",
        ),
        (
            "records: [a]\nexpect: { batches: [{ attempts: [{ endd: x }] }] }\n",
            "expect.batches[0].attempts[0]: unknown key \"endd\"; did you mean \"ended\"?",
        ),
        (
            "records: [a]\nlimits: { cpu: 100 }\n",
            "t.yaml:2:16: limits.cpu: the number 100 is not a duration such as 10s",
        ),
        (
            "records: [a]\nrestart_after: [0]\n",
            "t.yaml:2:17: restart_after: expected the number of an attempt, found the number 0",
        ),
        ("records: [a]\ngiven: { s3: { bucket: b } }\n", "given.s3[0]: the key \"key\" is missing"),
        ("records: [a]\nconfig: { b: \"${NOT_SET}\" }\n", "NOT_SET"),
    ] {
        let shown = faults(text);
        assert!(shown.contains(told), "{text}{shown}");
    }
}

#[test]
fn a_record_is_what_its_notation_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("lines.ndjson"),
        "\"text\"\n{ \"a\": 1 }\n{\"$tag\":\"t2\",\"$json\":\"{\\\"b\\\":  2}\"}\n{\"$base64\":\"/w==\"}\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("lines.txt"), "{\"a\":1}\r\nlast").unwrap();
    let path = folder.path().join("it.yaml");
    let records = |records: &str| {
        let case = Case::parse(&format!("tag: t\nrecords: {records}\n"), &path, &|_| None).unwrap();
        let told = |r: super::super::case::Record| (r.kind == BodyKind::Json, r.tag.to_string(), r.body);
        case.records.into_iter().map(told).collect::<Vec<_>>()
    };
    let text = |tag: &str, body: &[u8]| (false, tag.to_owned(), body.to_vec());
    let json = |tag: &str, body: &[u8]| (true, tag.to_owned(), body.to_vec());
    assert_eq!(
        records("[a line, { a: 1, b: [x, null] }, { $tag: u, $text: \"5\" }, { $json: '{ \"k\":1}' }]"),
        [text("t", b"a line"), json("t", b"{\"a\":1,\"b\":[\"x\",null]}"), text("u", b"5"), json("t", b"{ \"k\":1}")]
    );
    assert_eq!(
        records("{ file: lines.ndjson }"),
        [text("t", b"text"), json("t", b"{ \"a\": 1 }"), json("t2", b"{\"b\":  2}"), text("t", b"\xff")]
    );
    assert_eq!(records("{ file: lines.txt }"), [text("t", b"{\"a\":1}"), text("t", b"last")]);
    assert_eq!(records("{ file: lines.txt, as: text }").len(), 2);
}

#[test]
fn a_test_gives_its_own_environment_first() {
    let text = "env: { BUCKET: mine }\nrecords: []\nconfig: { bucket: \"${BUCKET}\", other: \"${OTHER}\" }\n";
    let other = |name: &str| Some(format!("process-{name}"));
    let case = Case::parse(text, Path::new("t.yaml"), &other).unwrap();
    assert_eq!(case.output.config, serde_json::json!({ "bucket": "mine", "other": "process-OTHER" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_configuration_that_nobody_expects_is_told_at_its_place() {
    let told = told_of(s3(), "config: { bukcet: b }\nrecords: [a]\nexpect: { outcome: delivered }\n").await;
    assert!(told.contains("it.yaml:1:11: config: unknown key \"bukcet\"; did you mean \"bucket\"?"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_expects_nothing_is_none() {
    let told = told_of(s3(), "config: { bucket: my-bucket }\nrecords: [a]\n").await;
    assert!(told.contains("it.yaml: the test expects nothing"), "{told}");
}

#[test]
fn every_word_that_a_test_may_expect_is_taken() {
    let text = "records: [a]\nexpect:\n  outcome: [delivered, rejected, retry_expired, trap, cpu_limit, out_of_memory, host_limit, invalid_report, waiting, quarantined, \"…\"]\n  batches: [{ attempts: 2 }, { attempts: [delivered, throttled, transient, auth, misconfigured, rejected, trap, timeout, host, { ended: cpu_limit }] }]\n";
    assert_eq!(faults(text), "");
}

#[test]
fn a_configuration_that_is_not_there_is_told_with_the_option_that_names_it() {
    let shown = Case::of_config("no/such.yaml").unwrap_err().to_string();
    assert!(shown.contains("no/such.yaml: cannot be read") && shown.contains("help: --config names"), "{shown}");
    assert!(!shown.contains("-c FILE"), "{shown}");
}
