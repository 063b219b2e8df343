//! Each kind of difference is shown as what was expected and what happened.

use super::{s3, told_of};

const TEST: &str = "\
config: { bucket: my-bucket, key_format: /logs/$INDEX, log_key: message, format: text }
records:
  - { message: one }
  - { level: info }
answers:
  s3: { put-object: [503 SlowDown, ok] }
";

async fn told(expect: &str) -> String {
    told_of(s3(), &format!("{TEST}expect:\n{expect}")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_as_expected_is_told_in_no_words() {
    assert_eq!(told("  outcome: delivered\n").await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_a_call() {
    let shown = told("  calls:\n    - { s3: put-object, key: logs/1 }\n    - { s3: put-object, answer: ok }\n").await;
    assert_eq!(
        shown,
        "it.yaml:8:3: expect\n      calls:\n      - s3: put-object\n    -   key: logs/1\n    +   key: logs/0\n      - s3: put-object\n        answer: ok\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_a_body() {
    let shown = told("  calls:\n    - { s3: put-object }\n    - { s3: put-object, body: \"one\\ntwo\\n\" }\n").await;
    assert!(shown.ends_with("        body: |\n          one\n    -     two\n"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_is_not_there() {
    let shown = told("  calls:\n    - { s3: put-object, headers: { content-encoding: gzip, Content-Type: text/plain } }\n    - { s3: put-object }\n").await;
    assert!(shown.contains("    -     content-encoding: gzip\n"), "{shown}");
    assert!(shown.contains("          Content-Type: text/plain\n"), "{shown}");
}

/// All calls of a capability that is named are compared: one too many is a difference, and does not make the others one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_too_many_and_a_call_too_few() {
    let shown = told("  calls:\n    - { s3: put-object, answer: ok }\n").await;
    assert!(shown.contains("    + - s3: put-object\n"), "{shown}");
    let shown = told("  calls:\n    - { s3: put-object }\n    - { s3: head-object, key: logs/0 }\n    - { s3: put-object, answer: ok }\n").await;
    assert!(shown.contains("    - - s3: head-object\n    -   key: logs/0\n"), "{shown}");
    assert!(!shown.contains('+'), "{shown}");
    let shown = told("  calls: []\n").await;
    assert!(shown.contains("    - calls: []\n    + calls:\n    + - s3: put-object\n"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_records_and_batches() {
    for (expect, difference) in [
        ("  outcome: rejected\n", "    - outcome: rejected\n    + outcome: delivered\n"),
        ("  batches: [{ attempts: 3 }]\n", "    - - attempts: 3\n    + - attempts: 2\n"),
        (
            "  batches: [{ attempts: [transient, delivered] }]\n",
            "    - - attempts: [transient, delivered]\n    + - attempts: [throttled, delivered]\n",
        ),
        ("  batches: [{ attempts: [{ wait: 2s }, delivered] }]\n", "    -   - wait: 2s\n    +   - wait: 1s\n"),
        ("  batches: [{ rejected: 2 }]\n", "    - - rejected: 2\n    + - rejected: 1\n"),
        ("  batches: [{ rejected: { 0: \"…\" } }]\n", "    -     \"0\": …\n"),
        ("  batches: [delivered, delivered]\n", "    - batches: [delivered, delivered]\n    + batches: [delivered]\n"),
        ("  dead_letters: []\n", "    - dead_letters: []\n    + dead_letters:\n    + - batch: 1\n    +   record: 1\n"),
        ("  metrics: { conflicts_total: 1 }\n", "    -   conflicts_total: 1\n"),
        ("  storage: { a: b }\n", "    -   a: b\n"),
        ("  log: [\"error: so it is\"]\n", "    -   error: so it is"),
    ] {
        let shown = told(expect).await;
        let is_log = expect.contains("log:");
        assert!(shown.contains(difference) || (is_log && shown.contains("- log:")), "{expect}{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_difference_has_colours_only_where_they_are_wanted() {
    use super::super::Outcome;
    let folder = super::written(&format!("{TEST}expect: {{ outcome: rejected }}\n"));
    let results = super::run(s3(), vec![folder.path().to_owned()], false).await;
    let Outcome::Failed(unlike) = &results[0].outcome else { panic!("{:?}", results[0].outcome) };
    assert!(!unlike[0].difference.render(false).contains('\u{1b}'));
    assert!(unlike[0].difference.render(true).contains("\u{1b}[31m- outcome: rejected\u{1b}[0m"));
}
