//! WIT's `records.encoding` and `records.selection`, understood: names become types, numbers are checked.

use super::bindings::records::{Encoding, Selection as Wanted};
use super::bindings::types::HostError;
use crate::record::DateFormat;
use crate::record::encode::{Compression, Format, Options, Selection};

const DATE_FORMATS: [(&str, DateFormat); 6] = [
    ("iso8601", DateFormat::Iso8601),
    ("iso8601_nanos", DateFormat::Iso8601Nanos),
    ("double", DateFormat::Double),
    ("epoch", DateFormat::Epoch),
    ("epoch_ms", DateFormat::EpochMs),
    ("java_sql_timestamp", DateFormat::JavaSqlTimestamp),
];

/// Level where none is asked for, of gzip and of zstd: the knee of both curves.
const DEFAULT_LEVEL: i32 = 3;

/// What is to be written, and how.
pub(super) fn options(encoding: Encoding) -> Result<Options, HostError> {
    let format = match encoding.format.as_str() {
        "json_lines" => Format::JsonLines,
        "text" => Format::Text,
        other => return Err(unknown("format", other, "json_lines, text")),
    };
    let date_format =
        DATE_FORMATS.iter().find(|(name, _)| *name == encoding.date_format).map(|(_, format)| *format).ok_or_else(
            || {
                let known: Vec<&str> = DATE_FORMATS.iter().map(|(name, _)| *name).collect();
                unknown("date-format", &encoding.date_format, &known.join(", "))
            },
        )?;
    let level = encoding.level.unwrap_or(DEFAULT_LEVEL);
    let compression = match encoding.compression.as_str() {
        "none" => Compression::None,
        "gzip" => match u32::try_from(level) {
            Ok(level @ 0..=9) => Compression::Gzip(level),
            _ => return Err(HostError::Invalid(format!("level {level} is not one of gzip's, which are 0 to 9"))),
        },
        "zstd" => match level {
            1..=19 => Compression::Zstd(level),
            _ => return Err(HostError::Invalid(format!("level {level} is not one of zstd's, which are 1 to 19"))),
        },
        other => return Err(unknown("compression", other, "none, gzip, zstd")),
    };
    Ok(Options { format, date_key: encoding.date_key, date_format, log_key: encoding.log_key, compression })
}

/// Which records of a batch of `count`.
pub(super) fn selection(wanted: Wanted, count: u32) -> Result<Selection, HostError> {
    match wanted {
        Wanted::All => Ok(Selection::All),
        Wanted::Range((first, n)) => match first.checked_add(n) {
            Some(end) if end <= count => Ok(Selection::Range(first, n)),
            _ => Err(HostError::Invalid(format!(
                "the range of {n} records from {first} goes past the batch, which has {count}"
            ))),
        },
        Wanted::Indexes(indexes) => {
            if !indexes.is_sorted_by(|a, b| a < b) {
                return Err(HostError::Invalid("indexes must ascend, each once".into()));
            }
            if let Some(last) = indexes.last().filter(|last| **last >= count) {
                return Err(HostError::Invalid(format!("there is no record {last}: the batch has {count}")));
            }
            Ok(Selection::Indexes(indexes))
        }
    }
}

fn unknown(what: &str, found: &str, known: &str) -> HostError {
    HostError::Invalid(format!("{what} {:?} is not known here; known are {known}", super::escape::cut(found, 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(format: &str, date_format: &str, compression: &str, level: Option<i32>) -> Encoding {
        Encoding {
            format: format.into(),
            date_key: Some("date".into()),
            date_format: date_format.into(),
            log_key: None,
            compression: compression.into(),
            level,
        }
    }

    fn compression(name: &str, level: Option<i32>) -> Option<Compression> {
        options(encoding("text", "epoch", name, level)).ok().map(|options| options.compression)
    }

    #[test]
    fn every_documented_date_format_is_known() {
        let wit = include_str!("../../../wit/records.wit");
        for (name, _) in DATE_FORMATS {
            assert!(options(encoding("json_lines", name, "none", None)).is_ok());
            assert!(wit.contains(&format!("`{name}`")), "{name} is not in the WIT file");
        }
    }

    #[test]
    fn an_unknown_name_is_invalid_and_the_known_ones_are_told() {
        for (wrong, told) in [
            (encoding("csv", "epoch", "none", None), "json_lines, text"),
            (encoding("text", "rfc822", "none", None), "iso8601, iso8601_nanos, double, epoch, epoch_ms"),
            (encoding("text", "epoch", "lz4", None), "none, gzip, zstd"),
        ] {
            let Err(HostError::Invalid(text)) = options(wrong) else { panic!("accepted") };
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn levels_are_those_of_the_compressor() {
        assert_eq!(compression("gzip", None), Some(Compression::Gzip(3)));
        assert_eq!(compression("gzip", Some(0)), Some(Compression::Gzip(0)));
        assert_eq!(compression("gzip", Some(9)), Some(Compression::Gzip(9)));
        assert_eq!(compression("gzip", Some(10)), None);
        assert_eq!(compression("gzip", Some(-1)), None);
        assert_eq!(compression("zstd", None), Some(Compression::Zstd(3)));
        assert_eq!(compression("zstd", Some(19)), Some(Compression::Zstd(19)));
        assert_eq!(compression("zstd", Some(0)), None);
        assert_eq!(compression("zstd", Some(20)), None);
    }

    #[test]
    fn a_selection_lies_inside_the_batch() {
        assert_eq!(selection(Wanted::Range((0, 5)), 5).unwrap(), Selection::Range(0, 5));
        assert_eq!(selection(Wanted::Range((5, 0)), 5).unwrap(), Selection::Range(5, 0));
        assert_eq!(selection(Wanted::Indexes(vec![0, 4]), 5).unwrap(), Selection::Indexes(vec![0, 4]));
        for wrong in [
            Wanted::Range((0, 6)),
            Wanted::Range((u32::MAX, 2)),
            Wanted::Indexes(vec![5]),
            Wanted::Indexes(vec![1, 1]),
            Wanted::Indexes(vec![2, 1]),
        ] {
            assert!(matches!(selection(wrong.clone(), 5), Err(HostError::Invalid(_))), "{wrong:?}");
        }
    }
}
