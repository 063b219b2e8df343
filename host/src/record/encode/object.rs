//! Looking up top-level keys of a JSON object without parsing what lies between.
//!
//! Bodies were checked by their source, so this only has to find its way: strings and nesting are respected, values
//! are not looked into. In bytes that are no JSON object it finds nothing, or nonsense, but never panics.

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

use super::escape;

/// A key to look for.
#[derive(Debug)]
pub(in crate::record) struct Key {
    text: Vec<u8>,
    /// The key as JSON usually writes it, with its quotation marks.
    quoted: Finder<'static>,
    /// What every other spelling has in it.
    escape: Finder<'static>,
}

impl Key {
    pub(in crate::record) fn new(text: &str) -> Self {
        // RFC 8259, section 7: characters without a short escape can be escaped in one way, by their number. Lines in JSON are full of escaped
        // quotation marks, and have hardly ever one of those.
        let has_short_escape = text.contains(|c| matches!(c, '"' | '\\' | '/') || c.is_ascii_control());
        let escape = Finder::new(if has_short_escape { r"\" } else { r"\u" });
        Self { text: text.into(), quoted: Finder::new(&quoted(text)).into_owned(), escape }
    }
    /// What it is, unescaped.
    pub(in crate::record) fn text(&self) -> &[u8] {
        &self.text
    }
    /// Whether no object in `bytes` can have this key: it is not there as JSON usually writes it, and nothing is escaped that
    /// could be it in another spelling. Much faster than looking it up.
    pub(in crate::record) fn is_absent(&self, bytes: &[u8]) -> bool {
        self.quoted.find(bytes).is_none() && self.escape.find(bytes).is_none()
    }
    /// The value's JSON text; that of the first where the key is there more than once.
    pub(in crate::record) fn value<'a>(&self, object: &'a [u8]) -> Option<&'a [u8]> {
        Members::of(object)?.find(|(key, _)| self.is(key)).map(|(_, value)| value)
    }
    /// Whether the inside of a JSON string means this key.
    fn is(&self, written: &[u8]) -> bool {
        if memchr(b'\\', written).is_none() {
            return written == self.text;
        }
        let mut meaning = Vec::with_capacity(written.len());
        escape::undo(written, &mut meaning);
        meaning == self.text
    }
}

/// Text as a JSON string.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    super::write_json_string(text, &mut out);
    out
}

/// The inside of a value that is a string, still escaped.
pub(super) fn inside_string(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// What stands behind an object's opening brace, white space left out.
pub(super) fn inside(object: &[u8]) -> Option<&[u8]> {
    object.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start)
}

/// Keys, without quotation marks but still escaped, and the texts of their values.
struct Members<'a>(&'a [u8]);

impl<'a> Members<'a> {
    fn of(object: &'a [u8]) -> Option<Self> {
        inside(object).map(Self)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = self.0.split_at_checked(string_length(self.0)?)?;
        let value = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, rest) = value.split_at_checked(value_length(value)?)?;
        let rest = rest.trim_ascii_start();
        self.0 = rest.strip_prefix(b",").unwrap_or_default().trim_ascii_start();
        Some((key.strip_prefix(b"\"")?.strip_suffix(b"\"")?, value))
    }
}

/// Length of the string that `text` begins with, quotation marks included.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    text.strip_prefix(b"\"")?;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Length of the value that `text` begins with.
fn value_length(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => string_length(text),
        b'{' | b'[' => nested_length(text),
        _ => text.iter().position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r')).filter(|n| *n > 0),
    }
}

fn nested_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => {
                at += string_length(text.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value<'a>(object: &'a str, key: &str) -> Option<&'a str> {
        Key::new(key).value(object.as_bytes()).map(|value| std::str::from_utf8(value).unwrap())
    }

    #[test]
    fn only_top_level_keys_are_found() {
        let object = r#"{"a":{"k":1},"b":["k",{"k":2}],"c":"\"k\":3","k" : 4 ,"d":5}"#;
        assert_eq!(value(object, "k"), Some("4"));
        assert_eq!(value(object, "a"), Some(r#"{"k":1}"#));
        assert_eq!(value(object, "b"), Some(r#"["k",{"k":2}]"#));
        assert_eq!(value(object, "d"), Some("5"));
        assert_eq!(value(object, "e"), None);
    }

    #[test]
    fn the_first_of_duplicated_keys_wins() {
        assert_eq!(value(r#"{"k":1,"k":2}"#, "k"), Some("1"));
    }

    #[test]
    fn keys_are_compared_by_meaning() {
        assert_eq!(value(r#"{"lo":1,"lo\u0067":2}"#, "log"), Some("2"));
        assert_eq!(value(r#"{"a\/\"b":1}"#, "a/\"b"), Some("1"));
        assert!(!Key::new("log").is_absent(br#"{"lo\u0067":2}"#));
        assert!(!Key::new("log").is_absent(br#"{"log":2}"#));
        assert!(Key::new("log").is_absent(br#"{"logs":2}"#));
    }

    #[test]
    fn escapes_that_cannot_spell_the_key_leave_it_absent() {
        assert!(Key::new("log").is_absent(br#"{"line":"GET \"\/\" \\n\t"}"#));
        for (key, object) in [("a/b", r#"{"a\/b":1}"#), ("a\tb", r#"{"a\u0009b":1}"#), ("é", r#"{"\u00e9":1}"#)] {
            assert_eq!((Key::new(key).is_absent(object.as_bytes()), value(object, key)), (false, Some("1")), "{key}");
        }
    }

    #[test]
    fn braces_and_brackets_inside_strings_do_not_count() {
        assert_eq!(value(r#" { "a" : [ "]}" , "\\" ] , "k" : true } "#, "k"), Some("true"));
    }

    #[test]
    fn empty_objects_and_what_is_no_object_have_no_keys() {
        for text in ["{}", " { } ", "", "[]", "null", "{", r#"{"k"#, r#"{"k":"#, r#"{"k":}"#, r#"{k:1}"#] {
            assert_eq!(value(text, "k"), None, "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\"\\\\{}\\[\\],: a😀\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ab\"\\\\{é]{0,3}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_those_that_serde_json_finds(
            members in prop::collection::vec(("[ab\"\\\\{é]{0,3}", json()), 0..6),
            key in "[ab\"\\\\{é]{0,3}",
            pretty in any::<bool>(),
        ) {
            let object = Value::Object(members.into_iter().collect());
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let text = text.unwrap();
            let found = value(&text, &key).map(|value| serde_json::from_str::<Value>(value).unwrap());
            prop_assert_eq!(found.as_ref(), object.get(&key));
            if Key::new(&key).is_absent(text.as_bytes()) {
                prop_assert_eq!(found, None);
            }
        }

        #[test]
        fn any_bytes_are_searched_without_panic(text in "\\{[{}\\[\\]\",:k\\\\ ]{0,40}") {
            value(&text, "k");
        }
    }
}
