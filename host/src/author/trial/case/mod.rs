//! A test as it is written: its model, and reading it with file:line:column.

mod answers;
mod expect;
mod given;
mod records;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{
    AwsConfig, BatchConfig, Credential, Entry, Fault, Faults, GrantsConfig, Meaning, Node, NodeValue, OnQuarantine,
    OutputConfig, Place, QueueConfig, RetryConfig, Scalar, Section, Sink, plugin_config, read_batch, read_credentials,
    read_grants, read_retry, read_yaml, text_of,
};
use crate::plugin::PluginSource;

pub(crate) use answers::{Answer, Answers, Says, Script};
pub(crate) use expect::Expected;
pub(crate) use given::Given;
pub(crate) use records::{Form, Record, Usual, of_lines};

/// The output's name in tests.
pub(crate) const OUTPUT: &str = "test";
/// The time in a test that names none: 2026-01-02T03:04:05Z.
const NOW_NS: i64 = 1_767_323_045_000_000_000;
/// How often a batch is tried where a test does not say.
const ATTEMPTS: u64 = 5;
const CONFIG_HELP: &str = "--config names a YAML file, or is JSON: --config '{\"url\": \"https://api.example.com\"}'";

/// One test.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its file.
    pub(crate) path: PathBuf,
    /// What it shows, for a person.
    pub(crate) description: Option<String>,
    /// The output that is tested: `config`, `retry` and `batch` of the test; grants where it names some.
    pub(crate) output: OutputConfig,
    /// What the plugin may touch; none is what it asks for.
    pub(crate) grants: Option<GrantsConfig>,
    /// Credentials that HTTP requests may name beside those that the plugin asks for.
    pub(crate) credentials: Vec<Credential>,
    /// What it is given, in order.
    pub(crate) records: Vec<Record>,
    /// What the services answer.
    pub(crate) answers: Answers,
    /// What is there before.
    pub(crate) given: Given,
    /// Limits that differ from the usual ones.
    pub(crate) limits: Limits,
    /// Attempts after which a batch is left waiting.
    pub(crate) attempts: u32,
    /// Attempts, counted over the whole test from 1, after which the store is thrown away as a restart of Wharf would.
    pub(crate) restart_after: Vec<u32>,
    /// The clock, nanoseconds since 1970 UTC.
    pub(crate) now_ns: i64,
    /// The machine's name.
    pub(crate) hostname: Arc<str>,
    /// What is expected; a golden file may say it instead.
    pub(crate) expected: Option<Expected>,
}

/// Limits of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    pub(crate) cpu: Option<Duration>,
    pub(crate) memory: Option<u64>,
    pub(crate) timeout: Option<Duration>,
}

impl Case {
    /// Reads a test. `${VAR}` in it reads its `env`, else this process's environment.
    ///
    /// # Errors
    /// Every fault at once.
    pub(crate) fn load(path: &Path) -> Result<Self, Faults> {
        let text = named(path, "name a test file, a folder of them, or a project")?;
        Self::parse(&text, path, &|name| std::env::var(name).ok())
    }

    /// Reads a test's text. `path` names it in faults, and files that it names lie beside it.
    ///
    /// # Errors
    /// Every fault at once.
    pub(crate) fn parse(text: &str, path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let file = path.display().to_string();
        let own = own_environment(text);
        let variable = |name: &str| own.get(name).cloned().or_else(|| environment(name));
        let sink = Sink::new(&file);
        let case = read_yaml(text, &sink, &variable).and_then(|root| read(&root, &sink, path));
        let faults: Vec<Fault> = sink.into_vec().into_iter().map(as_test).collect();
        match (Faults::of(faults), case) {
            (None, Some(case)) => Ok(case),
            (Some(faults), _) => Err(faults),
            (None, None) => Err(Faults::one(Fault::of_file(
                &file,
                "the file is empty".into(),
                Some("docs/plugins/testing.md shows a first test"),
            ))),
        }
    }

    /// Of a plugin's configuration alone: a file, or JSON. There are no records in it yet.
    ///
    /// # Errors
    /// Every fault at once.
    pub(crate) fn of_config(config: &str) -> Result<Self, Faults> {
        let path = Path::new(if config.trim_start().starts_with('{') { "--config" } else { config });
        let text = if path == Path::new("--config") { config.to_owned() } else { named(path, CONFIG_HELP)? };
        let sink = Sink::new(&path.display().to_string());
        let at = Place { line: 1, column: 1 };
        let root = read_yaml(&text, &sink, &|name| std::env::var(name).ok());
        // As if it stood under `config`, with its own places.
        let entry = |root: Node| Entry { key: "config".into(), key_at: root.at, value: root };
        let none = Entry { key: "records".into(), key_at: at, value: Node { at, value: NodeValue::List(vec![]) } };
        let entries = root.into_iter().map(entry).chain([none]).collect();
        let case = read(&Node { at, value: NodeValue::Map(entries) }, &sink, path);
        match (Faults::of(sink.into_vec().into_iter().map(as_test).collect()), case) {
            (None, Some(case)) => Ok(case),
            (Some(faults), _) => Err(faults),
            (None, None) => Err(Faults::one(Fault::of_file("--config", "could not be read".into(), None))),
        }
    }

    /// The `credentials` of a configuration file; other keys are passed over.
    ///
    /// # Errors
    /// Every fault at once.
    pub(crate) fn credentials_of(path: &Path) -> Result<Vec<Credential>, Faults> {
        let text = named(path, "--credentials names a YAML file with \"credentials:\" in it")?;
        let sink = Sink::new(&path.display().to_string());
        let root = read_yaml(&text, &sink, &|name| std::env::var(name).ok());
        let at = Place { line: 1, column: 1 };
        let mut top = root.as_ref().and_then(|root| Section::of(&sink, String::new(), at, root));
        let credentials = top.as_mut().map(read_credentials).unwrap_or_default().whole;
        match Faults::of(sink.into_vec()) {
            None => Ok(credentials),
            Some(faults) => Err(faults),
        }
    }

    /// The test's name: its file's, without the ending.
    pub(crate) fn name(&self) -> String {
        self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Where its golden file is, be there one or not.
    pub(crate) fn golden(&self) -> PathBuf {
        self.path.with_extension("golden.yaml")
    }
}

/// The text of a file; `help` is what to do where there is none.
fn named(path: &Path, help: &str) -> Result<String, Faults> {
    text_of(path).map_err(|fault| {
        let help = if path.exists() { fault.help } else { Some(help.to_owned()) };
        Faults::one(Fault { help, ..fault })
    })
}

/// The plugin's options are `config.…` in a test, not `outputs.test.config.…`.
pub(crate) fn as_test(mut fault: Fault) -> Fault {
    let inside = format!("outputs.{OUTPUT}.");
    if let Some(path) = fault.path.strip_prefix(&inside) {
        fault.path = path.to_owned();
    }
    fault
}

/// What a test gives its own `${VAR}`s.
fn own_environment(text: &str) -> HashMap<String, String> {
    let nowhere = Sink::new("");
    let root = read_yaml(text, &nowhere, &|_| Some(String::new()));
    let Some(Node { value: NodeValue::Map(entries), .. }) = root else { return HashMap::new() };
    let env = entries.into_iter().find(|entry| entry.key == "env");
    let Some(NodeValue::Map(variables)) = env.map(|entry| entry.value.value) else { return HashMap::new() };
    let text = |value| match value {
        NodeValue::Scalar(Scalar { text, .. }) => Some(text),
        _ => None,
    };
    variables.into_iter().filter_map(|entry| Some((entry.key, text(entry.value.value)?))).collect()
}

fn read(root: &Node, sink: &Sink, path: &Path) -> Option<Case> {
    if root.is_empty() {
        return None;
    }
    let mut top = Section::of(sink, String::new(), Place { line: 1, column: 1 }, root)?;
    top.missing("records", "write what the output is given: records: [\"a line\", { level: info, message: hello }]");
    let description = top.has("description").then(|| top.text("description")).flatten();
    env(&mut top);
    let now_ns = records::time(&mut top, "now").unwrap_or(NOW_NS);
    let tag = top.text("tag").unwrap_or_else(|| OUTPUT.to_owned());
    let hostname = top.text("hostname").unwrap_or_else(|| "test-host".to_owned());
    let (config, config_spans) = plugin_config(&mut top, OUTPUT);
    let batch = top.section("batch").map(read_batch).unwrap_or_default();
    let retry = top.section("retry").map(read_retry).unwrap_or_default();
    let credentials = read_credentials(&mut top);
    let grants = top.section("grants").map(|section| read_grants(section, &credentials));
    let folder = path.parent().unwrap_or(Path::new(""));
    let records = records::read(&mut top, folder, &records::Usual { tag: tag.into(), time_ns: now_ns });
    let given = top.section("given").map(given::read).unwrap_or_default();
    let answers = top.section("answers").map(answers::read).unwrap_or_default();
    let limits = top.section("limits").map(limits).unwrap_or_default();
    let attempts = top.count("attempts", 1..=1000).unwrap_or(ATTEMPTS);
    let restart_after = restart_after(&mut top);
    let expected = expect::read(&mut top);
    top.finish(&[
        ("name", "a test's name is its file's; what it shows is its \"description\""),
        ("expected", "did you mean \"expect\"?"),
        ("s3", "it belongs under \"answers\""),
        ("http", "it belongs under \"answers\""),
        ("cloudwatch_logs", "it belongs under \"answers\""),
        ("record", "did you mean \"records\"?"),
        ("input", "did you mean \"records\"?"),
    ]);
    Some(Case {
        path: path.to_owned(),
        description,
        output: output(config, config_spans, batch, retry),
        grants,
        credentials: credentials.whole,
        records,
        answers,
        given,
        limits,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        restart_after,
        now_ns,
        hostname: hostname.into(),
        expected,
    })
}

fn output(
    config: serde_json::Value,
    config_spans: crate::config::PluginConfigSpans,
    batch: BatchConfig,
    retry: RetryConfig,
) -> OutputConfig {
    OutputConfig {
        name: OUTPUT.into(),
        tenant: None,
        plugin: String::new(),
        plugin_source: PluginSource::BuiltIn(String::new()),
        signature: None,
        pull: crate::registry::Pull::default(),
        pin: None,
        matches: vec!["*".into()],
        workers: 1,
        batch,
        queue: QueueConfig::default(),
        retry,
        on_quarantine: OnQuarantine::default(),
        limits: crate::config::Limits::default(),
        aws: AwsConfig::default(),
        grants: GrantsConfig::default(),
        config,
        config_spans,
    }
}

/// Read before everything else; here its form is checked.
fn env(top: &mut Section<'_>) {
    let Some(section) = top.section("env") else { return };
    for entry in section.entries() {
        if !matches!(entry.value.value, NodeValue::Scalar(_)) {
            let path = section.path_of(&entry.key);
            section.sink().add(entry.value.at, &path, format!("expected text, found {}", entry.value.found()));
        }
    }
}

fn limits(mut section: Section<'_>) -> Limits {
    let (moment, day) = (Duration::from_millis(1), Duration::from_secs(24 * 3600));
    let limits = Limits {
        cpu: section.duration("cpu", moment..=day),
        memory: section.size("memory", 64 << 10..=4 << 30),
        timeout: section.duration("timeout", moment..=day),
    };
    section.finish(&[
        ("max_memory", "did you mean \"memory\"?"),
        ("cpu_per_call", "did you mean \"cpu\"?"),
        ("deliver_timeout", "did you mean \"timeout\"?"),
    ]);
    limits
}

fn restart_after(top: &mut Section<'_>) -> Vec<u32> {
    let Some(entry) = top.entry("restart_after") else { return vec![] };
    let items = match &entry.value.value {
        NodeValue::List(list) => list.as_slice(),
        _ => std::slice::from_ref(&entry.value),
    };
    let number = |item: &Node| match &item.value {
        NodeValue::Scalar(Scalar { meaning: Meaning::Int(number), .. }) => {
            u32::try_from(*number).ok().filter(|n| *n > 0)
        }
        _ => None,
    };
    let mut attempts = vec![];
    for item in items {
        match number(item) {
            Some(attempt) => attempts.push(attempt),
            None => top.sink().add_with_help(
                item.at,
                "restart_after",
                format!("expected the number of an attempt, found {}", item.found()),
                "attempts count over the whole test, from 1: restart_after: [1]",
            ),
        }
    }
    attempts
}
