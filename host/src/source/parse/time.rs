//! Times out of a key.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use crate::config::TimeFormat;

/// Reads a time, nanoseconds since 1970 UTC.
pub(super) fn read(format: &TimeFormat, zone: &TimeZone, text: &str) -> Option<i64> {
    match format {
        TimeFormat::Auto => match text.as_bytes().get(4) {
            // 2026-…
            Some(b'-') => rfc3339(zone, text),
            _ => number(text, 1_000_000_000),
        },
        TimeFormat::Epoch(unit_ns) => number(text, *unit_ns),
        TimeFormat::Pattern(pattern) => {
            let parsed = strtime::parse(pattern, text).ok()?;
            let time = match parsed.to_timestamp() {
                Ok(time) => time,
                Err(_) => zone.to_timestamp(parsed.to_datetime().ok()?).ok()?,
            };
            nanos(time)
        }
    }
}

fn nanos(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// Also without an offset: then it is a time of the zone.
fn rfc3339(zone: &TimeZone, text: &str) -> Option<i64> {
    match text.parse::<Timestamp>() {
        Ok(time) => nanos(time),
        Err(_) => nanos(zone.to_timestamp(text.parse::<DateTime>().ok()?).ok()?),
    }
}

/// A number of units, with a fraction or without, exact to the nanosecond. An exponent is taken as a floating number.
fn number(text: &str, unit_ns: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    let is_decimal =
        !unsigned.is_empty() && [unsigned, fraction].iter().all(|it| it.bytes().all(|b| b.is_ascii_digit()));
    if !is_decimal {
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let time_ns = number * unit_ns as f64;
        return (time_ns.abs() < 9.2e18).then_some(time_ns as i64);
    }
    let mut time_ns = unsigned.parse::<i64>().ok()?.checked_mul(unit_ns)?;
    let mut place = unit_ns;
    for digit in fraction.bytes() {
        place /= 10;
        time_ns = time_ns.checked_add(i64::from(digit - b'0') * place)?;
    }
    Some(if whole.starts_with('-') { -time_ns } else { time_ns })
}
