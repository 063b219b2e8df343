//! The configuration, understood: every fault at once, and what the rest of the plugin works with.

use jiff::tz::TimeZone;
use wharf_plugin::units::Size;
use wharf_plugin::{Encoding, Faults, PartitionKey, Plan, s3};

use crate::config::{Config, NameOrFalse};
use crate::names;
use crate::object::{self, Target};
use crate::template::{self, Template};

/// Half of what a counter can count to.
const MAX_INDEX_START: u64 = u64::MAX / 2;
const DEFAULT_KEY_FORMAT: &str = "/wharf-logs/$TAG/%Y/%m/%d/%H/%M/%S-$UUID";
const MIB: u64 = 1 << 20;
/// S3 takes no smaller part but the last (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>).
const MIN_PART: u64 = 5 * MIB;
/// The host gives encoded pieces up to this size: a piece lies in memory whole.
const MAX_PIECE: u64 = 64 * MIB;
const DEFAULT_PART: u64 = 8 * MIB;
const DEFAULT_THRESHOLD: u64 = 8 * MIB;
const DEFAULT_MAX_BYTES: u64 = 100_000_000;
const DEFAULT_MAX_AGE_MS: u64 = 600_000;

/// What one `$INDEX` counter covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexScope {
    /// All objects of the output.
    Output,
    /// Objects whose keys are equal but for the number.
    Key,
}

/// What happens when the key is taken by somebody else's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The batch is bound to the next free number.
    NextIndex,
    /// The batch becomes dead letters.
    DeadLetter,
    /// The batch waits for a person.
    Hold,
}

/// The configuration, understood.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where objects go and what they are like.
    pub target: Target,
    /// Their keys.
    pub key: Template,
    /// First number.
    pub index_start: u64,
    /// What a counter covers.
    pub index_scope: IndexScope,
    /// What to do about somebody else's object.
    pub on_conflict: OnConflict,
    /// How records are written.
    pub encoding: Encoding,
    /// The key whose value alone is written.
    pub log_key: Option<String>,
    /// Largest object that goes in one request; a multiple of `part_size`.
    pub threshold: u64,
    /// Size of a part.
    pub part_size: u64,
}

impl Settings {
    /// Makes sense of a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(config: Config) -> Result<(Self, Plan), Faults> {
        let mut faults = Faults::default();
        let it = &mut faults;
        let key = key(&config, it);
        let (encoding, format) = encoding(&config, it);
        let (threshold, part_size) = sizes(&config, it);
        let max_bytes = size(it, "total_file_size", config.total_file_size.as_ref(), DEFAULT_MAX_BYTES);
        let max_age_ms = max_age(&config, it);
        let numbered = key.as_ref().is_none_or(Template::uses_index);
        let index_scope = match it.one_of("index_scope", config.index_scope.as_deref(), &["output", "key"]) {
            "key" => IndexScope::Key,
            _ => IndexScope::Output,
        };
        let default_on_conflict = if numbered { "next_index" } else { "hold" };
        let on_conflict = config.on_conflict.as_deref().unwrap_or(default_on_conflict);
        let on_conflict = match it.one_of("on_conflict", Some(on_conflict), &["next_index", "dead_letter", "hold"]) {
            "next_index" => OnConflict::NextIndex,
            "dead_letter" => OnConflict::DeadLetter,
            _ => OnConflict::Hold,
        };
        if !numbered {
            for (given, option) in [
                (on_conflict == OnConflict::NextIndex && config.on_conflict.is_some(), "on_conflict"),
                (config.index_scope.is_some(), "index_scope"),
                (config.index_start.is_some(), "index_start"),
            ] {
                if given {
                    it.add(
                        option,
                        "it has no effect, since `key_format` has no `$INDEX`: leave it out or add `$INDEX`",
                    );
                }
            }
        }
        if index_scope == IndexScope::Key && key.as_ref().is_some_and(Template::uses_uuid) {
            it.add(
                "index_scope",
                "with `$UUID` in `key_format` every key is distinct, so each counter would count one object",
            );
        }
        let index_start = config.index_start.unwrap_or(0);
        if index_start > MAX_INDEX_START {
            it.add("index_start", format!("{index_start} leaves no room to count on: {MAX_INDEX_START} at most"));
        }
        let target = object::target(&config, format, it);

        let Some(key) = key.filter(|_| faults.is_empty()) else { return Err(faults) };
        let plan = Plan {
            partition_by: if key.uses_tag() { vec![PartitionKey::Tag] } else { vec![] },
            in_order: false,
            record_overhead: overhead(&config, format),
            max_bytes: Some(max_bytes),
            max_records: None,
            max_age_ms: Some(max_age_ms),
            s3: vec![s3::Scope::new(&target.bucket, key.literal_prefix())],
            ..Plan::default()
        };
        let settings = Self {
            target,
            key,
            index_start,
            index_scope,
            on_conflict,
            encoding,
            log_key: config.log_key,
            threshold,
            part_size,
        };
        Ok((settings, plan))
    }
}

fn key(config: &Config, faults: &mut Faults) -> Option<Template> {
    let delimiters = config.tag_delimiters.as_deref().unwrap_or(".");
    if delimiters.is_empty() {
        faults.add("tag_delimiters", "no characters: the tag would have one part; leave the option out for `.`");
    }
    let timezone = config.timezone.as_deref().and_then(|name| match TimeZone::get(name) {
        Ok(zone) => Some(zone),
        Err(_) => {
            faults.add(
                "timezone",
                format!("`{name}` is no IANA time zone: write `UTC` or a name such as `Europe/Berlin`"),
            );
            None
        }
    });
    let format = config.key_format.as_deref().unwrap_or(DEFAULT_KEY_FORMAT);
    match template::parse(format, delimiters, timezone) {
        Ok(mut key) => {
            if !key.uses_index() && !key.uses_uuid() && config.static_file_path != Some(true) {
                key.add_uuid();
            }
            Some(key)
        }
        Err(messages) => {
            messages.into_iter().for_each(|message| faults.add("key_format", message));
            None
        }
    }
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// The text and a line feed.
    Text,
}

fn encoding(config: &Config, faults: &mut Faults) -> (Encoding, Format) {
    let given = config.format.as_deref();
    let format = match given.and_then(names::refused_format) {
        Some(why) => {
            faults.add("format", format!("`{}`: {why}", given.unwrap_or_default()));
            Format::JsonLines
        }
        None => {
            let default = if config.log_key.is_some() { "text" } else { "json_lines" };
            match faults.one_of("format", Some(given.unwrap_or(default)), &["json_lines", "text"]) {
                "text" => Format::Text,
                _ => Format::JsonLines,
            }
        }
    };
    if config.log_key.as_deref() == Some("") {
        faults.add("log_key", "it is empty: write the name of a key, or leave it out");
    }
    if config.log_key.is_some() && given == Some("json_lines") {
        faults.add("log_key", "it writes the bare value of one key, which is no line of JSON: write `format: text`, or leave `format` out");
    }
    let date_key = match &config.date_key {
        None => Some("date".to_owned()),
        Some(NameOrFalse::Flag(false)) => None,
        Some(NameOrFalse::Name(name)) if !name.is_empty() => Some(name.clone()),
        Some(_) => {
            faults.add("date_key", "write the name of a key, or `false` to leave the time out");
            None
        }
    };
    const DATE_FORMATS: [&str; 6] = ["iso8601", "iso8601_nanos", "double", "epoch", "epoch_ms", "java_sql_timestamp"];
    let date_format = faults.one_of("date_format", config.date_format.as_deref(), &DATE_FORMATS);
    if matches!(config.date_key, Some(NameOrFalse::Flag(false)))
        && config.date_format.is_some()
        && format != Format::Text
    {
        faults
            .add("date_format", "it has no effect with `date_key: false`, which writes no time: leave one of them out");
    }
    if format == Format::Text {
        for (given, option) in [(config.date_key.is_some(), "date_key"), (config.date_format.is_some(), "date_format")]
        {
            if given {
                faults.add(option, "it has no effect with `format: text`, which writes no time: leave it out");
            }
        }
    }
    let (compression, level) = compression(config, faults);
    let encoding = match format {
        Format::JsonLines => Encoding::json_lines().date_key(date_key).date_format(date_format),
        Format::Text => Encoding::text().date_key(None).log_key(config.log_key.clone()),
    };
    (encoding.compression(compression, level), format)
}

fn compression(config: &Config, faults: &mut Faults) -> (&'static str, Option<i32>) {
    let given = config.compression.as_deref();
    if let Some(why) = given.and_then(names::refused_compression) {
        faults.add("compression", format!("`{}`: {why}", given.unwrap_or_default()));
        return ("none", None);
    }
    let (name, levels) = match faults.one_of("compression", given, &["none", "gzip", "zstd"]) {
        "gzip" => ("gzip", 1..=9),
        "zstd" => ("zstd", 1..=19),
        _ => ("none", 0..=0),
    };
    match config.compression_level {
        Some(_) if name == "none" && given.is_none_or(|given| given == "none") => {
            faults.add("compression_level", "it has no effect without `compression: gzip` or `compression: zstd`");
        }
        Some(level) if name != "none" && !levels.contains(&level) => {
            faults.add(
                "compression_level",
                format!("{level} is outside of {name}'s {} to {}", levels.start(), levels.end()),
            );
        }
        _ => {}
    }
    (name, config.compression_level)
}

fn size(faults: &mut Faults, option: &str, given: Option<&Size>, default: u64) -> u64 {
    let bytes = match given {
        None => default,
        Some(size) => faults.note(option, size.bytes(), default),
    };
    if bytes == 0 {
        faults.add(option, "0 bytes: no batch could be made");
    }
    bytes
}

/// The host adds ages to the present: ten years are what it takes elsewhere too.
const LONGEST_AGE_MS: u64 = 3650 * 24 * 3_600_000;

fn max_age(config: &Config, faults: &mut Faults) -> u64 {
    let Some(given) = &config.upload_timeout else { return DEFAULT_MAX_AGE_MS };
    let age = faults.note("upload_timeout", given.milliseconds(), DEFAULT_MAX_AGE_MS);
    if age == 0 {
        faults.add("upload_timeout", "0: no batch could wait for its second record; write a time such as `10m`");
    } else if age > LONGEST_AGE_MS {
        faults.add("upload_timeout", "it is longer than ten years; write a time such as `10m`");
    }
    age
}

fn sizes(config: &Config, faults: &mut Faults) -> (u64, u64) {
    let mut part = size(faults, "part_size", config.part_size.as_ref(), DEFAULT_PART);
    if part != 0 && !(MIN_PART..=MAX_PIECE).contains(&part) {
        faults.add("part_size", format!("{part} bytes: S3 takes parts from 5MiB (5242880), and Wharf makes them in memory, up to 64MiB (67108864)"));
        part = DEFAULT_PART;
    }
    let threshold = match &config.multipart_threshold {
        None => DEFAULT_THRESHOLD.max(part),
        given => size(faults, "multipart_threshold", given.as_ref(), DEFAULT_THRESHOLD),
    };
    // What is taken to see whether an object is small becomes its first parts when it is not, so it is whole parts.
    let whole = threshold.div_ceil(part.max(1)).saturating_mul(part);
    if threshold > MAX_PIECE {
        faults.add(
            "multipart_threshold",
            format!("{threshold} bytes: what goes in one request lies in memory, so 64MiB (67108864) at most"),
        );
    }
    (if whole > MAX_PIECE { part } else { whole }, part)
}

/// Bytes that encoding adds to a text record.
fn overhead(config: &Config, format: Format) -> u32 {
    if format == Format::Text {
        return 1;
    }
    let time = match config.date_format.as_deref() {
        Some("iso8601_nanos") => r#""2026-01-01T00:00:00.000000000Z""#,
        Some("double") => "1767225600.000000",
        Some("epoch") => "1767225600",
        Some("epoch_ms") => "1767225600000",
        Some("java_sql_timestamp") => r#""2026-01-01 00:00:00.000000""#,
        _ => r#""2026-01-01T00:00:00.000000Z""#,
    };
    let key = match &config.date_key {
        None => "date",
        Some(NameOrFalse::Name(name)) => name,
        Some(NameOrFalse::Flag(_)) => return r#"{"log":""}"#.len() as u32 + 1,
    };
    u32::try_from(format!("{{\"{key}\":{time},\"log\":\"\"}}\n").len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
