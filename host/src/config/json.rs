//! A plugin's `config`: from the tree to JSON, keys in their order, every place noted.

use serde_json::{Map, Number, Value as Json};

use super::fault::Sink;
use super::hidden::Hidden;
use super::node::{Meaning, Node, Scalar, Value};
use super::spans::{PluginConfigSpans, pointer_to};

/// The node as JSON; none where a part that cannot be left out is faulty. Keys with faulty values are left out, and noted as such. `pointer`
/// is the node's JSON Pointer, `path` its dotted name for messages.
pub(crate) fn of(node: &Node, pointer: &str, path: &str, sink: &Sink, spans: &mut PluginConfigSpans) -> Option<Json> {
    match &node.value {
        Value::Faulty => None,
        Value::Scalar(scalar) => {
            let json = of_scalar(scalar);
            if json.is_none() {
                let (message, help) = no_number(node, scalar);
                sink.add_with_help(node.at, path, message, help);
            }
            json
        }
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for (n, item) in list.iter().enumerate() {
                let pointer = pointer_to(pointer, &n.to_string());
                spans.note(&pointer, item.at, item);
                items.push(of(item, &pointer, &format!("{path}[{n}]"), sink, spans));
            }
            // Without a faulty item the others would have other numbers: the list is whole or it is nothing.
            items.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
        }
        Value::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                let pointer = pointer_to(pointer, &entry.key);
                spans.note(&pointer, entry.key_at, &entry.value);
                match of(&entry.value, &pointer, &format!("{path}.{}", entry.key), sink, spans) {
                    Some(value) => {
                        map.insert(entry.key.clone(), value);
                    }
                    None => spans.note_faulty(&pointer),
                }
            }
            Some(Json::Object(map))
        }
    }
}

/// The node as JSON, for who needs no places afterwards.
pub(crate) fn value(node: &Node, path: &str, sink: &Sink) -> Option<Json> {
    let mut places = PluginConfigSpans::new(sink.file().clone(), "", node.at, Hidden::default());
    of(node, "", path, sink, &mut places)
}

fn no_number(node: &Node, scalar: &Scalar) -> (String, &'static str) {
    let message = match scalar.meaning {
        Meaning::Int(_) => format!("{} is too large", node.found()),
        _ => format!("{} is none that a plugin could be given: JSON has no infinity", node.found()),
    };
    (message, "whole numbers go from -9223372036854775808 to 18446744073709551615; put it in quotes if a text is meant")
}

/// What a text from the environment would be, were it written in the file.
pub(crate) fn of_plain(text: &str) -> Option<Json> {
    of_scalar(&Scalar {
        text: text.to_owned(),
        meaning: Meaning::of_plain(text),
        from_environment: true,
        hidden: Hidden::default(),
    })
}

fn of_scalar(scalar: &Scalar) -> Option<Json> {
    Some(match scalar.meaning {
        Meaning::Missing | Meaning::Null => Json::Null,
        Meaning::Bool(value) => Json::Bool(value),
        Meaning::Text => Json::String(scalar.text.clone()),
        Meaning::Float(number) => Json::Number(Number::from_f64(number)?),
        Meaning::Int(number) => Json::Number(match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => return None,
        }),
    })
}
