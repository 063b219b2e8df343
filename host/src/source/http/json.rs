//! Checking JSON text without changing it: numbers keep their digits, objects their order.
//!
//! The grammar is RFC 8259's, in one pass and without a tree. A record is handed on as it was written; only an object over several
//! lines is put on one, by leaving out the white space between its tokens. Text must be UTF-8: the caller has seen to that.

/// How deep arrays and objects may be nested, the record itself included.
pub(crate) const MAX_DEPTH: u32 = 128;

/// Where text is not JSON, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Bytes before it.
    pub(crate) at: usize,
    /// What is wrong.
    pub(crate) what: &'static str,
}

/// Goes through text.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Where it is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, without taking it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Takes the byte that was peeked at.
    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }

    /// Takes an object, and gives its text.
    pub(crate) fn object(&mut self) -> Result<&'a [u8], Fault> {
        if self.peek() != Some(b'{') {
            return Err(self.fault(match self.byte() {
                None => "it ends where an object should begin",
                Some(b'[') => "an array is not a record; a record is an object",
                Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                    "a string, number, true, false or null is not a record; a record is an object"
                }
                Some(_) => "an object should begin here",
            }));
        }
        let begin = self.at;
        self.nested()?;
        Ok(self.text.get(begin..self.at).unwrap_or_default())
    }

    fn nested(&mut self) -> Result<(), Fault> {
        // One bit a level: whether it is an object. The innermost is the lowest.
        let (mut objects, mut depth, mut next) = (0_u128, 0_u32, Next::Value);
        loop {
            let Some(byte) = self.peek() else { return Err(self.fault("it ends inside an object")) };
            let in_object = objects & 1 == 1;
            match (next, byte) {
                (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(self.fault("it is nested more than 128 deep"));
                    }
                    depth += 1;
                    objects = (objects << 1) | u128::from(byte == b'{');
                    next = if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd };
                    self.at += 1;
                }
                (Next::ValueOrEnd | Next::CommaOrEnd, b']') if !in_object => {
                    (objects, depth, next) = (objects >> 1, depth - 1, Next::CommaOrEnd);
                    self.at += 1;
                }
                (Next::KeyOrEnd | Next::CommaOrEnd, b'}') if in_object => {
                    (objects, depth, next) = (objects >> 1, depth - 1, Next::CommaOrEnd);
                    self.at += 1;
                }
                (Next::Value | Next::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    next = Next::CommaOrEnd;
                }
                (Next::CommaOrEnd, b',') => {
                    self.at += 1;
                    next = if in_object { Next::Key } else { Next::Value };
                }
                (Next::Key | Next::KeyOrEnd, b'"') => {
                    self.string()?;
                    if self.peek() != Some(b':') {
                        return Err(self.fault("a ':' is missing behind a key"));
                    }
                    self.at += 1;
                    next = Next::Value;
                }
                (Next::Key | Next::KeyOrEnd, _) => return Err(self.fault("a key in quotes should be here")),
                (Next::CommaOrEnd, _) if in_object => return Err(self.fault("a ',' or '}' should be here")),
                (Next::CommaOrEnd, _) => return Err(self.fault("a ',' or ']' should be here")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn scalar(&mut self, first: u8) -> Result<(), Fault> {
        match first {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => Err(self.fault("a value should be here")),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.fault("a value should be here"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        // What may follow a number is for the caller to see; a second digit after a leading 0 is seen there too.
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let begin = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == begin { Err(self.fault("a digit is missing in a number")) } else { Ok(()) }
    }

    /// Takes a string, its opening quote included.
    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            self.skip_plain();
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..0x20) => return Err(self.fault("a control character in a string must be written as an escape")),
                Some(_) => self.at += 1,
                None => return Err(self.fault("it ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let digits = match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
            Some(b'u') => 4,
            _ => return Err(self.fault("there is no such escape")),
        };
        let hex = self.text.get(self.at + 2..self.at + 2 + digits);
        if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(self.fault("an escape needs four hexadecimal digits"));
        }
        self.at += 2 + digits;
        Ok(())
    }

    /// Goes on, eight bytes at a time, as long as none of them ends a string, begins an escape, or is a control character.
    fn skip_plain(&mut self) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x8080_8080_8080_8080;
        while let Some((eight, _)) = self.text.get(self.at..).and_then(|rest| rest.split_first_chunk::<8>()) {
            let word = u64::from_le_bytes(*eight);
            // The highest bit of a byte is set where it is 0 (or, harmlessly, behind one that is).
            let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
            let special = zeros(word ^ (ONES * u64::from(b'"')))
                | zeros(word ^ (ONES * u64::from(b'\\')))
                | (word.wrapping_sub(0x2020_2020_2020_2020) & !word & HIGHS);
            if special != 0 {
                self.at += (special.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fault(&self, what: &'static str) -> Fault {
        Fault { at: self.at, what }
    }
}

/// Whether an object stands on more than one line.
pub(crate) fn has_line_breaks(object: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', object).is_some()
}

/// Appends an object that was checked to `to`, without the white space between its tokens.
pub(crate) fn compact(object: &[u8], to: &mut Vec<u8>) {
    let (mut in_string, mut escaped) = (false, false);
    to.extend(object.iter().filter(|byte| {
        if in_string {
            (in_string, escaped) = (escaped || **byte != b'"', !escaped && **byte == b'\\');
            return true;
        }
        in_string = **byte == b'"';
        !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) -> Result<(), Fault> {
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.object()?;
        if scanner.peek().is_some() {
            return Err(Fault { at: scanner.at(), what: "more" });
        }
        Ok(())
    }

    #[test]
    fn every_kind_of_value_is_taken_as_it_stands() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1,"b":[],"c":{"d":[1,2,{"e":null}]},"f":true,"g":false}"#,
            r#"{"n":[0,-0,1.0,1e400,-1E-5,123456789012345678901234567890,0.1e+2]}"#,
            r#"{"s":"\"\\\/\b\f\n\r\t\u00e4\ud800 ä 𝄞 and a long plain stretch of text"}"#,
            r#"{"":""}"#,
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("[]", 0),
            ("\"a\"", 0),
            ("{", 1),
            ("{\"a\"}", 4),
            ("{\"a\":}", 5),
            ("{\"a\":1,}", 7),
            ("{\"a\":[1,]}", 8),
            ("{\"a\":01}", 6),
            ("{\"a\":1.}", 7),
            ("{\"a\":-}", 6),
            ("{\"a\":tru}", 5),
            ("{\"a\":\"\\x\"}", 6),
            ("{\"a\":\"\\u12g4\"}", 6),
            ("{\"a\":\"x\ty\"}", 7),
            ("{\"a\":\"unended", 13),
            ("{\"a\":[1}", 7),
            ("{'a':1}", 1),
            ("{a:1}", 1),
            ("{\"a\":NaN}", 5),
        ] {
            assert_eq!(check(text).unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_128() {
        let nested = |depth: usize| format!("{}{}{}", "{\"a\":".repeat(depth - 1) + "{", "", "}".repeat(depth));
        assert_eq!(check(&nested(128)), Ok(()));
        assert_eq!(check(&nested(129)).unwrap_err().what, "it is nested more than 128 deep");
        assert!(check(&format!("{{\"a\":{}", "[".repeat(1_000_000))).is_err());
    }

    #[test]
    fn compacting_leaves_strings_and_numbers_alone() {
        let text = "{ \"a b\" : [ 1.0 ,\r\n\t1e400 ] ,\n \"c\\\" \\\\\" : \" x \" }";
        let mut out = Vec::new();
        compact(text.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"a b\":[1.0,1e400],\"c\\\" \\\\\":\" x \"}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        // serde_json is the other opinion. It also refuses numbers that no float can hold, and halves of surrogate
        // pairs; neither comes up in these texts.
        #[test]
        fn it_agrees_with_serde_json(text in r#"\{("[ab\\"]{0,12}"|[{}\[\],: ]|true|null|-?[0-9.]{1,3}|\\n|"){0,12}\}"#) {
            let theirs = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
            prop_assert_eq!(check(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn it_agrees_with_serde_json_on_damaged_objects(
            keys in proptest::collection::vec("[a-z\"\\\\\u{1}ä]{0,20}", 0..6), cut in 0_usize..400, put in any::<u8>()
        ) {
            let object: serde_json::Map<_, _> = keys.iter().enumerate()
                .map(|(n, key)| (key.clone(), serde_json::json!([n, key, null, {"x": key}, 1.5, -3, true]))).collect();
            let whole = serde_json::to_string_pretty(&object).unwrap();
            prop_assert_eq!(check(&whole), Ok(()));
            let mut compacted = Vec::new();
            compact(whole.as_bytes(), &mut compacted);
            prop_assert_eq!(String::from_utf8(compacted).unwrap(), serde_json::to_string(&object).unwrap());

            let mut bytes = whole.into_bytes();
            let at = cut % bytes.len();
            bytes[at] = put & 0x7f;
            if let Ok(damaged) = String::from_utf8(bytes) {
                let theirs = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&damaged).is_ok();
                prop_assert_eq!(check(&damaged).is_ok(), theirs, "{}", damaged);
            }
        }
    }
}
