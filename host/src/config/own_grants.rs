//! Reads what an output is granted of what is the host's own: rows and counters.

use super::model::SequenceGrant;
use super::node::{Meaning, Node, Scalar, Value};
use super::reader::Section;

/// `sequences: true`, `false`, or the names of counters.
pub(crate) fn sequences(section: &mut Section<'_>) -> SequenceGrant {
    let path = section.path_of("sequences");
    let Some(entry) = section.entry("sequences") else { return SequenceGrant::default() };
    let node = &entry.value;
    let name = |item: &Node| match &item.value {
        Value::Scalar(Scalar { text, .. }) if !item.is_empty() => Some(text.as_str().into()),
        _ => None,
    };
    let named = match &node.value {
        Value::Scalar(Scalar { meaning: Meaning::Bool(true), .. }) => return SequenceGrant::All,
        Value::Scalar(Scalar { meaning: Meaning::Bool(false), .. }) => Some(vec![]),
        Value::List(list) => list.iter().map(name).collect(),
        _ => name(node).map(|name| vec![name]),
    };
    if named.is_none() && !matches!(node.value, Value::Faulty) {
        let message = format!("expected true, false or a list of counters' names, found {}", node.found());
        section.sink().add(node.at, &path, message);
    }
    SequenceGrant::Named(named.unwrap_or_default())
}
