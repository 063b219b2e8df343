//! The configuration's JSON schema, and the other names of options.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::{ConfigFault, Output};

/// The schema that an output plugin gives to the host: that of its configuration, with other names and hints.
#[must_use]
pub fn of_output<T: Output>() -> Value {
    complete(of::<T::Config>(), T::ALIASES, T::ELSEWHERE)
}

/// The schema of a type: doc comments become descriptions. Structs take no other options than their own.
#[must_use]
pub fn of<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    bound(&mut schema);
    close(&mut schema);
    schema
}

/// An option that nobody knows is a mistake that its author should hear of. What is put together of several schemas is left as it is:
/// each part would refuse what the others know.
fn close(schema: &mut Value) {
    const PUT_TOGETHER: [&str; 8] =
        ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "additionalProperties", "unevaluatedProperties"];
    match schema {
        Value::Object(map) => {
            // The type tells an object's schema from a list of properties, one of which may be called like a word of JSON Schema.
            let is_object = map
                .get("type")
                .is_some_and(|it| it == "object" || it.as_array().is_some_and(|it| it.contains(&"object".into())));
            if is_object && map.contains_key("properties") && !PUT_TOGETHER.iter().any(|key| map.contains_key(*key)) {
                map.insert("additionalProperties".into(), false.into());
            }
            for (key, value) in map.iter_mut() {
                // What is in the parts of a whole is left to the whole.
                if !matches!(key.as_str(), "allOf" | "default" | "examples" | "const" | "enum") {
                    close(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// What a number's type can hold is a `format` in the derived schema, which is a remark. As a range it is checked, and has a place.
fn bound(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let range: Option<(i64, i64)> = match map.get("format").and_then(Value::as_str) {
                Some("int8") => Some((i8::MIN.into(), i8::MAX.into())),
                Some("int16") => Some((i16::MIN.into(), i16::MAX.into())),
                Some("int32") => Some((i32::MIN.into(), i32::MAX.into())),
                Some("uint8") => Some((0, u8::MAX.into())),
                Some("uint16") => Some((0, u16::MAX.into())),
                Some("uint32") => Some((0, u32::MAX.into())),
                _ => None,
            };
            if let Some((least, most)) = range {
                map.entry("minimum").or_insert(least.into());
                map.entry("maximum").or_insert(most.into());
            }
            map.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}

/// Adds other names, as properties with `x-alias-of`, and `x-elsewhere`.
#[must_use]
pub fn complete(mut schema: Value, aliases: &[(&str, &str)], elsewhere: &[(&str, &str)]) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (alias, option) in aliases {
            let mut property = properties.get(*option).cloned().unwrap_or_else(|| json!({}));
            if let Some(property) = property.as_object_mut() {
                property.insert("description".into(), format!("Another name of `{option}`.").into());
                property.insert("x-alias-of".into(), (*option).into());
            }
            properties.insert((*alias).into(), property);
        }
    }
    if let (false, Some(schema)) = (elsewhere.is_empty(), schema.as_object_mut()) {
        let hints: Map<_, _> = elsewhere.iter().map(|(name, hint)| ((*name).to_owned(), Value::from(*hint))).collect();
        schema.insert("x-elsewhere".into(), hints.into());
    }
    schema
}

/// Renames options that have another name.
///
/// # Errors
/// Where an option is given under two names.
pub fn resolve_aliases(config: &mut Value, aliases: &[(&str, &str)]) -> Result<(), Vec<ConfigFault>> {
    let Some(config) = config.as_object_mut() else { return Ok(()) };
    let mut faults = Vec::new();
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (alias, option) in aliases {
        let Some(value) = config.remove(*alias) else { continue };
        if config.contains_key(*option) {
            let other = named.iter().find(|(_, o)| o == option).map_or(*option, |(a, _)| *a);
            faults.push(ConfigFault::of(
                alias,
                format!(
                    "`{alias}` is another name of `{option}`, and `{other}` is given as well: leave one of them out"
                ),
            ));
        } else {
            config.insert((*option).into(), value);
            named.push((alias, option));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_range_of_their_type() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is wanted")]
        struct Config {
            level: Option<i32>,
            /// A range of its own stays.
            #[schemars(range(min = 1, max = 9))]
            small: u32,
        }
        let schema = of::<Config>();
        let range = |name: &str| (&schema["properties"][name]["minimum"], &schema["properties"][name]["maximum"]);
        assert_eq!(range("level"), (&json!(-2_147_483_648_i64), &json!(2_147_483_647)));
        assert_eq!(range("small"), (&json!(1), &json!(9)));
    }

    #[test]
    fn unknown_options_are_refused_at_every_depth_but_not_where_anything_may_stand() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is wanted")]
        struct Config {
            /// A struct of its own.
            retry: Retry,
            headers: std::collections::BTreeMap<String, String>,
            /// An option that is called like a word of JSON Schema.
            properties: Option<String>,
            mode: Mode,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is wanted")]
        struct Retry {
            attempts: u32,
        }
        #[derive(JsonSchema)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        #[allow(dead_code, reason = "only its schema is wanted")]
        enum Mode {
            Plain { key: String },
            Other(Retry),
        }
        let schema = of::<Config>();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["$defs"]["Retry"]["additionalProperties"], false);
        assert_eq!(schema["properties"]["headers"]["additionalProperties"]["type"], "string");
        assert_eq!(schema["properties"]["additionalProperties"], Value::Null);
        let modes = &schema["$defs"]["Mode"]["oneOf"];
        assert_eq!(modes[0]["additionalProperties"], false);
        assert!(modes[1].get("$ref").is_none() || modes[1].get("additionalProperties").is_none(), "{modes}");
    }

    const ALIASES: &[(&str, &str)] = &[("s3_key_format", "key_format"), ("key", "key_format")];

    #[test]
    fn another_name_is_renamed_and_two_names_are_refused() {
        let mut config = json!({ "s3_key_format": "a", "bucket": "b" });
        assert_eq!(resolve_aliases(&mut config, ALIASES), Ok(()));
        assert_eq!(config, json!({ "key_format": "a", "bucket": "b" }));

        let mut config = json!({ "s3_key_format": "a", "key_format": "b" });
        let faults = resolve_aliases(&mut config, ALIASES).unwrap_err();
        assert_eq!(faults[0].path, "/s3_key_format");
        assert!(faults[0].message.contains("`key_format` is given as well"), "{}", faults[0].message);

        let mut config = json!({ "s3_key_format": "a", "key": "b" });
        let faults = resolve_aliases(&mut config, ALIASES).unwrap_err();
        assert!(faults[0].message.contains("`s3_key_format` is given as well"), "{}", faults[0].message);
    }

    #[test]
    fn the_schema_lists_other_names_and_hints() {
        let schema = json!({ "properties": { "key_format": { "type": "string", "description": "The key." } } });
        let schema = complete(schema, &[("s3_key_format", "key_format")], &[("role_arn", "Write it under `aws`.")]);
        assert_eq!(schema["properties"]["s3_key_format"]["x-alias-of"], "key_format");
        assert_eq!(schema["properties"]["s3_key_format"]["type"], "string");
        assert_eq!(schema["properties"]["key_format"]["description"], "The key.");
        assert_eq!(schema["x-elsewhere"]["role_arn"], "Write it under `aws`.");
    }
}
