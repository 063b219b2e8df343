//! Record times: nanoseconds since 1970 UTC, and how they are written.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, nanoseconds since 1970 UTC.
#[must_use]
pub fn now_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

/// How a record's time is written in an encoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateFormat {
    /// `2026-11-30T16:32:17.123456Z`
    Iso8601,
    /// `2026-11-30T16:32:17.123456789Z`
    Iso8601Nanos,
    /// Seconds as a JSON number with a fraction.
    Double,
    /// Whole seconds as a JSON number.
    Epoch,
    /// Whole milliseconds as a JSON number.
    EpochMs,
    /// `2026-11-30 16:32:17.123456`
    JavaSqlTimestamp,
}

impl DateFormat {
    /// Every format with its name in configurations.
    pub(crate) const NAMES: [(&str, Self); 6] = [
        ("iso8601", Self::Iso8601),
        ("iso8601_nanos", Self::Iso8601Nanos),
        ("double", Self::Double),
        ("epoch", Self::Epoch),
        ("epoch_ms", Self::EpochMs),
        ("java_sql_timestamp", Self::JavaSqlTimestamp),
    ];

    /// The format of this name.
    ///
    /// # Errors
    /// For an unknown name, naming those that are known.
    pub fn parse(name: &str) -> Result<Self, String> {
        let known = Self::NAMES.map(|(name, _)| name);
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| format).ok_or_else(|| format!("`{name}` is no date format; use {}", known.join(", ")))
    }

    /// Appends a time as a JSON value: quoted where the format is no number. Nothing is rounded: digits that a format has
    /// no place for are cut, towards the past.
    pub fn write_json(self, time_ns: i64, out: &mut Vec<u8>) {
        match self {
            Self::Iso8601 => write_civil(time_ns, b'T', 6, b"Z", out),
            Self::Iso8601Nanos => write_civil(time_ns, b'T', 9, b"Z", out),
            Self::JavaSqlTimestamp => write_civil(time_ns, b' ', 6, b"", out),
            Self::Double => write_double(time_ns, out),
            Self::Epoch => write_number(time_ns.div_euclid(1_000_000_000), out),
            Self::EpochMs => write_number(time_ns.div_euclid(1_000_000), out),
        }
    }
}

/// `"2026-11-30T16:32:17.123456Z"` and its relatives. The years that 64 bits of nanoseconds reach, 1677 to 2262, have
/// four digits.
fn write_civil(time_ns: i64, between: u8, fraction_digits: usize, zone: &[u8], out: &mut Vec<u8>) {
    let seconds = time_ns.div_euclid(1_000_000_000);
    let nanos = time_ns.rem_euclid(1_000_000_000) as u32;
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400) as i32);
    let second = seconds.rem_euclid(86_400) as u32;
    let (minute, micros) = (second / 60, nanos / 1000);
    let [y0, y1] = two_digits(year / 100);
    let [y2, y3] = two_digits(year % 100);
    let [o0, o1] = two_digits(month);
    let [d0, d1] = two_digits(day);
    let [h0, h1] = two_digits(minute / 60);
    let [m0, m1] = two_digits(minute % 60);
    let [s0, s1] = two_digits(second % 60);
    let [f0, f1] = two_digits(micros / 10_000);
    let [f2, f3] = two_digits(micros / 100 % 100);
    let [f4, f5] = two_digits(micros % 100);
    let [f6, f7] = two_digits(nanos % 1000 / 10);
    let f8 = b'0' + (nanos % 10) as u8;
    let text = [
        b'"', y0, y1, y2, y3, b'-', o0, o1, b'-', d0, d1, between, h0, h1, b':', m0, m1, b':', s0, s1, b'.', f0, f1,
        f2, f3, f4, f5, f6, f7, f8,
    ];
    out.extend_from_slice(text.get(..21 + fraction_digits).unwrap_or_default());
    out.extend_from_slice(zone);
    out.push(b'"');
}

fn two_digits(number: u32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

/// Year, month and day of a number of days since 1970-01-01, by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>): years begin in March, so that a leap day ends one. 64 bits of nanoseconds reach
/// less than 107,000 days either way, so that no number here is below 0.
fn civil_from_days(days: i32) -> (u32, u32, u32) {
    let days = (days + 719_468) as u32;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u32::from(month <= 2);
    (year, month, day)
}

/// Seconds, exact, with at least one digit behind the point: `-1.5`, `1796055137.0`.
fn write_double(time_ns: i64, out: &mut Vec<u8>) {
    let (whole, nanos) = (time_ns.unsigned_abs() / 1_000_000_000, time_ns.unsigned_abs() % 1_000_000_000);
    let sign = if time_ns < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{nanos:09}");
    let kept = text.trim_end_matches('0');
    out.extend_from_slice(kept.as_bytes());
    if kept.ends_with('.') {
        out.push(b'0');
    }
}

fn write_number(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn written(format: &str, time_ns: i64) -> String {
        let mut out = Vec::new();
        DateFormat::parse(format).unwrap().write_json(time_ns, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_writes_the_time_of_its_documentation() {
        let time = 1_796_056_337_123_456_789;
        assert_eq!(written("iso8601", time), r#""2026-11-30T16:32:17.123456Z""#);
        assert_eq!(written("iso8601_nanos", time), r#""2026-11-30T16:32:17.123456789Z""#);
        assert_eq!(written("java_sql_timestamp", time), r#""2026-11-30 16:32:17.123456""#);
        assert_eq!(written("double", time), "1796056337.123456789");
        assert_eq!(written("epoch", time), "1796056337");
        assert_eq!(written("epoch_ms", time), "1796056337123");
    }

    #[test]
    fn times_before_1970_are_cut_towards_the_past() {
        assert_eq!(written("iso8601", -1), r#""1969-12-31T23:59:59.999999Z""#);
        assert_eq!(written("epoch", -1), "-1");
        assert_eq!(written("epoch_ms", -1_500_000), "-2");
        assert_eq!(written("double", -500_000_000), "-0.5");
        assert_eq!(written("double", -3_000_000_000), "-3.0");
        assert_eq!(written("double", 0), "0.0");
    }

    #[test]
    fn an_unknown_format_names_the_known_ones() {
        assert_eq!(
            DateFormat::parse("rfc3339").unwrap_err(),
            "`rfc3339` is no date format; use iso8601, iso8601_nanos, double, epoch, epoch_ms, java_sql_timestamp"
        );
    }

    fn agrees_with_jiff(time_ns: i64) {
        let jiff = Timestamp::from_nanosecond(time_ns.into()).unwrap();
        assert_eq!(written("iso8601", time_ns), jiff.strftime("\"%Y-%m-%dT%H:%M:%S%.6fZ\"").to_string());
        assert_eq!(written("iso8601_nanos", time_ns), jiff.strftime("\"%Y-%m-%dT%H:%M:%S%.9fZ\"").to_string());
        assert_eq!(written("java_sql_timestamp", time_ns), jiff.strftime("\"%Y-%m-%d %H:%M:%S%.6f\"").to_string());
    }

    #[test]
    fn every_week_that_can_be_written_agrees_with_jiff() {
        // Not a divisor of a day, so that the time of day moves as well.
        for time_ns in (i64::MIN..i64::MAX).step_by(7 * 86_400_000_000_007) {
            agrees_with_jiff(time_ns);
        }
        [i64::MIN, i64::MAX, 0, -1].into_iter().for_each(agrees_with_jiff);
    }

    proptest! {
        #[test]
        fn any_time_agrees_with_jiff(time_ns in any::<i64>()) {
            agrees_with_jiff(time_ns);
        }

        #[test]
        fn a_double_is_the_exact_time(time_ns in any::<i64>()) {
            let text = written("double", time_ns);
            let (whole, fraction) = text.split_once('.').unwrap();
            let digits: i128 = format!("{whole}{fraction:0<9}").parse().unwrap();
            prop_assert_eq!(digits, i128::from(time_ns));
        }
    }
}
