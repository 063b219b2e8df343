//! Reading a template.

use super::{Part, Template};

/// Parses a template. Gives every fault.
pub fn parse(text: &str) -> Result<Template, Vec<String>> {
    let mut reader = Reader { rest: text, parts: Vec::new(), faults: Vec::new() };
    reader.read();
    let Reader { parts, mut faults, .. } = reader;
    if parts.is_empty() && faults.is_empty() {
        faults.push("the template is empty".into());
    }
    if faults.is_empty() { Ok(Template(parts)) } else { Err(faults) }
}

struct Reader<'a> {
    rest: &'a str,
    parts: Vec<Part>,
    faults: Vec<String>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            self.rest = self.after(c.len_utf8());
            if c == '$' { self.read_value() } else { self.literal(c) }
        }
    }

    fn after(&self, bytes: usize) -> &'a str {
        self.rest.get(bytes..).unwrap_or_default()
    }

    fn literal(&mut self, c: char) {
        if let Some(Part::Literal(text)) = self.parts.last_mut() {
            text.push(c);
        } else {
            self.parts.push(Part::Literal(c.into()));
        }
    }

    /// Behind `$`.
    fn read_value(&mut self) {
        let begin = self.rest;
        if begin.starts_with('{') {
            let name = begin.split_inclusive('}').next().unwrap_or_default();
            self.faults.push(format!(
                "`${name}` stands for an environment variable, which is put in when the file is read, and none was: write `${{NAME}}`"
            ));
            self.rest = self.after(name.len());
            return;
        }
        if begin.starts_with('(') {
            self.rest = self.after(1);
            self.read_bracketed(begin);
            return;
        }
        let key = self.key(|c| c.is_alphanumeric() || c == '_');
        if key.is_empty() && !begin.starts_with("['") && !begin.starts_with("[\"") {
            self.literal('$');
            return;
        }
        if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()) {
            self.faults.push(format!(
                "`${key}` is a group of a regular expression, and there is none here: name a key or `$TAG[n]`"
            ));
            return;
        }
        let Some(steps) = self.steps() else { return };
        if steps.is_empty() {
            self.check_end(key);
        }
        self.push(key, "TAG", steps);
    }

    /// Behind `$(`: a key of any letters but those that end it.
    fn read_bracketed(&mut self, begin: &str) {
        let key = self.key(|c| c != ')' && c != '[');
        let Some(steps) = self.steps() else { return };
        if !self.rest.starts_with(')') || (key.is_empty() && steps.is_empty()) {
            let shown: String = begin.chars().take(40).collect();
            self.faults.push(format!("`${shown}` is not closed: write `$(key)` or `$(key['sub'])`"));
            self.rest = "";
            return;
        }
        self.rest = self.after(1);
        let tag = if key == "tag" { "tag" } else { "TAG" };
        self.push(key, tag, steps);
    }

    fn key(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let key = self.rest.get(..end).unwrap_or_default();
        self.rest = self.after(end);
        key
    }

    /// `['sub']["more"][3]`
    fn steps(&mut self) -> Option<Vec<&'a str>> {
        let mut steps = Vec::new();
        while let Some(inside) = self.rest.strip_prefix('[') {
            let close = match inside.chars().next() {
                Some('\'') => "']",
                Some('"') => "\"]",
                _ => "]",
            };
            let Some(end) = inside.get(1..).and_then(|inside| inside.find(close)).map(|end| end + 1) else {
                self.faults.push(format!("`{}` is not closed: write `['name']`", self.rest));
                self.rest = "";
                return None;
            };
            let step = inside.get(..end).unwrap_or_default();
            self.rest = inside.get(end + close.len()..).unwrap_or_default();
            steps.push(step);
        }
        Some(steps)
    }

    /// In Fluent Bit a key ends only at `.` or `,`. Where it is doubtful whether `-` still belongs to it, the operator has to say.
    fn check_end(&mut self, key: &str) {
        let mut behind = self.rest.chars();
        if behind.next() == Some('-') && behind.next().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(self.rest.len());
            let tail = self.rest.get(..end).unwrap_or_default();
            self.faults.push(format!(
                "`${key}{tail}`: does `{tail}` belong to the key? Write `$({key}{tail})` if it does, and `$({key}){tail}` if it does not"
            ));
        }
    }

    fn push(&mut self, key: &str, tag: &str, steps: Vec<&str>) {
        if key == tag {
            match steps.as_slice() {
                [] => self.parts.push(Part::Tag),
                [n] if n.bytes().all(|byte| byte.is_ascii_digit()) && n.parse::<usize>().is_ok() => {
                    self.parts.push(Part::OfTag(n.parse().unwrap_or_default()));
                }
                _ => self.faults.push(format!(
                    "`${key}[{}]` is no part of the tag: write `$TAG[0]`, `$TAG[1]`, …",
                    steps.join("][")
                )),
            }
            return;
        }
        let mut path = Vec::new();
        if !key.is_empty() {
            path.push(key.to_owned());
        }
        for step in steps {
            let name = step.strip_prefix('\'').or_else(|| step.strip_prefix('"'));
            match name {
                Some(name) if !name.is_empty() => path.push(name.to_owned()),
                _ => {
                    self.faults.push(format!(
                        "`${key}…[{step}]` names no key: write `['name']`; elements of arrays cannot be named"
                    ));
                    return;
                }
            }
        }
        self.parts.push(Part::Field(path));
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_makes_no_sense_is_a_fault_that_says_what_would() {
        for (template, expected) in [
            ("", "is empty"),
            ("a${HOST}", "`${HOST}` stands for an environment variable"),
            ("$0", "is a group of a regular expression"),
            (
                "$app-logs",
                "`$app-logs`: does `-logs` belong to the key? Write `$(app-logs)` if it does, and `$(app)-logs`",
            ),
            ("$TAG[x]", "`$TAG[x]` is no part of the tag"),
            ("$TAG['x']", "is no part of the tag"),
            ("$TAG[1", "`[1` is not closed"),
            ("$a['b", "`['b` is not closed"),
            ("$a[0]", "elements of arrays cannot be named"),
            ("$a['']", "names no key"),
            ("$(a", "is not closed"),
            ("$()", "is not closed"),
        ] {
            let faults = parse(template).unwrap_err();
            assert!(faults.iter().any(|fault| fault.contains(expected)), "{template}: {faults:?}");
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        assert_eq!(parse("$a-b.$0.${X}").unwrap_err().len(), 3);
    }
}
