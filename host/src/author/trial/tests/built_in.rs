//! The built-in components pass the tests that lie beside them.

use super::{repository, run, shown};
use crate::plugin::PluginSource;

async fn all_pass(plugin: &str, folder: &str) {
    let tests = vec![repository().join("guest-plugins").join(folder).join("tests")];
    let results = run(PluginSource::BuiltIn(plugin.into()), tests, false).await;
    let bad: Vec<String> =
        results.iter().filter(|r| !r.is_good()).map(|r| format!("{}: {}", r.name, shown(r))).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_s3_component_passes_its_tests() {
    all_pass("s3", "s3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cloudwatch_logs_component_passes_its_tests() {
    all_pass("cloudwatch_logs", "cloudwatch-logs").await;
}
