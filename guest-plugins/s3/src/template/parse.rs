//! Reading `key_format`.

use std::iter::Peekable;
use std::str::CharIndices;

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use super::{MAX_KEY_BYTES, Template, Token};

/// Conversions that mean in jiff what they mean in C's strftime.
const CONVERSIONS: &str = "AaBbhCDdeFGgHIjklMmpPRSsTUuVWwYyZz";

/// Parses a format. Gives every fault.
pub fn parse(format: &str, delimiters: &str, timezone: Option<TimeZone>) -> Result<Template, Vec<String>> {
    // As in Fluent Bit, where the format is the path of the request behind the bucket: `/logs/x` is the key `logs/x`.
    let format = format.strip_prefix('/').unwrap_or(format);
    let mut reader =
        Reader { text: format, chars: format.char_indices().peekable(), parts: Vec::new(), faults: Vec::new() };
    reader.read();
    let Reader { parts, mut faults, .. } = reader;
    check_whole(&parts, &mut faults);
    if faults.is_empty() {
        Ok(Template { parts, delimiters: delimiters.into(), timezone: timezone.unwrap_or(TimeZone::UTC) })
    } else {
        Err(faults)
    }
}

struct Reader<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    parts: Vec<Token>,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some((at, c)) = self.chars.next() {
            match c {
                '$' => self.read_value(at),
                '%' => self.read_conversion(at),
                c => self.literal(c),
            }
        }
    }

    fn literal(&mut self, c: char) {
        if let Some(Token::Literal(text)) = self.parts.last_mut() {
            text.push(c);
        } else {
            self.parts.push(Token::Literal(c.into()));
        }
    }

    fn rest(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    fn skip(&mut self, bytes: usize) {
        let end = self.chars.peek().map_or(self.text.len(), |(at, _)| *at) + bytes;
        while self.chars.next_if(|(at, _)| *at < end).is_some() {}
    }

    /// At `$`. As in Fluent Bit a name ends where it ends, whatever follows: `$INDEX_x` is the index and `_x`.
    fn read_value(&mut self, at: usize) {
        let rest = self.rest(at + 1);
        for (name, part) in [("INDEX", Token::Index), ("UUID", Token::Uuid), ("TAG", Token::Tag)] {
            if let Some(behind) = rest.strip_prefix(name) {
                let part = if part == Token::Tag && behind.starts_with('[') {
                    let Some(part) = self.tag_part(at) else { return };
                    part
                } else {
                    self.skip(name.len());
                    part
                };
                self.parts.push(part);
                return;
            }
        }
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{') {
            let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "_{}".contains(*c)).collect();
            self.faults.push(format!("`${name}` is not known: the names are `$TAG`, `$TAG[n]`, `$INDEX` and `$UUID`"));
        }
        self.literal('$');
    }

    /// At the `$` of `$TAG[`.
    fn tag_part(&mut self, at: usize) -> Option<Token> {
        let inside = self.rest(at + "$TAG[".len());
        let number = inside.split(']').next().unwrap_or_default();
        let closed = inside.len() > number.len();
        let parsed = number.parse().ok().filter(|_| closed && number.bytes().all(|byte| byte.is_ascii_digit()));
        let length = "TAG[".len() + number.len() + usize::from(closed);
        if parsed.is_none() {
            self.faults.push(format!(
                "`{}` is no part of the tag: write `$TAG[0]`, `$TAG[1]`, …",
                self.rest(at).get(..=length).unwrap_or_default()
            ));
        }
        self.skip(length);
        parsed.map(Token::TagPart)
    }

    /// At `%`: flags, width, and the letter.
    fn read_conversion(&mut self, at: usize) {
        let rest = self.text.get(at + 1..).unwrap_or_default();
        let Some((length, letter)) = rest.char_indices().find(|(_, c)| !"-_0^#:.".contains(*c) && !c.is_ascii_digit())
        else {
            self.faults.push("the format ends within a `%` conversion; a `%` itself is written `%%`".into());
            self.skip(rest.len());
            return;
        };
        let modifiers = rest.get(..length).unwrap_or_default().to_owned();
        self.skip(length + letter.len_utf8());
        match conversion(&modifiers, letter) {
            Ok(part) => match part {
                Token::Literal(text) => text.chars().for_each(|c| self.literal(c)),
                part => self.parts.push(part),
            },
            Err(fault) => self.faults.push(fault),
        }
    }
}

fn conversion(modifiers: &str, letter: char) -> Result<Token, String> {
    let written = format!("%{modifiers}{letter}");
    if letter == '%' && modifiers.is_empty() {
        return Ok(Token::Literal("%".into()));
    }
    let digits = modifiers.strip_prefix('.').unwrap_or(modifiers);
    let jiffs = match letter {
        // Fractions of a second, always with all their digits, so that keys sort: 3 for `%L`, 6 for `%f`, 9 for `%N`, or as many as said.
        'L' if modifiers.is_empty() => "%3f".into(),
        'f' | 'N' if digits.is_empty() || (digits.len() == 1 && ("1"..="9").contains(&digits)) => {
            let dot = if digits.len() < modifiers.len() { "." } else { "" };
            let digits = match (digits, letter) {
                ("", 'f') => "6",
                ("", _) => "9",
                (digits, _) => digits,
            };
            format!("%{dot}{digits}f")
        }
        'c' | 'r' | 'x' | 'X' => {
            return Err(format!(
                "`{written}` depends on the machine's language: write the conversions that it stands for"
            ));
        }
        'n' | 't' => return Err(format!("`{written}` is a control character, which a key should not have")),
        // A width in front of a letter is most often meant as a percent-encoded character (`%2F`), and would give something else.
        letter
            if CONVERSIONS.contains(letter) && !modifiers.contains(|c: char| c == '.' || ('1'..='9').contains(&c)) =>
        {
            written.clone()
        }
        _ => {
            return Err(format!(
                "`{written}` is no conversion that Wharf knows; a `%` itself is written `%%`, and what is percent-encoded in the request is written plainly here"
            ));
        }
    };
    let sample = Timestamp::UNIX_EPOCH.to_zoned_datetime(TimeZone::UTC);
    match strtime::format(&jiffs, &sample) {
        Ok(_) => Ok(Token::Time(jiffs)),
        Err(cause) => Err(format!("`{written}`: {cause}")),
    }
}

fn check_whole(parts: &[Token], faults: &mut Vec<String>) {
    if parts.is_empty() && faults.is_empty() {
        faults.push("the key is empty".into());
    }
    let literals = parts.iter().map(|part| match part {
        Token::Literal(text) => text.as_str(),
        // Stands for any value: no value is a `/`, and none makes a step of dots alone.
        _ => "x",
    });
    let shape: String = literals.collect();
    if shape.split('/').any(|step| step == "." || step == "..") {
        faults.push("a step of the path is `.` or `..`, which HTTP clients resolve away".into());
    }
    if shape.chars().any(char::is_control) {
        faults.push("the key has a control character".into());
    }
    if shape.len() > MAX_KEY_BYTES {
        faults.push(format!("every key would be longer than S3's {MAX_KEY_BYTES} bytes"));
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_makes_no_sense_is_a_fault_that_says_what_would() {
        for (format, expected) in [
            ("", "empty"),
            ("/", "empty"),
            ("/a/$HOST/b", "`$HOST` is not known: the names are `$TAG`, `$TAG[n]`, `$INDEX` and `$UUID`"),
            ("/a/${HOSTNAME}", "`${HOSTNAME}` is not known"),
            ("/$TAG[x]", "`$TAG[x]` is no part of the tag"),
            ("/$TAG[1", "`$TAG[1` is no part of the tag"),
            ("/$TAG[-1]", "`$TAG[-1]` is no part of the tag"),
            ("/a%2Fb", "what is percent-encoded in the request is written plainly here"),
            ("/a%20b", "is no conversion"),
            ("/%Q", "`%Q` is no conversion"),
            ("/%Ez", "`%E` is no conversion"),
            ("/%c", "depends on the machine's language"),
            ("/a%n", "control character"),
            ("/a\tb", "control character"),
            ("/100%", "ends within a `%` conversion"),
            ("/a/../b", "`.` or `..`"),
            ("/./b", "`.` or `..`"),
        ] {
            let faults = parse(format, ".", None).map(|_| ()).unwrap_err();
            assert!(faults.iter().any(|fault| fault.contains(expected)), "{format}: {faults:?}");
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        assert_eq!(parse("/$A/$B/%q", ".", None).map(|_| ()).unwrap_err().len(), 3);
    }
}
