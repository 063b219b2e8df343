//! One dead letter as a line of JSON.

use aws_smithy_types::base64;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::BodyKind;

/// A record that is to be kept, and why.
#[derive(Debug, Clone, Copy)]
pub struct Letter<'a> {
    /// Its number in the batch, from 0.
    pub record: u64,
    /// Its time, nanoseconds since 1970 UTC.
    pub time_ns: i64,
    /// Its tag.
    pub tag: &'a str,
    /// What its body is.
    pub kind: BodyKind,
    /// Its body.
    pub body: &'a [u8],
    /// Why it could not be delivered, for a person.
    pub reason: &'a str,
}

/// A dead letter that was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLetter {
    /// The output that could not deliver it.
    pub output: String,
    /// The batch that it was in.
    pub batch: String,
    /// Its number in the batch, from 0.
    pub record: u64,
    /// Its time, nanoseconds since 1970 UTC.
    pub time_ns: i64,
    /// Its tag.
    pub tag: String,
    /// What its body is.
    pub kind: BodyKind,
    /// Why it could not be delivered, for a person.
    pub reason: String,
    /// What kind of end the batch had: `rejected`, `retry_expired`, `trap`, …
    pub failure: String,
    /// Its body.
    pub body: Vec<u8>,
}

#[derive(Serialize)]
struct Out<'a> {
    output: &'a str,
    batch: &'a str,
    record: u64,
    time: String,
    tag: &'a str,
    kind: &'a str,
    reason: &'a str,
    failure: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

#[derive(Deserialize)]
struct In {
    output: String,
    batch: String,
    record: u64,
    time: String,
    tag: String,
    kind: String,
    reason: String,
    failure: String,
    body: Option<String>,
    body_base64: Option<String>,
}

/// Writes the letter as one line.
pub(super) fn write_line(
    to: &mut impl std::io::Write,
    output: &str,
    batch: &str,
    failure: &str,
    letter: &Letter<'_>,
) -> std::io::Result<()> {
    let text = simdutf8::basic::from_utf8(letter.body).ok();
    let line = Out {
        output,
        batch,
        record: letter.record,
        time: time_text(letter.time_ns),
        tag: letter.tag,
        kind: kind_text(letter.kind),
        reason: letter.reason,
        failure,
        body: text,
        body_base64: if text.is_some() { None } else { Some(base64::encode(letter.body)) },
    };
    serde_json::to_writer(&mut *to, &line)?;
    to.write_all(b"\n")
}

impl StoredLetter {
    /// Reads a line. Somebody may have edited it.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let line: In = serde_json::from_slice(line).map_err(|cause| format!("not a dead letter: {cause}"))?;
        let time: Timestamp = line.time.parse().map_err(|_| format!("{:?} is not a time", line.time))?;
        let time_ns = i64::try_from(time.as_nanosecond()).map_err(|_| format!("{:?} is out of range", line.time))?;
        let kind = match line.kind.as_str() {
            "text" => BodyKind::Text,
            "json" => BodyKind::Json,
            other => return Err(format!("the kind {other:?} is not known; it is text or json")),
        };
        let body = match (line.body, line.body_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(encoded)) => base64::decode(encoded).map_err(|_| "body_base64 is not base64".to_owned())?,
            _ => return Err("exactly one of body and body_base64 is needed".into()),
        };
        let In { output, batch, record, tag, reason, failure, .. } = line;
        Ok(Self { output, batch, record, time_ns, tag, kind, reason, failure, body })
    }

    /// The letter as the line that it is in the file, without the line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut line = Vec::new();
        let Self { output, batch, record, time_ns, tag, kind, reason, failure, body } = self;
        let letter = Letter { record: *record, time_ns: *time_ns, tag, kind: *kind, body, reason };
        // Writing into a Vec cannot fail.
        let _ = write_line(&mut line, output, batch, failure, &letter);
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }

    /// Whether the journal could hold it as the record that it says it is.
    pub(super) fn check_body(&self) -> Result<(), String> {
        if self.body.contains(&b'\n') {
            return Err("the body has a line feed; a record is one line".into());
        }
        let object = self.body.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(&self.body).is_ok();
        if self.kind == BodyKind::Json && !(object && self.body.ends_with(b"}")) {
            return Err("the body of a json record must be one JSON object".into());
        }
        if self.tag.is_empty() || self.tag.contains(char::is_whitespace) {
            return Err(format!("the tag {:?} is empty or has blanks", self.tag));
        }
        Ok(())
    }
}

/// RFC 3339 in UTC, with nanoseconds: it reads back as the same time.
pub(crate) fn time_text(time_ns: i64) -> String {
    match Timestamp::from_nanosecond(time_ns.into()) {
        Ok(time) => format!("{time:.9}"),
        Err(_) => time_ns.to_string(),
    }
}

fn kind_text(kind: BodyKind) -> &'static str {
    match kind {
        BodyKind::Text => "text",
        BodyKind::Json => "json",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(letter: &Letter<'_>) -> String {
        let mut line = vec![];
        write_line(&mut line, "archive", "00112233445566778899aabbccddeeff", "rejected", letter).unwrap();
        String::from_utf8(line).unwrap()
    }

    const TEXT: Letter<'_> = Letter {
        record: 7,
        time_ns: 1_716_897_600_123_456_789,
        tag: "app",
        kind: BodyKind::Text,
        body: b"a \"line\"",
        reason: "too long",
    };

    #[test]
    fn a_letter_is_one_line_that_any_tool_reads() {
        assert_eq!(
            line(&TEXT),
            "{\"output\":\"archive\",\"batch\":\"00112233445566778899aabbccddeeff\",\"record\":7,\
             \"time\":\"2024-05-28T12:00:00.123456789Z\",\"tag\":\"app\",\"kind\":\"text\",\"reason\":\"too long\",\
             \"failure\":\"rejected\",\"body\":\"a \\\"line\\\"\"}\n"
        );
    }

    #[test]
    fn bytes_that_are_no_utf8_are_kept_as_base64() {
        let letter = Letter { body: &[0xff, 0x00, 0x80], ..TEXT };
        assert!(line(&letter).contains("\"body_base64\":\"/wCA\""), "{}", line(&letter));
    }

    #[test]
    fn every_letter_reads_back_as_it_was() {
        for body in [&b""[..], b"plain", b"\xff\xfe", b"tab\tand\\", "\u{1f600}\u{0}".as_bytes()] {
            for time_ns in [0, -1, i64::MIN, i64::MAX, 1_716_897_600_123_456_789] {
                let written = Letter { body, time_ns, ..TEXT };
                let read = StoredLetter::parse(line(&written).trim_end().as_bytes()).unwrap();
                assert_eq!((read.body.as_slice(), read.time_ns, read.tag.as_str()), (body, time_ns, "app"));
                assert_eq!(format!("{}\n", read.to_json()), line(&written));
            }
        }
    }

    #[test]
    fn a_line_that_is_no_letter_is_refused() {
        let good = line(&TEXT);
        for (bad, why) in [
            ("{}".to_owned(), "missing field"),
            ("not json".to_owned(), "not a dead letter"),
            (good.replace("2024-05-28T12", "2024-05-28"), "is not a time"),
            (good.replace("2024", "9000"), "out of range"),
            (good.replace("\"text\"", "\"xml\""), "the kind \"xml\" is not known"),
            (good.replace("\"body\"", "\"other\""), "exactly one of body"),
            (good.replace("\"body\"", "\"body_base64\""), "is not base64"),
        ] {
            let error = StoredLetter::parse(bad.trim_end().as_bytes()).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_body_that_the_journal_could_not_hold_is_refused() {
        let mut letter = StoredLetter::parse(line(&TEXT).trim_end().as_bytes()).unwrap();
        assert_eq!(letter.check_body(), Ok(()));
        letter.body = b"two\nlines".to_vec();
        assert!(letter.check_body().is_err());
        letter.kind = BodyKind::Json;
        for (body, fine) in [("{\"a\":1}", true), ("[1]", false), ("{\"a\":1} x", false), ("{", false), (" {}", false)]
        {
            letter.body = body.into();
            assert_eq!(letter.check_body().is_ok(), fine, "{body}");
        }
    }
}
