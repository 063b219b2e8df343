//! `expect` of a test: what its author wrote, as values, with unknown keys found.

use serde_json::{Map, Value};

use crate::config::{Node, NodeValue, Place, Section, Sink, json_value};

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
    for key in ["outcome", "log", "metrics", "storage"] {
        put(key, &mut section, &|_, _| {});
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
        return;
    }
    known(node, path, sink, &BATCH);
    let NodeValue::Map(entries) = &node.value else { return };
    let attempts = entries.iter().find(|entry| entry.key == "attempts");
    if let Some(NodeValue::List(list)) = attempts.map(|entry| &entry.value.value) {
        for (n, item) in list.iter().enumerate().filter(|(_, item)| matches!(item.value, NodeValue::Map(_))) {
            known(item, &format!("{path}.attempts[{n}]"), sink, &ATTEMPT);
        }
    }
}
