//! Tests of tests: the built-in components with their own, and what a person is shown where something is not as expected.

mod built_in;
mod deaths;
mod differences;
mod documents;
mod exported;
mod faults;
mod golden;
mod http;
mod reasons;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{Options, Outcome, Suite, TestResult};
use crate::plugin::PluginSource;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Runs the tests in these places.
async fn run(plugin: PluginSource, tests: Vec<PathBuf>, update: bool) -> Vec<TestResult> {
    // What all of them compile, they compile once.
    static CACHE: OnceLock<TempDir> = OnceLock::new();
    let cache = CACHE.get_or_init(|| tempfile::tempdir().unwrap()).path().to_owned();
    let options = Options { plugin, tests, filter: None, update, jobs: 4, cache: Some(cache) };
    Suite::open(options).await.unwrap().run(|_| {}).await
}

fn s3() -> PluginSource {
    PluginSource::BuiltIn("s3".into())
}

/// Writes one test, `it.yaml`.
fn written(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("it.yaml"), text).unwrap();
    folder
}

/// What a person is shown of one test of a component; nothing where it is good. Its folder is left out.
async fn told_of(plugin: PluginSource, text: &str) -> String {
    let folder = written(text);
    told_in(plugin, &folder).await
}

async fn told_in(plugin: PluginSource, folder: &TempDir) -> String {
    let results = run(plugin, vec![folder.path().to_owned()], false).await;
    let told: String = results.iter().map(shown).collect();
    told.replace(&format!("{}/", folder.path().display()), "")
}

/// What a person would be shown of a test that is not good.
fn shown(result: &TestResult) -> String {
    match &result.outcome {
        Outcome::Passed | Outcome::Updated => String::new(),
        Outcome::Failed(unlike) => unlike.iter().map(|u| format!("{}\n{}", u.to, u.difference.render(false))).collect(),
        Outcome::Faulty(faults) => faults.to_string(),
        Outcome::Broken(what) => what.clone(),
    }
}
