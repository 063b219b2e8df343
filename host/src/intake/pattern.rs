//! What an output's `match` says of tags: `*` is any characters, dots too, also none; `?` is one. Everything else is itself.

/// A pattern over tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<char>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Whether a whole tag matches. Time is at most the product of both lengths, whatever they are.
    pub(super) fn matches(&self, tag: &str) -> bool {
        let tag: Vec<char> = tag.chars().collect();
        let (mut at, mut in_tag) = (0, 0);
        // The last `*`, and where in the tag what follows it is tried.
        let mut star: Option<(usize, usize)> = None;
        while let Some(c) = tag.get(in_tag) {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, in_tag));
                    at += 1;
                }
                Some(p) if *p == '?' || p == c => {
                    at += 1;
                    in_tag += 1;
                }
                _ => match &mut star {
                    // The `*` takes one character more.
                    Some((star_at, tried)) => {
                        *tried += 1;
                        at = *star_at + 1;
                        in_tag = *tried;
                    }
                    None => return false,
                },
            }
        }
        self.0.get(at..).unwrap_or_default().iter().all(|p| *p == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters_and_a_question_mark_is_one() {
        for (pattern, tag, expected) in [
            ("app", "app", true),
            ("app", "app.web", false),
            ("*", "", true),
            ("*", "a.b/c", true),
            ("app.*", "app.web.1", true),
            ("app.*", "app", false),
            ("*.web", "app.web", true),
            ("*.web", "app.web.1", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("?", "", false),
            ("", "", true),
            ("[a]", "a", false),
            ("[a]", "[a]", true),
            ("**a", "a", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(tag), expected, "{pattern} {tag}");
        }
    }

    proptest::proptest! {
        /// The model is the obvious recursion.
        #[test]
        fn matching_agrees_with_its_definition(pattern in "[ab*?]{0,8}", tag in "[ab]{0,10}") {
            fn model(p: &[u8], t: &[u8]) -> bool {
                match (p.split_first(), t.split_first()) {
                    (None, None) => true,
                    (Some((b'*', p_rest)), None) => model(p_rest, t),
                    (Some((b'*', p_rest)), Some((_, t_rest))) => model(p_rest, t) || model(p, t_rest),
                    (Some((c, p_rest)), Some((d, t_rest))) => (*c == b'?' || c == d) && model(p_rest, t_rest),
                    _ => false,
                }
            }
            let expected = model(pattern.as_bytes(), tag.as_bytes());
            proptest::prop_assert_eq!(Pattern::new(&pattern).matches(&tag), expected);
        }
    }
}
