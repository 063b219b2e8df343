//! `wharf plugin inspect --against`: what a component asks for and what an output grants it, side by side.

use std::path::Path;

use super::super::table::table;
use super::super::{Ended, print};
use super::registry;
use crate::config::{Config, OutputConfig, SequenceGrant};
use crate::plugin::{HostOptions, PluginHost, PluginSource};
use crate::run::{AsksFor, asked_of};

pub(super) fn run(source: &PluginSource, file: &Path, name: Option<&str>) -> Result<(), Ended> {
    let config = Config::load(file).map_err(Ended::Config)?;
    let asked = registry::runtime()?.block_on(async {
        let host = PluginHost::new(HostOptions::of(&config, crate::author::desk_cache(), 1))?
            .with_registry(crate::run::registry(&config).with_store(&crate::run::registry_store(&config), false));
        let output = choose(&config, source, &host, name).await?;
        let asked = asked_of(&config, output, source, &host).await.map_err(Ended::Config)?;
        Ok::<_, Ended>((output.clone(), asked))
    })?;
    let (output, asked) = asked;
    let rows = rows(&output, &asked);
    let missing = rows.iter().filter(|row| row.last().is_some_and(|mark| mark.starts_with("MISSING"))).count();
    let place = format!("{} of {}", output.section(), file.display());
    print(&format!("{place}\n\n{}", table(&["THE PLUGIN", "THE OUTPUT GRANTS", ""], &rows)))?;
    match missing {
        0 => Ok(()),
        n => Err(Ended::Failed(format!(
            "{place} does not grant all that the plugin asks for: {}",
            super::counted(n, "grant is missing", "grants are missing")
        ))),
    }
}

/// The output that is meant: the one of this name, or the only one with the same component.
async fn choose<'a>(
    config: &'a Config,
    source: &PluginSource,
    host: &PluginHost,
    name: Option<&str>,
) -> Result<&'a OutputConfig, Ended> {
    let all = || config.outputs.iter().map(|output| output.name.to_string()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let found = config.outputs.iter().find(|output| *output.name == *name);
        return found.ok_or_else(|| Ended::Failed(format!("there is no output {name:?}; there are {}", all())));
    }
    let wanted = host.load(source).await?;
    let mut same = vec![];
    for output in &config.outputs {
        let is_same = output.plugin_source == *source
            || host.load(&output.plugin_source).await.is_ok_and(|plugin| plugin.digest() == wanted.digest());
        if is_same {
            same.push(output);
        }
    }
    match same[..] {
        [one] => Ok(one),
        [] => Err(Ended::Failed(format!("no output has this component: name one with --output; there are {}", all()))),
        _ => {
            let names: Vec<&str> = same.iter().map(|output| &*output.name).collect();
            Err(Ended::Failed(format!(
                "several outputs have this component: name one of {} with --output",
                names.join(", ")
            )))
        }
    }
}

/// Each thing that is asked for or granted: what is asked, what grants it, and what is to be said of it.
fn rows(output: &OutputConfig, asked: &AsksFor) -> Vec<Vec<String>> {
    let built_in = matches!(output.plugin_source, PluginSource::BuiltIn(_));
    let mut rows = vec![];
    let mut row = |left: String, right: String, mark: &str| rows.push(vec![left, right, mark.to_owned()]);
    let (plan, grants) = (&asked.plan, &output.grants);
    let by_itself = "(follows from its configuration)";

    for scope in &plan.s3 {
        let left = format!("S3 {}/{}*", scope.bucket, scope.key_prefix);
        let grant = grants
            .s3
            .iter()
            .find(|grant| grant.bucket == scope.bucket && scope.key_prefix.starts_with(&grant.key_prefix));
        match grant {
            _ if built_in => row(left, by_itself.into(), ""),
            Some(grant) => row(left, format!("s3: {}/{}*", grant.bucket, grant.key_prefix), "ok"),
            None => row(left, "-".into(), "MISSING: grants.s3"),
        }
    }
    for name in &plan.log_groups {
        let left = format!("log group {name}");
        match grants.cloudwatch_logs.iter().find(|grant| grant.covers(name)) {
            _ if built_in => row(left, by_itself.into(), ""),
            Some(grant) => row(left, format!("cloudwatch_logs: {}", grant.log_group), "ok"),
            None => row(left, "-".into(), "MISSING: grants.cloudwatch_logs"),
        }
    }
    for destination in &plan.http {
        let left = format!("HTTP {destination}");
        let wanted = crate::config::HttpDestination::parse(destination).ok();
        let grant = wanted.and_then(|wanted| grants.http.iter().find(|grant| grant.covers_all_of(&wanted)));
        match grant {
            Some(grant) => row(left, format!("http: {grant}"), "ok"),
            None => row(left, "-".into(), "MISSING: grants.http"),
        }
    }
    for name in &plan.credentials {
        let left = format!("credential {name}");
        match grants.credentials.iter().any(|grant| *grant.name == **name) {
            true => row(left, format!("credentials: {name}"), "ok"),
            false => row(left, "-".into(), "MISSING: grants.credentials"),
        }
    }
    if !built_in {
        for it in crate::run::unanswered(&asked.imports, grants) {
            let planned = match it.key {
                "s3" => !plan.s3.is_empty(),
                "cloudwatch_logs" => !plan.log_groups.is_empty(),
                _ => !plan.http.is_empty(),
            };
            if !planned {
                row(
                    format!("imports {}", it.interface),
                    "-".into(),
                    &format!("MISSING: grants.{} (or [] for none)", it.key),
                );
            }
        }
    }
    let imports = |interface: &str| asked.imports.iter().any(|name| name == interface);
    if imports("storage") {
        let bytes =
            grants.storage_bytes.map_or_else(|| "up to limits.storage".into(), crate::config::units::format_size);
        row(
            "imports storage".into(),
            format!("storage: {bytes}"),
            if grants.storage_bytes == Some(0) { "none" } else { "ok" },
        );
    }
    if imports("sequence") {
        let (names, mark) = match &grants.sequences {
            SequenceGrant::All => ("all, the default".to_owned(), "ok"),
            SequenceGrant::Named(names) if names.is_empty() => ("none".to_owned(), "none"),
            SequenceGrant::Named(names) => (names.join(", "), "ok"),
        };
        row("imports sequence".into(), format!("sequences: {names}"), mark);
    }
    unused(output, asked, &mut row);
    rows
}

/// What is granted and not asked for.
fn unused(output: &OutputConfig, asked: &AsksFor, row: &mut impl FnMut(String, String, &str)) {
    let (plan, grants) = (&asked.plan, &output.grants);
    for grant in &grants.s3 {
        let used = |s: &crate::config::S3Grant| s.bucket == grant.bucket && s.key_prefix.starts_with(&grant.key_prefix);
        if !plan.s3.iter().any(used) {
            row("-".into(), format!("s3: {}/{}*", grant.bucket, grant.key_prefix), "unused");
        }
    }
    for grant in &grants.cloudwatch_logs {
        if !plan.log_groups.iter().any(|name| grant.covers(name)) {
            row("-".into(), format!("cloudwatch_logs: {}", grant.log_group), "unused");
        }
    }
    for grant in &grants.http {
        let wanted =
            |text: &String| crate::config::HttpDestination::parse(text).is_ok_and(|it| grant.covers_all_of(&it));
        if !plan.http.iter().any(wanted) {
            row("-".into(), format!("http: {grant}"), "unused");
        }
    }
    for grant in &grants.credentials {
        if !plan.credentials.iter().any(|name| **name == *grant.name) {
            row("-".into(), format!("credentials: {}", grant.name), "unused");
        }
    }
}
