//! From a request's body to a chunk: all of its records, or none.

use std::sync::Arc;

use super::super::forward::{self, Events};
use super::json::{Fault, Scanner, compact, has_line_breaks};
use crate::record::{BodyKind, Chunk, ChunkBuilder};

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Objects, or arrays of objects, one after another.
    Json,
    /// An object a line.
    JsonLines,
    /// A text a line.
    Text,
    /// Entries of the forward protocol one after another: `[time, record]`, or a record alone.
    MessagePack,
}

/// Why a body is not what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {number}, byte {at} of the body: {what}")]
pub(crate) struct BadRecord {
    /// Counted from 1.
    pub(crate) number: u32,
    /// Bytes of the (decompressed) body before the fault.
    pub(crate) at: usize,
    /// What is wrong.
    pub(crate) what: &'static str,
}

/// Reads a body. Gives no chunk where it has no records.
pub(crate) fn read(format: Format, tag: &Arc<str>, time_ns: i64, body: &[u8]) -> Result<Option<Chunk>, BadRecord> {
    let mut records =
        Records { chunk: builder(format, tag), time_ns, spare: Vec::new(), most_bytes: most_json(body.len()) };
    match format {
        Format::Text => records.text(body),
        Format::MessagePack => records.message_pack(body)?,
        Format::Json | Format::JsonLines => {
            let json = match simdutf8::compat::from_utf8(body) {
                Ok(_) if format == Format::Json => records.json(body),
                Ok(_) => records.json_lines(body),
                // What is before may be at fault earlier; its records are counted on the way.
                Err(e) => {
                    let valid = body.get(..e.valid_up_to()).unwrap_or_default();
                    let before = match format {
                        Format::Json => records.json(valid),
                        _ => records.json_lines(valid),
                    };
                    let number = records.chunk.len().saturating_add(1);
                    let earlier = before.err().filter(|earlier| earlier.at < valid.len());
                    Err(earlier.unwrap_or(BadRecord { number, at: valid.len(), what: "this is not UTF-8" }))
                }
            };
            json?;
        }
    }
    Ok(records.chunk.finish())
}

fn builder(format: Format, tag: &Arc<str>) -> ChunkBuilder {
    let kind = if format == Format::Text { BodyKind::Text } else { BodyKind::Json };
    ChunkBuilder::new(kind, tag.clone())
}

struct Records {
    chunk: ChunkBuilder,
    time_ns: i64,
    spare: Vec<u8>,
    /// Of records that are made JSON here.
    most_bytes: usize,
}

/// JSON is a little larger than MessagePack, and much larger only where it is made to be. Small bodies may.
fn most_json(body: usize) -> usize {
    body.saturating_mul(4).max(1 << 20)
}

impl Events for Records {
    fn event(&mut self, time_ns: Option<i64>, record: &[u8]) -> Result<(), forward::Fault> {
        let bytes = usize::try_from(self.chunk.body_bytes()).unwrap_or(usize::MAX).saturating_add(record.len());
        if bytes <= self.most_bytes && self.chunk.push(time_ns.unwrap_or(self.time_ns), record) {
            return Ok(());
        }
        Err(forward::Fault::TooLargeAsJson(self.most_bytes))
    }
    fn passed_over(&mut self) {}
}

impl Records {
    fn message_pack(&mut self, body: &[u8]) -> Result<(), BadRecord> {
        let records = forward::Records::new(Some("metadata"), self.most_bytes);
        forward::entries(body, &records, self).map_err(|(begin, fault)| {
            let number = self.chunk.len().saturating_add(1);
            let bad = |at, what| BadRecord { number, at, what };
            match fault {
                forward::Fault::Malformed { at, what } => bad(at, what),
                forward::Fault::TooDeep => bad(begin, "it is nested more than 128 deep"),
                _ => bad(
                    begin,
                    "the records before and with this one are, as JSON, more than four times as large as the body",
                ),
            }
        })
    }

    fn text(&mut self, body: &[u8]) {
        let whole = self.chunk.push_lines(self.time_ns, body);
        if let Some(last) = body.get(whole..).filter(|last| !last.is_empty()) {
            self.chunk.push(self.time_ns, last);
        }
    }

    fn json_lines(&mut self, body: &[u8]) -> Result<(), BadRecord> {
        let mut begin = 0;
        while let Some(rest) = body.get(begin..).filter(|rest| !rest.is_empty()) {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let mut line = Scanner::new(rest.get(..end).unwrap_or_default());
            if line.peek().is_some() {
                let object = line.object().map_err(|fault| self.bad(begin, &fault))?;
                if line.peek().is_some() {
                    let fault = Fault { at: line.at(), what: "only a line break may follow an object here" };
                    return Err(self.bad(begin, &fault));
                }
                self.push(object);
            }
            begin += end + 1;
        }
        Ok(())
    }

    fn json(&mut self, body: &[u8]) -> Result<(), BadRecord> {
        let mut scanner = Scanner::new(body);
        if scanner.peek().is_none() {
            let what = "the body is empty; an object or an array of objects should be there";
            return Err(BadRecord { number: 1, at: scanner.at(), what });
        }
        // One after another, with nothing but white space between: that is how Fluent Bit's `json_stream` and, in older versions, `json_lines` are.
        while let Some(next) = scanner.peek() {
            if next == b'[' {
                self.array(&mut scanner)?;
            } else {
                let object = scanner.object().map_err(|fault| self.bad(0, &fault))?;
                self.push(object);
            }
        }
        Ok(())
    }

    fn array(&mut self, scanner: &mut Scanner<'_>) -> Result<(), BadRecord> {
        scanner.skip();
        if scanner.peek() == Some(b']') {
            scanner.skip();
            return Ok(());
        }
        loop {
            let object = scanner.object().map_err(|fault| self.bad(0, &fault))?;
            self.push(object);
            match scanner.peek() {
                Some(b',') => scanner.skip(),
                Some(b']') => {
                    scanner.skip();
                    return Ok(());
                }
                _ => {
                    let what = "a ',' or ']' should be behind a record";
                    return Err(self.bad(0, &Fault { at: scanner.at(), what }));
                }
            }
        }
    }

    fn push(&mut self, object: &[u8]) {
        if has_line_breaks(object) {
            self.spare.clear();
            compact(object, &mut self.spare);
            self.chunk.push(self.time_ns, &self.spare);
        } else {
            self.chunk.push(self.time_ns, object);
        }
    }

    fn bad(&self, before: usize, fault: &Fault) -> BadRecord {
        BadRecord { number: self.chunk.len().saturating_add(1), at: before + fault.at, what: fault.what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(format: Format, body: &[u8]) -> Result<Vec<String>, BadRecord> {
        let chunk = read(format, &"t".into(), 7, body)?;
        Ok(chunk.map_or_else(Vec::new, |chunk| {
            chunk.iter().map(|record| String::from_utf8_lossy(record.body).into_owned()).collect()
        }))
    }

    fn bad(format: Format, body: &[u8]) -> (u32, usize) {
        let bad = bodies(format, body).unwrap_err();
        (bad.number, bad.at)
    }

    #[test]
    fn one_object_or_an_array_of_them_is_json() {
        assert_eq!(bodies(Format::Json, b" {\"a\": 1.0} ").unwrap(), ["{\"a\": 1.0}"]);
        assert_eq!(bodies(Format::Json, b"[{\"b\":1,\"a\":2}, {}\n]").unwrap(), ["{\"b\":1,\"a\":2}", "{}"]);
        assert!(bodies(Format::Json, b" [ ] ").unwrap().is_empty());
        assert_eq!(bodies(Format::Json, b"{\n  \"a\": [1,\n 2]\n}").unwrap(), ["{\"a\":[1,2]}"]);
    }

    /// Fluent Bit's `json_stream`, and the `json_lines` of older ones, come as application/json.
    #[test]
    fn objects_and_arrays_one_after_another_are_json_too() {
        assert_eq!(bodies(Format::Json, b"{\"a\":1}{\"b\":2}\n{}\n").unwrap(), ["{\"a\":1}", "{\"b\":2}", "{}"]);
        assert_eq!(bodies(Format::Json, b"[{\"a\":1}] [] {\"b\":2}").unwrap(), ["{\"a\":1}", "{\"b\":2}"]);
    }

    #[test]
    fn an_object_a_line_is_json_lines_and_blank_lines_are_none() {
        let body = b"{\"a\":1}\r\n\n  \n {\"b\" : 2} \n{\"c\":3}";
        assert_eq!(bodies(Format::JsonLines, body).unwrap(), ["{\"a\":1}", "{\"b\" : 2}", "{\"c\":3}"]);
        assert!(bodies(Format::JsonLines, b"").unwrap().is_empty());
    }

    #[test]
    fn every_line_of_text_is_a_record_also_an_empty_one() {
        assert_eq!(bodies(Format::Text, b"a\r\n\nb\n\xff").unwrap(), ["a", "", "b", "\u{fffd}"]);
        assert!(bodies(Format::Text, b"").unwrap().is_empty());
    }

    #[test]
    fn the_bad_record_is_named_by_number_and_byte() {
        assert_eq!(bad(Format::Json, b""), (1, 0));
        assert_eq!(bad(Format::Json, b"[{},{\"a\":x}]"), (2, 9));
        assert_eq!(bad(Format::Json, b"[{},[]]"), (2, 4));
        assert_eq!(bad(Format::Json, b"[{},]"), (2, 4));
        assert_eq!(bad(Format::Json, b"{}{}]"), (3, 4));
        assert_eq!(bad(Format::Json, b"{},{}"), (2, 2));
        assert_eq!(bad(Format::Json, b"[{}"), (2, 3));
        assert_eq!(bad(Format::JsonLines, b"{}\n{\"a\":\n1}\n"), (2, 8));
        assert_eq!(bad(Format::JsonLines, b"{}\n{} {}\n"), (2, 6));
        assert_eq!(bad(Format::JsonLines, b"{}\n3\n"), (2, 3));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_no_json() {
        assert_eq!(bad(Format::JsonLines, b"{}\n{\"a\":\"\xff\"}\n"), (2, 9));
        assert_eq!(bad(Format::Json, b"[{},{\"a\":\"\xff\"}]"), (2, 10));
        assert_eq!(bad(Format::JsonLines, b"{}\nx\n{\"a\":\"\xff\"}\n"), (2, 3));
    }
}
