//! Reads what a `tail` source may have besides its files: what becomes of long lines, which lines are one record, how they are
//! written, and what their records say of the file.

use std::time::Duration;

use encoding_rs::Encoding;
use regex::bytes::Regex;

use super::fault::{choices, nearest};
use super::model::{CompressedFiles, Frame, JoinRule, LinePatterns, LongLines, Multiline};
use super::node::Value;
use super::reader::{Elsewhere, Section};

const NAMES: [&str; 5] = ["java", "python", "go", "docker", "cri"];

const MULTILINE: Elsewhere = &[
    ("start_pattern", "did you mean \"start\"?"),
    ("condition_pattern", "did you mean \"start\"?"),
    ("pattern", "did you mean \"start\"?"),
    ("timeout_ms", "did you mean \"timeout\"?"),
    ("flush_timeout", "did you mean \"timeout\"?"),
    ("mode", "write start, continue or end"),
    ("match", "write start, continue or end"),
];

/// `long_lines`
pub(crate) fn long_lines(section: &mut Section<'_>) -> LongLines {
    let choices = [("truncate", LongLines::Truncate), ("split", LongLines::Split), ("skip", LongLines::Skip)];
    section.one_of("long_lines", &choices).unwrap_or_default()
}

/// `compressed`
pub(crate) fn compressed(section: &mut Section<'_>) -> CompressedFiles {
    let choices = [("read", CompressedFiles::Read), ("skip", CompressedFiles::Skip)];
    section.one_of("compressed", &choices).unwrap_or_default()
}

/// `encoding`, by any of its names (<https://encoding.spec.whatwg.org/#names-and-labels>).
pub(crate) fn encoding(section: &mut Section<'_>) -> Option<&'static Encoding> {
    let label = section.text("encoding")?;
    let found = Encoding::for_label_no_replacement(label.as_bytes());
    if found.is_none() {
        let shown = if section.is_hidden("encoding") { "that".to_owned() } else { format!("{label:?}") };
        let help = "known are utf-8, utf-16le, utf-16be, latin1, shift_jis, euc-jp, gb18030, big5, euc-kr, koi8-r, windows-1251 and others".to_owned();
        section.fault("encoding", format!("there is no encoding {shown}"), Some(help));
    }
    found
}

/// `path_key`
pub(crate) fn path_key(section: &mut Section<'_>) -> Option<String> {
    let key = section.text("path_key")?;
    if matches!(key.as_str(), "log" | "kubernetes") {
        section.fault("path_key", format!("the key {key:?} holds something else"), None);
    }
    Some(key)
}

/// `multiline`: a name, a list of names, or a map.
pub(crate) fn multiline(section: &mut Section<'_>) -> Option<Multiline> {
    let entry = section.entry("multiline")?;
    let mut config = Multiline { frame: None, rule: None, max_bytes: 1 << 20, timeout: Duration::from_secs(1) };
    if !matches!(entry.value.value, Value::Map(_)) {
        by_name(section, "multiline", &mut config);
        return (config.frame.is_some() || config.rule.is_some()).then_some(config);
    }
    let mut map = section.section("multiline")?;
    by_name(&mut map, "type", &mut config);
    let patterns = LinePatterns {
        start: pattern(&mut map, "start"),
        goes_on: pattern(&mut map, "continue"),
        end: pattern(&mut map, "end"),
    };
    if let Some(max) = map.size("max_size", 1024..=64 << 20) {
        config.max_bytes = usize::try_from(max).unwrap_or(usize::MAX);
    }
    if let Some(timeout) = map.duration("timeout", Duration::from_millis(10)..=Duration::from_secs(3600)) {
        config.timeout = timeout;
    }
    let has_pattern = ["start", "continue", "end"].iter().any(|key| map.is_written(key));
    if has_pattern && config.rule.is_some() {
        map.fault("type", "joins by patterns of its own: start, continue and end cannot be there too", None);
    } else if !has_pattern && !map.is_written("type") {
        let help = "write type: java, or start: '^\\d{4}-' for a record that begins with a date".to_owned();
        section.fault("multiline", "does not say which lines are one record", Some(help));
    } else if patterns.start.is_some() || patterns.goes_on.is_some() || patterns.end.is_some() {
        config.rule = Some(JoinRule::Patterns(patterns));
    }
    map.finish(MULTILINE);
    (config.frame.is_some() || config.rule.is_some()).then_some(config)
}

fn by_name(section: &mut Section<'_>, key: &'static str, config: &mut Multiline) {
    let names = section.texts(key);
    if names.as_ref().is_some_and(Vec::is_empty) {
        let help = format!("name one of {}, or leave it out: then each line is a record", NAMES.join(", "));
        section.fault(key, "names nothing that lines could be joined by", Some(help));
    }
    for name in names.unwrap_or_default() {
        let frame = match name.as_str() {
            "docker" => Some(Frame::Docker),
            "cri" => Some(Frame::Cri),
            _ => None,
        };
        let rule = match name.as_str() {
            "java" => Some(JoinRule::Java),
            "python" => Some(JoinRule::Python),
            "go" => Some(JoinRule::Go),
            _ => None,
        };
        if frame.is_none() && rule.is_none() {
            let hidden = section.is_hidden(key);
            let guess = nearest(&name, &NAMES).filter(|_| !hidden);
            let guess = guess.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            let found = if hidden { "something else".to_owned() } else { format!("{name:?}") };
            section.fault(key, format!("expected {}, found {found}{guess}", choices(&NAMES)), None);
            continue;
        }
        if (frame.is_some() && config.frame.is_some()) || (rule.is_some() && config.rule.is_some()) {
            let help = "at most one of docker and cri, and one of java, python and go".to_owned();
            section.fault(key, "joins the same lines in two ways", Some(help));
        }
        config.frame = frame.or(config.frame);
        config.rule = rule.or(config.rule.take());
    }
}

fn pattern(section: &mut Section<'_>, key: &'static str) -> Option<Regex> {
    let text = section.text(key)?;
    match Regex::new(&text) {
        Ok(regex) => Some(regex),
        Err(e) => {
            // Its message shows the pattern, which may have come from the environment.
            let why = if section.is_hidden(key) { String::new() } else { format!(": {e}") };
            section.fault(key, format!("is not a regular expression{why}"), None);
            None
        }
    }
}
