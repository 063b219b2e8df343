//! A plugin's `config`: from the tree to JSON, keys in their order, every place noted.

use serde_json::{Map, Number, Value as Json};

use super::fault::Sink;
use super::node::{Meaning, Node, Scalar, Value};
use super::spans::{PluginConfigSpans, pointer_to};

/// The node as JSON. `pointer` is its JSON Pointer, `path` its dotted name for messages.
pub(crate) fn of(node: &Node, pointer: &str, path: &str, sink: &Sink, spans: &mut PluginConfigSpans) -> Json {
    match &node.value {
        Value::Faulty => Json::Null,
        Value::Scalar(scalar) => of_scalar(scalar).unwrap_or_else(|| {
            sink.add(node.at, path, format!("JSON has no number {}", scalar.text));
            Json::Null
        }),
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for (n, item) in list.iter().enumerate() {
                let pointer = pointer_to(pointer, &n.to_string());
                spans.note(&pointer, item.at, item);
                items.push(of(item, &pointer, &format!("{path}[{n}]"), sink, spans));
            }
            Json::Array(items)
        }
        Value::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                let pointer = pointer_to(pointer, &entry.key);
                spans.note(&pointer, entry.key_at, &entry.value);
                let value = of(&entry.value, &pointer, &format!("{path}.{}", entry.key), sink, spans);
                map.insert(entry.key.clone(), value);
            }
            Json::Object(map)
        }
    }
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
