//! What a component imports, held against what its output grants, before it runs.
//!
//! An import is the most that a component could ask for: one that imports `http` and is granted no destination cannot do what it was
//! written for, and says so here instead of with its first batch. It may have more in it than its configuration uses; then an empty grant
//! (`http: []`) says that somebody thought of it. `wharf plugin build` imports what a project uses, but tool chains of script languages that are
//! called by hand import all that the host has: such imports say nothing, and what the script does is checked with each call, as for everybody.

use crate::config::{Fault, GrantsConfig, OutputConfig, fault_at_plugin};
use crate::plugin::{Plugin, PluginSource};

/// An interface that reaches the outside.
pub(crate) struct Grantable {
    /// As WIT names it.
    pub(crate) interface: &'static str,
    /// As `grants` names it.
    pub(crate) key: &'static str,
    /// What it does, in words.
    words: &'static str,
    /// How one is granted.
    example: &'static str,
    is_granted: fn(&GrantsConfig) -> bool,
}

/// All of them.
pub(crate) const GRANTABLE: [Grantable; 3] = [
    Grantable {
        interface: "s3",
        key: "s3",
        words: "objects in S3",
        example: "s3: [{ bucket: my-bucket, key_prefix: logs/ }]",
        is_granted: |grants| !grants.s3.is_empty(),
    },
    Grantable {
        interface: "cloudwatch-logs",
        key: "cloudwatch_logs",
        words: "CloudWatch Logs",
        example: "cloudwatch_logs: [{ log_group: /my-app }]",
        is_granted: |grants| !grants.cloudwatch_logs.is_empty(),
    },
    Grantable {
        interface: "http",
        key: "http",
        words: "HTTP requests",
        example: "http: [\"https://api.example.com\"]",
        is_granted: |grants| !grants.http.is_empty(),
    },
];

/// Interfaces that a component imports and its output neither grants nor says that it does not.
pub(crate) fn unanswered(imports: &[String], grants: &GrantsConfig) -> Vec<&'static Grantable> {
    let imported = |it: &&Grantable| imports.iter().any(|name| name == it.interface);
    if GRANTABLE.iter().all(|it| imported(&it)) {
        return vec![];
    }
    GRANTABLE
        .iter()
        .filter(imported)
        .filter(|it| !(it.is_granted)(grants) && !grants.considered.contains(&it.key))
        .collect()
}

/// A fault for each of them.
pub(super) fn ungranted(output: &OutputConfig, plugin: &Plugin) -> Vec<Fault> {
    if matches!(output.plugin_source, PluginSource::BuiltIn(_)) {
        return vec![];
    }
    let fault = |it: &Grantable| {
        let message =
            format!("the plugin imports {} ({}), and the output grants nothing of it", it.interface, it.words);
        let help = format!(
            "if it may, add to the output: grants: {{ {} }}; if not, grants: {{ {}: [] }} says so",
            it.example, it.key
        );
        fault_at_plugin(output, message, Some(help))
    };
    unanswered(&plugin.imports(), &output.grants).into_iter().map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HttpDestination, LogGroupGrant, S3Grant};

    #[test]
    fn an_import_needs_a_grant_or_a_word_that_there_is_none() {
        let nothing = GrantsConfig::default;
        let s3 = || GrantsConfig {
            s3: vec![S3Grant { bucket: "b".into(), key_prefix: String::new() }],
            considered: vec!["s3"],
            ..nothing()
        };
        let http = || GrantsConfig { http: vec![HttpDestination::parse("https://a.example").unwrap()], ..nothing() };
        let logs = || GrantsConfig { cloudwatch_logs: vec![LogGroupGrant { log_group: "/a".into() }], ..nothing() };
        let none = |key| GrantsConfig { considered: vec![key], ..nothing() };
        for (imports, grants, expected) in [
            (&["records", "storage", "sequence", "log"][..], nothing(), &[][..]),
            (&["records", "http"], nothing(), &["http"]),
            (&["records", "http"], http(), &[]),
            (&["records", "http"], none("http"), &[]),
            (&["records", "http"], s3(), &["http"]),
            (&["s3", "http"], nothing(), &["s3", "http"]),
            (&["s3", "http"], s3(), &["http"]),
            (&["s3", "cloudwatch-logs"], logs(), &["s3"]),
            (&["cloudwatch-logs"], none("cloudwatch_logs"), &[]),
            // A script's: all that there is.
            (&["s3", "cloudwatch-logs", "http"], nothing(), &[]),
        ] {
            let imports: Vec<String> = imports.iter().map(|name| (*name).to_owned()).collect();
            let found: Vec<&str> = unanswered(&imports, &grants).iter().map(|it| it.interface).collect();
            assert_eq!(found, expected, "{imports:?} {grants:?}");
        }
    }
}
