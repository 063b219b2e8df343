//! Gives values from the environment the type that a component's schema wants.
//!
//! Whether `${NAME}` stands in quotes says nothing about what NAME is: `{ }` and `[ ]` want quotes around it, and an account id without them
//! looks like a number. So the schema decides.

use serde_json::Value;

use super::json;
use super::spans::{PluginConfigSpans, pointer_to};

/// The configuration with each value from the environment as the schema wants it, where it can be had so.
pub(crate) fn fitted(config: &Value, schema: &Value, spans: &PluginConfigSpans) -> Value {
    below(config, schema, "", spans)
}

fn below(value: &Value, schema: &Value, pointer: &str, spans: &PluginConfigSpans) -> Value {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties");
            let others = schema.get("additionalProperties");
            let each = map.iter().map(|(key, value)| {
                let schema = properties.and_then(|p| p.get(key)).or(others).unwrap_or(&Value::Null);
                (key.clone(), below(value, schema, &pointer_to(pointer, key), spans))
            });
            Value::Object(each.collect())
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            let each = items.iter().enumerate();
            Value::Array(each.map(|(n, v)| below(v, schema, &pointer_to(pointer, &n.to_string()), spans)).collect())
        }
        Value::Null => Value::Null,
        _ => match spans.variable_at(pointer) {
            Some(text) => scalar(value, text, schema),
            None => value.clone(),
        },
    }
}

fn scalar(value: &Value, text: &str, schema: &Value) -> Value {
    let mut types = vec![];
    types_of(schema, &mut types);
    let wanted = |value: &Value| types.iter().any(|wanted| is_of_type(value, wanted));
    if wanted(value) {
        return value.clone();
    }
    let readings = [json::of_plain(text), Some(Value::String(text.to_owned()))];
    readings.into_iter().flatten().find(wanted).unwrap_or_else(|| value.clone())
}

/// Names of the types that a schema or one of its alternatives takes.
pub(crate) fn types_of<'a>(schema: &'a Value, types: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(one)) => types.push(one),
        Some(Value::Array(several)) => types.extend(several.iter().filter_map(Value::as_str)),
        _ if schema.get("enum").or_else(|| schema.get("const")).is_some() => types.push("string"),
        _ => {}
    }
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|k| schema.get(*k)).filter_map(Value::as_array).flatten();
    alternatives.for_each(|schema| types_of(schema, types));
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}
