//! What goes back to the guest of an answer, and what is counted of it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::wire::Incoming;
use crate::capability::bindings::http::{Error, Response};
use crate::telemetry::HttpExchange;

/// The answer as WIT has it.
pub(super) fn response(incoming: Incoming, now: Timestamp) -> Response {
    let after = incoming.headers.iter().find(|(name, _)| name == "retry-after");
    let retry_after_ms = after.and_then(|(_, value)| retry_after_ms(value, now));
    Response {
        status: incoming.status,
        headers: incoming.headers,
        body: incoming.body,
        truncated: incoming.truncated,
        retry_after_ms,
    }
}

/// `Retry-After`: seconds or a date (RFC 9110, section 10.2.3). A date that is over is no time at all.
fn retry_after_ms(value: &str, now: Timestamp) -> Option<u64> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(value.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000));
    }
    let then = http_date(value)?;
    Some(u64::try_from(then.as_millisecond().saturating_sub(now.as_millisecond())).unwrap_or(0))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, or one of the two obsolete forms, which a recipient has to read too (RFC 9110, section 5.6.7).
fn http_date(value: &str) -> Option<Timestamp> {
    const FORMS: [&str; 3] = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let date = FORMS.iter().find_map(|form| DateTime::strptime(form, value).ok())?;
    TimeZone::UTC.to_timestamp(date).ok()
}

/// What is counted of a request that was tried.
pub(super) fn exchange(answer: &Result<Incoming, Error>, sent: usize, took: Duration) -> HttpExchange {
    let (result, received) = match answer {
        Ok(incoming) => (class(incoming.status), incoming.body.len()),
        Err(Error::Connection(_)) => ("no_answer", 0),
        Err(Error::Credentials(_)) => ("no_credential", 0),
        Err(Error::Host(_)) => return refused(),
    };
    HttpExchange { result, sent_bytes: sent as u64, received_bytes: received as u64, took: Some(took) }
}

/// What is counted of a request that was not.
pub(super) fn refused() -> HttpExchange {
    HttpExchange { result: "refused", sent_bytes: 0, received_bytes: 0, took: None }
}

/// A status that no class has is none that a server may send (RFC 9110, section 15).
fn class(status: u16) -> &'static str {
    match status {
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500..=599 => "5xx",
        _ => "no_answer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dates are RFC 9110's own examples.
    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // 1994-11-06T08:49:37Z is 784111777.
        let now = Timestamp::from_second(784_111_777 - 90).unwrap();
        for (value, expected) in [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(90_000)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(90_000)),
            ("Sun Nov  6 08:49:37 1994", Some(90_000)),
            ("Sun, 06 Nov 1994 08:47:37 GMT", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("1994-11-06T08:49:37Z", None),
        ] {
            assert_eq!(retry_after_ms(value, now), expected, "{value}");
        }
    }
}
