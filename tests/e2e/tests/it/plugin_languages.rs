//! The example plugins of every language: built by `wharf plugin build`, run by the real binary, and what arrives is what was written.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use wharf_e2e::{Collector, Place, skip, tools, wharf_binary};
use wharf_task_kit::repository;

const RECORDS: u64 = 100_000;
const DELIVERED_IN: u64 = 300;

#[test]
fn rust_delivers_every_record() {
    delivers_every_record(&build(&example("http-json"), None).unwrap(), "");
}

#[test]
fn c_delivers_every_record() {
    let (_folder, project) = copy_of("c-http");
    let Some(venv) = tool("c_delivers_every_record", tools::venv()) else { return };
    delivers_every_record(&build(&project, Some(&venv)).unwrap(), "");
}

#[test]
fn python_delivers_every_record() {
    let (_folder, project) = copy_of("python-http");
    let Some(venv) = tool("python_delivers_every_record", tools::venv()) else { return };
    let component = build(&project, Some(&venv)).unwrap();
    delivers_every_record(&component, "");
    // The same, written record by record in Python.
    delivers_every_record(&component, "remove_keys: [no_such_key]");
}

#[test]
fn javascript_delivers_every_record() {
    let (_folder, project) = copy_of("js-http");
    let Some(modules) = tool("javascript_delivers_every_record", tools::node_modules()) else { return };
    std::os::unix::fs::symlink(modules, project.join("node_modules")).unwrap();
    let component = build(&project, None).unwrap();
    delivers_every_record(&component, "");
    delivers_every_record(&component, "remove_keys: [no_such_key]");
}

/// What a test needs and this machine may not have.
fn tool<T>(test: &str, tool: anyhow::Result<T>) -> Option<T> {
    tool.map_err(|error| skip::skip(test, &format!("{error:#}"), false)).ok()
}

fn example(name: &str) -> PathBuf {
    repository().unwrap().join("examples/plugins").join(name)
}

/// A copy of an example that needs nothing beside it, without what was built in its place.
fn copy_of(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join(name);
    for part in ["", "tests"] {
        let from = example(name).join(part);
        fs::create_dir_all(project.join(part)).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            fs::copy(entry.path(), project.join(part).join(entry.file_name())).unwrap();
        }
    }
    (folder, project)
}

/// Runs `wharf plugin build`, with a virtual environment active, and gives the component. Its own tests pass too.
fn build(project: &Path, environment: Option<&Path>) -> anyhow::Result<PathBuf> {
    for action in ["build", "test"] {
        let mut wharf = Command::new(wharf_binary()?);
        wharf.args(["plugin", action]).arg(project).env_remove("VIRTUAL_ENV");
        if let Some(environment) = environment {
            let rest = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(environment.join("bin")).chain(std::env::split_paths(&rest));
            wharf.env("VIRTUAL_ENV", environment).env("PATH", std::env::join_paths(path)?);
        }
        let output = wharf.output()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        anyhow::ensure!(output.status.success(), "wharf plugin {action} ended with {}:\n{said}", output.status);
    }
    let name = project.file_name().unwrap().to_str().unwrap();
    Ok(project.join("dist").join(name).with_extension("wasm"))
}

fn delivers_every_record(component: &Path, config: &str) {
    let place = Place::new().unwrap();
    let written = write_lines(&place.log("app-1"));
    let collector = Collector::start().unwrap();
    let origin = collector.origin();
    let output = format!(
        "outputs:\n  api:\n    plugin: {}\n    match: \"*\"\n    workers: 2\n    batch: {{ max_age: 1s }}\n    \
         retry: {{ initial: 100ms, max: 1s }}\n    grants: {{ http: [\"{origin}\"] }}\n    config:\n      url: {origin}/v1/events\n      {config}\n",
        component.display()
    );
    // No AWS is called.
    place.configure("http://127.0.0.1:9", &format!("{}{output}", place.tail("app-1"))).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("everything is delivered", DELIVERED_IN, || {
        let delivered = place.metric("wharf_delivered_records_total", &["output=\"api\""]);
        delivered.is_some_and(|delivered| delivered >= RECORDS as f64)
    });
    wharf.stop();

    let mut delivered: Vec<String> = collector.events().unwrap().iter().map(line_of).collect();
    let bytes = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
    assert_eq!((delivered.len(), bytes(&delivered)), (written.len(), bytes(&written)), "records and bytes");
    let mut written = written;
    written.sort_unstable();
    delivered.sort_unstable();
    let wrong = written.iter().zip(&delivered).find(|(written, delivered)| written != delivered);
    assert_eq!(wrong, None, "a line is not what was written, though counts agree");
    assert!(collector.requests() > 1, "the API refused the first request, and it came again");
}

/// The text of an event, which has nothing but it and its time.
fn line_of(event: &Value) -> String {
    let fields = event.as_object().unwrap();
    assert!(fields.len() == 2 && fields.get("date").is_some_and(Value::is_string), "{event}");
    fields.get("log").and_then(Value::as_str).unwrap().to_owned()
}

/// Lines of many lengths, with what JSON has to escape and what is more than one byte in UTF-8. Gives them as the file has them.
fn write_lines(path: &Path) -> Vec<String> {
    let mut text = String::new();
    for number in 0..RECORDS {
        let _ = write!(text, "app-{number:08} ");
        text.push_str(&"the quick brown fox ".repeat((number % 13) as usize));
        text.push_str(match number % 7 {
            0 => "\"quoted\" \\ back\tslash",
            1 => "Zoë, 東京, 🦊",
            2 => "{\"json\":[1,2,{\"a\":null}]}",
            3 => "\u{1}\u{1f}\u{7f}",
            _ => "jumps over the lazy dog",
        });
        text.push('\n');
    }
    fs::write(path, &text).unwrap();
    text.lines().map(str::to_owned).collect()
}
