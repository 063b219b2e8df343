//! Where messages end on a stream (RFC 6587, 3.4).
//!
//! Octet counting: `MSG-LEN SP SYSLOG-MSG`, with a first digit that is not 0. Non-transparent framing: a line feed or a NUL ends a
//! message (Python's handler sends NULs). Which of them a sender uses shows its first byte (3.4.1: "a transport receiver can assume that octet-counting framing is used
//! if a syslog frame starts with a digit"), and stays for the connection.

/// What is wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a length and a blank should be in front of a message (RFC 6587, octet counting)")]
pub(crate) struct NoFrame;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Unknown,
    Counted,
    Lines,
}

/// Finds messages in what came.
#[derive(Debug)]
pub(crate) struct Framer {
    framing: Framing,
    /// Longest message; what is behind is left out.
    most_bytes: usize,
    /// Bytes of a message's rest that are passed over; `usize::MAX` is to the next line feed.
    skipping: usize,
    /// Bytes that were looked at for a line feed already.
    looked_at: usize,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes before the message, its length that is.
    pub(crate) begin: usize,
    /// Where the message ends.
    pub(crate) end: usize,
    /// Bytes that are dealt with.
    pub(crate) taken: usize,
    /// Whether its rest is left out.
    pub(crate) is_cut: bool,
}

const TO_LINE_FEED: usize = usize::MAX;

/// Digits of the largest length.
const LONGEST_LENGTH: usize = 10;

impl Framer {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { framing: Framing::Unknown, most_bytes, skipping: 0, looked_at: 0 }
    }

    /// Passes over what is left of a message that was cut. Gives the bytes that are dealt with.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        if self.skipping == 0 {
            return 0;
        }
        if self.skipping == TO_LINE_FEED {
            return match memchr::memchr2(b'\n', 0, bytes) {
                Some(end) => {
                    self.skipping = 0;
                    end + 1
                }
                None => bytes.len(),
            };
        }
        let skipped = self.skipping.min(bytes.len());
        self.skipping -= skipped;
        skipped
    }

    /// The message that `bytes` begin with; none where more must come.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Option<Frame>, NoFrame> {
        let Some(first) = bytes.first() else { return Ok(None) };
        if self.framing == Framing::Unknown {
            self.framing = if matches!(first, b'1'..=b'9') { Framing::Counted } else { Framing::Lines };
        }
        match self.framing {
            Framing::Counted => self.counted(bytes),
            Framing::Unknown | Framing::Lines => Ok(self.line(bytes)),
        }
    }

    /// The last message of a connection that was closed: what is there of a line.
    pub(crate) fn last(&self, bytes: &[u8]) -> Option<Frame> {
        let is_line = self.framing == Framing::Lines && !bytes.is_empty() && self.skipping == 0;
        is_line.then(|| {
            let end = bytes.len().min(self.most_bytes);
            Frame { begin: 0, end, taken: bytes.len(), is_cut: end < bytes.len() }
        })
    }

    fn counted(&mut self, bytes: &[u8]) -> Result<Option<Frame>, NoFrame> {
        // Some senders put a line feed behind a message all the same.
        let fed = bytes.iter().take_while(|byte| **byte == b'\n').count();
        let rest = bytes.get(fed..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match rest.get(digits) {
            _ if digits > LONGEST_LENGTH => return Err(NoFrame),
            None => return Ok(None),
            Some(b' ') if digits > 0 && rest.first() != Some(&b'0') => {}
            Some(_) => return Err(NoFrame),
        }
        let text = rest.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        let length = text.and_then(|text| text.parse::<usize>().ok()).ok_or(NoFrame)?;
        let begin = fed + digits + 1;
        let kept = length.min(self.most_bytes);
        if bytes.len() - begin < kept {
            return Ok(None);
        }
        self.skipping = length - kept;
        Ok(Some(Frame { begin, end: begin + kept, taken: begin + kept, is_cut: kept < length }))
    }

    fn line(&mut self, bytes: &[u8]) -> Option<Frame> {
        let from = self.looked_at.min(bytes.len());
        let found = memchr::memchr2(b'\n', 0, bytes.get(from..).unwrap_or_default()).map(|at| from + at);
        self.looked_at = bytes.len();
        match found {
            Some(end) if end <= self.most_bytes => {
                self.looked_at = 0;
                Some(Frame { begin: 0, end, taken: end + 1, is_cut: false })
            }
            None if bytes.len() <= self.most_bytes => None,
            _ => {
                (self.looked_at, self.skipping) = (0, TO_LINE_FEED);
                Some(Frame { begin: 0, end: self.most_bytes, taken: self.most_bytes, is_cut: true })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The messages when bytes come in pieces of these sizes, and whether one was cut.
    pub(crate) fn messages(bytes: &[u8], most: usize, pieces: &[usize]) -> Result<Vec<(String, bool)>, NoFrame> {
        let (mut framer, mut found, mut buffer, mut at) = (Framer::new(most), vec![], Vec::new(), 0);
        for piece in pieces.iter().cycle() {
            let end = (at + piece).min(bytes.len());
            buffer.extend_from_slice(&bytes[at..end]);
            at = end;
            loop {
                let skipped = framer.skip(&buffer);
                buffer.drain(..skipped);
                let Some(frame) = framer.next(&buffer)? else { break };
                found.push((String::from_utf8_lossy(&buffer[frame.begin..frame.end]).into_owned(), frame.is_cut));
                buffer.drain(..frame.taken);
            }
            if at == bytes.len() {
                break;
            }
        }
        if let Some(frame) = framer.last(&buffer) {
            found.push((String::from_utf8_lossy(&buffer[frame.begin..frame.end]).into_owned(), frame.is_cut));
        }
        Ok(found)
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        messages(bytes, 100, &[1000]).unwrap().into_iter().map(|(text, _)| text).collect()
    }

    /// RFC 6587, 3.4.1, and RFC 5425, 4.3: a message may have line feeds in it.
    #[test]
    fn counted_messages_have_any_bytes() {
        assert_eq!(texts(b"5 <1>a\n11 <34>1 hello"), ["<1>a\n", "<34>1 hello"]);
        assert_eq!(texts(b"1 a\n1 b"), ["a", "b"]);
    }

    /// RFC 6587, 3.4.2.
    #[test]
    fn lines_end_at_a_line_feed_and_with_the_connection() {
        assert_eq!(texts(b"<1>a\n\n<1>b\n<1>c"), ["<1>a", "", "<1>b", "<1>c"]);
        assert_eq!(texts(b"<1>a\0<1>b\0"), ["<1>a", "<1>b"]);
    }

    #[test]
    fn what_has_no_length_in_front_is_no_frame() {
        for bytes in [&b"1 a1x b"[..], b"5x", b"12345678901 a", b"1 a01 b", b"1 a<1>b"] {
            assert_eq!(messages(bytes, 100, &[1000]), Err(NoFrame), "{bytes:?}");
        }
    }

    #[test]
    fn a_long_message_is_cut_and_the_next_one_is_whole() {
        for pieces in [&[1000][..], &[1], &[3, 2]] {
            let counted = messages(b"6 abcdef2 gh", 4, pieces).unwrap();
            assert_eq!(counted, [("abcd".to_owned(), true), ("gh".to_owned(), false)], "{pieces:?}");
            let lines = messages(b"<bcdef\n<h\n", 4, pieces).unwrap();
            assert_eq!(lines, [("<bcd".to_owned(), true), ("<h".to_owned(), false)], "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_have_the_same_messages(bytes in "[1-3 <a\n]{0,60}", pieces in prop::collection::vec(1_usize..9, 1..9)) {
            let whole = messages(bytes.as_bytes(), 8, &[1000]);
            prop_assert_eq!(messages(bytes.as_bytes(), 8, &pieces), whole);
        }
    }
}
