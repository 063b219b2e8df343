//! `expect` of a test: what its author wrote, as values, with unknown keys found.

use serde_json::{Map, Value};

use crate::config::{Meaning, Node, NodeValue, Place, Section, Sink, json_value, nearest};
use crate::plugin::{DeathCause, FailureKind};

/// What is expected. Only what is named is compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    /// Of the keys of a transcript, those that are named.
    pub(crate) value: Map<String, Value>,
    /// Where it begins.
    pub(crate) at: Place,
}

/// The capabilities of calls, each with what may be expected of one.
const CALLS: [(&str, &[&str]); 4] = [
    ("s3", &["bucket", "key", "headers", "body", "part", "parts", "prefix", "answer"]),
    ("cloudwatch_logs", &["log_group", "log_stream", "events", "format", "days", "tags", "class", "entity", "answer"]),
    ("http", &["headers", "body", "credential", "answer"]),
    ("sequence", &["name", "number"]),
];
const BATCH: [&str; 7] = ["tag", "records", "outcome", "reason", "rejected", "attempts", "id"];
const LETTER: [&str; 3] = ["batch", "record", "reason"];
const ATTEMPT: [&str; 5] = ["ended", "message", "retry_after", "wait", "rejected"];

/// Reads `expect`.
pub(crate) fn read(top: &mut Section<'_>) -> Option<Expected> {
    let at = top.place_of("expect");
    let mut section = top.section("expect")?;
    let sink = section.sink();
    let mut value = Map::new();
    let mut put = |key: &'static str, section: &mut Section<'_>, check: &dyn Fn(&Node, &str)| {
        let path = section.path_of(key);
        let Some(entry) = section.entry(key) else { return };
        check(&entry.value, &path);
        if let Some(json) = json_value(&entry.value, &path, sink) {
            value.insert(key.to_owned(), json);
        }
    };
    put("calls", &mut section, &|node, path| each(node, path, sink, call));
    put("batches", &mut section, &|node, path| each(node, path, sink, batch));
    put("dead_letters", &mut section, &|node, path| match &node.value {
        NodeValue::Scalar(_) => {}
        _ => each(node, path, sink, |n, p, s| known(n, p, s, &LETTER)),
    });
    put("config_faults", &mut section, &|node, path| {
        each(node, path, sink, |n, p, s| known(n, p, s, &["path", "message"]))
    });
    put("outcome", &mut section, &|node, path| match &node.value {
        NodeValue::List(_) => each(node, path, sink, outcome),
        _ => outcome(node, path, sink),
    });
    for key in ["log", "metrics", "storage"] {
        put(key, &mut section, &|_, _| {});
    }
    if section.is_empty() {
        let help = "write outcome: delivered, or leave \"expect\" out where a golden file says it";
        sink.add_with_help(at, section.path(), "expects nothing", help);
    }
    section.finish(&[
        ("requests", "did you mean \"calls\"?"),
        ("logs", "did you mean \"log\"?"),
        ("batch", "did you mean \"batches\"?"),
    ]);
    Some(Expected { value, at })
}

fn each(node: &Node, path: &str, sink: &Sink, check: fn(&Node, &str, &Sink)) {
    match &node.value {
        NodeValue::List(list) => {
            for (n, item) in list.iter().enumerate() {
                check(item, &format!("{path}[{n}]"), sink);
            }
        }
        NodeValue::Faulty => {}
        _ => sink.add(node.at, path, format!("expected a list, found {}", node.found())),
    }
}

fn known(node: &Node, path: &str, sink: &Sink, keys: &[&'static str]) {
    let Some(mut section) = Section::of(sink, path.to_owned(), node.at, node) else { return };
    for key in keys {
        section.entry(key);
    }
    section.finish(&[]);
}

fn call(node: &Node, path: &str, sink: &Sink) {
    let Some(mut section) = Section::of(sink, path.to_owned(), node.at, node) else { return };
    let Some((capability, keys)) = CALLS.iter().find(|(capability, _)| section.has(capability)) else {
        let help = "a call begins with - s3: put-object, - cloudwatch_logs: put-log-events, - http: POST https://…, or - sequence: assign";
        sink.add_with_help(node.at, path, "expected a call", help);
        return;
    };
    section.entry(capability);
    for key in *keys {
        section.entry(key);
    }
    section.finish(&[]);
}

fn batch(node: &Node, path: &str, sink: &Sink) {
    if let NodeValue::Scalar(_) = &node.value {
        return outcome(node, path, sink);
    }
    known(node, path, sink, &BATCH);
    let NodeValue::Map(entries) = &node.value else { return };
    let under = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
    if let Some(node) = under("outcome") {
        outcome(node, &format!("{path}.outcome"), sink);
    }
    if let Some(node) = under("attempts").filter(|node| !is_number(node)) {
        each(node, &format!("{path}.attempts"), sink, attempt);
    }
}

fn is_number(node: &Node) -> bool {
    matches!(&node.value, NodeValue::Scalar(scalar) if matches!(scalar.meaning, Meaning::Int(_)))
}

fn attempt(node: &Node, path: &str, sink: &Sink) {
    match &node.value {
        NodeValue::Map(entries) => {
            known(node, path, sink, &ATTEMPT);
            if let Some(ended) = entries.iter().find(|entry| entry.key == "ended") {
                word(&ended.value, &format!("{path}.ended"), sink, &attempt_words());
            }
        }
        _ => word(node, path, sink, &attempt_words()),
    }
}

fn outcome(node: &Node, path: &str, sink: &Sink) {
    let mut words = vec!["delivered", "rejected", "retry_expired"];
    words.extend(DeathCause::ALL.iter().filter(|cause| cause.blames_the_batch()).map(|cause| cause.as_str()));
    words.extend(["waiting", "quarantined"]);
    word(node, path, sink, &words);
}

fn attempt_words() -> Vec<&'static str> {
    let failures = FailureKind::ALL.iter().map(|kind| kind.as_str());
    let deaths = DeathCause::ALL.iter().map(|cause| cause.as_str());
    ["delivered"].into_iter().chain(failures).chain(deaths).collect()
}

/// One of these words. What has `…` in it stands for several.
fn word(node: &Node, path: &str, sink: &Sink, words: &[&str]) {
    let message = match &node.value {
        NodeValue::Faulty => return,
        NodeValue::Scalar(scalar) if words.contains(&&*scalar.text) || scalar.text.contains('…') => return,
        NodeValue::Scalar(scalar) => {
            let meant = nearest(&scalar.text, words).map(|word| format!("; did you mean {word:?}?"));
            format!("unknown word {:?}{}", scalar.text, meant.unwrap_or_default())
        }
        _ => format!("expected a word, found {}", node.found()),
    };
    sink.add_with_help(node.at, path, message, format!("it is one of {}", words.join(", ")));
}
