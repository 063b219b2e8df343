//! Records as messages: a text each, for destinations that take texts one by one.

use std::borrow::Cow;

use super::object::{self, Key};
use super::{TEXT_KEY, escape};
use crate::record::BodyKind;

/// How records become messages.
#[derive(Debug)]
pub struct Messages {
    text: Way,
    json: Way,
}

/// How records of one kind become messages.
#[derive(Debug)]
enum Way {
    /// The bodies as they are.
    Copy,
    /// Not at all: text has no such key.
    Absent,
    /// A text body as the value of an object's only key.
    Object,
    /// One key's value; if it is a string, what that means.
    Value(Box<Key>),
}

/// One record's message. What is no UTF-8 in it counts, and is written, as U+FFFD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// UTF-8.
    Text(&'a str),
    /// An object whose only key, `log`, has this text.
    Object(&'a str),
    /// Not all of it is.
    Bytes(&'a [u8]),
}

impl Messages {
    /// Whole records as JSON objects, or only the values of `log_key`. A text record has one key, `log`.
    #[must_use]
    pub fn new(log_key: Option<&str>) -> Self {
        match log_key {
            None => Self { text: Way::Object, json: Way::Copy },
            Some(key) => Self {
                text: if key == TEXT_KEY { Way::Copy } else { Way::Absent },
                json: Way::Value(Box::new(Key::new(key))),
            },
        }
    }

    /// The message of a record with this body; none where it has no such key. `made` is for what has to be written anew.
    #[must_use]
    pub fn of<'a>(&self, kind: BodyKind, body: &'a [u8], made: &'a mut Vec<u8>) -> Option<Message<'a>> {
        let way = match kind {
            BodyKind::Text => &self.text,
            BodyKind::Json => &self.json,
        };
        let bytes = match way {
            Way::Copy => body,
            Way::Absent => return None,
            Way::Object => match simdutf8::basic::from_utf8(body) {
                // Written when it is wanted, and where it is wanted.
                Ok(text) => return Some(Message::Object(text)),
                Err(_) => {
                    made.clear();
                    write_object(made, |made| escape::write_lossy(body, made));
                    made.as_slice()
                }
            },
            Way::Value(key) => {
                let value = key.value(body)?;
                match object::inside_string(value) {
                    None => value,
                    Some(text) if memchr::memchr(b'\\', text).is_none() => text,
                    Some(text) => {
                        made.clear();
                        escape::undo(text, made);
                        made.as_slice()
                    }
                }
            }
        };
        Some(match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Message::Text(text),
            Err(_) => Message::Bytes(bytes),
        })
    }
}

/// What stands around the text of an object that has only the key `log`; and the same inside of a JSON string.
const OPENING: &[u8] = br#"{"log":""#;
const CLOSING: &[u8] = br#""}"#;
const OPENING_ESCAPED: &[u8] = br#"{\"log\":\""#;
const CLOSING_ESCAPED: &[u8] = br#"\"}"#;

fn write_object(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(OPENING);
    text(out);
    out.extend_from_slice(CLOSING);
}

impl<'a> Message<'a> {
    /// Its length in UTF-8, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Object(text) => OPENING.len() + escape::length(text.as_bytes()) + CLOSING.len(),
            Self::Bytes(bytes) => escape::lossy_length(bytes),
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Object(_) => false,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    /// It as a text.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        match *self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Object(text) => {
                let mut made = Vec::with_capacity(self.len());
                write_object(&mut made, |made| escape::write(text.as_bytes(), made));
                // What is escaped of UTF-8 is UTF-8.
                Cow::Owned(String::from_utf8(made).unwrap_or_default())
            }
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// Appends it as the inside of a JSON string.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => escape::write(text.as_bytes(), out),
            Self::Object(text) => {
                out.extend_from_slice(OPENING_ESCAPED);
                escape::write_twice(text.as_bytes(), out);
                out.extend_from_slice(CLOSING_ESCAPED);
            }
            Self::Bytes(bytes) => escape::write_lossy(bytes, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn message(kind: BodyKind, body: &[u8], log_key: Option<&str>) -> Option<String> {
        Messages::new(log_key).of(kind, body, &mut Vec::new()).map(|message| message.text().into_owned())
    }

    #[test]
    fn without_a_key_the_message_is_the_whole_record_as_json() {
        for (kind, body, expected) in [
            (BodyKind::Text, &b"plain"[..], r#"{"log":"plain"}"#),
            (BodyKind::Text, b"", r#"{"log":""}"#),
            (BodyKind::Text, b"say \"hi\"\t\\ \0", r#"{"log":"say \"hi\"\t\\ \u0000"}"#),
            (BodyKind::Text, b"a\xffb", "{\"log\":\"a\u{FFFD}b\"}"),
            (BodyKind::Text, "😀".as_bytes(), "{\"log\":\"😀\"}"),
            (BodyKind::Json, br#"{ "b" : 1, "a":"\u0041" }"#, r#"{ "b" : 1, "a":"\u0041" }"#),
        ] {
            assert_eq!(message(kind, body, None).as_deref(), Some(expected));
        }
    }

    #[test]
    fn with_a_key_the_message_is_that_keys_value() {
        for (body, expected) in [
            (r#"{"k":"plain","log":"x"}"#, Some("plain")),
            (r#"{"k":""}"#, Some("")),
            (r#"{"k":"a\"b\\c\/d\n\u0000\u00e9\ud83d\ude00"}"#, Some("a\"b\\c/d\n\0é😀")),
            (r#"{"k":"\ud83d"}"#, Some("\u{FFFD}")),
            (r#"{"k":-1.50e3}"#, Some("-1.50e3")),
            (r#"{"k":true}"#, Some("true")),
            (r#"{"k":null}"#, Some("null")),
            (r#"{"k": {"k": [1, "x\n"]} , "z":1}"#, Some(r#"{"k": [1, "x\n"]}"#)),
            (r#"{"k":["a", {"b":2}]}"#, Some(r#"["a", {"b":2}]"#)),
            // Only at the top, only the whole name, and the first of several.
            (r#"{"a":{"k":1}}"#, None),
            (r#"{"ke":1,"kk":2,"K":3}"#, None),
            (r#"{"k":1,"k":2}"#, Some("1")),
            (r#"{"\u006b":"spelt otherwise"}"#, Some("spelt otherwise")),
            ("{}", None),
        ] {
            assert_eq!(message(BodyKind::Json, body.as_bytes(), Some("k")).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_text_record_has_one_key() {
        assert_eq!(message(BodyKind::Text, b"as \"it\" is\0", Some("log")).as_deref(), Some("as \"it\" is\0"));
        assert_eq!(message(BodyKind::Text, b"\xf0\x9f\x98!", Some("log")).as_deref(), Some("\u{FFFD}!"));
        assert_eq!(message(BodyKind::Text, b"x", Some("lo")), None);
        assert_eq!(message(BodyKind::Text, b"x", Some("logs")), None);
        assert_eq!(message(BodyKind::Text, b"x", Some("")), None);
    }

    proptest! {
        #[test]
        fn length_and_json_are_those_of_the_lossy_text(
            body in prop::collection::vec(any::<u8>(), 0..60), text_key in any::<bool>(),
        ) {
            let mut made = Vec::new();
            let messages = Messages::new(text_key.then_some("log"));
            let message = messages.of(BodyKind::Text, &body, &mut made).unwrap();
            let lossy = String::from_utf8_lossy(&body);
            let expected = if text_key { lossy.into_owned() } else { serde_json::json!({ "log": lossy }).to_string() };
            prop_assert_eq!(message.len(), expected.len());
            prop_assert_eq!(message.is_empty(), expected.is_empty());
            prop_assert_eq!(&message.text(), &expected);
            let mut json = vec![b'"'];
            message.write_json(&mut json);
            json.push(b'"');
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), expected);
        }

        #[test]
        fn a_keys_message_is_what_serde_json_reads(text in any::<String>(), number in any::<i64>()) {
            let body = serde_json::json!({ "n": number, "t": &text, "o": { "t": number } }).to_string();
            let of = |key| message(BodyKind::Json, body.as_bytes(), Some(key));
            prop_assert_eq!(of("t"), Some(text));
            prop_assert_eq!(of("n"), Some(number.to_string()));
            let nested = of("o").map(|text| serde_json::from_str::<Value>(&text).unwrap());
            prop_assert_eq!(nested, Some(serde_json::json!({ "t": number })));
        }
    }
}
