//! Regular expressions as Fluent Bit reads them (Onigmo with Ruby's syntax) become what Wharf reads (the `regex` crate).

/// The same pattern for Wharf.
///
/// Slashes around it are taken away, and options behind the last one become flags: `i` and `x` are the same letters here, Ruby's `m` (a dot is a
/// line feed too) is `s`, with `m` since `^` and `$` are always those of a line there, and `o` does nothing in Fluent Bit either. As there
/// (`check_option` and `str_to_regex` of its `src/flb_regex.c`), the slashes are part of the pattern where something else is behind the last one, as in
/// `/var/log`, or `o` alone.
pub(super) fn translated(text: &str) -> String {
    let (pattern, options) = taken_apart(text);
    let flags: String = [('i', "i"), ('m', "ms"), ('x', "x")]
        .iter()
        .filter(|(it, _)| options.contains(*it))
        .map(|(_, it)| *it)
        .collect();
    let pattern = inner(pattern, options.contains('x'));
    if flags.is_empty() { pattern } else { format!("(?{flags}){pattern}") }
}

fn taken_apart(text: &str) -> (&str, &str) {
    let Some((pattern, options)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else {
        return (text, "");
    };
    let known = options.chars().all(|it| matches!(it, 'i' | 'm' | 'x' | 'o'));
    let none = !options.is_empty() && options.chars().all(|it| it == 'o');
    if known && !none { (pattern, options) } else { (text, "") }
}

/// Options inside the pattern are letters of Ruby's as well. With `x`, blanks in brackets are characters there, and nothing here.
fn inner(pattern: &str, mut extended: bool) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut depth = 0_usize;
    while let Some(c) = rest.chars().next() {
        let (mut taken, behind) = rest.split_at(c.len_utf8());
        match c {
            // In Ruby's syntax the first two are themselves, where here they are the bounds of a word; and `\h` is a digit in hex.
            '\\' if behind.starts_with(['<', '>']) => {
                rest = behind;
                continue;
            }
            '\\' if behind.starts_with('h') => {
                text.push_str(if depth > 0 { "0-9A-Fa-f" } else { "[0-9A-Fa-f]" });
                rest = behind.get(1..).unwrap_or_default();
                continue;
            }
            '\\' => taken = rest.get(..1 + behind.chars().next().map_or(0, char::len_utf8)).unwrap_or(rest),
            '[' => {
                depth += 1;
                // A ] that comes first is one of the characters.
                let first = ["^]", "]"].iter().find(|first| behind.starts_with(**first)).map_or(0, |first| first.len());
                taken = rest.get(..=first).unwrap_or(rest);
            }
            ']' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => {
                if let Some(options) = options(behind) {
                    extended |= options.split('-').next().is_some_and(|on| on.contains('x'));
                    text.push_str(&format!("(?{}", options.replace('m', "s")));
                    rest = rest.get(2 + options.len()..).unwrap_or_default();
                    continue;
                }
            }
            c if depth > 0 && extended && (c.is_whitespace() || c == '#') => text.push('\\'),
            _ => {}
        }
        text.push_str(taken);
        rest = rest.get(taken.len()..).unwrap_or_default();
    }
    text
}

/// `im-x` of `?im-x)` and `?im-x:`.
fn options(behind: &str) -> Option<&str> {
    let text = behind.strip_prefix('?')?;
    let options = text.split([')', ':']).next().filter(|it| text.len() > it.len())?;
    (!options.is_empty() && options.chars().all(|it| matches!(it, 'i' | 'm' | 'x' | '-'))).then_some(options)
}

#[cfg(test)]
mod tests {
    use super::translated;

    /// Each as `check_option` and `str_to_regex` of Fluent Bit 5's `src/flb_regex.c` take it apart, and as the documents of Onigmo (`doc/RE`,
    /// "Extended groups", Ruby's syntax) and of the crate `regex` ("Grouping and flags") say what an option means.
    #[test]
    fn slashes_around_a_pattern_are_taken_away_and_options_behind_them_become_flags() {
        for (theirs, ours) in [
            (r"^(?<a>\d+)$", r"^(?<a>\d+)$"),
            (r"/^(?<a>\d+)$/", r"^(?<a>\d+)$"),
            (r"/^(?<a>\w+)$/i", r"(?i)^(?<a>\w+)$"),
            (r"/^(?<a>.*)$/m", r"(?ms)^(?<a>.*)$"),
            (r"/^ (?<a>\w+) $/x", r"(?x)^ (?<a>\w+) $"),
            (r"/(?<a>.)/xmi", r"(?imsx)(?<a>.)"),
            // Fluent Bit's own conf/parsers.conf, syslog-rfc3164.
            (r"/^\<(?<pri>[0-9]+)\>(?<a>\h+[\h-]+)/", r"^<(?<pri>[0-9]+)>(?<a>[0-9A-Fa-f]+[0-9A-Fa-f-]+)"),
            (r"/(?<a>.)/io", r"(?i)(?<a>.)"),
            (r"/(?<a>.*)/b(?<c>.*)/", r"(?<a>.*)/b(?<c>.*)"),
            // Not options, so that nothing is taken away.
            (r"/(?<a>.)/o", r"/(?<a>.)/o"),
            (r"/var/log/(?<a>.*)", r"/var/log/(?<a>.*)"),
            (r"/(?<a>.*)", r"/(?<a>.*)"),
            (r"(?<a>.*)/", r"(?<a>.*)/"),
            ("/", "/"),
            ("//", ""),
            ("", ""),
            // Ruby's m inside the pattern.
            (r"(?m)(?<a>.*)", r"(?s)(?<a>.*)"),
            (r"(?i-m:x)(?<m>\(?m)", r"(?i-s:x)(?<m>\(?m)"),
            (r"[(?m)](?:m)", r"[(?m)](?:m)"),
            // A blank in brackets is a character in Ruby, also with x.
            (r"/(?<a>[^ #\]]+) [] ] [[:alpha:] ] \[ é/x", r"(?x)(?<a>[^\ \#\]]+) []\ ] [[:alpha:]\ ] \[ é"),
            (r"(?<a>[^ ]+) \", r"(?<a>[^ ]+) \"),
        ] {
            assert_eq!(translated(theirs), ours, "{theirs}");
        }
    }

    #[test]
    fn a_translated_pattern_matches_what_fluent_bit_matches() {
        for (theirs, line, a) in [
            (r"/^(?<a>\d+)$/", "42", "42"),
            (r"/^error (?<a>\w+)$/i", "ERROR disk", "disk"),
            (r"/^at (?<a>.*)$/m", "at one\ntwo", "one\ntwo"),
            (r"/^\<(?<pri>[0-9]+)\>(?<a>[^ ]+) /", "<13>web up", "web"),
            (r"/^ (?<a> [^ #]+ ) [ ] rest $/x", "first rest", "first"),
        ] {
            let pattern = regex::Regex::new(&translated(theirs)).unwrap();
            assert_eq!(pattern.captures(line).and_then(|it| it.name("a")).map(|it| it.as_str()), Some(a), "{theirs}");
        }
    }
}
