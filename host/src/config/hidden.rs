//! What came from the environment into a value. It may be a secret, so no message shows any of it: messages say the variable's name.
//!
//! Wharf's own messages are made without it. Those of others, a component or a parser, are looked through: one that shows some of it is not
//! told, and what is told instead says whose value it was and what is wanted there. "Some of it" is a number, a word, or anything in quotes
//! that the text from the environment has as well. In doubt a message is not told.

/// What the environment put into one value: variables, and what they held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hidden(Vec<(String, String)>);

/// A shorter piece of another value is in a text by chance.
pub(crate) const ELSEWHERE: usize = 3;
/// Of the value that a text is about, any piece counts.
pub(crate) const HERE: usize = 1;

impl Hidden {
    pub(crate) fn add(&mut self, variable: &str, text: &str) {
        self.0.push((variable.to_owned(), text.to_owned()));
    }

    /// This, and what came into another value.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(variable, text)| variable.len() + text.len()).sum()
    }

    /// `the environment variable A`, or `the environment variables A and B`.
    pub(crate) fn named(&self) -> String {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [one] => format!("the environment variable {one}"),
            many => format!("the environment variables {}", many.join(" and ")),
        }
    }

    /// Whether a text shows some of it, in pieces of `least` characters or more. Words of `known` may be in it.
    pub(crate) fn is_shown_in(&self, text: &str, least: usize, known: &str) -> bool {
        let text = text.to_lowercase();
        self.0.iter().any(|(_, value)| shows(&text, &value.to_lowercase(), least, known))
    }
}

fn shows(text: &str, value: &str, least: usize, known: &str) -> bool {
    let length = |piece: &str| piece.chars().count();
    if value.trim().is_empty() {
        return false;
    }
    if length(value) >= 3 && text.contains(value) {
        return true;
    }
    let is_quoted = quoted(text).any(|piece| {
        let piece = piece.trim_end_matches('…');
        let part = |word: &&str| length(word) >= 3 && value.contains(*word) && !known.contains(*word);
        (length(piece) >= least.max(2) && value.contains(piece)) || words(piece).iter().any(part)
    });
    let of_value = words(value);
    is_quoted
        || words(text).into_iter().any(|word| {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                return length(word) >= least && of_value.contains(&word);
            }
            let is_same = length(word) >= 3 && of_value.contains(&word);
            (is_same || (length(word) >= 6 && value.contains(word))) && !known.contains(word)
        })
}

/// What stands in backquotes or quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    ['`', '"'].into_iter().flat_map(|quote| text.split(quote).skip(1).step_by(2))
}

/// Runs of letters, and runs of digits.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| (c.is_ascii_digit(), c.is_alphanumeric());
    let (mut words, mut begin, mut current) = (vec![], 0, (false, false));
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if kind(c) != current {
            words.extend(text.get(begin..at).filter(|_| current.1));
            (begin, current) = (at, kind(c));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, HERE, Hidden};

    #[test]
    fn a_text_shows_what_it_quotes_and_what_it_says_as_a_word_or_a_number() {
        for (value, text, here, elsewhere) in [
            ("50SECRET", "the unit \"SECRET\" is not known: write B, KB or MB", true, true),
            ("10", "it has no unit: write 10ms, 10s or 10m", true, false),
            ("7", "the number is out of range; it must be 7 to 64", true, false),
            ("12345678", "AWS does not take 12345678 days", true, true),
            ("$SECRET[x", "`[x` is not closed: write `['name']`", true, false),
            ("$secret-logs", "Write `$(secret-logs)` if it does", true, true),
            ("My-Secret", "my is no secret", true, true),
            ("hushhush", "`hushh…` is too long", true, true),
            ("xhushhushx", "it has hushhush in it", true, true),
            ("hush", "has a control character, U+0000", false, false),
            ("hush", "`$HOST` is not known: the names are `$TAG` and `$UUID`", false, false),
            ("catalogue-7", "it is longer than ten years; it may have 64 characters", false, false),
            ("", "is empty", false, false),
            ("`", "`x` and `y`", false, false),
        ] {
            let mut hidden = Hidden::default();
            hidden.add("V", value);
            assert_eq!(hidden.is_shown_in(text, HERE, ""), here, "{value}: {text}");
            assert_eq!(hidden.is_shown_in(text, ELSEWHERE, ""), elsewhere, "{value}: {text}");
        }
    }

    #[test]
    fn words_that_are_known_anyway_show_nothing_but_quotes_do() {
        let mut hidden = Hidden::default();
        hidden.add("V", "my bucket");
        let known = "the bucket's name";
        assert!(!hidden.is_shown_in("the bucket's name has a blank", HERE, known));
        assert!(hidden.is_shown_in("`my bucket` has a blank", HERE, known));
    }

    #[test]
    fn variables_are_named_once() {
        let mut hidden = Hidden::default();
        hidden.add("B", "1");
        assert_eq!(hidden.named(), "the environment variable B");
        hidden.add("A", "2");
        hidden.add("B", "1");
        assert_eq!(hidden.named(), "the environment variables A and B");
    }
}
