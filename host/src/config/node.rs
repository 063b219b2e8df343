//! A YAML document as a tree in which every key and value knows its place.

use super::fault::Place;
use super::hidden::Hidden;

/// A value and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: Place,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// Something that was already reported; readers pass over it in silence.
    Faulty,
}

/// The last key of a map into which something could not be merged: other keys may be missing for that.
pub(crate) const MERGE: &str = "<<";

/// One key of a map. Keys of a map differ from each other.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub key_at: Place,
    pub value: Node,
}

/// A scalar, as written and as what it means.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    /// The text, references replaced.
    pub text: String,
    pub meaning: Meaning,
    /// There was a reference in it.
    pub from_environment: bool,
    /// What of it came from the environment, and is not shown in messages.
    pub hidden: Hidden,
}

/// What a scalar means by the YAML 1.2 core schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning {
    /// Nothing is written where a value could be.
    Missing,
    /// `null` or `~`.
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text,
}

impl Meaning {
    /// Resolves an unquoted scalar (YAML 1.2.2, section 10.3.2).
    pub(crate) fn of_plain(text: &str) -> Self {
        match text {
            "" => return Self::Missing,
            "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" => return Self::Bool(true),
            "false" | "False" | "FALSE" => return Self::Bool(false),
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            _ => {}
        }
        let (sign, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (-1, text.get(1..).unwrap_or("")),
            Some(b'+') => (1, text.get(1..).unwrap_or("")),
            _ => (1, text),
        };
        if let ".inf" | ".Inf" | ".INF" = unsigned {
            return Self::Float(if sign < 0 { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        let radix = |digits: &str, radix| i128::from_str_radix(digits, radix).map_or(Self::Text, Self::Int);
        let all = |digits: &str, wanted: fn(char) -> bool| !digits.is_empty() && digits.chars().all(wanted);
        if let Some(digits) = text.strip_prefix("0o").filter(|d| all(d, |c| c.is_digit(8))) {
            return radix(digits, 8);
        }
        if let Some(digits) = text.strip_prefix("0x").filter(|d| all(d, |c| c.is_ascii_hexdigit())) {
            return radix(digits, 16);
        }
        if all(unsigned, |c| c.is_ascii_digit())
            && let Ok(number) = unsigned.parse::<i128>()
        {
            return Self::Int(sign * number);
        }
        let like_a_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && unsigned.contains(|c: char| c.is_ascii_digit())
            && all(unsigned, |c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
        match unsigned.parse::<f64>() {
            Ok(number) if like_a_number => Self::Float(f64::from(sign as i8) * number),
            _ => Self::Text,
        }
    }
}

impl Node {
    /// Nothing is written, or `null`.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.value, Value::Scalar(Scalar { meaning: Meaning::Missing | Meaning::Null, .. }))
    }

    /// What is below a key of a map.
    pub(crate) fn below(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The keys of a map; none of what is no map.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str()).filter(|key| *key != MERGE)
    }

    /// Whether some of a scalar came from the environment, or of an item of a list.
    pub(crate) fn is_hidden(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => !scalar.hidden.is_empty(),
            Value::List(list) => list.iter().any(Self::is_hidden),
            Value::Map(_) | Value::Faulty => false,
        }
    }

    /// What was found, for a message: `the number 5`, `a list`.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
            Value::Faulty => "something faulty".into(),
            Value::Scalar(scalar) => scalar.found(),
        }
    }
}

impl Scalar {
    /// What it means where a number, `true` or `false` is wanted: what came from the environment means the same in quotes and without,
    /// since `{ }` and `[ ]` want quotes around it.
    pub(crate) fn as_written(&self) -> Meaning {
        if self.from_environment { Meaning::of_plain(&self.text) } else { self.meaning }
    }

    fn found(&self) -> String {
        let kind = match self.meaning {
            Meaning::Missing | Meaning::Null => return "nothing".into(),
            Meaning::Bool(_) => "",
            Meaning::Int(_) | Meaning::Float(_) => "the number ",
            Meaning::Text => "text ",
        };
        if !self.hidden.is_empty() {
            return format!("{}from {}", if kind.is_empty() { "true or false " } else { kind }, self.hidden.named());
        }
        let text = shortened(&self.text);
        if kind == "text " { format!("text {text:?}") } else { format!("{kind}{text}") }
    }
}

/// At most 60 characters of a text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tables of YAML 1.2.2, section 10.3.2, and what surprises people.
    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        for (text, meaning) in [
            ("", Meaning::Missing),
            ("~", Meaning::Null),
            ("null", Meaning::Null),
            ("True", Meaning::Bool(true)),
            ("false", Meaning::Bool(false)),
            ("yes", Meaning::Text),
            ("on", Meaning::Text),
            ("0", Meaning::Int(0)),
            ("-19", Meaning::Int(-19)),
            ("+12", Meaning::Int(12)),
            ("0o7", Meaning::Int(7)),
            ("0x3A", Meaning::Int(58)),
            ("012", Meaning::Int(12)),
            ("0.", Meaning::Float(0.0)),
            ("-0.5", Meaning::Float(-0.5)),
            (".5", Meaning::Float(0.5)),
            ("12e03", Meaning::Float(12_000.0)),
            ("-2E+05", Meaning::Float(-200_000.0)),
            (".inf", Meaning::Float(f64::INFINITY)),
            ("-.Inf", Meaning::Float(f64::NEG_INFINITY)),
            ("nan", Meaning::Text),
            ("inf", Meaning::Text),
            ("infinity", Meaning::Text),
            ("-", Meaning::Text),
            (".", Meaning::Text),
            ("e3", Meaning::Text),
            ("--1", Meaning::Text),
            ("+-1", Meaning::Text),
            ("1_000", Meaning::Text),
            ("0x", Meaning::Text),
            ("127.0.0.1", Meaning::Text),
            ("50MB", Meaning::Text),
        ] {
            assert_eq!(Meaning::of_plain(text), meaning, "{text}");
        }
    }
}
