//! What an output may touch in S3: buckets, and the beginnings of keys.
//!
//! Compared byte by byte, never as paths or patterns. A grant of `logs/` does not cover `logs2/x`; one of `logs` does, as a prefix
//! says. Keys with a step of `.` or `..` are refused although S3 would keep them as they are: servers that keep objects in a file
//! system resolve them, and would leave the prefix.

use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::config::{S3Grant, output_section};

/// Longest key, bytes: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>.
const KEY_BYTES: usize = 1024;

/// Whether this object may be written, read about, or removed.
pub(crate) fn check_key(output: &str, grants: &[S3Grant], bucket: &str, key: &str) -> Result<(), HostError> {
    check_bucket(bucket)?;
    if key.is_empty() {
        return Err(HostError::Invalid("the key is empty".into()));
    }
    check_form(key)?;
    if grants.iter().any(|grant| covers(grant, bucket, key)) {
        return Ok(());
    }
    Err(denied(output, grants, &format!("object {}", one_line(&format!("s3://{bucket}/{key}"), 256))))
}

/// Whether everything with this prefix may be listed.
pub(crate) fn check_prefix(output: &str, grants: &[S3Grant], bucket: &str, prefix: &str) -> Result<(), HostError> {
    check_bucket(bucket)?;
    check_form(prefix)?;
    if grants.iter().any(|grant| covers(grant, bucket, prefix)) {
        return Ok(());
    }
    Err(denied(output, grants, &format!("prefix {}", one_line(&format!("s3://{bucket}/{prefix}"), 256))))
}

fn covers(grant: &S3Grant, bucket: &str, key: &str) -> bool {
    grant.bucket.as_bytes() == bucket.as_bytes() && key.as_bytes().starts_with(grant.key_prefix.as_bytes())
}

/// A bucket's name goes into the host name or the first step of the path, so it must not be able to become more than that.
fn check_bucket(bucket: &str) -> Result<(), HostError> {
    let plain = bucket.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if bucket.is_empty() || bucket.len() > 255 || !plain || bucket.starts_with('.') {
        return Err(HostError::Invalid(format!("{:?} is no name of a bucket", one_line(bucket, 64))));
    }
    Ok(())
}

fn check_form(key: &str) -> Result<(), HostError> {
    if key.len() > KEY_BYTES {
        return Err(HostError::Invalid(format!("the key has {} bytes, and S3 takes at most {KEY_BYTES}", key.len())));
    }
    if key.split('/').any(|step| matches!(step, "." | "..")) {
        let key = one_line(key, 256);
        return Err(HostError::Invalid(format!(
            "the key {key:?} has a step of only dots, which some servers resolve and so leave the granted prefix"
        )));
    }
    Ok(())
}

fn denied(output: &str, grants: &[S3Grant], wanted: &str) -> HostError {
    let granted: Vec<String> =
        grants.iter().map(|grant| format!("s3://{}/{}*", grant.bucket, grant.key_prefix)).collect();
    let granted = if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
    HostError::Denied(format!(
        "{wanted} is not granted to output {output}, which may touch {granted} ({}.grants.s3)",
        output_section(output)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(list: &[(&str, &str)]) -> Vec<S3Grant> {
        list.iter().map(|(bucket, prefix)| S3Grant { bucket: (*bucket).into(), key_prefix: (*prefix).into() }).collect()
    }

    #[test]
    fn a_key_is_covered_by_bucket_and_prefix() {
        let granted = grants(&[("logs", "app/"), ("all", ""), ("exact", "a")]);
        for (bucket, key, allowed) in [
            ("logs", "app/x", true),
            ("logs", "app/", true),
            ("logs", "app", false),
            ("logs", "apple", false),
            ("logs", "App/x", false),
            ("logs", "/app/x", false),
            ("logs", "other/app/x", false),
            ("Logs", "app/x", false),
            ("logs2", "app/x", false),
            ("all", "anything", true),
            ("exact", "abc", true),
            ("exact", "b", false),
        ] {
            assert_eq!(check_key("o", &granted, bucket, key).is_ok(), allowed, "{bucket} {key}");
        }
    }

    #[test]
    fn without_a_grant_nothing_may_be_touched_and_the_refusal_says_where_to_grant() {
        let Err(HostError::Denied(text)) = check_key("archive", &[], "b", "k") else { panic!("not denied") };
        assert_eq!(
            text,
            "object s3://b/k is not granted to output archive, which may touch nothing (outputs.archive.grants.s3)"
        );
        assert!(matches!(check_prefix("archive", &[], "b", ""), Err(HostError::Denied(_))));
    }

    #[test]
    fn a_listing_must_lie_inside_a_granted_prefix() {
        let granted = grants(&[("logs", "app/")]);
        assert!(check_prefix("o", &granted, "logs", "app/2026").is_ok());
        assert!(check_prefix("o", &granted, "logs", "app/").is_ok());
        assert!(check_prefix("o", &granted, "logs", "").is_err());
        assert!(check_prefix("o", &granted, "logs", "ap").is_err());
    }

    #[test]
    fn keys_are_1_to_1024_bytes_without_steps_of_dots() {
        let granted = grants(&[("b", "")]);
        let long = "k".repeat(1024);
        for (key, allowed) in [
            (long.as_str(), true),
            (&*format!("{long}k"), false),
            ("", false),
            ("a/../b", false),
            ("..", false),
            ("a/.", false),
            ("a/..b/c..", true),
            ("a//b", true),
            ("a b+c%?#=ü", true),
        ] {
            assert_eq!(check_key("o", &granted, "b", key).is_ok(), allowed, "{key}");
        }
    }

    #[test]
    fn a_bucket_is_one_name_and_nothing_more() {
        let granted = grants(&[("b", ""), ("a/b", ""), ("..", ""), ("", ""), ("h:9@x", "")]);
        for (bucket, allowed) in [("b", true), ("a/b", false), ("..", false), ("", false), ("h:9@x", false)] {
            assert_eq!(check_key("o", &granted, bucket, "k").is_ok(), allowed, "{bucket}");
        }
    }
}
