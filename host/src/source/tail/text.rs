//! From the bytes of a file to records: lines are cut, decoded, joined, and put into an object where more is to be said of them.

use std::borrow::Cow;
use std::time::Instant;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::join::Joiner;
use crate::config::LongLines;
use crate::record::ChunkBuilder;
use crate::record::encode::write_json_string;
use crate::source::lines::{Longest, Taken, TakesLines, take_lines};

/// The lines of one file on their way into a chunk.
pub(crate) struct Lines<'a> {
    pub(crate) joiner: Option<&'a mut Joiner>,
    /// Where what is taken begins in the file.
    pub(crate) from: u64,
    pub(crate) now: Instant,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) records: Records<'a>,
    /// Records that became too large as lines were joined.
    pub(crate) too_large: u64,
}

/// Where records go.
pub(crate) struct Records<'a> {
    pub(crate) chunk: &'a mut ChunkBuilder,
    pub(crate) time_ns: i64,
    /// The beginning of an object, up to the text of the record.
    pub(crate) object: Option<&'a [u8]>,
}

impl Records<'_> {
    pub(crate) fn push(&mut self, body: &[u8]) {
        let Some(object) = self.object else {
            self.chunk.push(self.time_ns, body);
            return;
        };
        let mut record = object.to_vec();
        write_json_string(&String::from_utf8_lossy(body), &mut record);
        record.push(b'}');
        self.chunk.push(self.time_ns, &record);
    }
}

impl Lines<'_> {
    /// Takes the whole lines of a block.
    pub(crate) fn take(&mut self, block: &[u8], longest: Longest, skipping: bool) -> Taken {
        if is_wide(self.encoding) {
            return self.take_wide(block, longest, skipping);
        }
        take_lines(self, block, longest, skipping)
    }

    /// The same, of units of two bytes: there a byte of a line feed says nothing.
    fn take_wide(&mut self, block: &[u8], longest: Longest, skipping: bool) -> Taken {
        let mut taken = Taken { skipping, ..Taken::default() };
        let most = (longest.bytes & !1).max(2);
        loop {
            let rest = block.get(taken.bytes..).unwrap_or_default();
            let end = line_end(self.encoding, rest);
            if taken.skipping {
                taken.bytes += end.map_or(rest.len() & !1, |end| end + 2);
                taken.skipping = end.is_none();
                if end.is_none() {
                    return taken;
                }
                continue;
            }
            match end {
                Some(end) if end <= most => {
                    self.part(taken.bytes, rest.get(..end).unwrap_or_default());
                    taken.bytes += end + 2;
                }
                None if rest.len() <= most => return taken,
                _ => {
                    if longest.longer != LongLines::Skip {
                        self.part(taken.bytes, rest.get(..most).unwrap_or_default());
                    }
                    taken.bytes += most;
                    taken.skipping = longest.longer != LongLines::Split;
                    taken.cut += 1;
                }
            }
        }
    }
}

impl TakesLines for Lines<'_> {
    fn whole(&mut self, at: usize, block: &[u8]) -> usize {
        if self.joiner.is_none() && self.encoding.is_none() && self.records.object.is_none() {
            return self.records.chunk.push_lines(self.records.time_ns, block);
        }
        let mut taken = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            self.part(at + taken, block.get(taken..end).unwrap_or_default());
            taken = end + 1;
        }
        taken
    }
    fn part(&mut self, at: usize, line: &[u8]) {
        let line = match self.encoding {
            None => Cow::Borrowed(line),
            Some(encoding) => match encoding.decode_with_bom_removal(line).0 {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
        };
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let records = &mut self.records;
        match &mut self.joiner {
            None => records.push(line),
            Some(joiner) => {
                let too_large = joiner.take(self.from + at as u64, line, self.now, &mut |body| records.push(body));
                self.too_large += u64::from(too_large);
            }
        }
    }
}

/// Whether its units have two bytes.
pub(crate) fn is_wide(encoding: Option<&'static Encoding>) -> bool {
    encoding.is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE)
}

/// Where the first line of this ends: before its line feed. In every encoding here but UTF-16, the byte of a line feed is never a part
/// of another character.
pub(crate) fn line_end(encoding: Option<&'static Encoding>, text: &[u8]) -> Option<usize> {
    if !is_wide(encoding) {
        return memchr::memchr(b'\n', text);
    }
    let line_feed = if encoding == Some(UTF_16LE) { [b'\n', 0] } else { [0, b'\n'] };
    text.as_chunks::<2>().0.iter().position(|unit| *unit == line_feed).map(|unit| unit * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BodyKind;

    fn taken(
        encoding: Option<&'static Encoding>,
        object: Option<&[u8]>,
        block: &[u8],
        bytes: usize,
    ) -> (Vec<String>, usize) {
        let mut chunk = ChunkBuilder::new(BodyKind::Text, "t".into());
        let records = Records { chunk: &mut chunk, time_ns: 1, object };
        let mut lines = Lines { joiner: None, from: 0, now: Instant::now(), encoding, records, too_large: 0 };
        let taken = lines.take(block, Longest { bytes, longer: LongLines::Truncate }, false);
        let records = chunk.finish().map_or_else(Vec::new, |chunk| {
            chunk.iter().map(|record| String::from_utf8(record.body.to_vec()).unwrap()).collect()
        });
        (records, taken.bytes)
    }

    fn wide(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    /// U+0A00 and U+010A have a byte of a line feed in them.
    #[test]
    fn lines_of_utf_16_are_cut_at_line_feeds_and_not_at_their_bytes() {
        let text = "\u{feff}a\u{a00}\u{10a}\r\n𝄞\n\nrest";
        for (encoding, bytes) in [(UTF_16LE, u16::to_le_bytes as fn(u16) -> [u8; 2]), (UTF_16BE, u16::to_be_bytes)] {
            let block = wide(text, bytes);
            let (lines, read) = taken(Some(encoding), None, &block, 100);
            assert_eq!(lines, ["a\u{a00}\u{10a}", "𝄞", ""]);
            assert_eq!(block.len() - read, "rest".len() * 2);
            assert_eq!(taken(Some(encoding), None, &wide("abcd\nx\n", bytes), 4).0, ["ab", "x"]);
        }
    }

    /// The bytes are those of Python's codecs.
    #[test]
    fn other_encodings_become_utf_8_and_what_is_invalid_is_marked() {
        let label = |name: &str| Encoding::for_label(name.as_bytes());
        assert_eq!(taken(label("latin1"), None, b"caf\xe9\r\n", 100), (vec!["café".into()], 6));
        assert_eq!(taken(label("shift_jis"), None, b"\x93\xfa\x96\x7b\n\x83\x5c\n", 100).0, ["日本", "ソ"]);
        assert_eq!(taken(label("gb18030"), None, b"\xd6\xd0\n", 100).0, ["中"]);
        assert_eq!(taken(label("shift_jis"), None, b"a\xffb\n", 100).0, ["a\u{fffd}b"]);
    }

    #[test]
    fn a_line_in_an_object_is_escaped() {
        let object = br#"{"file":"/a","log":"#;
        let (records, _) = taken(None, Some(object), b"say \"hi\"\t\xff\n", 100);
        assert_eq!(records, ["{\"file\":\"/a\",\"log\":\"say \\\"hi\\\"\\t\u{fffd}\"}"]);
    }
}
