//! What is left of a plugin's `config` when the faults that its schema finds are taken out: the component is asked about that, so that
//! its own faults come in the same answer.
//!
//! The component then checks something else than what is written. What it says is only told where it must be true of what is written too: it
//! lies on a key that is still there, and speaks of none that was left out. Components name options in backquotes or quotes.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::model::OutputConfig;
use super::schema::{alias_of, is_written};
use super::spans::pointer_to;

/// What a component's schema says of an output's `config`, and what the component itself can still be asked.
#[derive(Debug)]
pub struct PluginConfigCheck {
    /// What the schema finds, in the order of the file.
    pub faults: Vec<Fault>,
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    config: Value,
    /// JSON Pointers of what is not as it is written.
    left_out: BTreeSet<String>,
    /// Options that may not be as they are meant.
    doubted: BTreeSet<String>,
    /// Options that are written under another name, with that name.
    renamed: BTreeMap<String, String>,
}

impl PluginConfigCheck {
    pub(crate) fn of_faults(faults: Vec<Fault>) -> Self {
        Self { faults, rest: None }
    }

    /// Takes `left_out` out of the configuration. `doubted` are further options that may not be as they are meant.
    pub(crate) fn new(
        faults: Vec<Fault>,
        config: Value,
        schema: &Value,
        validator: &Validator,
        left_out: &BTreeSet<String>,
        doubted: BTreeSet<String>,
    ) -> Self {
        Self { faults, rest: Rest::of(config, schema, validator, left_out, doubted) }
    }

    /// What the component is to be asked: all of the `config`, or what is left of it. None where it can be asked nothing.
    #[must_use]
    pub fn config(&self) -> Option<&Value> {
        self.rest.as_ref().map(|rest| &rest.config)
    }

    /// Whether the component is asked all that is written.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.left_out.is_empty())
    }

    /// A fault that the component found at `pointer` (RFC 6901), at its place and under the name that is written there. None where it may be
    /// a consequence of what was left out.
    #[must_use]
    pub fn fault_of_component(&self, output: &OutputConfig, pointer: &str, message: String) -> Option<Fault> {
        let rest = self.rest.as_ref()?;
        let written = rest.written(pointer);
        if !self.is_whole() && !rest.is_sure(&written, &message) {
            return None;
        }
        let spans = &output.config_spans;
        let option = pointer.split('/').nth(1).unwrap_or_default();
        let other_names = rest.renamed.iter().filter(|(name, _)| *name == option || mentions(&message, name));
        let other_names: Vec<String> =
            other_names.map(|(option, alias)| format!("{alias:?} is another name of {option:?}")).collect();
        let help = (!other_names.is_empty()).then(|| other_names.join("; "));
        let message = match spans.variable_at(&written) {
            Some(secret) if !secret.is_empty() => without_quoted(&message, secret),
            _ => message,
        };
        Some(spans.fault(spans.place(&written), &written, message, help))
    }
}

impl Rest {
    fn of(
        mut config: Value,
        schema: &Value,
        validator: &Validator,
        left_out: &BTreeSet<String>,
        mut doubted: BTreeSet<String>,
    ) -> Option<Self> {
        let mut renamed = BTreeMap::new();
        for alias in config.as_object()?.keys() {
            if let Some(option) = alias_of(schema, alias).filter(|option| config.get(option).is_none()) {
                renamed.insert(option.to_owned(), alias.clone());
            }
        }
        let mut gone = BTreeSet::new();
        for pointer in left_out {
            gone.insert(remove(&mut config, pointer)?);
        }
        gone.extend(stand_ins(&mut config, schema, validator)?);
        for pointer in &gone {
            let name = pointer.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~");
            doubted.extend(alias_of(schema, &name).map(str::to_owned));
            doubted.insert(name);
        }
        Some(Self { config, left_out: gone, doubted, renamed })
    }

    /// The pointer with the name under which its option is written.
    fn written(&self, pointer: &str) -> String {
        let mut steps = pointer.splitn(3, '/').skip(1);
        match steps.next().and_then(|option| self.renamed.get(option)) {
            Some(alias) => steps.next().map_or_else(|| format!("/{alias}"), |below| format!("/{alias}/{below}")),
            None => pointer.to_owned(),
        }
    }

    /// Whether a fault would be there too if nothing had been left out.
    fn is_sure(&self, pointer: &str, message: &str) -> bool {
        let within =
            |gone: &String| pointer.strip_prefix(gone.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('/'));
        let is_there =
            !pointer.is_empty() && self.config.pointer(pointer).is_some() && !self.left_out.iter().any(within);
        is_there && !self.doubted.iter().any(|name| mentions(message, name))
    }
}

/// Takes a key out, or the list that has the item in it: without the item the others would have other numbers. Gives what was taken out.
fn remove(config: &mut Value, pointer: &str) -> Option<String> {
    let mut pointer = pointer;
    loop {
        let (parent, step) = pointer.rsplit_once('/')?;
        match config.pointer_mut(parent) {
            Some(Value::Array(_)) => pointer = parent,
            Some(Value::Object(map)) => {
                map.remove(&step.replace("~1", "/").replace("~0", "~"));
                return Some(pointer.to_owned());
            }
            // It went with its parent.
            _ => return Some(pointer.to_owned()),
        }
    }
}

/// Puts something into each required key that is not there: without it nothing would be read. Gives their pointers; none where what is left
/// still does not pass the schema.
fn stand_ins(config: &mut Value, schema: &Value, validator: &Validator) -> Option<Vec<String>> {
    let mut added = vec![];
    for _ in 0..2 {
        let mut missing = vec![];
        for error in validator.iter_errors(config) {
            let Kind::Required { property } = error.kind() else { return None };
            let pointer = error.instance_path().as_str();
            let owner = schema.pointer(error.schema_path().as_str().rsplit_once('/')?.0)?;
            let key = property.as_str()?;
            if !is_written(config.pointer(pointer).and_then(Value::as_object), owner, key) {
                missing.push((pointer.to_owned(), key.to_owned(), stand_in(owner.get("properties")?.get(key)?)?));
            }
        }
        if missing.is_empty() {
            return Some(added);
        }
        for (pointer, key, value) in missing {
            added.push(pointer_to(&pointer, &key));
            config.pointer_mut(&pointer)?.as_object_mut()?.insert(key, value);
        }
    }
    None
}

/// Some value that a schema takes.
fn stand_in(schema: &Value) -> Option<Value> {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|values| values.first());
    if let Some(value) = schema.get("default").or(schema.get("const")).or(listed("enum")).or(listed("examples")) {
        return Some(value.clone());
    }
    if let Some(alternative) = listed("anyOf").or(listed("oneOf")) {
        return stand_in(alternative);
    }
    let kind = match schema.get("type")? {
        Value::Array(several) => several.first()?.as_str()?,
        one => one.as_str()?,
    };
    Some(match kind {
        "string" => {
            "x".repeat(usize::try_from(schema.get("minLength").and_then(Value::as_u64).unwrap_or(1)).ok()?).into()
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => false.into(),
        "array" => Value::Array(vec![]),
        "object" => Value::Object(Map::new()),
        _ => Value::Null,
    })
}

/// Whether a text names this option: in backquotes or quotes, perhaps with a value.
fn mentions(text: &str, option: &str) -> bool {
    let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    text.match_indices(['`', '"'])
        .any(|(at, _)| text.get(at + 1..).and_then(|rest| rest.strip_prefix(option)).is_some_and(ends))
}

/// The message without a quoted text, which may be a secret.
fn without_quoted(message: &str, secret: &str) -> String {
    ['`', '"'].iter().fold(message.to_owned(), |message, quote| {
        message.replace(&format!("{quote}{secret}{quote}"), "the text from the environment")
    })
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn an_option_is_mentioned_where_it_is_quoted() {
        for (text, expected) in [
            ("it has no effect without `format`", true),
            ("it has no effect with `format: text`", true),
            ("write \"format\" as well", true),
            ("the format is wrong", false),
            ("see `key_format`", false),
            ("see `format_of_dates`", false),
            ("", false),
        ] {
            assert_eq!(mentions(text, "format"), expected, "{text}");
        }
    }
}
