//! What a schema wants, in words.

use serde_json::Value;

use crate::config::fault::choices;
use crate::config::from_environment::types_of;

/// What is expected: `a whole number from 1 to 9`.
pub(super) fn expected(schema: &Value) -> String {
    if let Some(words) = schema.get("x-expected").and_then(Value::as_str) {
        return words.to_owned();
    }
    let words = enumerated(schema);
    if !words.is_empty() {
        return choices(&words);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema.get(keyword).and_then(Value::as_array) {
            let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null");
            let mut each: Vec<String> = alternatives.iter().filter(|schema| !is_null(schema)).map(expected).collect();
            each.dedup();
            return each.join(" or ");
        }
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        // That an option may be left out as `null` helps nobody.
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        _ => vec![],
    };
    let words: Vec<String> = types
        .iter()
        .map(|t| match *t {
            "string" => "text".into(),
            "integer" => format!("a whole number{}", range(schema)),
            "number" => format!("a number{}", range(schema)),
            "boolean" => "true or false".into(),
            "object" => "a map of keys".into(),
            "array" => "a list".into(),
            "null" => "nothing".into(),
            other => other.to_owned(),
        })
        .collect();
    if words.is_empty() { "something else".into() } else { words.join(" or ") }
}

fn range(schema: &Value) -> String {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    }
}

/// The words that a schema allows, its alternatives' included, where it allows only words.
pub(super) fn enumerated(schema: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(constant) = schema.get("const") {
        return vec![word(constant)];
    }
    schema.get("enum").and_then(Value::as_array).into_iter().flatten().map(word).collect()
}

/// Whether a text is wanted, and no number: a size, which may be one, is not mended by quotes.
pub(super) fn wants_text(schema: &Value) -> bool {
    takes(schema, "string") && !takes(schema, "integer") && !takes(schema, "number")
}

/// Whether numbers are taken, but only whole ones.
pub(super) fn accepts_whole_numbers_only(schema: &Value) -> bool {
    takes(schema, "integer") && !takes(schema, "number")
}

fn takes(schema: &Value, name: &str) -> bool {
    let mut types = vec![];
    types_of(schema, &mut types);
    types.contains(&name)
}
