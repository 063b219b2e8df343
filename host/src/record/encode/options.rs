//! Encoding options from the names that configurations and components use.

use super::{Compression, Format, Options};
use crate::record::DateFormat;

/// gzip's level where none is asked for. With zlib-rs it takes 0.35 to 0.54 of level 3's CPU for 6 % more bytes (`benches/encode.rs`).
pub const DEFAULT_GZIP_LEVEL: i32 = 2;
/// zstd's level where none is asked for; zstd's own default.
pub const DEFAULT_ZSTD_LEVEL: i32 = 3;

impl Options {
    /// Understands the fields of WIT's `records.encoding`. A level without compression means nothing.
    ///
    /// # Errors
    /// For an unknown name, naming those that are known; for a level out of its range; for an empty key.
    pub fn parse(
        format: &str,
        date_key: Option<String>,
        date_format: &str,
        log_key: Option<String>,
        compression: &str,
        level: Option<i32>,
    ) -> Result<Self, String> {
        for (name, key) in [("date_key", &date_key), ("log_key", &log_key)] {
            if key.as_ref().is_some_and(String::is_empty) {
                return Err(format!("`{name}` is empty; name a key, or leave it out"));
            }
        }
        Ok(Self {
            format: Format::parse(format)?,
            date_key,
            date_format: DateFormat::parse(date_format)?,
            log_key,
            compression: Compression::parse(compression, level)?,
        })
    }
}

impl Format {
    /// The format of this name.
    ///
    /// # Errors
    /// For an unknown name, naming those that are known.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "json_lines" => Ok(Self::JsonLines),
            "json_array" => Ok(Self::JsonArray),
            "text" => Ok(Self::Text),
            _ => Err(format!("`{name}` is no format; use json_lines, json_array, text")),
        }
    }
}

impl Compression {
    /// The compression of this name, at a level or its default.
    ///
    /// # Errors
    /// For an unknown name, naming those that are known; for a level out of its range.
    pub fn parse(name: &str, level: Option<i32>) -> Result<Self, String> {
        let within = |lowest: i32, highest: i32, default: i32| match level.unwrap_or(default) {
            level if (lowest..=highest).contains(&level) => Ok(level),
            level => Err(format!("level {level} is out of range for {name}; use {lowest} to {highest}")),
        };
        match name {
            "none" => Ok(Self::None),
            "gzip" => within(0, 9, DEFAULT_GZIP_LEVEL).map(|level| Self::Gzip(level.unsigned_abs())),
            "zstd" => within(1, 19, DEFAULT_ZSTD_LEVEL).map(Self::Zstd),
            _ => Err(format!("`{name}` is no compression; use none, gzip, zstd")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_understood() {
        let options = Options::parse("json_lines", Some("date".into()), "epoch_ms", None, "gzip", None).unwrap();
        let expected = Options {
            format: Format::JsonLines,
            date_key: Some("date".into()),
            date_format: DateFormat::EpochMs,
            log_key: None,
            compression: Compression::Gzip(2),
        };
        assert_eq!(options, expected);
        let options = Options::parse("text", None, "iso8601", Some("log".into()), "zstd", Some(19)).unwrap();
        assert_eq!((options.format, options.compression), (Format::Text, Compression::Zstd(19)));
        assert_eq!(options.log_key.as_deref(), Some("log"));
        assert_eq!(Format::parse("json_array"), Ok(Format::JsonArray));
        assert_eq!(Compression::parse("none", Some(3)), Ok(Compression::None));
        assert_eq!(Compression::parse("zstd", None), Ok(Compression::Zstd(3)));
        assert_eq!(Compression::parse("gzip", Some(0)), Ok(Compression::Gzip(0)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_remedy() {
        let fault = |format, date_format, key: &str, compression, level| {
            Options::parse(format, None, date_format, Some(key.into()), compression, level).unwrap_err()
        };
        assert_eq!(fault("json", "epoch", "k", "none", None), "`json` is no format; use json_lines, json_array, text");
        assert!(fault("text", "rfc3339", "k", "none", None).starts_with("`rfc3339` is no date format; use iso8601,"));
        assert_eq!(fault("text", "epoch", "", "none", None), "`log_key` is empty; name a key, or leave it out");
        assert_eq!(fault("text", "epoch", "k", "snappy", None), "`snappy` is no compression; use none, gzip, zstd");
        let level = "level 10 is out of range for gzip; use 0 to 9";
        assert_eq!(fault("text", "epoch", "k", "gzip", Some(10)), level);
        let level = "level 0 is out of range for zstd; use 1 to 19";
        assert_eq!(fault("text", "epoch", "k", "zstd", Some(0)), level);
        assert!(fault("text", "epoch", "k", "gzip", Some(-1)).starts_with("level -1 is out of range"));
    }
}
