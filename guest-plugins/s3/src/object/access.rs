//! Who may read the object, and who owns the bucket.

use crate::config::{Config, Grants};
use wharf_plugin::Faults;

/// Canned ACLs of objects (User Guide, "Access control list (ACL) overview":
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl>). `log-delivery-write` is one of buckets only.
const ACLS: [&str; 7] = [
    "private",
    "public-read",
    "public-read-write",
    "aws-exec-read",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
];

pub(super) fn check(config: &Config, faults: &mut Faults) {
    faults.one_of("acl", config.acl.as_deref(), &ACLS);
    if let Some(grants) = &config.grants {
        if config.acl.is_some() && *grants != Grants::default() {
            faults.add("grants", "S3 takes either `acl` or `grants`, not both");
        }
        check_grantees(grants, faults);
    }
    owner(config, faults);
}

/// Each right's grantees are `type=value` pairs with commas between (API Reference, `PutObjectAcl`:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html>).
fn check_grantees(grants: &Grants, faults: &mut Faults) {
    for (right, grantees) in [
        ("full_control", &grants.full_control),
        ("read", &grants.read),
        ("read_acp", &grants.read_acp),
        ("write_acp", &grants.write_acp),
    ] {
        let Some(grantees) = grantees else { continue };
        let known = |pair: &str| {
            pair.split_once('=').is_some_and(|(kind, value)| {
                ["id", "uri", "emailAddress"].contains(&kind.trim()) && !value.trim().trim_matches('"').is_empty()
            })
        };
        // An empty text, or one with a line break, is told elsewhere.
        if !grantees.is_empty() && !grantees.contains(char::is_control) && !grantees.split(',').all(known) {
            let message =
                format!("`{grantees}` names no grantee: write `id=\"…\"` or `uri=\"…\"`, several with commas between");
            faults.add_at(&["grants", right], message);
        }
    }
}

/// An account id has 12 digits (User Guide, "Verifying bucket ownership with bucket owner condition":
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html>).
fn owner(config: &Config, faults: &mut Faults) {
    let Some(owner) = &config.expected_bucket_owner else { return };
    if owner.is_empty() {
        faults.add("expected_bucket_owner", "it is empty: write the 12 digits of an account id, or leave it out");
    } else if owner.len() != 12 || !owner.bytes().all(|b| b.is_ascii_digit()) {
        faults
            .add("expected_bucket_owner", format!("`{}` is no account id: those have 12 digits", owner.escape_debug()));
    }
}
