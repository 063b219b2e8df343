//! `${VAR}` and `${VAR:-default}` in values.
//!
//! Only `${` begins a reference, so `$INDEX` and `$TAG[1]` of key formats stay as they are. `$$` is a literal `$`.
//! What comes from the environment is never read as YAML: it stays inside its one value.

use super::hidden::Hidden;

/// No value grows beyond this by what it refers to.
const LONGEST: usize = 1 << 20;

/// A text with its references replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub text: String,
    /// There was a reference.
    pub referred: bool,
    /// What came from the environment. A default is written in the file.
    pub hidden: Hidden,
}

/// What is wrong, and what to do.
pub(crate) type Refusal = (String, Option<String>);

/// Replaces the references in a text.
///
/// # Errors
/// What is wrong, and what to do.
#[cfg(test)]
pub(crate) fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, Refusal> {
    expand_within(text, variable, &|_| None)
}

/// The same, where some variables may not be read: `refused` says why.
///
/// # Errors
/// What is wrong, and what to do.
pub(crate) fn expand_within(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    refused: &dyn Fn(&str) -> Option<Refusal>,
) -> Result<Expanded, Refusal> {
    let mut out = String::with_capacity(text.len());
    let mut referred = false;
    let mut hidden = Hidden::default();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(after) = from.strip_prefix("${") {
            let Some(end) = after.find('}') else {
                return Err(("a reference `${` has no `}`".into(), Some("write $$ for a literal dollar sign".into())));
            };
            let (inside, after) = after.split_at(end);
            out.push_str(&lookup(inside, variable, refused, &mut hidden)?);
            referred = true;
            rest = after.strip_prefix('}').unwrap_or(after);
        } else {
            out.push('$');
            rest = from.strip_prefix('$').unwrap_or("");
        }
        if out.len() > LONGEST {
            return Err((format!("the value is longer than {LONGEST} bytes with its variables"), None));
        }
    }
    out.push_str(rest);
    Ok(Expanded { text: out, referred, hidden })
}

fn lookup(
    inside: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    refused: &dyn Fn(&str) -> Option<Refusal>,
    hidden: &mut Hidden,
) -> Result<String, Refusal> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut chars = name.chars();
    let well_named = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !well_named || default.is_some_and(|d| d.contains("${")) {
        return Err((
            format!("`${{{inside}}}` is not a reference to an environment variable"),
            Some("write ${NAME} or ${NAME:-default}; write $$ for a literal dollar sign".into()),
        ));
    }
    if let Some(refusal) = refused(name) {
        return Err(refusal);
    }
    match (variable(name), default) {
        // As in a shell: an empty variable takes the default too.
        (Some(value), default) if default.is_none() || !value.is_empty() => {
            hidden.add(name, &value);
            Ok(value)
        }
        (_, Some(default)) => Ok(default.replace("$$", "$")),
        (_, None) => Err((
            format!("the environment variable {name} is not set"),
            Some(format!("set it, or give a default: ${{{name}:-…}}")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "REGION" => Some("eu-west-1".to_owned()),
            "EMPTY" => Some(String::new()),
            "YAML" => Some("a: [b, {c: d}]".to_owned()),
            _ => None,
        };
        expand(text, &variable).map(|it| it.text).map_err(|(message, _)| message)
    }

    #[test]
    fn references_are_replaced_and_key_format_variables_are_not() {
        for (text, expected) in [
            ("plain", "plain"),
            ("${REGION}", "eu-west-1"),
            ("a-${REGION}-b-${REGION}", "a-eu-west-1-b-eu-west-1"),
            ("${NOT_SET:-here}", "here"),
            ("${EMPTY:-here}", "here"),
            ("${EMPTY}", ""),
            ("${REGION:-here}", "eu-west-1"),
            ("${NOT_SET:-}", ""),
            ("/logs/$TAG[1]/segment_$INDEX", "/logs/$TAG[1]/segment_$INDEX"),
            ("$", "$"),
            ("a$", "a$"),
            ("$${REGION}", "${REGION}"),
            ("$$", "$"),
            ("$$$${x}", "$${x}"),
            ("${YAML}", "a: [b, {c: d}]"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_is_a_fault() {
        assert_eq!(expanded("${NOT_SET}").unwrap_err(), "the environment variable NOT_SET is not set");
        assert_eq!(expanded("x ${REGION").unwrap_err(), "a reference `${` has no `}`");
        for text in ["${}", "${1A}", "${A B}", "${A-b}", "${A:?b}", "${A:-${REGION}}"] {
            assert!(expanded(text).unwrap_err().contains("is not a reference"), "{text}");
        }
    }

    #[test]
    fn a_variable_is_not_expanded_again() {
        let variable = |_: &str| Some("${OTHER}$$".to_owned());
        assert_eq!(expand("${A}", &variable).unwrap().text, "${OTHER}$$");
    }

    #[test]
    fn what_came_from_the_environment_is_known_and_a_default_is_none_of_it() {
        let variable = |name: &str| (name != "NOT_SET").then(|| "value".to_owned());
        let hidden = |text: &str| expand(text, &variable).unwrap().hidden;
        assert_eq!(hidden("${A}-${B:-x}").named(), "the environment variables A and B");
        for text in ["plain", "${NOT_SET:-value}", "$$${x"] {
            assert!(expand(text, &variable).map_or(true, |it| it.hidden.is_empty()), "{text}");
        }
    }

    #[test]
    fn a_value_that_grows_without_bounds_is_refused() {
        let variable = |_: &str| Some("x".repeat(100_000));
        assert!(expand(&"${A}".repeat(100), &variable).is_err());
    }
}
