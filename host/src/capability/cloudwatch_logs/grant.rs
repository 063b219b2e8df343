//! What an output may touch in CloudWatch Logs: log groups, by name or by the beginning of names.
//!
//! Compared byte by byte. A grant of `/app` covers that one group; one of `/app*` also `/app2` and `/app/x`; no other place of a `*` means
//! anything, since names have none.

use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::config::{LogGroupGrant, output_section};

/// Longest name of a log group or a log stream, characters:
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>.
const NAME_CHARACTERS: usize = 512;

/// Whether this log group may be written to, created, and set up.
pub(crate) fn check_group(output: &str, grants: &[LogGroupGrant], name: &str) -> Result<(), HostError> {
    check_group_name(name)?;
    if grants.iter().any(|grant| grant.covers(name)) {
        return Ok(());
    }
    let granted: Vec<&str> = grants.iter().map(|grant| grant.log_group.as_str()).collect();
    let granted = if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
    Err(HostError::Denied(format!(
        "log group {name} is not granted to output {output}, which may touch {granted} ({}.grants.cloudwatch_logs)",
        output_section(output)
    )))
}

/// An ARN is refused too, although the service takes one in some places: it would name the same group in a way that no grant does.
fn check_group_name(name: &str) -> Result<(), HostError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/' | b'#'));
    if plain && (1..=NAME_CHARACTERS).contains(&name.len()) {
        return Ok(());
    }
    Err(HostError::Invalid(format!(
        "{:?} is no name of a log group, which has 1 to {NAME_CHARACTERS} of A-Z, a-z, 0-9, '_', '-', '/', '.' and '#'",
        one_line(name, 128)
    )))
}

/// Whether a log stream can have this name. It needs no grant of its own.
pub(super) fn check_stream_name(name: &str) -> Result<(), HostError> {
    // Characters are not more than bytes, so that a long text is not gone through.
    let fits = !name.is_empty() && name.len() <= 4 * NAME_CHARACTERS && name.chars().count() <= NAME_CHARACTERS;
    if fits && !name.contains([':', '*']) {
        return Ok(());
    }
    Err(HostError::Invalid(format!(
        "{:?} is no name of a log stream, which has 1 to {NAME_CHARACTERS} characters without ':' and '*'",
        one_line(name, 128)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(list: &[&str]) -> Vec<LogGroupGrant> {
        list.iter().map(|name| LogGroupGrant { log_group: (*name).into() }).collect()
    }

    #[test]
    fn a_group_is_covered_by_its_name_or_the_beginning_of_it() {
        let granted = grants(&["/exact", "/app/*", "web*"]);
        for (name, allowed) in [
            ("/exact", true),
            ("/exact/x", false),
            ("/exac", false),
            ("/Exact", false),
            ("exact", false),
            ("/app/x", true),
            ("/app/", true),
            ("/app/x/y", true),
            ("/app", false),
            ("/apple", false),
            ("web", true),
            ("web-1", true),
            ("we", false),
            ("/web", false),
        ] {
            assert_eq!(check_group("live", &granted, name).is_ok(), allowed, "{name}");
        }
    }

    #[test]
    fn a_star_alone_covers_every_name_and_one_in_the_middle_none() {
        assert!(check_group("live", &grants(&["*"]), "any/thing").is_ok());
        assert!(check_group("live", &grants(&["/a*b"]), "/axb").is_err());
        assert!(check_group("live", &grants(&["/a*b"]), "/a").is_err());
        assert!(check_group("live", &grants(&["/a**"]), "/ab").is_err());
        assert!(check_group("live", &grants(&[""]), "a").is_err());
    }

    #[test]
    fn without_a_grant_nothing_is_covered_and_the_refusal_names_the_key() {
        let Err(HostError::Denied(text)) = check_group("live", &[], "/app") else { panic!("not denied") };
        assert_eq!(
            text,
            "log group /app is not granted to output live, which may touch nothing (outputs.live.grants.cloudwatch_logs)"
        );
        let Err(HostError::Denied(text)) = check_group("live", &grants(&["/a", "/b*"]), "/app") else { panic!() };
        assert!(text.contains("may touch /a, /b* ("), "{text}");
    }

    #[test]
    fn a_group_has_the_letters_that_the_service_takes() {
        let granted = grants(&["*"]);
        let long = "g".repeat(512);
        for (name, good) in [
            (long.as_str(), true),
            (&*format!("{long}g"), false),
            ("", false),
            ("a.b-c_d/e#F1", true),
            ("a b", false),
            ("a*", false),
            ("ü", false),
            ("arn:aws:logs:us-east-1:123456789012:log-group:/app", false),
            ("a\",\"logStreamName\":\"x", false),
            ("a\n", false),
        ] {
            assert_eq!(check_group("live", &granted, name).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn a_stream_has_any_letters_but_colon_and_star() {
        let long = "ü".repeat(512);
        for (name, good) in [
            (long.as_str(), true),
            (&*format!("{long}x"), false),
            ("", false),
            ("host/a b [1]#\"x\"", true),
            ("a:b", false),
            ("a*", false),
        ] {
            assert_eq!(check_stream_name(name).is_ok(), good, "{name}");
        }
    }
}
