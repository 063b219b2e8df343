//! Many tests of one plugin, several at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::case::{Case, Limits};
use super::compare::{Difference, with_expected, with_golden};
use super::drive::{Outside, drive};
use super::transcript::Transcript;
use super::why::why;
use crate::config::{Fault, Faults, Limit};
use crate::plugin::{HostOptions, LoadError, Plugin, PluginHost, PluginSource};

/// What is to be run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The component.
    pub plugin: PluginSource,
    /// Test files, and folders of them.
    pub tests: Vec<PathBuf>,
    /// Only tests with this in their name.
    pub filter: Option<String>,
    /// Write golden files instead of comparing with them.
    pub update: bool,
    /// Tests at a time.
    pub jobs: usize,
    /// Where the compiled component is kept; none is a place that goes with the suite.
    pub cache: Option<PathBuf>,
}

/// Why no test could be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The component.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The files.
    #[error("the tests in {} cannot be listed: {cause}", .path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no test.
    #[error("{0}")]
    Nothing(String),
    /// The host.
    #[error("{0}")]
    Host(String),
}

/// A test that was run.
#[derive(Debug, Clone)]
pub struct TestResult {
    /// Its name.
    pub name: String,
    /// What it shows, in its author's words.
    pub description: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Where it failed: what each batch ended with, and what the component logged of it.
    pub why: Vec<String>,
    /// What is worth knowing of it, passed or not.
    pub notes: Vec<String>,
    /// What each batch took.
    pub usage: Vec<BatchUsage>,
}

/// How a test ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// As expected.
    Passed,
    /// As expected, and its golden file is written anew.
    Updated,
    /// Otherwise.
    Failed(Vec<Unlike>),
    /// It could not be read.
    Faulty(Faults),
    /// It could not be run.
    Broken(String),
}

/// What was not as expected.
#[derive(Debug, Clone)]
pub struct Unlike {
    /// What it was held against.
    pub to: String,
    /// Line by line.
    pub difference: Difference,
}

/// What the calls for one batch took, against what they may take.
#[derive(Debug, Clone, Copy)]
pub struct BatchUsage {
    /// The batch, from 1.
    pub batch: usize,
    /// Records.
    pub records: u64,
    /// Calls of the component for it.
    pub calls: usize,
    /// The most CPU time that one of them took.
    pub cpu: Duration,
    /// What one may take.
    pub cpu_limit: Duration,
    /// Bytes of linear memory at the end.
    pub memory: u64,
    /// How many it may have.
    pub memory_limit: u64,
    /// Functions of the host that they called.
    pub host_calls: u64,
}

impl TestResult {
    /// Whether it is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Passed | Outcome::Updated)
    }
}

/// A suite, ready to run.
#[derive(Debug)]
pub struct Suite {
    options: Options,
    files: Vec<PathBuf>,
    engines: Arc<Engines>,
}

impl Suite {
    /// Finds the tests and loads the component.
    ///
    /// # Errors
    /// See [`SuiteError`].
    pub async fn open(options: Options) -> Result<Self, SuiteError> {
        let files = find(&options.tests, options.filter.as_deref())?;
        let cache = match &options.cache {
            Some(folder) => CacheFolder::Kept(folder.clone()),
            None => CacheFolder::Own(
                tempfile::tempdir().map_err(|cause| SuiteError::Host(format!("no temporary folder: {cause}")))?,
            ),
        };
        let engines = Engines { source: options.plugin.clone(), cache, made: Mutex::default() };
        engines.plugin(Limits::default()).await?;
        Ok(Self { options, files, engines: Arc::new(engines) })
    }

    /// How many tests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Letters of the longest name, for columns.
    #[must_use]
    pub fn widest_name(&self) -> usize {
        self.files.iter().map(|file| name_of(file).chars().count()).max().unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Runs all, and tells each as soon as it has ended. Gives them in the order of their names.
    pub async fn run(&self, mut tell: impl FnMut(&TestResult)) -> Vec<TestResult> {
        let tests = futures_util::stream::iter(&self.files).map(|path| {
            let (path, update, engines) = (path.clone(), self.options.update, Arc::clone(&self.engines));
            tokio::spawn(async move { one(&path, update, &engines).await })
        });
        // Several at a time, and told in their order, whichever is done first.
        let mut ended = std::pin::pin!(tests.buffered(self.options.jobs.max(1)));
        let mut results = vec![];
        while let Some(ended) = ended.next().await {
            let result = ended.unwrap_or_else(|error| TestResult {
                name: "?".into(),
                description: None,
                outcome: Outcome::Broken(format!("the test ended in a failure of Wharf: {error}")),
                why: vec![],
                notes: vec![],
                usage: vec![],
            });
            tell(&result);
            results.push(result);
        }
        results
    }
}

/// Hosts by limits. A component is compiled once, and the others take it from the cache, which goes with the suite.
#[derive(Debug)]
struct Engines {
    source: PluginSource,
    cache: CacheFolder,
    made: Mutex<HashMap<Limits, (HostOptions, Plugin)>>,
}

#[derive(Debug)]
enum CacheFolder {
    Own(TempDir),
    Kept(PathBuf),
}

impl CacheFolder {
    fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Kept(folder) => folder,
        }
    }
}

impl Engines {
    async fn plugin(&self, limits: Limits) -> Result<(HostOptions, Plugin), LoadError> {
        let mut made = self.made.lock().await;
        if let Some((options, plugin)) = made.get(&limits) {
            return Ok((options.clone(), plugin.clone()));
        }
        let mut options = HostOptions::new(Some(self.cache.path().to_owned()), crate::config::Limits::default(), 16);
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let said = [
            (Limit::Memory, limits.memory),
            (Limit::CpuPerCall, limits.cpu.map(millis)),
            (Limit::DeliverTimeout, limits.timeout.map(millis)),
        ];
        for (limit, amount) in said {
            options = amount.into_iter().fold(options, |options, amount| options.with(limit, amount));
        }
        let plugin = PluginHost::new(options.clone())?.load(&self.source).await?;
        made.insert(limits, (options.clone(), plugin.clone()));
        Ok((options, plugin))
    }
}

async fn one(path: &Path, update: bool, engines: &Engines) -> TestResult {
    let name = name_of(path);
    let ended = |description, outcome, usage| TestResult {
        name: name.clone(),
        description,
        outcome,
        why: vec![],
        notes: vec![],
        usage,
    };
    let case = match Case::load(path) {
        Ok(case) => case,
        Err(faults) => return ended(None, Outcome::Faulty(faults), vec![]),
    };
    let description = case.description.clone();
    let (options, plugin) = match engines.plugin(case.limits).await {
        Ok(made) => made,
        Err(error) => return ended(description, Outcome::Broken(error.to_string()), vec![]),
    };
    match drive(&case, &plugin, &Outside::Scripted).await {
        Err(what) => ended(description, Outcome::Broken(what), vec![]),
        Ok(happened) => {
            let outcome = judged(&case, &happened, update);
            let mut result = ended(description, outcome, usage(&happened, &options));
            result.notes.clone_from(&happened.unused);
            if let Outcome::Failed(_) = &result.outcome {
                result.why = why(case.expected.as_ref().map(|expected| &expected.value), &happened);
                if update {
                    let golden = case.golden();
                    result.notes.push(format!("{} is not written: the test fails its own expect", golden.display()));
                }
            }
            result
        }
    }
}

fn judged(case: &Case, happened: &Transcript, update: bool) -> Outcome {
    let expects_faults = case.expected.as_ref().is_some_and(|e| e.value.contains_key("config_faults"));
    let golden_path = case.golden();
    // What is no UTF-8 in it is a difference, and not as if it were not there.
    let golden = std::fs::read(&golden_path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    // A configuration that is wrong by mistake is a fault of the test, with its place in it.
    if !expects_faults
        && golden.is_none()
        && let Some(faults) = Faults::of(happened.faults.clone())
    {
        return Outcome::Faulty(faults);
    }
    let mut unlike = vec![];
    if let Some(expected) = &case.expected
        && let Some(difference) = with_expected(expected, happened)
    {
        let to = format!("{}:{}: expect", case.path.display(), expected.at);
        unlike.push(Unlike { to, difference });
    }
    let now = happened.golden(&case.name());
    let updated = match (golden, update) {
        (Some(golden), false) => {
            if let Some(difference) = with_golden(&golden, &now) {
                unlike.push(Unlike { to: golden_path.display().to_string(), difference });
            }
            false
        }
        // What the test itself says is wrong is nothing to keep.
        (_, true) if !unlike.is_empty() => false,
        (golden, true) => match std::fs::write(&golden_path, &now) {
            Ok(()) => golden.as_deref() != Some(&*now),
            Err(cause) => {
                return Outcome::Broken(format!("{} could not be written: {cause}", golden_path.display()));
            }
        },
        (None, false) if case.expected.is_none() => {
            let help = "write what you expect under \"expect\", or let --update write down what happens";
            let file = case.path.display().to_string();
            return Outcome::Faulty(Faults::one(Fault::of_file(&file, "the test expects nothing".into(), Some(help))));
        }
        (None, false) => false,
    };
    match (unlike.is_empty(), updated) {
        (false, _) => Outcome::Failed(unlike),
        (true, true) => Outcome::Updated,
        (true, false) => Outcome::Passed,
    }
}

fn usage(happened: &Transcript, options: &HostOptions) -> Vec<BatchUsage> {
    let mut all = vec![];
    for (number, batch) in (1..).zip(&happened.batches) {
        let calls = || happened.usage.iter().filter(|(moment, _)| moment.batch == number).map(|(_, usage)| usage);
        all.push(BatchUsage {
            batch: number,
            records: batch.records,
            calls: calls().count(),
            cpu: calls().map(|usage| usage.cpu).max().unwrap_or_default(),
            cpu_limit: options.limits.duration(Limit::CpuPerCall),
            memory: calls().map(|usage| usage.memory).max().unwrap_or_default(),
            memory_limit: options.limits.of(Limit::Memory),
            host_calls: calls().map(|usage| usage.calls).sum(),
        });
    }
    all
}

/// All test files, by name.
fn find(tests: &[PathBuf], filter: Option<&str>) -> Result<Vec<PathBuf>, SuiteError> {
    let mut files = vec![];
    for path in tests {
        if path.is_dir() {
            let failed = |cause| SuiteError::List { path: path.clone(), cause };
            for entry in std::fs::read_dir(path).map_err(failed)? {
                let file = entry.map_err(failed)?.path();
                if is_test(&file) {
                    files.push(file);
                }
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    let found = files.len();
    let wanted = |file: &PathBuf| filter.is_none_or(|filter| name_of(file).contains(filter));
    files.retain(wanted);
    if files.is_empty() {
        let places: Vec<String> = tests.iter().map(|path| path.display().to_string()).collect();
        return Err(SuiteError::Nothing(match (found, filter) {
            (1.., Some(filter)) => {
                format!("none of the {found} tests in {} has {filter:?} in its name", places.join(", "))
            }
            _ => format!(
                "there is no test in {}: write tests/first.yaml, see docs/plugins/testing.md",
                places.join(", ")
            ),
        }));
    }
    Ok(files)
}

/// A test's name: its file's, without the ending.
fn name_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    (name.ends_with(".yaml") || name.ends_with(".yml")) && !name.ends_with(".golden.yaml") && !name.starts_with('.')
}
