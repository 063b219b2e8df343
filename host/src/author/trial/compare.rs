//! Holds what happened against what was expected.
//!
//! What happened is cut down to what is named, in the expectation's own order, so that both read alike and the difference is what a person
//! has to look at. In a text, `…` stands for anything.

use serde_json::{Map, Value};
use similar::{Algorithm, ChangeTag, DiffTag, TextDiff, capture_diff_slices};

use super::case::Expected;
use super::transcript::Transcript;
use super::yaml;

/// Lines around a difference.
const CONTEXT: usize = 3;
/// The capabilities that calls are told apart by.
const CAPABILITIES: [&str; 4] = ["s3", "cloudwatch_logs", "http", "sequence"];

/// The difference; none where everything that is named happened.
pub(crate) fn with_expected(expected: &Expected, happened: &Transcript) -> Option<Difference> {
    let actual = happened.value();
    let cut = cut_down(&expected.value, &actual, happened);
    (cut != expected.value).then(|| Difference::of(&written(&expected.value), &written(&cut)))
}

/// The difference to a golden file; none where there is none.
pub(crate) fn with_golden(golden: &str, happened: &str) -> Option<Difference> {
    (golden != happened).then(|| Difference::of(golden, happened))
}

fn written(value: &Map<String, Value>) -> String {
    let mut text = String::new();
    yaml::write(&mut text, &Value::Object(value.clone()));
    text
}

/// What happened, of what is named.
fn cut_down(expected: &Map<String, Value>, actual: &Map<String, Value>, happened: &Transcript) -> Map<String, Value> {
    let mut cut = Map::new();
    for (key, wanted) in expected {
        let value = match (key.as_str(), wanted) {
            ("calls", Value::Array(calls)) => aligned(calls, &named_calls(calls, actual)),
            ("batches", Value::Array(batches)) => list(batches, &array(actual.get("batches")), batch),
            ("outcome", wanted) => outcome(wanted, happened),
            ("dead_letters", wanted @ Value::String(_)) => {
                all_dead(wanted, &array(actual.get("dead_letters")), happened.records())
            }
            ("log", Value::Array(lines)) => log(lines, &array(actual.get("log"))),
            (_, wanted) => actual.get(key).map_or(Value::Null, |actual| general(wanted, actual)),
        };
        cut.insert(key.clone(), value);
    }
    cut
}

fn array(value: Option<&Value>) -> Vec<Value> {
    value.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The calls of the capabilities that the expectation names: a test that expects requests need not tell of counters, but one that tells of
/// requests tells of all.
fn named_calls(expected: &[Value], actual: &Map<String, Value>) -> Vec<Value> {
    let of = |call: &Value| CAPABILITIES.into_iter().find(|name| call.get(name).is_some());
    let named: Vec<_> = expected.iter().filter_map(of).collect();
    let all = array(actual.get("calls"));
    // An empty list says that nothing was asked of any service.
    let wanted = |call: &Value| match of(call) {
        Some("sequence") => named.contains(&"sequence"),
        Some(name) => expected.is_empty() || named.contains(&name),
        None => false,
    };
    all.into_iter().filter(wanted).collect()
}

/// Calls beside those that they are likely to be, so that one too many or one too few does not make all behind it look wrong.
fn aligned(expected: &[Value], actual: &[Value]) -> Value {
    // Of a request line only the method: the rest may be a pattern.
    let short = |name: &str, what: &str| match name {
        "http" => what.split(' ').next().unwrap_or_default().to_owned(),
        _ => what.to_owned(),
    };
    let named =
        |call: &Value| CAPABILITIES.into_iter().find_map(|name| Some((name, short(name, call.get(name)?.as_str()?))));
    // Where `…` stands for the method too, calls of that capability cannot be told apart by it.
    let open: Vec<&str> =
        expected.iter().filter_map(named).filter(|(_, what)| what.contains('…')).map(|(name, _)| name).collect();
    let label = |call: &Value| match named(call) {
        Some((name, _)) if open.contains(&name) => name.to_owned(),
        Some((name, what)) => format!("{name} {what}"),
        None => String::new(),
    };
    let (wanted, happened): (Vec<_>, Vec<_>) =
        (expected.iter().map(label).collect(), actual.iter().map(label).collect());
    let mut items = vec![];
    for op in capture_diff_slices(Algorithm::Myers, &wanted, &happened) {
        let (tag, before, after) = op.as_tag_tuple();
        let here = actual.get(after).unwrap_or_default();
        match tag {
            DiffTag::Equal => {
                items.extend(expected.get(before).unwrap_or_default().iter().zip(here).map(|(e, a)| call(e, a)));
            }
            _ => items.extend(here.iter().cloned()),
        }
    }
    Value::Array(items)
}

/// Item by item; what is left over is shown as it is.
fn list(expected: &[Value], actual: &[Value], one: fn(&Value, &Value) -> Value) -> Value {
    let mut items = vec![];
    for (n, actual) in actual.iter().enumerate() {
        items.push(match expected.get(n) {
            Some(expected) => one(expected, actual),
            None => actual.clone(),
        });
    }
    Value::Array(items)
}

fn call(expected: &Value, actual: &Value) -> Value {
    let (Value::Object(wanted), Value::Object(happened)) = (expected, actual) else { return actual.clone() };
    // Another call than the one that was expected is shown as it is.
    let same = |name: &&str| wanted.get(*name).is_some() && happened.get(*name).is_some();
    if !CAPABILITIES.iter().any(same) {
        return actual.clone();
    }
    map(wanted, happened, |key, wanted, actual| match (key, wanted, actual) {
        ("body", wanted @ (Value::Array(_) | Value::Object(_)), Value::String(text)) => body(wanted, text),
        ("headers", Value::Object(wanted), Value::Object(actual)) => headers(wanted, actual),
        _ => general(wanted, actual),
    })
}

/// Header names have no case.
fn headers(wanted: &Map<String, Value>, actual: &Map<String, Value>) -> Value {
    let mut cut = Map::new();
    for (name, wanted) in wanted {
        match (actual.get(&name.to_ascii_lowercase()), wanted) {
            (Some(actual), wanted) => cut.insert(name.clone(), general(wanted, actual)),
            (None, Value::Null) => cut.insert(name.clone(), Value::Null),
            (None, _) => None,
        };
    }
    Value::Object(cut)
}

/// A body as JSON where it is expected as that: a list is one item a line, a map is the whole.
fn body(wanted: &Value, text: &str) -> Value {
    let Value::Array(lines) = wanted else {
        return serde_json::from_str(text).map_or_else(|_| text.into(), |actual| general(wanted, &actual));
    };
    let whole: Option<Vec<Value>> =
        text.trim_start().starts_with('[').then(|| serde_json::from_str(text).ok()).flatten();
    let items = whole.unwrap_or_else(|| {
        let line = |(n, line): (usize, &str)| match lines.get(n) {
            Some(Value::String(_)) => line.into(),
            _ => serde_json::from_str(line).unwrap_or_else(|_| line.into()),
        };
        text.lines().enumerate().map(line).collect()
    });
    list(lines, &items, general)
}

fn batch(expected: &Value, actual: &Value) -> Value {
    let Value::Object(happened) = actual else { return actual.clone() };
    match expected {
        Value::Object(wanted) => map(wanted, happened, |key, wanted, actual| match (key, wanted, actual) {
            ("attempts", Value::Number(_), Value::Array(attempts)) => attempts.len().into(),
            ("attempts", Value::Array(wanted), Value::Array(attempts)) => list(wanted, attempts, attempt),
            ("rejected", Value::Number(_), Value::Object(rejected)) => rejected.len().into(),
            ("rejected", Value::Array(_), Value::Object(rejected)) => {
                rejected.keys().filter_map(|n| n.parse::<u64>().ok()).map(Value::from).collect()
            }
            // Which records were rejected is told whole.
            ("rejected", Value::Object(wanted), Value::Object(rejected)) => {
                let each = rejected.iter().map(|(n, reason)| {
                    (n.clone(), wanted.get(n).map_or_else(|| reason.clone(), |wanted| general(wanted, reason)))
                });
                Value::Object(each.collect())
            }
            _ => general(wanted, actual),
        }),
        _ => happened.get("outcome").map_or(Value::Null, |outcome| general(expected, outcome)),
    }
}

fn attempt(expected: &Value, actual: &Value) -> Value {
    match expected {
        Value::Object(_) => general(expected, actual),
        _ => actual.get("ended").map_or(Value::Null, |ended| general(expected, ended)),
    }
}

/// One word for all batches, or what became of each.
fn outcome(wanted: &Value, happened: &Transcript) -> Value {
    let outcomes: Vec<Value> = happened.batches.iter().map(|batch| batch.outcome().into()).collect();
    match outcomes.first() {
        Some(first) if outcomes.iter().all(|outcome| outcome == first) => general(wanted, first),
        _ => Value::Array(outcomes),
    }
}

/// One reason for all records, or what became of those that were not delivered.
fn all_dead(wanted: &Value, letters: &[Value], records: u64) -> Value {
    let fits = |letter: &Value| letter.get("reason").is_some_and(|reason| general(wanted, reason) == *wanted);
    match letters.len() as u64 == records && letters.iter().all(fits) {
        true => wanted.clone(),
        false => Value::Array(letters.to_vec()),
    }
}

/// Each expected line, where it stands behind the last one; what is missing is told by what is there instead.
fn log(wanted: &[Value], lines: &[Value]) -> Value {
    let mut rest = lines.iter();
    let mut found = vec![];
    for wanted in wanted {
        match rest.by_ref().find(|line| general(wanted, line) == *wanted) {
            Some(_) => found.push(wanted.clone()),
            None => return Value::Array(lines.to_vec()),
        }
    }
    Value::Array(found)
}

/// The keys that are named; `null` says that there is none.
fn map(wanted: &Map<String, Value>, actual: &Map<String, Value>, one: impl Fn(&str, &Value, &Value) -> Value) -> Value {
    let mut cut = Map::new();
    for (key, wanted) in wanted {
        match (actual.get(key), wanted) {
            (Some(actual), wanted) => cut.insert(key.clone(), one(key, wanted, actual)),
            (None, Value::Null) => cut.insert(key.clone(), Value::Null),
            (None, _) => None,
        };
    }
    Value::Object(cut)
}

fn general(wanted: &Value, actual: &Value) -> Value {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            map(wanted, actual, |_, wanted, actual| general(wanted, actual))
        }
        (Value::Array(wanted), Value::Array(actual)) => list(wanted, actual, general),
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => wanted.clone(),
        // A number that is written without quotes is as good as one with them.
        (Value::Number(number), Value::String(text)) if number.to_string().as_str() == text => wanted.clone(),
        (Value::Bool(bool), Value::String(text)) if bool.to_string().as_str() == text => wanted.clone(),
        (Value::String(pattern), Value::Number(_) | Value::Bool(_)) if fits(pattern, &actual.to_string()) => {
            wanted.clone()
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => wanted.clone(),
        _ => actual.clone(),
    }
}

/// Whether the text is the pattern's, where `…` stands for anything.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Two texts that are not the same, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference(Vec<(ChangeTag, String)>);

impl Difference {
    fn of(expected: &str, happened: &str) -> Self {
        let diff = TextDiff::from_lines(expected, happened);
        let mut lines = vec![];
        for (n, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
            if n > 0 {
                lines.push((ChangeTag::Equal, "...".to_owned()));
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                lines.push((change.tag(), change.value().trim_end_matches('\n').to_owned()));
            }
        }
        Self(lines)
    }

    /// For a person. Control characters do not reach the terminal.
    #[must_use]
    pub fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for (tag, line) in &self.0 {
            let (sign, on) = match tag {
                ChangeTag::Delete => ("-", "\u{1b}[31m"),
                ChangeTag::Insert => ("+", "\u{1b}[32m"),
                ChangeTag::Equal => (" ", ""),
            };
            let off = if on.is_empty() { "" } else { "\u{1b}[0m" };
            let (on, off) = if colours { (on, off) } else { ("", "") };
            let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
            text.push_str(&format!("    {on}{sign} {line}{off}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{aligned, fits};

    #[test]
    fn three_dots_stand_for_anything() {
        for (pattern, text, is_so) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("…", "", true),
            ("…", "anything", true),
            ("a…", "abc", true),
            ("…c", "abc", true),
            ("a…c", "ac", true),
            ("a…b…c", "a1b2c", true),
            ("a…b…c", "acb", false),
            ("ab…bc", "abc", false),
            ("b…", "abc", false),
        ] {
            assert_eq!(fits(pattern, text), is_so, "{pattern} {text}");
        }
    }

    #[test]
    fn three_dots_may_stand_for_the_method_of_a_call_too() {
        let actual = [
            json!({ "http": "POST https://a.test/ingest?dataset=web", "answer": "503" }),
            json!({ "sequence": "assign" }),
        ];
        for pattern in ["…", "…/ingest?dataset=web", "POST …", "POST https://a.test/ingest…"] {
            let expected = [json!({ "http": pattern }), json!({ "sequence": "assign" })];
            assert_eq!(aligned(&expected, &actual), json!(expected), "{pattern}");
        }
        for pattern in ["…/other", "GET …"] {
            assert_ne!(aligned(&[json!({ "http": pattern })], &actual[..1]), json!([{ "http": pattern }]), "{pattern}");
        }
    }
}
