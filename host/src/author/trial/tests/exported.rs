//! Dead letters → tests → the same dead letters.

use std::path::Path;

use super::super::{Export, export};
use super::{run, s3, shown};
use crate::dead_letter::{DeadLetters, Filter, Letter};
use crate::record::BodyKind;
use crate::state::BatchId;

/// What S3 says of an object above its largest size, as the component's reason has it (docs/outputs/s3.md, Failures).
const REASON: &str = "writing s3://my-bucket/logs/41: S3 answered 400 EntityTooLarge (Your proposed upload exceeds the maximum allowed size)";
const CONFIG: &str = "\
data_dir: DATA
sources: { app: { type: stdin } }
outputs:
  archive:
    plugin: s3
    match: \"*\"
    config: { bucket: \"${TRIAL_BUCKET:-my-bucket}\", key_format: /logs/$INDEX, metadata: { price: \"5$$\" } }
";

fn letters(folder: &Path, failure: &str, reasons: &[&str]) -> DeadLetters {
    let letters = DeadLetters::open(folder);
    let mut writer = letters.writer("archive", BatchId([7; 16]), failure).unwrap();
    let bodies: [&[u8]; 3] = [b"plain \"text\"", b"{ \"a\":  1 }", b"\xff\xfe"];
    for (record, (body, reason)) in (0..).zip(bodies.iter().zip(reasons)) {
        let kind = if body.starts_with(b"{") { BodyKind::Json } else { BodyKind::Text };
        let time_ns = 1_767_323_045_000_000_000 + i64::try_from(record).unwrap();
        writer.record(&Letter { record, time_ns, tag: "app", kind, body, reason }).unwrap();
    }
    writer.finish().unwrap();
    letters
}

/// Writes the tests of these dead letters. Gives the test's text.
fn exported(folder: &Path, letters: &DeadLetters) -> String {
    let config = folder.join("wharf.yaml");
    std::fs::write(&config, CONFIG.replace("DATA", &folder.display().to_string())).unwrap();
    let files = letters.list(&Filter::default()).unwrap();
    let to = folder.join("tests");
    let written = export(&Export { config, output: "archive".into(), files, to: to.clone() }).unwrap();
    assert_eq!(written.written, [to.join("07070707070707070707070707070707.yaml")]);
    assert!(written.kept.is_empty());
    std::fs::read_to_string(&written.written[0]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_batch_is_rejected_again_and_passes_where_the_service_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let letters = letters(folder.path(), "rejected", &[REASON; 3]);
    let text = exported(folder.path(), &letters);
    assert!(text.contains(&format!("# rejected: {REASON} (3 records)\n")), "{text}");
    // What comes from the environment stays there, and a dollar sign stays one.
    assert!(text.contains("bucket: \"${TRIAL_BUCKET}\"\n") && text.contains("price: 5$\n"), "{text}");
    let answer = "answers:
  s3:
    put-object:
      status: 400
      code: EntityTooLarge
      message: Your proposed upload exceeds the maximum allowed size
";
    assert!(text.contains(answer), "{text}");
    let records = folder.path().join("tests/07070707070707070707070707070707.ndjson");
    assert_eq!(
        std::fs::read_to_string(records).unwrap(),
        "{\"$time\":\"2026-01-02T03:04:05.000000000Z\",\"$tag\":\"app\",\"$text\":\"plain \\\"text\\\"\"}\n\
         {\"$time\":\"2026-01-02T03:04:05.000000001Z\",\"$tag\":\"app\",\"$json\":\"{ \\\"a\\\":  1 }\"}\n\
         {\"$time\":\"2026-01-02T03:04:05.000000002Z\",\"$tag\":\"app\",\"$base64\":\"//4=\"}\n"
    );
    let test = folder.path().join("tests/07070707070707070707070707070707.yaml");
    let with = |text: &str| format!("env: {{ TRIAL_BUCKET: my-bucket }}\n{text}");
    std::fs::write(&test, with(&text)).unwrap();
    let results = run(s3(), vec![test.clone()], false).await;
    assert!(results[0].is_good(), "{}{text}", shown(&results[0]));
    // Where S3 takes the object there are no dead letters, and the test says so.
    std::fs::write(&test, with(&text.replace(answer, ""))).unwrap();
    let results = run(s3(), vec![test], false).await;
    assert!(shown(&results[0]).contains("+ dead_letters: []"), "{}", shown(&results[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_was_given_up_is_given_up_after_its_first_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let reason = "given up after 1440 tries in 86400 s: writing s3://my-bucket/logs/41: S3 answered 503 SlowDown (SlowDown, as the test has it)";
    let letters = letters(folder.path(), "retry_expired", &[reason; 3]);
    let text = exported(folder.path(), &letters);
    let test = folder.path().join("tests/07070707070707070707070707070707.yaml");
    std::fs::write(&test, format!("env: {{ TRIAL_BUCKET: my-bucket }}\n{text}")).unwrap();
    let results = run(s3(), vec![test], false).await;
    assert!(results[0].is_good(), "{}{text}", shown(&results[0]));
}

#[test]
fn records_with_reasons_of_their_own_keep_them_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let letters = letters(folder.path(), "rejected", &["too old", "too new", "no key `a`"]);
    let text = exported(folder.path(), &letters);
    assert!(
        text.contains("- record: 1\n      reason: too new\n") || text.contains("- record: 1\n    reason: too new\n"),
        "{text}"
    );
    let mut writer = letters.writer("archive", BatchId([8; 16]), "rejected").unwrap();
    let letter = Letter { record: 0, time_ns: 0, tag: "app", kind: BodyKind::Text, body: b"a", reason: "too old" };
    writer.record(&letter).unwrap();
    writer.finish().unwrap();
    std::fs::write(folder.path().join("tests/07070707070707070707070707070707.yaml"), "mine").unwrap();
    let files = letters.list(&Filter::default()).unwrap();
    let again = Export {
        config: folder.path().join("wharf.yaml"),
        output: "archive".into(),
        files,
        to: folder.path().join("tests"),
    };
    let file = |name: &str| folder.path().join("tests").join(name);
    let exported = export(&again).unwrap();
    assert_eq!(exported.kept, [file("07070707070707070707070707070707.yaml")]);
    assert_eq!(exported.written, [file("08080808080808080808080808080808.yaml")]);
    assert_eq!(std::fs::read_to_string(&exported.kept[0]).unwrap(), "mine");
}

/// The reason is in the words of the SDKs: request line, status, where it sends to, and the beginning of the body.
#[test]
fn what_an_http_destination_answered_is_scripted_with_its_body() {
    for (reason, answer) in [
        (
            "POST https://api.example.com/v1 answered 400: bad dataset",
            "answers:\n  http:\n    status: 400\n    body: bad dataset\n",
        ),
        ("POST https://api.example.com/v1 answered 413", "answers:\n  http:\n    status: 413\n"),
        (
            "given up after 2 tries in 9 s: POST https://a.test/ answered 308 (to https://b.test/): moved",
            "answers:\n  http:\n    status: 308\n    headers:\n      location: https://b.test/\n    body: moved\n",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let letters = letters(folder.path(), "rejected", &[reason; 3]);
        let text = exported(folder.path(), &letters);
        assert!(text.contains(answer), "{text}");
    }
}
