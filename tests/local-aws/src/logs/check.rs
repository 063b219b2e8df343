//! Checks of single parameters, all violations of a request together.

use super::failure::{Failure, Outcome};
use super::rules;

/// What is wrong with a request's parameters.
#[derive(Debug, Default)]
pub(crate) struct Check {
    violations: Vec<String>,
}

impl Check {
    /// Takes note of a violation, in the words that AWS has for those of its model.
    pub(crate) fn wrong(&mut self, value: &str, place: &str, constraint: &str) {
        self.violations.push(format!("Value '{}' at '{place}' failed to satisfy constraint: {constraint}", cut(value)));
    }
    pub(crate) fn missing(&mut self, place: &str) {
        self.violations.push(format!("Value null at '{place}' failed to satisfy constraint: Member must not be null"));
    }
    /// The value of a parameter that must be there; nothing further is said about one that is not.
    pub(crate) fn required<'a>(&mut self, value: Option<&'a str>, place: &str) -> &'a str {
        if value.is_none() {
            self.missing(place);
        }
        value.unwrap_or_default()
    }
    /// Length in characters.
    pub(crate) fn length(&mut self, value: &str, place: &str, least: usize, most: usize) {
        let characters = value.chars().count();
        if characters < least {
            self.wrong(value, place, &format!("Member must have length greater than or equal to {least}"));
        }
        if characters > most {
            self.wrong(value, place, &format!("Member must have length less than or equal to {most}"));
        }
    }
    pub(crate) fn count(&mut self, count: usize, place: &str, least: usize, most: usize) {
        let shown = format!("[{count} items]");
        if count < least {
            self.wrong(&shown, place, &format!("Member must have length greater than or equal to {least}"));
        }
        if count > most {
            self.wrong(&shown, place, &format!("Member must have length less than or equal to {most}"));
        }
    }
    pub(crate) fn limit(&mut self, limit: Option<i64>, most: usize) -> usize {
        let limit = limit.unwrap_or(most as i64);
        if limit < 1 {
            self.wrong(&limit.to_string(), "limit", "Member must have value greater than or equal to 1");
        }
        if limit > most as i64 {
            self.wrong(&limit.to_string(), "limit", &format!("Member must have value less than or equal to {most}"));
        }
        usize::try_from(limit).unwrap_or(1).clamp(1, most)
    }
    pub(crate) fn pattern(&mut self, value: &str, place: &str, pattern: &str, fits: impl Fn(char) -> bool) {
        if !value.chars().all(fits) {
            self.wrong(value, place, &format!("Member must satisfy regular expression pattern: {pattern}"));
        }
    }
    /// A log group's name: [`rules::GROUP_NAME_PATTERN`].
    pub(crate) fn group<'a>(&mut self, name: Option<&'a str>) -> &'a str {
        let Some(name) = name else {
            return self.required(None, "logGroupName");
        };
        self.length(name, "logGroupName", 1, rules::MAX_GROUP_NAME_CHARACTERS);
        self.pattern(name, "logGroupName", rules::GROUP_NAME_PATTERN, is_group_character);
        name
    }
    /// A log stream's name: [`rules::STREAM_NAME_PATTERN`].
    pub(crate) fn stream<'a>(&mut self, name: Option<&'a str>) -> &'a str {
        let Some(name) = name else {
            return self.required(None, "logStreamName");
        };
        self.stream_at(name, "logStreamName");
        name
    }
    pub(crate) fn stream_at(&mut self, name: &str, place: &str) {
        self.length(name, place, 1, rules::MAX_STREAM_NAME_CHARACTERS);
        self.pattern(name, place, rules::STREAM_NAME_PATTERN, |c| c != ':' && c != '*');
    }
    pub(crate) fn one_of(&mut self, value: &str, place: &str, values: &[&str]) {
        if !values.contains(&value) {
            self.wrong(value, place, &format!("Member must satisfy enum value set: [{}]", values.join(", ")));
        }
    }
    pub(crate) fn time(&mut self, time: Option<i64>, place: &str) {
        if let Some(time) = time.filter(|time| *time < 0) {
            self.wrong(&time.to_string(), place, "Member must have value greater than or equal to 0");
        }
    }
    /// Refuses where something is wrong; with the first violation alone where `all` is not wanted.
    pub(crate) fn end(self, all: bool) -> Outcome<()> {
        // A call of 10,000 wrong events needs no answer as long as itself.
        let wanted = if all { 10 } else { 1 };
        let shown: Vec<String> = self.violations.into_iter().take(wanted).collect();
        match shown.len() {
            0 => Ok(()),
            1 => Err(Failure::invalid(format!("1 validation error detected: {}", shown.concat()))),
            count => Err(Failure::invalid(format!("{count} validation errors detected: {}", shown.join("; ")))),
        }
    }
}

pub(crate) fn is_group_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '#')
}

/// Enough of a value to recognise it.
fn cut(value: &str) -> String {
    let mut shown: String = value.chars().take(80).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    shown
}
