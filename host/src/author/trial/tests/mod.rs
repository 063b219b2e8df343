//! Tests of tests: the built-in components with their own, and what a person is shown where something is not as expected.

mod built_in;

use std::path::{Path, PathBuf};

use super::{Options, Outcome, Suite, TestResult};
use crate::plugin::PluginSource;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Runs the tests in these places.
async fn run(plugin: &str, tests: Vec<PathBuf>) -> Vec<TestResult> {
    let options = Options { plugin: PluginSource::BuiltIn(plugin.into()), tests, filter: None, update: false, jobs: 4 };
    Suite::open(options).await.unwrap().run(|_| {}).await
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
