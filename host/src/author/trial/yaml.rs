//! Values as YAML that reads like what a person writes: blocks, plain words where that is safe, several lines as a block.

use std::fmt::Write as _;

use serde_json::Value;

use crate::config::Meaning;

/// A list that is no longer than this goes on one line.
const ONE_LINE: usize = 100;

/// Writes a value as a document.
pub(crate) fn write(text: &mut String, value: &Value) {
    block(text, value, 0);
}

/// Writes a value as an item of a list that begins at the margin.
pub(crate) fn item(text: &mut String, value: &Value) {
    list_item(text, value, 0);
}

fn block(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                entry(text, key, value, indent);
            }
        }
        Value::Array(list) if !list.is_empty() => list.iter().for_each(|item| list_item(text, item, indent)),
        scalar => {
            pad(text, indent);
            inline(text, scalar, indent);
        }
    }
}

fn entry(text: &mut String, key: &str, value: &Value, indent: usize) {
    pad(text, indent);
    after_key(text, key, value, indent);
}

fn after_key(text: &mut String, key: &str, value: &Value, indent: usize) {
    text.push_str(&scalar(key));
    text.push(':');
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            block(text, value, indent + 2);
        }
        Value::Array(list) if !list.is_empty() => match short_list(list, indent + key.len()) {
            Some(line) => {
                let _ = writeln!(text, " {line}");
            }
            None => {
                text.push('\n');
                block(text, value, indent);
            }
        },
        value => {
            text.push(' ');
            inline(text, value, indent);
        }
    }
}

fn list_item(text: &mut String, value: &Value, indent: usize) {
    pad(text, indent);
    text.push_str("- ");
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    pad(text, indent + 2);
                }
                after_key(text, key, value, indent + 2);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let line = short_list(list, 0).unwrap_or_else(|| value.to_string());
            let _ = writeln!(text, "{line}");
        }
        value => inline(text, value, indent),
    }
}

/// A value that stands behind its key, and the end of the line.
fn inline(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(string) if is_block(string) => lines(text, string, indent + 2),
        value => {
            let _ = writeln!(text, "{}", one(value));
        }
    }
}

fn one(value: &Value) -> String {
    match value {
        Value::String(string) => scalar(string),
        Value::Object(_) => "{}".into(),
        Value::Array(_) => "[]".into(),
        other => other.to_string(),
    }
}

fn short_list(list: &[Value], used: usize) -> Option<String> {
    let plain = |value: &Value| !matches!(value, Value::Object(_) | Value::Array(_));
    let is_block = |value: &Value| value.as_str().is_some_and(|text| text.contains(['\n', ',', '[', ']', '{', '}']));
    if !list.iter().all(plain) || list.iter().any(is_block) {
        return None;
    }
    let line = format!("[{}]", list.iter().map(one).collect::<Vec<_>>().join(", "));
    (used + line.len() <= ONE_LINE).then_some(line)
}

/// Several lines, none of which a block would change.
fn is_block(text: &str) -> bool {
    let keeps = |line: &str| !line.ends_with([' ', '\t']) && !line.chars().any(|c| c.is_control() && c != '\t');
    text.contains('\n') && !text.starts_with([' ', '\n', '\t']) && !text.ends_with("\n\n") && text.lines().all(keeps)
}

fn lines(text: &mut String, block: &str, indent: usize) {
    text.push_str(if block.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in block.lines() {
        if !line.is_empty() {
            pad(text, indent);
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn pad(text: &mut String, indent: usize) {
    for _ in 0..indent {
        text.push(' ');
    }
}

/// A string as it is where it can only be read as itself, else in quotes.
pub(crate) fn scalar(text: &str) -> String {
    let first = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '$' | '…');
    let inside = |c: char| c.is_alphanumeric() || " /_-.$…:+=()@;'".contains(c);
    let word = |word: &str| {
        matches!(word.to_ascii_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off")
    };
    let plain = text.starts_with(first)
        && text.chars().all(inside)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.contains("${")
        && !text.contains("$$")
        && Meaning::of_plain(text) == Meaning::Text
        && !word(text);
    if plain {
        return text.to_owned();
    }
    let simple = !text.contains('\'') && !text.chars().any(char::is_control);
    if simple && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    // A JSON string is one of YAML too.
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Sink, json_value, read_yaml};

    fn written(value: &Value) -> String {
        let mut text = String::new();
        write(&mut text, value);
        text
    }

    #[test]
    fn it_reads_like_what_a_person_writes() {
        let value = json!({
            "calls": [{ "s3": "put-object", "key": "logs/1", "body": "{\"a\":1}\n{\"b\":2}\n", "headers": { "if-none-match": "*" } }],
            "batches": [{ "records": 2, "rejected": {}, "attempts": ["503 SlowDown", "ok"] }],
        });
        assert_eq!(
            written(&value),
            "calls:\n- s3: put-object\n  key: logs/1\n  body: |\n    {\"a\":1}\n    {\"b\":2}\n  headers:\n    if-none-match: \"*\"\nbatches:\n- records: 2\n  rejected: {}\n  attempts: [503 SlowDown, ok]\n"
        );
    }

    /// What is written is read by the reader of tests and configurations, which is another's code.
    #[test]
    fn everything_reads_back_as_it_was() {
        for text in [
            "",
            " ",
            "a",
            "1",
            "1.5",
            "true",
            "no",
            "~",
            "null",
            "- a",
            "a: b",
            "a:",
            "#x",
            "a #b",
            "[x]",
            "{x}",
            "*",
            "&a",
            "!t",
            "|",
            ">",
            "%",
            "@",
            "`",
            "'",
            "\"",
            "it's",
            "\\n",
            "line\n",
            "two\nlines",
            "two\nlines\n",
            "two\n\nlines\n",
            " x\ny",
            "x \ny",
            "x\n\n",
            "\t",
            "\u{1}",
            "ü",
            "…",
            "x…",
            "a, b",
            "$INDEX",
            "${X}",
            "$$",
            "2026-01-02T03:04:05Z",
            "?",
            "? x",
            "---",
            "=",
            "<<",
            "0x1f",
            "{\"a\": 1}",
        ] {
            // These two mean something else as keys.
            let key = if text.is_empty() || text == "<<" { "x" } else { text };
            let value = json!({ "k": text, "l": [text, { "m": text }], "n": [[text]], key: 1 });
            let written = written(&value);
            let sink = Sink::new("t");
            let node = read_yaml(&written, &sink, &|_| None);
            let read = node.and_then(|node| json_value(&node, "", &sink));
            // `$$` and `${` mean something else in a value that is read.
            if !text.contains("$$") && !text.contains("${") {
                assert_eq!(read, Some(value), "{written}");
            }
        }
    }
}
