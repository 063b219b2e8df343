//! Files as operators write them, and what they get back. Every expected text is written by hand.

mod aws;
mod faults;
mod forward;
mod good;
mod http;
mod http_source;
mod limits;
mod otlp;
mod plugin;
mod rest;
mod syslog;
mod tenants;
mod trust;
mod yaml;

use super::{Config, Faults};

/// Parses with `REGION=eu-west-1` and `BUCKET=from-env` in the environment.
fn parse(text: &str) -> Result<Config, Faults> {
    let variable = |name: &str| match name {
        "REGION" => Some("eu-west-1".to_owned()),
        "BUCKET" => Some("from-env".to_owned()),
        "NUMBER" => Some("12345".to_owned()),
        "SEVEN" => Some("7".to_owned()),
        "YES" => Some("true".to_owned()),
        "EMPTY" => Some(String::new()),
        "SIZE" => Some("50SECRET".to_owned()),
        "HOST" => Some("localhost:9601".to_owned()),
        "ADDRESS" => Some("127.0.0.1:9602".to_owned()),
        "GLOB" => Some("/secret/[x".to_owned()),
        _ => None,
    };
    Config::parse(text, "wharf.yaml".as_ref(), &variable)
}

/// The faults of a file, as they are shown.
fn faults(text: &str) -> String {
    parse(text).expect_err("the file has faults").to_string()
}

/// A whole file whose output `archive` has these lines added.
fn output(lines: &str) -> String {
    let lines: String = lines.lines().map(|l| format!("    {l}\n")).collect();
    format!("sources:\n  app: {{ type: stdin }}\noutputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n{lines}")
}

/// A whole file whose source `app` has these lines.
fn source(lines: &str) -> String {
    let lines: String = lines.lines().map(|l| format!("    {l}\n")).collect();
    format!("outputs:\n  archive: {{ plugin: s3, match: \"*\" }}\nsources:\n  app:\n{lines}")
}

/// A whole file with these lines at the top level, from line 5 on.
fn top(lines: &str) -> String {
    format!("sources:\n  app: {{ type: stdin }}\noutputs:\n  archive: {{ plugin: s3, match: \"*\" }}\n{lines}\n")
}
