//! WIT's `records.encoding` and `records.selection`, understood: names become types, numbers are checked.

use super::bindings::records::{Encoding, Selection as Wanted};
use super::bindings::types::HostError;
use super::escape::cut;
use crate::record::encode::{Options, Selection};

/// What is to be written, and how.
pub(super) fn options(encoding: Encoding) -> Result<Options, HostError> {
    let Encoding { format, date_key, date_format, log_key, compression, level } = encoding;
    // A name that is none comes back in the message: not more of it than a person wants to read.
    let [format, date_format, compression] = [&format, &date_format, &compression].map(|name| cut(name, 64));
    Options::parse(format, date_key, date_format, log_key, compression, level).map_err(HostError::Invalid)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DateFormat;
    use crate::record::encode::{Compression, DEFAULT_GZIP_LEVEL, DEFAULT_ZSTD_LEVEL};

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
        for (name, _) in DateFormat::NAMES {
            assert!(options(encoding("json_lines", name, "none", None)).is_ok());
            assert!(wit.contains(&format!("`{name}`")), "{name} is not in the WIT file");
        }
    }

    #[test]
    fn an_unknown_name_is_invalid_and_the_known_ones_are_told() {
        for (wrong, told) in [
            (encoding("csv", "epoch", "none", None), "json_lines, json_array, text"),
            (encoding("text", "rfc822", "none", None), "iso8601, iso8601_nanos, double, epoch, epoch_ms"),
            (encoding("text", "epoch", "lz4", None), "none, gzip, zstd"),
        ] {
            let Err(HostError::Invalid(text)) = options(wrong) else { panic!("accepted") };
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn levels_are_those_of_the_compressor() {
        assert_eq!(compression("gzip", None), Some(Compression::Gzip(2)));
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
    fn the_wit_file_names_the_default_levels() {
        let wit = include_str!("../../../wit/records.wit");
        let levels = format!("(gzip {DEFAULT_GZIP_LEVEL}, zstd {DEFAULT_ZSTD_LEVEL})");
        assert!(wit.contains(&levels), "{levels} is not in the WIT file");
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
