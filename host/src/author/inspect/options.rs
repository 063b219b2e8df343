//! A plugin's configuration as a list of options, from its JSON schema.

use serde_json::{Value, json};

use crate::config::expected_words;

/// Most options that are listed.
const MOST: usize = 1000;
/// No honest option is nested deeper.
const DEEPEST: usize = 6;

/// One option.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigOption {
    /// `bucket`; of a map inside, `grants[].grantee`.
    pub name: String,
    /// In words: `a whole number from 1 to 9`.
    pub kind: String,
    /// What it is where it is left out.
    pub default: Option<Value>,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Other names that it may be written with.
    pub aliases: Vec<String>,
}

impl ConfigOption {
    pub(super) fn to_json(&self) -> Value {
        let Self { name, kind, default, required, description, aliases } = self;
        json!({ "name": name, "type": kind, "default": default, "required": required, "description": description, "aliases": aliases })
    }
}

/// The options of a schema, in its order. One that is another's alias is listed with that one.
#[must_use]
pub fn options(schema: &Value) -> Vec<ConfigOption> {
    let mut found = vec![];
    collect(schema, schema, "", DEEPEST, &mut found);
    found
}

fn collect(root: &Value, schema: &Value, above: &str, deeper: usize, found: &mut Vec<ConfigOption>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let is_alias = |of: &str, schema: &Value| schema.get("x-alias-of").and_then(Value::as_str) == Some(of);
    for (key, written) in properties {
        let has_owner = written.get("x-alias-of").and_then(Value::as_str).is_some_and(|of| properties.contains_key(of));
        if has_owner || found.len() >= MOST {
            continue;
        }
        let option = behind(root, written);
        // What stands beside a reference belongs to the option, what stands behind it to the type.
        let word = |name: &str| written.get(name).or_else(|| option.get(name));
        let name = format!("{above}{key}");
        found.push(ConfigOption {
            kind: expected_words(&plain(root, option)),
            default: word("default").filter(|default| !default.is_null()).cloned(),
            required: required(key),
            description: word("description").and_then(Value::as_str).map(str::to_owned),
            aliases: properties
                .iter()
                .filter(|(_, other)| is_alias(key, other))
                .map(|(name, _)| name.clone())
                .collect(),
            name: name.clone(),
        });
        if deeper > 0 {
            for (inside, step) in inside(root, option) {
                collect(root, inside, &format!("{name}{step}."), deeper - 1, found);
            }
        }
    }
}

/// Maps inside an option, with the step that leads there.
fn inside<'a>(root: &'a Value, option: &'a Value) -> Vec<(&'a Value, &'static str)> {
    let mut maps = vec![];
    for one in alternatives(root, option) {
        if one.get("properties").is_some() {
            maps.push((one, ""));
        }
        if let Some(items) =
            one.get("items").map(|items| behind(root, items)).filter(|items| items.get("properties").is_some())
        {
            maps.push((items, "[]"));
        }
    }
    maps
}

/// The schema itself, or those of which one has to fit.
fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let of = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    of.map_or_else(|| vec![schema], |of| of.iter().map(|one| behind(root, one)).collect())
}

/// The schema with its alternatives in place of references to them.
fn plain(root: &Value, schema: &Value) -> Value {
    let mut plain = schema.clone();
    for keyword in ["anyOf", "oneOf"] {
        if let Some(list) = plain.get_mut(keyword).and_then(Value::as_array_mut) {
            for one in list {
                *one = behind(root, one).clone();
            }
        }
    }
    plain
}

/// What a reference inside the same schema refers to (`#/$defs/Size`).
fn behind<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEEPEST {
        let target =
            schema.get("$ref").and_then(Value::as_str).and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_type_in_words_their_default_and_their_other_names() {
        let schema = json!({
            "required": ["bucket"],
            "properties": {
                "bucket": { "type": "string", "description": "the bucket" },
                "s3_bucket": { "type": "string", "x-alias-of": "bucket" },
                "compression": { "enum": ["none", "gzip"], "default": "none" },
                "size": { "$ref": "#/$defs/Size", "description": "of a part" },
                "level": { "anyOf": [{ "$ref": "#/$defs/Level" }, { "type": "null" }], "default": null },
                "auth": { "type": "object", "required": ["user"], "properties": { "user": { "type": "string" } } },
                "headers": { "type": "array", "items": { "$ref": "#/$defs/Header" } }
            },
            "$defs": {
                "Size": { "type": ["integer", "string"], "x-expected": "a size such as 50MB", "description": "a size" },
                "Level": { "type": "integer", "minimum": 1, "maximum": 9 },
                "Header": { "properties": { "name": { "type": "string" } } }
            }
        });
        let listed: Vec<String> = options(&schema)
            .iter()
            .map(|o| {
                let default = o.default.as_ref().map(Value::to_string).unwrap_or_default();
                let description = o.description.clone().unwrap_or_default();
                format!("{}|{}|{default}|{}|{description}|{}", o.name, o.kind, o.required, o.aliases.join(","))
            })
            .collect();
        assert_eq!(
            listed,
            [
                "bucket|text||true|the bucket|s3_bucket",
                "compression|\"none\" or \"gzip\"|\"none\"|false||",
                "size|a size such as 50MB||false|of a part|",
                "level|a whole number from 1 to 9||false||",
                "auth|a map of keys||false||",
                "auth.user|text||true||",
                "headers|a list||false||",
                "headers[].name|text||false||",
            ]
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let schema = json!({ "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#/properties/b" } } });
        let found = options(&schema);
        assert!(found.len() <= MOST && found.iter().any(|option| option.name == "a.a"), "{}", found.len());
        assert_eq!(options(&Value::Null), []);
    }
}
