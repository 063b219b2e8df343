//! A message of syslog: RFC 5424, section 6, and RFC 3164, section 4, as far as senders keep to it.
//!
//! What begins with no `<PRI>` is no message, and stays text.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::record::DateFormat;
use crate::record::encode::escape_lossy;

/// RFC 5424, 6.2.1, table 1, by the names that syslog.h and senders have for them.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp",
    "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// Table 2.
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// How messages are read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// Where times are that do not say it.
    pub(crate) zone: TimeZone,
}

/// What is in a message, besides its severity and facility.
#[derive(Debug, Default)]
struct Parts<'a> {
    version: Option<u16>,
    time: Option<Timestamp>,
    hostname: Option<&'a [u8]>,
    appname: Option<&'a [u8]>,
    procid: Option<&'a [u8]>,
    msgid: Option<&'a [u8]>,
    /// Written already.
    structured: Vec<u8>,
    message: &'a [u8],
}

impl Reading {
    /// Writes a message as a JSON object into `out`, and gives its time where it has one; or none, where it is no message.
    pub(crate) fn read(&self, message: &[u8], now: Timestamp, out: &mut Vec<u8>) -> Option<Option<i64>> {
        let (priority, rest) = priority(message)?;
        let parts = of_5424(rest).unwrap_or_else(|| self.of_3164(rest, now));
        out.clear();
        out.extend_from_slice(b"{\"facility\":\"");
        out.extend_from_slice(FACILITIES.get(usize::from(priority / 8))?.as_bytes());
        out.extend_from_slice(b"\",\"severity\":\"");
        out.extend_from_slice(SEVERITIES.get(usize::from(priority % 8))?.as_bytes());
        out.push(b'"');
        if let Some(version) = parts.version {
            out.extend_from_slice(format!(",\"version\":{version}").as_bytes());
        }
        let time_ns = parts.time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
        if let Some(time_ns) = time_ns {
            out.extend_from_slice(b",\"timestamp\":");
            DateFormat::Iso8601.write_json(time_ns, out);
        }
        for (key, text) in
            [("hostname", parts.hostname), ("appname", parts.appname), ("procid", parts.procid), ("msgid", parts.msgid)]
        {
            if let Some(text) = text {
                out.extend_from_slice(format!(",\"{key}\":").as_bytes());
                string(text, out);
            }
        }
        if !parts.structured.is_empty() {
            out.extend_from_slice(b",\"structured_data\":{");
            out.extend_from_slice(&parts.structured);
            out.push(b'}');
        }
        out.extend_from_slice(b",\"message\":");
        string(parts.message, out);
        out.push(b'}');
        Some(time_ns)
    }

    /// RFC 3164, 4.1: `TIMESTAMP SP HOSTNAME SP TAG: CONTENT`, the time also by RFC 3339, the host also left out, as `logger` does it at a local
    /// socket. 4.3.3: without a time, everything is content.
    fn of_3164<'a>(&self, rest: &'a [u8], now: Timestamp) -> Parts<'a> {
        let timed = self.time_of_3164(rest, now).or_else(|| {
            let (word, behind) = word(rest)?;
            Some((time_of_5424(word)?, behind))
        });
        let Some((time, rest)) = timed else {
            return Parts { message: trimmed(rest), ..Parts::default() };
        };
        let mut parts = Parts { time: Some(time), message: trimmed(rest), ..Parts::default() };
        let mut rest = rest.strip_prefix(b" ").unwrap_or(rest);
        if tag(rest).is_none()
            && let Some((hostname, behind)) = word(rest)
        {
            parts.hostname = Some(hostname);
            rest = behind;
        }
        match tag(rest) {
            Some((appname, procid, content)) => {
                (parts.appname, parts.procid, parts.message) = (Some(appname), procid, trimmed(content));
            }
            None => parts.message = trimmed(rest),
        }
        parts
    }

    /// `Mmm dd hh:mm:ss`, the day with a blank where it has one digit. Of the year nothing is said: it is that with which the time is nearest.
    fn time_of_3164<'a>(&self, rest: &'a [u8], now: Timestamp) -> Option<(Timestamp, &'a [u8])> {
        const MONTHS: [&[u8; 3]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let (text, behind) = rest.split_at_checked(15)?;
        if !matches!(behind.first(), None | Some(b' ' | b':')) {
            return None;
        }
        let behind = behind.strip_prefix(b":").unwrap_or(behind);
        let &[m0, m1, m2, b' ', d0, d1, b' ', h0, h1, b':', n0, n1, b':', s0, s1] = text.first_chunk::<15>()? else {
            return None;
        };
        let month = MONTHS.iter().position(|name| **name == [m0, m1, m2])? as i8 + 1;
        let two = |a: u8, b: u8| {
            let a = if a == b' ' { b'0' } else { a };
            (a.is_ascii_digit() && b.is_ascii_digit()).then(|| ((a - b'0') * 10 + (b - b'0')) as i8)
        };
        let (day, hour, minute, second) = (two(d0, d1)?, two(h0, h1)?, two(n0, n1)?, two(s0, s1)?);
        let here = self.zone.to_datetime(now);
        let in_year = |year: i16| {
            let time = DateTime::new(year, month, day, hour, minute, second.min(59), 0).ok()?;
            self.zone.to_timestamp(time).ok()
        };
        let years = [here.year().checked_sub(1), Some(here.year()), here.year().checked_add(1)];
        let time = years
            .into_iter()
            .flatten()
            .filter_map(in_year)
            .min_by_key(|time| (time.as_nanosecond() - now.as_nanosecond()).unsigned_abs())?;
        Some((time, behind))
    }
}

/// 6.2.1: `<`, one to three digits, `>`, at most 191.
fn priority(message: &[u8]) -> Option<(u8, &[u8])> {
    let rest = message.strip_prefix(b"<")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=3).contains(&digits) || rest.get(digits) != Some(&b'>') {
        return None;
    }
    let number = std::str::from_utf8(rest.get(..digits)?).ok()?.parse::<u8>().ok()?;
    (number <= 191).then_some((number, rest.get(digits + 1..)?))
}

/// Up to a blank, and behind it.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', bytes).unwrap_or(bytes.len());
    let (word, behind) = bytes.split_at_checked(end)?;
    (!word.is_empty()).then(|| (word, behind.strip_prefix(b" ").unwrap_or(behind)))
}

/// A tag, what is in brackets behind it, and the content.
type Tagged<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// `TAG[PID]: ` or `TAG: `, and what is behind it.
fn tag(bytes: &[u8]) -> Option<Tagged<'_>> {
    let end = bytes.iter().position(|byte| matches!(byte, b'[' | b':' | b' '))?;
    let (tag, rest) = bytes.split_at_checked(end)?;
    if tag.is_empty() {
        return None;
    }
    let (procid, rest) = match rest.strip_prefix(b"[") {
        Some(inside) => {
            let end = memchr::memchr(b']', inside)?;
            let (procid, behind) = inside.split_at_checked(end)?;
            (Some(procid), behind.strip_prefix(b"]")?)
        }
        None => (None, rest),
    };
    let rest = rest.strip_prefix(b":")?;
    Some((tag, procid, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// Behind the priority. None where it is no message of RFC 5424.
fn of_5424(rest: &[u8]) -> Option<Parts<'_>> {
    let (version, rest) = word(rest)?;
    // NONZERO-DIGIT 0*2DIGIT
    if version.len() > 3 || !version.iter().all(u8::is_ascii_digit) || version.first() == Some(&b'0') {
        return None;
    }
    let version = std::str::from_utf8(version).ok()?.parse().ok()?;
    let (time, rest) = word(rest)?;
    let time = match time {
        b"-" => None,
        time => Some(time_of_5424(time)?),
    };
    let (hostname, rest) = word(rest)?;
    let (appname, rest) = word(rest)?;
    let (procid, rest) = word(rest)?;
    let (msgid, rest) = word(rest)?;
    let mut structured = Vec::new();
    let rest = match rest.strip_prefix(b"-") {
        Some(rest) => rest,
        None => elements(rest, &mut structured)?,
    };
    // 6.4: a BOM says that the message is UTF-8.
    let message = match rest {
        [] => rest,
        [b' ', message @ ..] => message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message),
        _ => return None,
    };
    let some = |field: &'_ [u8]| field != b"-";
    Some(Parts {
        version: Some(version),
        time,
        hostname: Some(hostname).filter(|field| some(field)),
        appname: Some(appname).filter(|field| some(field)),
        procid: Some(procid).filter(|field| some(field)),
        msgid: Some(msgid).filter(|field| some(field)),
        structured,
        message: trimmed(message),
    })
}

/// 6.2.3: RFC 3339, with `T` and an offset; more digits of a fraction than six are taken too.
fn time_of_5424(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let is_fine =
        text.len() >= 20 && text.as_bytes().get(10) == Some(&b'T') && text.bytes().all(|b| b.is_ascii_graphic());
    // A zone in brackets is jiff's own.
    if is_fine && !text.contains('[') { text.parse().ok() } else { None }
}

/// 6.3: `[ID NAME="VALUE" …]` once or more, as the fields of an object. Gives what is behind.
fn elements<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    if rest.first() != Some(&b'[') {
        return None;
    }
    let mut value = Vec::new();
    while let Some(inside) = rest.strip_prefix(b"[") {
        let end = inside.iter().position(|byte| matches!(byte, b' ' | b']'))?;
        let (id, behind) = inside.split_at_checked(end)?;
        if id.is_empty() || id.iter().any(|byte| matches!(byte, b'=' | b'"')) {
            return None;
        }
        if !out.is_empty() {
            out.push(b',');
        }
        string(id, out);
        out.extend_from_slice(b":{");
        rest = behind;
        let mut is_first = true;
        while let Some(parameter) = rest.strip_prefix(b" ") {
            let end = parameter.iter().position(|byte| matches!(byte, b'=' | b' ' | b']' | b'"'))?;
            let (name, behind) = parameter.split_at_checked(end)?;
            let mut behind = behind.strip_prefix(b"=\"")?;
            if name.is_empty() {
                return None;
            }
            value.clear();
            loop {
                match behind {
                    // 6.3.3: only these three are escapes; a backslash in front of anything else is one.
                    [b'\\', escaped @ (b'"' | b'\\' | b']'), more @ ..] => {
                        value.push(*escaped);
                        behind = more;
                    }
                    [b'"', more @ ..] => {
                        behind = more;
                        break;
                    }
                    [byte, more @ ..] => {
                        value.push(*byte);
                        behind = more;
                    }
                    [] => return None,
                }
            }
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            string(name, out);
            out.push(b':');
            string(&value, out);
            rest = behind;
        }
        out.push(b'}');
        rest = rest.strip_prefix(b"]")?;
    }
    Some(rest)
}

/// Without what some senders put at the end: NUL, carriage return.
fn trimmed(mut message: &[u8]) -> &[u8] {
    while let [rest @ .., b'\0' | b'\r' | b'\n'] = message {
        message = rest;
    }
    message
}

/// A string of JSON: UTF-8, or else Windows-1252, in which all bytes have a character.
fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    match simdutf8::basic::from_utf8(text) {
        Ok(text) => escape_lossy(text.as_bytes(), out),
        Err(_) => {
            let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(text);
            escape_lossy(text.as_bytes(), out);
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-12-01T00:00:00Z".parse().unwrap()
    }

    fn read_in(zone: TimeZone, message: &[u8]) -> Option<(String, Option<i64>)> {
        let mut out = Vec::new();
        let time = Reading { zone }.read(message, now(), &mut out)?;
        let text = String::from_utf8(out).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        Some((text, time))
    }

    fn read(message: &[u8]) -> String {
        read_in(TimeZone::UTC, message).unwrap().0
    }

    /// RFC 5424, 6.5, example 1.
    #[test]
    fn example_1_with_no_structured_data() {
        let message = "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed for lonvick on /dev/pts/8";
        let (text, time) = read_in(TimeZone::UTC, message.as_bytes()).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"facility":"auth","severity":"crit","version":1,"timestamp":"2003-10-11T22:14:15.003000Z","hostname":"mymachine.example.com","#,
                r#""appname":"su","msgid":"ID47","message":"'su root' failed for lonvick on /dev/pts/8"}"#
            )
        );
        assert_eq!(time, Some(1_065_910_455_003_000_000));
    }

    /// Example 2, with an offset.
    #[test]
    fn example_2_with_an_offset() {
        let message =
            b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.";
        assert_eq!(
            read(message),
            concat!(
                r#"{"facility":"local4","severity":"notice","version":1,"timestamp":"2003-08-24T12:14:15.000003Z","hostname":"192.0.2.1","#,
                r#""appname":"myproc","procid":"8710","message":"%% It's time to make the do-nuts."}"#
            )
        );
    }

    /// Examples 3 and 4.
    #[test]
    fn examples_3_and_4_with_structured_data() {
        let head = "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 ";
        let three = format!(
            "{head}[exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"] \u{feff}An application event log entry..."
        );
        let element = r#""exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}"#;
        assert!(
            read(three.as_bytes()).ends_with(&format!(
                r#""structured_data":{{{element}}},"message":"An application event log entry..."}}"#
            ))
        );
        let four = format!(
            "{head}[exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"][examplePriority@32473 class=\"high\"]"
        );
        assert!(read(four.as_bytes()).ends_with(&format!(
            r#""structured_data":{{{element},"examplePriority@32473":{{"class":"high"}}}},"message":""}}"#
        )));
    }

    /// 6.3.3 and 6.3.5: escapes; an element without parameters; what is not valid is no RFC 5424.
    #[test]
    fn parameters_have_escapes() {
        let message = br#"<0>1 - - - - - [a b="\"\\\]\n"][c] x"#;
        assert!(
            read(message).ends_with(r#""structured_data":{"a":{"b":"\"\\]\\n"},"c":{}},"message":"x"}"#),
            "{}",
            read(message)
        );
        for bad in ["[a b=c]", "[a b=\"c]", "[a", "[]", "[ a]", "[a  b=\"c\"]", "x"] {
            let message = format!("<0>1 - - - - - {bad} x");
            assert!(!read(message.as_bytes()).contains("version"), "{message}");
        }
    }

    /// 6.2: fields that are NILVALUE, and a time of day that is none.
    #[test]
    fn nothing_is_known_of_a_message_that_says_nothing() {
        assert_eq!(read(b"<13>1 - - - - - -"), r#"{"facility":"user","severity":"notice","version":1,"message":""}"#);
        // 6.2.3.1, example 5: nanoseconds are not allowed; they are taken all the same.
        assert!(read(b"<13>1 2003-08-24T05:14:15.000000003-07:00 - - - - -").contains("2003-08-24T12:14:15.000000Z"));
        for time in ["2003-13-24T05:14:15Z", "2003-08-24", "2003-08-24 05:14:15Z", "x"] {
            assert!(!read(format!("<13>1 {time} - - - - -").as_bytes()).contains("version"), "{time}");
        }
    }

    /// 6.2.1.
    #[test]
    fn what_has_no_priority_is_no_message() {
        for message in ["", "text", "<>a", "<192>a", "<1000>a", "<1a>b", "<13", " <13>a"] {
            assert_eq!(read_in(TimeZone::UTC, message.as_bytes()), None, "{message}");
        }
        assert!(read(b"<191>a").starts_with(r#"{"facility":"local7","severity":"debug""#));
        assert!(read(b"<0>a").starts_with(r#"{"facility":"kern","severity":"emerg""#));
    }

    /// RFC 3164, 5.4, examples 1 and 2.
    #[test]
    fn the_examples_of_rfc_3164_are_taken() {
        assert_eq!(
            read(b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8"),
            concat!(
                r#"{"facility":"auth","severity":"crit","timestamp":"2026-10-11T22:14:15.000000Z","hostname":"mymachine","appname":"su","#,
                r#""message":"'su root' failed for lonvick on /dev/pts/8"}"#
            )
        );
        assert_eq!(read(b"<13>Use the BFG!\0"), r#"{"facility":"user","severity":"notice","message":"Use the BFG!"}"#);
        assert_eq!(
            read(b"<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!"),
            r#"{"facility":"user","severity":"notice","timestamp":"2027-02-05T17:32:18.000000Z","hostname":"10.0.0.99","message":"Use the BFG!"}"#
        );
    }

    #[test]
    fn hosts_may_be_left_out_and_times_be_those_of_rfc_3339() {
        assert_eq!(
            read(b"<13>Nov 30 10:00:00 root[77]: hi"),
            r#"{"facility":"user","severity":"notice","timestamp":"2026-11-30T10:00:00.000000Z","appname":"root","procid":"77","message":"hi"}"#
        );
        assert_eq!(
            read(b"<13>2026-11-30T10:00:00.5+01:00 host app[1]: hi"),
            r#"{"facility":"user","severity":"notice","timestamp":"2026-11-30T09:00:00.500000Z","hostname":"host","appname":"app","procid":"1","message":"hi"}"#
        );
    }

    #[test]
    fn a_time_without_year_and_zone_is_the_nearest_in_the_zone_that_is_set() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let (_, time) = read_in(berlin, b"<13>Dec  1 00:30:00 h a: x").unwrap();
        assert_eq!(time, Some("2026-11-30T23:30:00Z".parse::<Timestamp>().unwrap().as_nanosecond() as i64));
        // The 29th of February is in none of the years around: no time, and all of it is content.
        assert!(read(b"<13>Feb 29 00:00:00 h a: x").ends_with(r#""message":"Feb 29 00:00:00 h a: x"}"#));
    }

    /// 6.4: without a BOM, a message may be of any encoding.
    #[test]
    fn bytes_that_are_no_utf_8_are_windows_1252() {
        assert!(read(b"<13>caf\xe9 \x80").ends_with("\"message\":\"café €\"}"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_text(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let message = [&b"<13>"[..], &bytes].concat();
            let _ = read(&message);
            let _ = read_in(TimeZone::UTC, &bytes);
        }
    }
}
