//! Making a guest's text harmless: one line, of bounded length, that cannot steer a terminal.

use std::fmt::Write as _;

/// `text` on one line, cut at `most` bytes (and marked so), with control characters written out.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let kept = cut(text, most);
    let mut line = String::with_capacity(kept.len());
    for c in kept.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if steers(c) => {
                // Writing into a String cannot fail.
                let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    if kept.len() < text.len() {
        let _ = write!(line, "… ({} bytes more)", text.len() - kept.len());
    }
    line
}

/// The beginning of `text`, at most `most` bytes, whole characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// Characters that act on a terminal or turn the direction of writing instead of being shown.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_escape_sequences_are_written_out() {
        assert_eq!(one_line("a\r\nb\tc\u{1b}[31md\u{9b}1m\u{7f}", 100), r"a\r\nb\tc\u{1b}[31md\u{9b}1m\u{7f}");
    }

    #[test]
    fn writing_direction_cannot_be_turned() {
        assert_eq!(one_line("user\u{202e}txt.exe", 100), r"user\u{202e}txt.exe");
    }

    #[test]
    fn ordinary_text_in_any_language_stays() {
        assert_eq!(one_line("Grüße, 世界 ☃", 100), "Grüße, 世界 ☃");
    }

    #[test]
    fn long_text_is_cut_between_characters_and_says_how_much_is_missing() {
        assert_eq!(one_line("aéé", 2), "a… (4 bytes more)");
        assert_eq!(one_line("abc", 3), "abc");
    }
}
