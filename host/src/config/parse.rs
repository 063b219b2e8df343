//! Reads `parse` of a source.

use super::fault::nearest;
use super::model::{ParseConfig, ParseFormat, TimeFormat};
use super::reader::{Elsewhere, Section};
use super::syslog::time_zone;

const ELSEWHERE: Elsewhere = &[
    ("type", "did you mean \"format\"?"),
    ("parser", "did you mean \"format\"?"),
    ("regex", "did you mean \"pattern\"?"),
    ("expression", "did you mean \"pattern\"?"),
    ("time_keep", "did you mean \"keep_time_key\"?"),
    ("timezone", "did you mean \"time_zone\"?"),
    ("time_offset", "did you mean \"time_zone\"?"),
];

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Json,
    Regex,
    Logfmt,
    Cri,
}

pub(crate) fn parse(source: &mut Section<'_>) -> Option<ParseConfig> {
    let is_written = source.is_written("parse");
    let mut section = source.section("parse").filter(|_| is_written)?;
    section.missing("format", "write format: json, regex, logfmt or cri");
    let formats = [("json", Format::Json), ("regex", Format::Regex), ("logfmt", Format::Logfmt), ("cri", Format::Cri)];
    let format = section.one_of("format", &formats);
    if format == Some(Format::Regex) {
        section.missing(
            "pattern",
            "write a regular expression with named groups, for example '^(?<level>\\w+) (?<log>.*)$'",
        );
    } else if format.is_some() && section.is_written("pattern") {
        section.fault("pattern", "is for format: regex", None);
    }
    let pattern = pattern(&mut section);
    let written = section.text("time_key");
    if let (Some(Format::Regex), Some(pattern), Some(key)) = (format, &pattern, &written) {
        is_a_group(&section, pattern, key);
    }
    let time_key = written.or_else(|| (format == Some(Format::Cri)).then(|| "time".to_owned()));
    for key in ["time_format", "time_zone", "keep_time_key"] {
        if time_key.is_none() && section.is_written(key) {
            section.fault(key, "there is no \"time_key\" that it could be for", None);
        }
    }
    let config = ParseConfig {
        format: match format {
            Some(Format::Regex) => pattern.map(ParseFormat::Regex),
            Some(Format::Json) => Some(ParseFormat::Json),
            Some(Format::Logfmt) => Some(ParseFormat::Logfmt),
            Some(Format::Cri) => Some(ParseFormat::Cri),
            None => None,
        }
        .unwrap_or(ParseFormat::Json),
        time_key,
        time_format: time_format(&mut section),
        time_zone: time_zone(&mut section),
        keep_time_key: section.boolean("keep_time_key").unwrap_or(false),
    };
    section.finish(ELSEWHERE);
    Some(config)
}

fn pattern(section: &mut Section<'_>) -> Option<regex::bytes::Regex> {
    let text = section.text("pattern")?;
    match regex::bytes::Regex::new(&text) {
        Ok(regex) if regex.capture_names().flatten().next().is_none() => {
            let help = "name what you want to keep, for example (?<level>\\w+)";
            section.fault("pattern", "has no named group", Some(help.into()));
            None
        }
        Ok(regex) => Some(regex),
        Err(_) if section.is_hidden("pattern") => {
            section.fault("pattern", "is no regular expression", None);
            None
        }
        Err(e) => {
            let help = "the syntax is that of https://docs.rs/regex (no look-around, no back-references)";
            let why = e.to_string();
            let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            section.fault("pattern", format!("is no regular expression: {last}"), Some(help.into()));
            None
        }
    }
}

/// A time that no group captures would never be found.
fn is_a_group(section: &Section<'_>, pattern: &regex::bytes::Regex, key: &str) {
    let groups: Vec<&str> = pattern.capture_names().flatten().collect();
    if groups.contains(&key) {
        return;
    }
    let (message, help) = if section.is_hidden("time_key") || section.is_hidden("pattern") {
        ("no named group of \"pattern\" has this name".to_owned(), None)
    } else {
        let guess = nearest(key, &groups).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        let help = format!("it has {}", groups.join(", "));
        (format!("no named group of \"pattern\" is called {key:?}{guess}"), Some(help))
    };
    section.fault("time_key", message, help);
}

fn time_format(section: &mut Section<'_>) -> TimeFormat {
    let Some(text) = section.text("time_format") else { return TimeFormat::Auto };
    match text.as_str() {
        "rfc3339" | "iso8601" => TimeFormat::Auto,
        "epoch" => TimeFormat::Epoch(1_000_000_000),
        "epoch_ms" => TimeFormat::Epoch(1_000_000),
        "epoch_us" => TimeFormat::Epoch(1_000),
        "epoch_ns" => TimeFormat::Epoch(1),
        // What jiff knows can be written by it, too.
        pattern if pattern.contains('%') && writes(pattern) => TimeFormat::Pattern(text),
        _ => {
            let help =
                "write rfc3339, epoch, epoch_ms, epoch_us, epoch_ns, or a pattern such as \"%d/%b/%Y:%H:%M:%S %z\"";
            section.fault(
                "time_format",
                format!("{} is no format of times", section.found("time_format")),
                Some(help.into()),
            );
            TimeFormat::Auto
        }
    }
}

fn writes(pattern: &str) -> bool {
    jiff::fmt::strtime::format(pattern, jiff::Timestamp::now()).is_ok()
}
