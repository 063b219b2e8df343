//! `given` of a test: what is there before.

use std::collections::BTreeMap;

use crate::config::{Node, NodeValue, Scalar, Section};

/// What is there before the first record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Objects that somebody else has put.
    pub(crate) s3: Vec<GivenObject>,
    /// Log groups; none is those that the plugin names.
    pub(crate) log_groups: Option<Vec<String>>,
    /// Rows of the plugin's storage.
    pub(crate) storage: BTreeMap<String, String>,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenObject {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) body: String,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// Reads `given`.
pub(crate) fn read(mut section: Section<'_>) -> Given {
    let path = section.path_of("s3");
    let objects: Vec<&Node> = match section.entry("s3").map(|entry| &entry.value) {
        Some(Node { value: NodeValue::List(list), .. }) => list.iter().collect(),
        Some(one) => vec![one],
        None => vec![],
    };
    let sink = section.sink();
    let s3 = objects.into_iter().enumerate().filter_map(|(n, node)| {
        let mut object = Section::of(sink, format!("{path}[{n}]"), node.at, node)?;
        object.missing("bucket", "name the bucket that the object is in");
        object.missing("key", "name the object's key");
        let (bucket, key) = (object.text("bucket"), object.text("key"));
        let body = object.entry("body").and_then(|entry| text(&entry.value)).unwrap_or_default();
        let metadata = object.section("metadata").map(|map| texts(&map)).unwrap_or_default();
        object.finish(&[]);
        Some(GivenObject { bucket: bucket?, key: key?, body, metadata })
    });
    let s3 = s3.collect();
    let log_groups = section.texts("log_groups");
    let storage = section.section("storage").map(|map| texts(&map)).unwrap_or_default();
    section.finish(&[("objects", "did you mean \"s3\"?")]);
    Given { s3, log_groups, storage }
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::Scalar(Scalar { text, .. }) => Some(text.clone()),
        _ => None,
    }
}

/// A map of texts.
fn texts(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in section.entries() {
        match text(&entry.value) {
            Some(text) => {
                all.insert(entry.key.clone(), text);
            }
            None => {
                let message = format!("expected text, found {}", entry.value.found());
                section.sink().add(entry.value.at, &section.path_of(&entry.key), message);
            }
        }
    }
    all
}
