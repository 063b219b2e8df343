//! What is left of a plugin's `config` when the faults that its schema finds are taken out: the component is asked about that, so that
//! its own faults come in the same answer.
//!
//! The component then checks something else than what is written. What it says is only told where it must be true of what is written too: it
//! lies on an option that is as it is written, be it not written at all, and speaks of none that was left out. Components name options in
//! backquotes or quotes. What they say of values from the environment is only told where it shows none of them ([`super::hidden`]).

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::fault::Fault;
use super::model::OutputConfig;
use super::schema::{alias_of, describe, is_written};
use super::spans::{is_at_or_below, pointer_to};

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
    doubts: Doubts,
    /// Options that are written under another name, with that name.
    renamed: BTreeMap<String, String>,
    schema: Value,
}

/// What may not be as it is meant.
#[derive(Debug)]
pub(crate) struct Doubts {
    /// These options.
    pub options: BTreeSet<String>,
    /// Any option that is not written: nobody knows what an unknown key was meant to be.
    pub any: bool,
}

impl PluginConfigCheck {
    pub(crate) fn of_faults(faults: Vec<Fault>) -> Self {
        Self { faults, rest: None }
    }

    /// Takes `left_out` out of the configuration, which may make more doubtful than what is so already.
    pub(crate) fn new(
        faults: Vec<Fault>,
        config: Value,
        schema: &Value,
        validator: &Validator,
        left_out: &BTreeSet<String>,
        doubts: Doubts,
    ) -> Self {
        Self { faults, rest: Rest::of(config, schema, validator, left_out, doubts) }
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
        let (message, help) = match spans.shown_in(&message, Some(&written), &rest.schema.to_string().to_lowercase()) {
            None => (message, help),
            Some(hidden) => (
                format!("the component refuses this, in words that would show what {} holds", hidden.named()),
                describe(&rest.schema, &written).or(help),
            ),
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
        mut doubts: Doubts,
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
            doubts.options.extend(alias_of(schema, &name).map(str::to_owned));
            doubts.options.insert(name);
        }
        Some(Self { config, left_out: gone, doubts, renamed, schema: schema.clone() })
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
        let option = pointer.split('/').nth(1).unwrap_or_default();
        let is_there = self.config.pointer(pointer).is_some();
        let is_as_written = match pointer.matches('/').count() {
            0 => false,
            // That an option is missing is only sure where none is written that may be it.
            1 => is_there || !(self.doubts.any || self.doubts.options.contains(option)),
            _ => is_there,
        };
        is_as_written
            && !self.left_out.iter().any(|gone| is_at_or_below(pointer, gone))
            && !self.doubts.options.iter().any(|name| mentions(message, name))
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
pub(crate) fn mentions(text: &str, option: &str) -> bool {
    let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    text.match_indices(['`', '"'])
        .any(|(at, _)| text.get(at + 1..).and_then(|rest| rest.strip_prefix(option)).is_some_and(ends))
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
