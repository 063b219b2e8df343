//! Checks a plugin's `config` against the JSON schema that its component describes, in words and with places.
//!
//! Two keywords of our own: `x-alias-of` on a property names the key that it stands for; `x-elsewhere` at the top
//! maps option names that people know from other shippers to an explanation of where the same thing is in Wharf.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::fault::{Fault, choices, nearest};
use super::model::OutputConfig;
use super::node::shortened;
use super::spans::{fault_at_plugin, pointer_to};

/// Every fault of the output's `config` that its component's schema finds, in the order of the file.
#[must_use]
pub fn check_plugin_config(output: &OutputConfig, schema: &Value) -> Vec<Fault> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(cause) => {
            let message =
                format!("the plugin's own schema of its configuration is wrong: {}", shortened(&cause.to_string()));
            return vec![fault_at_plugin(
                output,
                message,
                Some("this is a fault of the plugin, not of the file".into()),
            )];
        }
    };
    let mut check = Check { output, schema, faults: vec![] };
    check.run(&validator);
    check.faults.sort_by_key(|fault| fault.place);
    check.faults
}

struct Check<'a> {
    output: &'a OutputConfig,
    schema: &'a Value,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn run(&mut self, validator: &Validator) {
        for error in validator.iter_errors(&self.output.config) {
            self.error(&error);
        }
        self.named_twice();
    }

    /// The faults of one error; alternatives are looked into.
    fn error(&mut self, error: &ValidationError<'_>) {
        let pointer = error.instance_path().as_str();
        let schema = self.schema_of(error).cloned().unwrap_or(Value::Null);
        let found = self.output.config_spans.found(pointer);
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.unknown(pointer, key, &schema);
                }
            }
            Kind::Required { property } => self.missing(pointer, property.as_str().unwrap_or_default(), &schema),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match only_of_its_type(context, pointer) {
                Some(errors) => errors.iter().for_each(|e| self.error(e)),
                None => self.unexpected(pointer, &schema),
            },
            Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. } => self.unexpected(pointer, &schema),
            Kind::Minimum { limit } => {
                self.value(pointer, format!("{found} is too small; the least is {limit}"), &schema)
            }
            Kind::Maximum { limit } => {
                self.value(pointer, format!("{found} is too large; the most is {limit}"), &schema)
            }
            Kind::ExclusiveMinimum { limit } => {
                self.value(pointer, format!("{found} is too small; it must be more than {limit}"), &schema)
            }
            Kind::ExclusiveMaximum { limit } => {
                self.value(pointer, format!("{found} is too large; it must be less than {limit}"), &schema)
            }
            Kind::MultipleOf { multiple_of } => {
                self.value(pointer, format!("{found} is not a multiple of {multiple_of}"), &schema)
            }
            Kind::MinLength { limit: 1 } | Kind::MinItems { limit: 1 } | Kind::MinProperties { limit: 1 } => {
                self.value(pointer, "is empty".into(), &schema);
            }
            Kind::MinLength { limit } => {
                self.value(pointer, format!("{found} is too short; it needs {limit} characters"), &schema)
            }
            Kind::MaxLength { limit } => {
                self.value(pointer, format!("{found} is too long; it may have {limit} characters"), &schema)
            }
            Kind::MinItems { limit } => {
                self.value(pointer, format!("the list is too short; it needs {limit} items"), &schema)
            }
            Kind::MaxItems { limit } => {
                self.value(pointer, format!("the list is too long; it may have {limit} items"), &schema)
            }
            Kind::MaxProperties { limit } => {
                self.value(pointer, format!("the map is too large; it may have {limit} keys"), &schema)
            }
            Kind::UniqueItems => self.value(pointer, "the list has an item twice".into(), &schema),
            Kind::Pattern { pattern } => {
                let how = if description(&schema).is_some() { String::new() } else { format!(" {pattern}") };
                self.value(pointer, format!("{found} does not have the form that is wanted{how}"), &schema);
            }
            Kind::Format { format } => self.value(pointer, format!("{found} is no {format}"), &schema),
            Kind::FalseSchema => self.value(pointer, "is not allowed here".into(), &schema),
            _ => self.value(pointer, error.masked_with(found.as_str()).to_string(), &schema),
        }
    }

    /// The schema whose keyword failed.
    fn schema_of(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(parent)
    }

    fn push(&mut self, place: Option<super::Place>, pointer: &str, message: String, help: Option<String>) {
        self.faults.push(self.output.config_spans.fault(place, pointer, message, help));
    }

    /// A fault of a value; the option's description is the remedy.
    fn value(&mut self, pointer: &str, message: String, schema: &Value) {
        let help = self.describe_option(pointer, schema);
        self.push(self.output.config_spans.place(pointer), pointer, message, help);
    }

    fn unexpected(&mut self, pointer: &str, schema: &Value) {
        let spans = &self.output.config_spans;
        let mut message = format!("expected {}, found {}", expected(schema), spans.found(pointer));
        let words: Vec<String> = enumerated(schema);
        if let Some(Value::String(written)) = self.output.config.pointer(pointer)
            && let Some(guess) = nearest(written, &words)
        {
            message.push_str(&format!("; did you mean {guess:?}?"));
        }
        let help = match spans.unquoted(pointer) {
            Some(text) if accepts_text(schema) => Some(format!("put it in quotes: \"{text}\"")),
            _ => self.describe_option(pointer, schema),
        };
        self.push(spans.place(pointer), pointer, message, help);
    }

    fn unknown(&mut self, pointer: &str, key: &str, schema: &Value) {
        let names: Vec<&String> =
            schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|p| p.keys()).collect();
        let elsewhere = schema.get("x-elsewhere").and_then(Value::as_object);
        let explained = elsewhere.and_then(|e| e.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)));
        let mut message = format!("unknown key {key:?}");
        let mut help = None;
        if let Some((_, explanation)) = explained {
            message.push_str(&format!("; {}", explanation.as_str().unwrap_or_default()));
        } else if let Some(name) = nearest(key, &names) {
            message.push_str(&format!("; did you mean {name:?}?"));
        } else if !names.is_empty() {
            let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let own: Vec<&str> = own.filter(|(_, s)| s.get("x-alias-of").is_none()).map(|(n, _)| n.as_str()).collect();
            help = Some(format!("known keys: {}", own.join(", ")));
        }
        let place = self.output.config_spans.key_place(&pointer_to(pointer, key));
        self.push(place, pointer, message, help);
    }

    fn missing(&mut self, pointer: &str, key: &str, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let written = self.output.config.pointer(pointer).and_then(Value::as_object);
        let by_alias = written.into_iter().flatten().any(|(name, _)| {
            properties.and_then(|p| p.get(name)).and_then(|p| p.get("x-alias-of")).and_then(Value::as_str) == Some(key)
        });
        if by_alias {
            return;
        }
        let help = properties.and_then(|p| p.get(key)).and_then(description).map(|d| format!("{key}: {d}"));
        let place = self.output.config_spans.key_place(pointer);
        self.push(place, pointer, format!("the key {key:?} is missing"), help);
    }

    /// One option under two of its names.
    fn named_twice(&mut self) {
        let Some(properties) = self.schema.get("properties").and_then(Value::as_object) else { return };
        let Some(written) = self.output.config.as_object() else { return };
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut faults = vec![];
        for name in written.keys() {
            let alias = properties.get(name).and_then(|p| p.get("x-alias-of")).and_then(Value::as_str);
            if let Some(other) = first.insert(alias.unwrap_or(name), name) {
                faults.push((pointer_to("", name), format!("{name:?} and {other:?} are two names of the same option")));
            }
        }
        for (pointer, message) in faults {
            let place = self.output.config_spans.key_place(&pointer);
            self.push(place, "", message, Some("keep one of them".into()));
        }
    }

    /// What the schema says of the option, or of the one that it is an alias of.
    fn describe_option(&self, pointer: &str, schema: &Value) -> Option<String> {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let described = description(schema).or_else(|| {
            let target = schema.get("x-alias-of")?.as_str()?;
            description(self.schema.get("properties")?.get(target)?)
        })?;
        Some(format!("{name}: {described}"))
    }
}

fn description(schema: &Value) -> Option<&str> {
    schema.get("description").and_then(Value::as_str)
}

/// Where the value has the type of just one alternative, that alternative's faults are the ones that help.
fn only_of_its_type<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    pointer: &str,
) -> Option<&'e [ValidationError<'static>]> {
    let other_type = |errors: &[ValidationError<'static>]| {
        errors.iter().any(|e| {
            let here = e.instance_path().as_str() == pointer;
            here && matches!(e.kind(), Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. })
        })
    };
    let mut fitting = context.iter().filter(|errors| !errors.is_empty() && !other_type(errors));
    match (fitting.next(), fitting.next()) {
        (Some(errors), None) => Some(errors),
        _ => None,
    }
}

/// What a schema wants, in words.
fn expected(schema: &Value) -> String {
    let words = enumerated(schema);
    if !words.is_empty() {
        return choices(&words);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema.get(keyword).and_then(Value::as_array) {
            let mut each: Vec<String> = alternatives.iter().map(expected).collect();
            each.dedup();
            return each.join(" or ");
        }
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
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
fn enumerated(schema: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(constant) = schema.get("const") {
        return vec![word(constant)];
    }
    schema.get("enum").and_then(Value::as_array).into_iter().flatten().map(word).collect()
}

fn accepts_text(schema: &Value) -> bool {
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|k| schema.get(*k)).filter_map(Value::as_array).flatten();
    let of_type = match schema.get("type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(several)) => several.iter().any(|t| t == "string"),
        _ => false,
    };
    of_type || alternatives.into_iter().any(accepts_text)
}
