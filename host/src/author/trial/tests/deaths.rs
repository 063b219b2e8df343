//! What a component dies of is an end that a test can expect.

use super::told_of;
use crate::plugin::PluginSource;
use crate::plugin::tests::component;

fn misbehaving() -> PluginSource {
    PluginSource::File(component().to_owned())
}

/// A batch that ends two fresh stores becomes dead letters (docs/plugins: errors and retries).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trap_on_two_fresh_stores_ends_the_batch() {
    let test = "tag: trap\nrecords: [a, b]\nexpect:\n  batches:\n    - { outcome: trap, attempts: [trap, trap] }\n  dead_letters: \"ended 2 fresh stores of the plugin: …\"\n";
    assert_eq!(told_of(misbehaving(), test).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_those_of_the_test() {
    let test = "tag: spin\nrecords: [a]\nlimits: { cpu: 200ms }\nexpect:\n  batches: [{ outcome: cpu_limit, attempts: 2, reason: \"…too much CPU time: plugins.limits.cpu_per_call is 200 ms, and … were taken\" }]\n";
    assert_eq!(told_of(misbehaving(), test).await, "");
    let test = "tag: eat_memory\nrecords: [a]\nlimits: { memory: 4MiB }\nexpect: { batches: [out_of_memory] }\n";
    assert_eq!(told_of(misbehaving(), test).await, "");
}

/// Fifteen minutes are the usual time limit; a test names its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_never_answers_runs_into_the_time_limit() {
    let test = "config: { bucket: my-bucket, key_format: /$INDEX }\nrecords: [a]\nattempts: 1\nlimits: { timeout: 2s }\nanswers: { s3: { put-object: hang } }\nexpect:\n  batches:\n    - { outcome: waiting, attempts: [{ ended: timeout, message: \"the call took too long: plugins.limits.deliver_timeout is 2000 ms…\", wait: 1s }] }\n";
    assert_eq!(told_of(super::s3(), test).await, "");
}
