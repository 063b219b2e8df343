//! `key_format`: parsed once, rendered for each batch.
//!
//! A key is a function of the batch alone, so that every attempt makes the same one. Values are inserted literally: a tag
//! that contains `$INDEX`, `%Y` or `?x=y` is text like any other, and what is inserted never begins a new path step.

mod parse;
mod value;

use jiff::tz::TimeZone;
use jiff::{Timestamp, fmt::strtime};

pub use parse::parse;
pub use value::{hash, short_id};

/// S3's limit for a key, bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 1024;

/// A parsed `key_format`.
#[derive(Debug, Clone)]
pub struct Template {
    parts: Vec<Token>,
    delimiters: String,
    timezone: TimeZone,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// Stays as it is.
    Literal(String),
    /// `$TAG`
    Tag,
    /// `$TAG[n]`
    TagPart(usize),
    /// `$INDEX`
    Index,
    /// `$UUID`
    Uuid,
    /// One strftime conversion, as jiff writes it.
    Time(String),
}

/// What of a batch goes into its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The batch's id.
    pub id: String,
    /// Its tag.
    pub tag: String,
    /// Its earliest record time, nanoseconds since 1970 UTC.
    pub time: i64,
}

/// A key that S3 would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTooLong {
    /// Its length in bytes.
    pub bytes: usize,
}

impl Template {
    /// Whether keys depend on the tag.
    pub fn uses_tag(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Token::Tag | Token::TagPart(_)))
    }
    /// Whether keys are numbered.
    pub fn uses_index(&self) -> bool {
        self.parts.contains(&Token::Index)
    }
    /// Whether keys carry the batch's short id.
    pub fn uses_uuid(&self) -> bool {
        self.parts.contains(&Token::Uuid)
    }

    /// What all keys begin with.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Token::Literal(text)) => text,
            _ => "",
        }
    }

    /// Makes keys distinct by the batch's short id, before the extension: `a/%H.json.gz` becomes `a/%H-$UUID.json.gz`.
    pub fn add_uuid(&mut self) {
        let extension = match self.parts.last_mut() {
            Some(Token::Literal(last)) => last.split_off(extension_start(last)),
            _ => String::new(),
        };
        self.parts.push(Token::Literal("-".into()));
        self.parts.push(Token::Uuid);
        self.parts.push(Token::Literal(extension));
        self.parts.retain(|part| !matches!(part, Token::Literal(text) if text.is_empty()));
    }

    /// A batch's key. `index` is needed where the template [uses it](Self::uses_index).
    ///
    /// # Errors
    /// Where S3 would not take the key.
    pub fn key(&self, facts: &Facts, index: Option<u64>) -> Result<String, KeyTooLong> {
        let index = index.map_or_else(|| "$INDEX".into(), |index| index.to_string());
        let key = value::without_dot_steps(&self.render(facts, &index));
        if key.len() > MAX_KEY_BYTES { Err(KeyTooLong { bytes: key.len() }) } else { Ok(key) }
    }

    /// The key with its number left open: what `index_scope: key` counts by.
    pub fn key_without_index(&self, facts: &Facts) -> String {
        self.render(facts, "$INDEX")
    }

    fn render(&self, facts: &Facts, index: &str) -> String {
        let mut key = String::with_capacity(128);
        let at =
            Timestamp::from_nanosecond(facts.time.into()).unwrap_or_default().to_zoned_datetime(self.timezone.clone());
        for part in &self.parts {
            match part {
                Token::Literal(text) => key.push_str(text),
                Token::Tag => key.push_str(&value::safe(&facts.tag)),
                Token::TagPart(n) => key.push_str(&value::safe(value::part(&facts.tag, &self.delimiters, *n))),
                Token::Index => key.push_str(index),
                Token::Uuid => key.push_str(&short_id(&facts.id)),
                // Each conversion was tried when the template was parsed.
                Token::Time(conversion) => key.push_str(&strtime::format(conversion, &at).unwrap_or_default()),
            }
        }
        key
    }
}

/// Where `.json.gz` begins in the last literal: behind its last `/`, and with a compression's extension the one before it too.
fn extension_start(text: &str) -> usize {
    let step = text.rfind('/').map_or(0, |slash| slash + 1);
    let dot_in = |end: usize| text.get(step..end).and_then(|name| name.rfind('.')).map(|dot| step + dot);
    let Some(last) = dot_in(text.len()) else { return text.len() };
    let compressed = matches!(text.get(last..), Some(".gz" | ".gzip" | ".zst" | ".zstd"));
    if compressed { dot_in(last).unwrap_or(last) } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-07T04:05:06.123456789Z
    const TIME: i64 = 1_772_856_306_123_456_789;

    fn facts(tag: &str) -> Facts {
        Facts { id: "0198f3a2b4c5700081e29c3d4e5f6071".into(), tag: tag.into(), time: TIME }
    }
    fn template(format: &str) -> Template {
        parse(format, ".", None).unwrap()
    }
    fn key(format: &str, tag: &str) -> String {
        template(format).key(&facts(tag), Some(7)).unwrap()
    }

    #[test]
    fn each_part_of_a_format_becomes_its_value() {
        for (format, tag, expected) in [
            ("/logs/demo/segment_$INDEX", "app", "logs/demo/segment_7"),
            ("logs/x", "app", "logs/x"),
            ("//logs/x", "app", "/logs/x"),
            ("/$TAG/$TAG[0]/$TAG[2]", "app.web.eu", "app.web.eu/app/eu"),
            ("/$TAG[0]x$TAG[1]", "a..b", "axb"),
            ("/$TAG[5].log", "a.b.c", "_.log"),
            ("/$INDEX_of_$TAGs", "app", "7_of_apps"),
            ("/%Y/%m/%d/%H/%M/%S", "app", "2026/03/07/04/05/06"),
            ("/%F-%T %j %s", "app", "2026-03-07-04:05:06 066 1772856306"),
            ("/%D %R %e|%k", "app", "03/07/26 04:05  7| 4"),
            ("/%-m %y %a %b", "app", "3 26 Sat Mar"),
            ("/%L %3f %6N %N %f %.3f", "app", "123 123 123456 123456789 123456 .123"),
            ("/100%%/$ $1 5$", "app", "100%/$ $1 5$"),
        ] {
            assert_eq!(key(format, tag), expected, "{format} with {tag}");
        }
    }

    /// Each of these changed the request, or was expanded again, in Fluent Bit.
    #[test]
    fn a_tag_is_only_text() {
        for (tag, expected) in [
            ("a%Yb", "x/a%Yb/y"),
            ("$INDEX$UUID", "x/$INDEX$UUID/y"),
            ("a?acl=x#y+z", "x/a?acl=x#y+z/y"),
            ("a/b", "x/a_b/y"),
            ("..", "x/__/y"),
            (".", "x/_/y"),
            ("../../etc", "x/.._.._etc/y"),
            ("", "x/_/y"),
            ("a\nb\0c\u{7f}", "x/a_b_c_/y"),
            ("größe", "x/größe/y"),
        ] {
            assert_eq!(key("/x/$TAG/y", tag), expected, "{tag:?}");
        }
        assert_eq!(key("/x/.$TAG[1]/y", "a/./b"), "x/._b/y");
        let by_slash = parse("/x/.$TAG[0]/y", "/", None).unwrap();
        assert_eq!(by_slash.key(&facts("./b"), None).unwrap(), "x/__/y", "a step made of a literal and a value");
    }

    #[test]
    fn the_time_zone_is_the_formats() {
        let zone = jiff::tz::TimeZone::get("Europe/Berlin").unwrap();
        let template = parse("/%Y-%m-%dT%H%z", ".", Some(zone)).unwrap();
        assert_eq!(template.key(&facts(""), None).unwrap(), "2026-03-07T05+0100");
        let summer = Facts { time: 1_782_864_000_000_000_000, ..facts("") };
        assert_eq!(template.key(&summer, None).unwrap(), "2026-07-01T02+0200");
    }

    #[test]
    fn the_short_id_is_the_same_for_a_batch_and_goes_before_the_extension() {
        let id = short_id(&facts("").id);
        assert_eq!(id.len(), 8);
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_ne!(id, short_id("0198f3a2b4c5700081e29c3d4e5f6072"));
        for (format, expected) in [
            ("/a/%H.json.gz", format!("a/04-{id}.json.gz")),
            ("/a/x.log", format!("a/x-{id}.log")),
            ("/a.b/%H", format!("a.b/04-{id}")),
            ("/a.b/x", format!("a.b/x-{id}")),
            ("/v1.2/app.gz", format!("v1.2/app-{id}.gz")),
        ] {
            let mut template = template(format);
            template.add_uuid();
            assert_eq!(template.key(&facts(""), None).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn a_counter_of_the_key_ignores_the_number_alone() {
        let template = template("/$TAG/%Y/segment_$INDEX");
        assert_eq!(template.key_without_index(&facts("a")), "a/2026/segment_$INDEX");
        assert_ne!(template.key_without_index(&facts("a")), template.key_without_index(&facts("b")));
    }

    #[test]
    fn a_key_that_s3_would_refuse_is_none() {
        let template = template("/$TAG");
        assert_eq!(template.key(&facts(&"ä".repeat(512)), None).unwrap().len(), 1024);
        assert_eq!(template.key(&facts(&"ä".repeat(513)), None), Err(KeyTooLong { bytes: 1026 }));
    }

    #[test]
    fn what_keys_begin_with_is_the_text_before_the_first_value() {
        assert_eq!(template("/logs/demo/segment_$INDEX").literal_prefix(), "logs/demo/segment_");
        assert_eq!(template("/100%%-$TAG").literal_prefix(), "100%-");
        assert_eq!(template("/$TAG").literal_prefix(), "");
    }
}
