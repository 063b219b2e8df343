//! What goes back to the guest of an answer.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use super::wire::Incoming;
use crate::capability::bindings::http::Response;

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

/// `Sun, 06 Nov 1994 08:49:37 GMT`, which is all that is sent today; the two obsolete forms (RFC 9110, section 5.6.7) are not read.
fn http_date(value: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first date is RFC 9110's own example.
    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // 1994-11-06T08:49:37Z is 784111777.
        let now = Timestamp::from_second(784_111_777 - 90).unwrap();
        for (value, expected) in [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(90_000)),
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
