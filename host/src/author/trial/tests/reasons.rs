//! A test that fails says why: the last attempt's message and what the component logged; and a note tells of answers that nobody asked for.

use super::super::{Outcome, TestResult};
use super::{run, s3, written};
use crate::plugin::PluginSource;
use crate::plugin::tests::component;

async fn result(plugin: PluginSource, text: &str) -> TestResult {
    let folder = written(text);
    run(plugin, vec![folder.path().to_owned()], false).await.remove(0)
}

async fn why(plugin: PluginSource, text: &str) -> Vec<String> {
    let result = result(plugin, text).await;
    assert!(matches!(result.outcome, Outcome::Failed(_)), "{:?}", result.outcome);
    result.why
}

fn misbehaving() -> PluginSource {
    PluginSource::File(component().to_owned())
}

const CONFIG: &str = "config: { bucket: my-bucket, key_format: /logs/$INDEX }\nrecords: [a]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_grant() {
    let told =
        why(s3(), &format!("{CONFIG}grants: {{ s3: [] }}\nattempts: 2\nexpect: {{ outcome: delivered }}\n")).await;
    let batch = &told[0];
    assert!(
        batch.starts_with("batch 1 is waiting after 2 attempts, the last of which ended with misconfigured: "),
        "{told:?}"
    );
    assert!(batch.contains("is not granted to output test") && batch.ends_with("(grants.s3)"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_with_its_text_once_however_often_it_came() {
    let told = why(misbehaving(), "tag: trap\nrecords: [a]\nexpect: { outcome: delivered }\n").await;
    assert!(
        told[0].starts_with("batch 1 ended with trap after 2 attempts: ended 2 fresh stores of the plugin: "),
        "{told:?}"
    );
    let panics = told.iter().filter(|line| line.starts_with("log: ") && line.contains("on purpose, in deliver"));
    assert_eq!(panics.count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_without_end() {
    let told = why(
        misbehaving(),
        "tag: eat_memory\nrecords: [a]\nattempts: 1\nlimits: { memory: 4MiB }\nexpect: { outcome: delivered }\n",
    )
    .await;
    assert!(
        told[0].starts_with("batch 1 is waiting after 1 attempt, the last of which ended with out_of_memory: "),
        "{told:?}"
    );
    // 4 MiB.
    assert!(told[0].contains("plugins.limits.max_memory is 4194304 bytes"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_is_expected_needs_no_reason() {
    let told = why(
        s3(),
        &format!("{CONFIG}grants: {{ s3: [] }}\nattempts: 1\nexpect: {{ outcome: waiting, metrics: {{ a: 1 }} }}\n"),
    )
    .await;
    assert!(!told.iter().any(|line| line.starts_with("batch")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_no_call_used_are_noted_and_no_failure() {
    let result = result(
        s3(),
        &format!("{CONFIG}answers:\n  s3: {{ put-object: [ok, 503, 503], head-object: 404 }}\n  http: {{ \"POST https://a.test/…\": [503, ok] }}\nexpect: {{ outcome: delivered }}\n"),
    )
    .await;
    assert!(result.is_good(), "{:?}", result.outcome);
    assert_eq!(
        result.notes,
        [
            "answers.s3.head-object: its answer was never used",
            "answers.s3.put-object: only 1 of its 3 answers were used",
            "answers.http, POST https://a.test/…: none of its 2 answers was used",
        ]
    );
}
