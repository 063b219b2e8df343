//! Checks a plugin's `config` against the JSON schema that its component describes, in words and with places.
//!
//! Keywords of our own: `x-alias-of` on a property names the key that it stands for; `x-elsewhere` at the top maps option names that
//! people know from other shippers to an explanation of where the same thing is in Wharf; `x-expected` says in words what a value has to be.

mod words;

use std::collections::{BTreeSet, HashMap};

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use super::fault::{Fault, nearest};
use super::from_environment;
use super::model::OutputConfig;
use super::node::{MERGE, shortened};
use super::rest::{Doubts, PluginConfigCheck, mentions};
use super::spans::{fault_at_plugin, pointer_to};
use words::{accepts_whole_numbers_only, enumerated, expected, wants_text};

/// What a schema wants, in words: `a whole number from 1 to 9`.
#[must_use]
pub fn expected_words(schema: &Value) -> String {
    expected(schema)
}

/// Every fault of the output's `config` that its component's schema finds, and what is left for the component to check.
#[must_use]
pub fn check_plugin_config(output: &OutputConfig, schema: &Value) -> PluginConfigCheck {
    let faulty = output.config_spans.faulty();
    if faulty.contains("") {
        return PluginConfigCheck::of_faults(vec![]);
    }
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(cause) => {
            let message =
                format!("the plugin's own schema of its configuration is wrong: {}", shortened(&cause.to_string()));
            let help = "this is a fault of the plugin, not of the file".into();
            return PluginConfigCheck::of_faults(vec![fault_at_plugin(output, message, Some(help))]);
        }
    };
    let config = from_environment::fitted(&output.config, schema, &output.config_spans);
    let mut check = Check {
        output,
        config: &config,
        schema,
        faults: vec![],
        left_out: faulty.clone(),
        wrong_type: BTreeSet::new(),
        guesses: BTreeSet::new(),
        is_unguessed: faulty.iter().any(|pointer| pointer.ends_with(&pointer_to("", MERGE))),
        missing: vec![],
    };
    check.run(&validator);
    let Check { mut faults, left_out, guesses, is_unguessed, .. } = check;
    faults.sort_by_key(|fault| fault.place);
    let doubted = guesses.into_iter().map(|(_, option)| option).collect();
    PluginConfigCheck::new(
        faults,
        config,
        schema,
        &validator,
        &left_out,
        Doubts { options: doubted, any: is_unguessed },
    )
}

/// The option that `name` is another name of.
pub(crate) fn alias_of<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get("properties")?.get(name)?.get("x-alias-of")?.as_str()
}

/// Whether `key` is written, be it under another name. `schema` is that of the map.
pub(crate) fn is_written(map: Option<&Map<String, Value>>, schema: &Value, key: &str) -> bool {
    map.is_some_and(|map| map.keys().any(|name| name == key || alias_of(schema, name) == Some(key)))
}

struct Check<'a> {
    output: &'a OutputConfig,
    config: &'a Value,
    schema: &'a Value,
    faults: Vec<Fault>,
    /// JSON Pointers of what is faulty.
    left_out: BTreeSet<String>,
    /// JSON Pointers of values of another type: nothing else is said of them.
    wrong_type: BTreeSet<String>,
    /// What unknown keys were probably meant to be, with the pointers of their maps.
    guesses: BTreeSet<(String, String)>,
    /// There is something of which nobody knows which option was meant.
    is_unguessed: bool,
    /// Faults of keys that are missing, with the pointers of their maps, and the keys.
    missing: Vec<(String, String, Fault)>,
}

impl Check<'_> {
    fn run(&mut self, validator: &Validator) {
        let errors: Vec<ValidationError<'_>> = validator.iter_errors(self.config).collect();
        let of_type = errors.iter().filter(|error| matches!(error.kind(), Kind::Type { .. }));
        self.wrong_type = of_type.map(|error| error.instance_path().as_str().to_owned()).collect();
        errors.iter().for_each(|error| self.error(error));
        self.not_whole();
        self.named_twice();
        // A key that is misspelt is not missing as well.
        for (pointer, key, fault) in std::mem::take(&mut self.missing) {
            if !self.guesses.contains(&(pointer, key)) {
                self.faults.push(fault);
            }
        }
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
                let how = if self.describe_option(pointer, &schema).is_some() {
                    String::new()
                } else {
                    format!(" {pattern}")
                };
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
        if self.wrong_type.contains(pointer) {
            return;
        }
        let help = self.describe_option(pointer, schema);
        self.left_out.insert(pointer.to_owned());
        self.push(self.output.config_spans.place(pointer), pointer, message, help);
    }

    fn unexpected(&mut self, pointer: &str, schema: &Value) {
        let spans = &self.output.config_spans;
        let mut message = format!("expected {}, found {}", expected(schema), spans.found(pointer));
        let words: Vec<String> = enumerated(schema);
        if let Some(Value::String(written)) = self.config.pointer(pointer)
            && !spans.is_hidden(pointer)
            && let Some(guess) = nearest(written, &words)
        {
            message.push_str(&format!("; did you mean {guess:?}?"));
        }
        let help = match spans.unquoted(pointer) {
            Some(text) if wants_text(schema) => Some(format!("put it in quotes: \"{text}\"")),
            _ => self.describe_option(pointer, schema),
        };
        self.left_out.insert(pointer.to_owned());
        self.push(spans.place(pointer), pointer, message, help);
    }

    /// Whole numbers that are written as others: `1e3` is whole for a schema, but no whole number for most components.
    fn not_whole(&mut self) {
        for (key, value) in self.config.as_object().into_iter().flatten() {
            let pointer = pointer_to("", key);
            let Some(schema) = self.schema.get("properties").and_then(|p| p.get(key)) else { continue };
            if value.is_f64() && accepts_whole_numbers_only(schema) && !self.left_out.contains(&pointer) {
                self.unexpected(&pointer, schema);
            }
        }
    }

    fn unknown(&mut self, pointer: &str, key: &str, schema: &Value) {
        let names: Vec<&String> =
            schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|p| p.keys()).collect();
        let elsewhere = schema.get("x-elsewhere").and_then(Value::as_object);
        let explained = elsewhere.and_then(|e| e.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)));
        let mut message = format!("unknown key {key:?}");
        let mut help = None;
        if let Some(explanation) = explained.and_then(|(_, explanation)| explanation.as_str()) {
            message.push_str(&format!("; {explanation}"));
            // What it names may be what was meant.
            let named = names.iter().filter(|name| mentions(explanation, name));
            self.guesses
                .extend(named.map(|name| (pointer.to_owned(), alias_of(schema, name).unwrap_or(name).to_owned())));
        } else if let Some(name) = nearest(key, &names) {
            message.push_str(&format!("; did you mean {name:?}?"));
            let option = alias_of(schema, name).unwrap_or(name);
            self.guesses.insert((pointer.to_owned(), option.to_owned()));
        } else {
            self.is_unguessed = true;
            let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let own: Vec<&str> = own.filter(|(_, s)| s.get("x-alias-of").is_none()).map(|(n, _)| n.as_str()).collect();
            help = (!own.is_empty()).then(|| format!("known keys: {}", own.join(", ")));
        }
        let written = pointer_to(pointer, key);
        let place = self.output.config_spans.key_place(&written);
        self.left_out.insert(written);
        self.push(place, pointer, message, help);
    }

    fn missing(&mut self, pointer: &str, key: &str, schema: &Value) {
        let faulty = |name: &str| self.left_out.contains(&pointer_to(pointer, name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let other_name = |(name, _): (&String, &Value)| alias_of(schema, name) == Some(key) && faulty(name);
        let map = self.config.pointer(pointer).and_then(Value::as_object);
        let may_be_there = is_written(map, schema, key) || faulty(key) || faulty(MERGE);
        if may_be_there || properties.into_iter().flatten().any(other_name) {
            return;
        }
        let help = properties.and_then(|p| p.get(key)).and_then(description).map(|d| format!("{key}: {}", one_line(d)));
        let spans = &self.output.config_spans;
        let fault = spans.fault(spans.key_place(pointer), pointer, format!("the key {key:?} is missing"), help);
        self.missing.push((pointer.to_owned(), key.to_owned(), fault));
    }

    /// One option under two of its names.
    fn named_twice(&mut self) {
        let Some(properties) = self.schema.get("properties").and_then(Value::as_object) else { return };
        let Some(written) = self.config.as_object() else { return };
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut faults = vec![];
        for name in written.keys() {
            if !properties.contains_key(name) {
                continue;
            }
            if let Some(other) = first.insert(alias_of(self.schema, name).unwrap_or(name), name) {
                faults.push((pointer_to("", name), format!("{name:?} and {other:?} are two names of the same option")));
            }
        }
        for (pointer, message) in faults {
            let place = self.output.config_spans.key_place(&pointer);
            self.left_out.insert(pointer);
            self.push(place, "", message, Some("keep one of them".into()));
        }
    }

    /// What the schema says of the option, or of the one that it is an alias of. An option as a whole knows more of itself than its
    /// alternatives do.
    fn describe_option(&self, pointer: &str, schema: &Value) -> Option<String> {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let properties = self.schema.get("properties");
        let of_option = |name: &str| description(properties?.get(alias_of(self.schema, name).unwrap_or(name))?);
        let described = match pointer.matches('/').count() {
            1 => of_option(name).or_else(|| description(schema)),
            _ => description(schema),
        };
        Some(format!("{name}: {}", one_line(described?)))
    }
}

/// What a schema says of the option that a pointer begins with.
pub(crate) fn describe(schema: &Value, pointer: &str) -> Option<String> {
    let name = pointer.split('/').nth(1)?;
    let option = alias_of(schema, name).unwrap_or(name);
    Some(format!("{name}: {}", one_line(description(schema.get("properties")?.get(option)?)?)))
}

/// Descriptions come from comments, which have lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
