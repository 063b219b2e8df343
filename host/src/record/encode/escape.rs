//! Text as the inside of a JSON string, and back.
//!
//! RFC 8259, section 7: quotation mark, reverse solidus and what is below U+0020 must be escaped; everything else stands for
//! itself. Looking for such bytes is where the time goes, so it is done many bytes at a time.

const HEX: &[u8; 16] = b"0123456789abcdef";
const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

fn must_be_escaped(byte: u8) -> bool {
    // `|` rather than `||`: without branches the compiler turns loops over this into vector instructions.
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// How many bytes have to be escaped.
pub(super) fn count(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<128>();
    // 128 ones fit a byte, which keeps the sum in vectors of bytes.
    let one = |bytes: &[u8]| usize::from(bytes.iter().map(|byte| u8::from(must_be_escaped(*byte))).sum::<u8>());
    blocks.iter().map(|block| one(block)).sum::<usize>() + one(rest)
}

/// Whether a byte below U+0020 has no short escape: it becomes `\u00XX`.
fn is_written_long(byte: u8) -> bool {
    (byte < 0x20) & (byte != 0x08) & (byte != b'\t') & (byte != b'\n') & (byte != 0x0c) & (byte != b'\r')
}

/// How many bytes UTF-8 text has as the inside of a JSON string.
pub(super) fn length(text: &[u8]) -> usize {
    let (blocks, rest) = text.as_chunks::<32>();
    // An escape adds 1 byte, a long one 5: 32 of these fit a byte, which keeps the sum in vectors of bytes.
    let added = |byte: &u8| u8::from(must_be_escaped(*byte)) + 4 * u8::from(is_written_long(*byte));
    let of = |bytes: &[u8]| usize::from(bytes.iter().map(added).sum::<u8>());
    text.len() + blocks.iter().map(|block| of(block)).sum::<usize>() + of(rest)
}

/// The high bit of each byte that has to be escaped. A borrow can also mark a byte above such a one, so only the lowest mark
/// is to be trusted.
fn marks(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let word = u64::from_le_bytes(word);
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES * 0x80)
}

/// Appends UTF-8 text, escaped.
///
/// Blocks without such a byte are copied as they are. In a block with one the next is seldom far, so it goes on by words: a
/// word is copied whole, and cut back to the byte that is escaped.
pub(super) fn write(text: &[u8], out: &mut Vec<u8>) {
    write_by(text, out, write_byte);
}

/// Appends UTF-8 text, escaped, and escaped again: a string inside of JSON that is itself inside of a string.
pub(super) fn write_twice(text: &[u8], out: &mut Vec<u8>) {
    write_by(text, out, write_byte_twice);
}

#[inline]
fn write_by(mut text: &[u8], out: &mut Vec<u8>, write_byte: impl Fn(u8, &mut Vec<u8>)) {
    const BLOCK: usize = 32;
    while !text.is_empty() {
        let (blocks, _) = text.as_chunks::<BLOCK>();
        let is_clean = |block: &&[u8; BLOCK]| !block.iter().fold(false, |found, byte| found | must_be_escaped(*byte));
        let clean = blocks.iter().take_while(is_clean).count() * BLOCK;
        let (clean, rest) = text.split_at(clean);
        out.extend_from_slice(clean);
        text = rest;
        let behind_block = text.len().saturating_sub(BLOCK);
        while text.len() > behind_block {
            let Some((word, rest)) = text.split_first_chunk::<8>() else {
                // Many a text, such as a key, is no longer than this.
                if text.iter().fold(false, |found, byte| found | must_be_escaped(*byte)) {
                    text.iter().for_each(|byte| write_byte(*byte, out));
                } else {
                    out.extend_from_slice(text);
                }
                return;
            };
            out.extend_from_slice(word);
            let clean = marks(*word).trailing_zeros() as usize / 8;
            match text.get(clean).filter(|_| clean < 8) {
                Some(byte) => {
                    out.truncate(out.len() - (8 - clean));
                    write_byte(*byte, out);
                    text = text.get(clean + 1..).unwrap_or_default();
                }
                None => text = rest,
            }
        }
    }
}

/// Appends one byte, escaped if it has to be.
#[inline]
fn write_byte(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..0x20 => {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
        _ => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends what [`write_byte`] would, escaped.
#[inline]
fn write_byte_twice(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(br#"\\\""#),
        b'\\' => out.extend_from_slice(br"\\\\"),
        0..0x20 => {
            // Of an escape only the reverse solidus is one of those bytes.
            out.push(b'\\');
            write_byte(byte, out);
        }
        _ => out.push(byte),
    }
}

/// Appends any bytes, escaped; what is no UTF-8 becomes U+FFFD, one for each maximal subpart as Unicode recommends.
pub(crate) fn write_lossy(bytes: &[u8], out: &mut Vec<u8>) {
    // Mostly it is UTF-8, and that is found out many bytes at a time.
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return write(text.as_bytes(), out);
    }
    for chunk in bytes.utf8_chunks() {
        write(chunk.valid().as_bytes(), out);
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(REPLACEMENT);
        }
    }
}

/// How many bytes any bytes have as UTF-8, unescaped; what is none counts as [`write_lossy`] writes it.
pub(super) fn lossy_length(bytes: &[u8]) -> usize {
    let one = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { REPLACEMENT.len() }
    };
    bytes.utf8_chunks().map(one).sum()
}

/// Appends what the inside of a JSON string means. A surrogate without its partner becomes U+FFFD; a broken escape stays
/// as it is.
pub(in crate::record) fn undo(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', text) {
        let (clean, escape) = text.split_at(at);
        out.extend_from_slice(clean);
        let (meaning, length) = one_escape(escape);
        match meaning {
            Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.extend_from_slice(escape.get(..length).unwrap_or(escape)),
        }
        text = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

/// What the escape at the beginning of `text` means, where it means something, and how long it is.
fn one_escape(text: &[u8]) -> (Option<char>, usize) {
    let simple = match text.get(1) {
        Some(b'u') => return unicode_escape(text),
        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        _ => return (None, 1),
    };
    (Some(simple), 2)
}

fn unicode_escape(text: &[u8]) -> (Option<char>, usize) {
    let Some(unit) = code_unit(text) else { return (None, 1) };
    if let Some(character) = char::from_u32(unit) {
        return (Some(character), 6);
    }
    let pair = text.get(6..).and_then(code_unit).filter(|low| unit < 0xDC00 && (0xDC00..0xE000).contains(low));
    match pair {
        Some(low) => (char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), 12),
        None => (Some(char::REPLACEMENT_CHARACTER), 6),
    }
}

/// The number of a `\uXXXX`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_lossy(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn undone(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        undo(text.as_bytes(), &mut out);
        out
    }

    #[test]
    fn every_byte_is_escaped_as_serde_json_does_wherever_it_stands() {
        for byte in 0..0x80_u8 {
            for before in [0, 1, 7, 8, 31, 32, 33, 100] {
                let text = format!("{}{}{}", "x".repeat(before), char::from(byte), "é".repeat(40));
                assert_eq!(format!("\"{}\"", escaped(text.as_bytes())), serde_json::to_string(&text).unwrap());
                let needed = usize::from(byte < 0x20 || byte == b'"' || byte == b'\\');
                assert_eq!(count(text.as_bytes()), needed);
                assert_eq!(length(text.as_bytes()), serde_json::to_string(&text).unwrap().len() - 2);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_become_replacement_characters() {
        assert_eq!(escaped(b"a\xffb"), "a\u{FFFD}b");
        assert_eq!(escaped(b"\xf0\x9f\x98"), "\u{FFFD}");
        assert_eq!(escaped(b"\xc0\xaf\""), "\u{FFFD}\u{FFFD}\\\"");
        assert_eq!(escaped(b"\xed\xa0\x80"), "\u{FFFD}\u{FFFD}\u{FFFD}");
        assert_eq!(escaped("😀\0".as_bytes()), "😀\\u0000");
    }

    #[test]
    fn surrogates_join_and_lone_ones_are_replaced() {
        assert_eq!(undone(r"\ud83d\ude00!"), "😀!".as_bytes());
        assert_eq!(undone(r"\ud83d!"), "\u{FFFD}!".as_bytes());
        assert_eq!(undone(r"\ude00\ud83d"), "\u{FFFD}\u{FFFD}".as_bytes());
        assert_eq!(undone(r"\ud83d\u0041"), "\u{FFFD}A".as_bytes());
        assert_eq!(undone(r#"\"\\\/\b\f\n\r\t\u00e9\u0000"#), "\"\\/\u{8}\u{c}\n\r\té\0".as_bytes());
    }

    #[test]
    fn a_broken_escape_stays() {
        assert_eq!(undone(r"a\"), br"a\");
        assert_eq!(undone(r"\x\u12"), br"\x\u12");
    }

    proptest! {
        #[test]
        fn any_text_is_escaped_as_serde_json_does(text in any::<String>()) {
            prop_assert_eq!(format!("\"{}\"", escaped(text.as_bytes())), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn the_length_is_that_of_what_is_written(text in "[ -~\0-\x1fé😀]{0,200}") {
            prop_assert_eq!(length(text.as_bytes()), escaped(text.as_bytes()).len());
        }

        #[test]
        fn a_string_inside_of_json_inside_of_a_string_is_as_serde_json_writes_it(text in "[ -~\0-\x1fé😀]{0,200}") {
            let mut out = Vec::new();
            write_twice(text.as_bytes(), &mut out);
            let once = serde_json::to_string(&text).unwrap();
            let inside = &once[1..once.len() - 1];
            prop_assert_eq!(format!("\"{}\"", String::from_utf8(out).unwrap()), serde_json::to_string(inside).unwrap());
        }

        #[test]
        fn any_bytes_are_escaped_as_their_lossy_text(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let text = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(format!("\"{}\"", escaped(&bytes)), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn what_was_escaped_comes_back(text in any::<String>()) {
            prop_assert_eq!(undone(&escaped(text.as_bytes())), text.as_bytes());
        }
    }
}
