//! Every test in docs/plugins/testing.md is run as it stands there.

use super::super::case::Case;
use super::{repository, run, shown};
use crate::plugin::PluginSource;

/// A test that the document shows: its file, the output that it is of, and its text.
struct Shown {
    file: String,
    of: String,
    text: String,
}

/// Blocks of code that begin with `# tests/NAME of the OUTPUT output`.
fn tests(document: &str) -> Vec<Shown> {
    let block = |block: &str| {
        let (_, text) = block.split_once('\n')?;
        let head = text.lines().next()?.strip_prefix("# tests/")?;
        let (file, of) = head.split_once(" of the ")?;
        let of = of.strip_suffix(" output")?.to_owned();
        Some(Shown { file: file.to_owned(), of, text: text.to_owned() })
    };
    document.split("```").skip(1).step_by(2).filter_map(block).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tests_in_the_document_pass() {
    let path = repository().join("docs/plugins/testing.md");
    let document = std::fs::read_to_string(path).unwrap();
    let all = tests(&document);
    assert!(all.len() >= 8, "{} tests found", all.len());
    let folder = tempfile::tempdir().unwrap();
    // What is no YAML lies beside the tests.
    for shown in all.iter().filter(|shown| !shown.file.ends_with(".yaml")) {
        let (_, lines) = shown.text.split_once('\n').unwrap();
        std::fs::write(folder.path().join(&shown.file), lines).unwrap();
    }
    for test in all.iter().filter(|shown| shown.file.ends_with(".yaml")) {
        let path = folder.path().join(&test.file);
        std::fs::write(&path, &test.text).unwrap();
        match test.of.as_str() {
            // There is none built in: it is read, and its faults would be told.
            "http" => assert!(Case::load(&path).is_ok(), "{}: {:?}", test.file, Case::load(&path).err()),
            of => {
                let results = run(PluginSource::BuiltIn(of.to_owned()), vec![path], false).await;
                assert!(results[0].is_good(), "{}: {}", test.file, shown(&results[0]));
            }
        }
    }
}
