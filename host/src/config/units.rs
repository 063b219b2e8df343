//! Sizes and durations as people write them: `50MB`, `1.5GiB`, `10m`, `1h30m`.

use std::time::Duration;

/// No time in Wharf is longer: a sum of it and the present must stay a time.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// In nanoseconds.
const TIMES: [(&str, u64); 5] = [
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads a size in bytes: a number with one of `B KB MB GB TB` (powers of 1000) or `KiB MiB GiB TiB` (powers of 1024),
/// or a plain number of bytes.
///
/// # Errors
/// What is wrong, as the end of a sentence, with what to write instead.
pub fn parse_size(text: &str) -> Result<u64, String> {
    if text.trim().is_empty() {
        return Err("it is empty".into());
    }
    no_sign(text)?;
    let (number, unit) = split(text.trim());
    let factor = if unit.is_empty() {
        1
    } else {
        match SIZES.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => *factor,
            None => return Err(unknown_size_unit(number, unit)),
        }
    };
    let bytes = times(number, factor).ok_or_else(|| no_number(number, "it is larger than any disk"))?;
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => Err("it is larger than any disk".into()),
    }
}

fn unknown_size_unit(number: &str, unit: &str) -> String {
    let letter: String = unit.chars().take(1).flat_map(char::to_uppercase).collect();
    if !number.is_empty() && ["K", "M", "G", "T"].contains(&letter.as_str()) {
        format!(
            "the unit {unit:?} is not known: write {number}{letter}B (powers of 1000) or {number}{letter}iB (powers of 1024)"
        )
    } else {
        format!("the unit {unit:?} is not known: write B, KB, MB, GB, TB, KiB, MiB, GiB or TiB")
    }
}

/// Reads a duration: numbers with one of `ms s m h d`, as in `500ms`, `10m`, `1h30m`. At most ten years.
///
/// # Errors
/// What is wrong, as the end of a sentence, with what to write instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("it is empty".into());
    }
    no_sign(rest)?;
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (number, after) = split(rest);
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        if unit.is_empty() && after.is_empty() && !number.is_empty() {
            return Err(format!("it has no unit: write {number}ms, {number}s, {number}m, {number}h or {number}d"));
        }
        let Some((_, factor)) = TIMES.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("the unit {unit:?} is not known: write ms, s, m, h or d"));
        };
        let nanoseconds = times(number, *factor).ok_or_else(|| no_number(number, "it is longer than ten years"))?;
        total = total.saturating_add(nanoseconds);
        rest = after.trim_start();
    }
    match u64::try_from(total).map(Duration::from_nanos) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err("it is longer than ten years".into()),
    }
}

fn no_sign(text: &str) -> Result<(), String> {
    match text.trim_start().chars().next() {
        Some('-') => Err("it is negative".into()),
        Some('+') => Err("it has a sign: write it without".into()),
        _ => Ok(()),
    }
}

/// Why [`times`] gave nothing.
fn no_number(number: &str, too_large: &str) -> String {
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    match number {
        "" => "it does not begin with a number".into(),
        _ if digits => too_large.into(),
        _ => format!("{number:?} is not a number"),
    }
}

/// The number at the beginning, and what follows it without blanks between.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// `number × factor`, exact, rounded down.
fn times(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| !s.is_empty() && s.len() <= 19 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || (number.contains('.') && !digits(fraction)) {
        return None;
    }
    let factor = u128::from(factor);
    let mut value = whole.parse::<u128>().ok()?.checked_mul(factor)?;
    if !fraction.is_empty() {
        let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        value = value.checked_add(fraction.parse::<u128>().ok()?.checked_mul(factor)? / scale)?;
    }
    Some(value)
}

/// A size for a person: `50 MB`, `32 MiB`, `1234 B`; the largest unit that is exact.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let exact = SIZES.iter().filter(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match exact.max_by_key(|(_, factor)| *factor) {
        Some((unit, factor)) => format!("{} {unit}", bytes / factor),
        None => format!("{bytes} B"),
    }
}

/// A duration for a person: `10m`, `1500ms`; the largest unit that is exact.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let exact =
        TIMES.iter().rev().find(|(_, f)| nanoseconds >= u128::from(*f) && nanoseconds.is_multiple_of(u128::from(*f)));
    match exact {
        Some((unit, factor)) => format!("{}{unit}", nanoseconds / u128::from(*factor)),
        None => format!("{}ms", duration.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_powers_of_1000_and_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("1234", 1234),
            ("7B", 7),
            ("1KB", 1000),
            ("50MB", 50_000_000),
            ("50 MB", 50_000_000),
            ("2GB", 2_000_000_000),
            ("3TB", 3_000_000_000_000),
            ("1KiB", 1024),
            ("64MiB", 67_108_864),
            ("1GiB", 1_073_741_824),
            ("1.5GiB", 1_610_612_736),
            ("0.5KB", 500),
            (" 8MiB ", 8_388_608),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_size_with_half_a_unit_is_refused_with_both_meanings() {
        assert_eq!(
            parse_size("50M").unwrap_err(),
            "the unit \"M\" is not known: write 50MB (powers of 1000) or 50MiB (powers of 1024)"
        );
        assert_eq!(
            parse_size("5kb").unwrap_err(),
            "the unit \"kb\" is not known: write 5KB (powers of 1000) or 5KiB (powers of 1024)"
        );
        assert_eq!(
            parse_size("5 parsecs").unwrap_err(),
            "the unit \"parsecs\" is not known: write B, KB, MB, GB, TB, KiB, MiB, GiB or TiB"
        );
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MB", "-5MB", "1.MB", ".5MB", "1.2.3MB", "1e3", "99999999999999999999"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("9999999TB").unwrap_err(), "it is larger than any disk");
    }

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("10m", 600_000),
            ("24h", 86_400_000),
            ("1d", 86_400_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("1.5s", 1500),
            ("2 m", 120_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn a_duration_without_a_unit_or_with_an_unknown_one_is_refused() {
        assert_eq!(parse_duration("10").unwrap_err(), "it has no unit: write 10ms, 10s, 10m, 10h or 10d");
        assert_eq!(parse_duration("10min").unwrap_err(), "the unit \"min\" is not known: write ms, s, m, h or d");
        assert_eq!(parse_duration("20y").unwrap_err(), "the unit \"y\" is not known: write ms, s, m, h or d");
        assert_eq!(parse_duration("4000d").unwrap_err(), "it is longer than ten years");
        for text in ["", "s", "-1s", "1s-", "1..5s", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same() {
        for bytes in [0, 1, 999, 1000, 1024, 50_000_000, 67_108_864, 1_234_567] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        assert_eq!(format_size(67_108_864), "64 MiB");
        assert_eq!(format_size(100_000_000), "100 MB");
        for text in ["500ms", "90s", "10m", "24h"] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
        assert_eq!(format_duration(Duration::from_secs(86_400)), "1d");
    }
}
