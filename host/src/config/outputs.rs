//! Reads `outputs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::aws::Aws;
use super::hidden::Hidden;
use super::http::Credentials;
use super::json;
use super::limits::{self, Limits};
use super::model::{
    AwsConfig, BatchConfig, GrantsConfig, LogGroupGrant, OnQuarantine, OutputConfig, QueueConfig, RetryConfig, S3Grant,
};
use super::node::{Entry, Value};
use super::reader::{Elsewhere, Section};
use super::spans::PluginConfigSpans;
use super::top::{FOREVER, MOMENT};
use super::units::format_duration;
use crate::plugin::{Pin, PluginSource};
use crate::queue::WhenFull;
use crate::registry::{Pull, Reference};

const ELSEWHERE: Elsewhere = &[
    ("name", "the output's name is its key under \"outputs\"; the component is \"plugin\""),
    ("type", "did you mean \"plugin\"?"),
    ("sig", "did you mean \"signature\"?"),
    ("pull_policy", "did you mean \"pull\"?"),
    ("trusted_keys", "it belongs under \"plugins\" at the top level, or to a tenant"),
    ("digest", "did you mean \"sha256\"?"),
    ("checksum", "did you mean \"sha256\"?"),
    ("tag", "did you mean \"match\"?"),
    ("tags", "did you mean \"match\"?"),
    ("inputs", "Wharf routes by tag: write \"match\""),
    ("region", "it belongs under \"aws\""),
    ("endpoint", "it belongs under \"aws\""),
    ("role_arn", "it belongs under \"aws\""),
    ("profile", "it belongs under \"aws\""),
    ("retry_limit", "retries are limited by time: write retry: { max_age: 24h }"),
    ("max_bytes", "it belongs under \"batch\""),
    ("max_records", "it belongs under \"batch\""),
    ("max_age", "it belongs under \"batch\" (when a batch closes) or \"retry\" (when a batch is given up)"),
    ("total_file_size", "write batch: { max_bytes: … }"),
    ("upload_timeout", "write batch: { max_age: … }"),
    ("when_full", "it belongs under \"queue\""),
    ("plugin_limits", "did you mean \"limits\"?"),
    ("max_memory", "it belongs under \"limits\""),
    ("cpu_per_call", "it belongs under \"limits\""),
    ("deliver_timeout", "it belongs under \"limits\""),
    ("quarantine", "did you mean \"on_quarantine\"?"),
    ("max_size", "it belongs under \"queue\""),
];

/// Where components are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Components<'a> {
    /// Where relative paths begin: the configuration file's folder.
    pub folder: &'a Path,
    /// `plugins.dir`.
    pub dirs: &'a [PathBuf],
    /// What of that came from the environment.
    pub dirs_hidden: &'a Hidden,
    /// What they may take.
    pub limits: &'a Limits,
}

/// Reads every output whose component is known, of a tenant where `tenant` names it.
pub(crate) fn read(
    top: &mut Section<'_>,
    tenant: Option<&str>,
    aws: &Aws,
    credentials: &Credentials,
    components: Components<'_>,
) -> Vec<OutputConfig> {
    let help = "add one, for example:\n    outputs:\n      archive: { plugin: s3, match: \"*\", config: { bucket: my-bucket } }";
    if tenant.is_some() || !super::tenants::may_be_in(top) {
        top.missing("outputs", help);
    }
    let Some(section) = top.section("outputs").filter(|_| top.is_written("outputs")) else { return vec![] };
    if section.is_empty() {
        section.sink().add_with_help(section.at(), section.path(), "there is no output", help);
    }
    let mut outputs = vec![];
    for entry in section.entries() {
        super::sources::name(&section, &entry.key, entry.key_at, "output");
        if tenant.is_none() && entry.key == crate::dead_letter::REPLAY_FOLDER {
            section.sink().add(entry.key_at, section.path(), format!("the name {:?} is Wharf's own", entry.key));
        }
        let path = section.path_of(&entry.key);
        if let Some(output) = Section::of(section.sink(), path, entry.key_at, &entry.value) {
            outputs.extend(one(output, &entry.key, tenant, aws, credentials, components));
        }
    }
    outputs
}

fn one(
    mut section: Section<'_>,
    name: &str,
    tenant: Option<&str>,
    defaults: &Aws,
    credentials: &Credentials,
    components: Components<'_>,
) -> Option<OutputConfig> {
    section.missing("plugin", "write plugin: s3, or the path of a component");
    section.missing("match", "say which tags it takes: match: \"*\" for all");
    let mut plugin = plugin(&mut section);
    let plugin_source = plugin.as_ref().map(|it| PluginSource::of(it, components.folder, components.dirs));
    if let (Some(PluginSource::File(_)), Some(written)) = (&plugin_source, &plugin)
        && let Err((what, help)) = section.sink().path(written)
    {
        section.fault("plugin", what, help);
        // It is not even looked at.
        plugin = None;
    }
    let pin = pin(&mut section, plugin_source.as_ref());
    let signature = signature(&mut section, plugin_source.as_ref(), components.folder);
    let pull = pull(&mut section, plugin_source.as_ref());
    let matches = matches(&mut section);
    let workers = section.count("workers", 1..=64).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let batch = section.section("batch").map(batch).unwrap_or_default();
    let queue = section.section("queue").map(queue).unwrap_or_default();
    let retry = section.section("retry").map(retry).unwrap_or_default();
    let policies = [("hold", OnQuarantine::Hold), ("dead_letter", OnQuarantine::DeadLetter)];
    let on_quarantine = section.one_of("on_quarantine", &policies).unwrap_or_default();
    let limits = limits::of_output(&mut section, components.limits, tenant);
    let aws = aws(&mut section, tenant, defaults);
    let grants = section.section("grants").map(|section| grants(section, credentials)).unwrap_or_default();
    let name = super::tenants::full_name(tenant, name);
    let (config, mut config_spans) = plugin_config(&mut section, &name);
    if let Some(PluginSource::Named { .. }) = &plugin_source {
        config_spans.note_dirs(components.dirs_hidden);
    }
    // What its name is in messages names its signature as well.
    config_spans.note_dirs(&section.hidden("signature"));
    let configured = section.has("config");
    let otherwise = "options of the plugin itself belong under \"config\"";
    let unknown = section.finish_with(ELSEWHERE, otherwise);
    if unknown > 0 && !configured {
        // One of the unknown keys may be what was meant as `config`: nothing may be said of what is missing there.
        config_spans.note_faulty("");
    }
    Some(OutputConfig {
        name,
        tenant: tenant.map(Arc::from),
        plugin: plugin?,
        plugin_source: plugin_source?,
        pin,
        signature,
        pull,
        matches: matches.unwrap_or_default(),
        workers,
        batch,
        queue,
        retry,
        on_quarantine,
        limits,
        aws,
        grants,
        config,
        config_spans,
    })
}

/// The component, as it is written.
fn plugin(section: &mut Section<'_>) -> Option<String> {
    let plugin = section.text("plugin")?;
    if Reference::is_meant(&plugin) {
        return match Reference::parse(&plugin) {
            Ok(_) => Some(plugin),
            Err(what) => {
                let help = "write it as in oci://registry.example.com/team/to-acme:1.2.0";
                section.fault("plugin", format!("is no reference to a registry: {what}"), Some(help.into()));
                None
            }
        };
    }
    if let Some((path, _)) = plugin.split_once("@sha256:") {
        let path = if section.is_hidden("plugin") { "…" } else { path };
        let help = format!("write plugin: {path} and, beside it, sha256: with the 64 hexadecimal digits");
        section.fault("plugin", "has its digest behind it, which has a key of its own", Some(help));
        return None;
    }
    Some(plugin)
}

/// The digest that the component must have.
fn pin(section: &mut Section<'_>, source: Option<&PluginSource>) -> Option<Pin> {
    let text = section.text("sha256")?;
    if let Some(PluginSource::BuiltIn(name)) = source {
        let message =
            format!("a built-in component cannot be pinned: {name} is part of this program, and changes with it");
        section.fault("sha256", message, Some("leave sha256 out; what is pinned is the version of Wharf".into()));
        return None;
    }
    let pin = Pin::parse(&text);
    if pin.is_none() {
        let message =
            format!("expected the SHA-256 of the component, 64 hexadecimal digits, found {}", section.found("sha256"));
        section.fault("sha256", message, Some("`sha256sum FILE` and `wharf plugin inspect FILE` show it".into()));
    }
    pin
}

/// Where the component's signature is.
fn signature(section: &mut Section<'_>, source: Option<&PluginSource>, folder: &Path) -> Option<PathBuf> {
    let file = section.text("signature")?;
    if let Some(PluginSource::BuiltIn(name)) = source {
        let message = format!("a built-in component needs no signature: {name} is part of this program");
        section.fault("signature", message, Some("leave it out".into()));
    }
    if let Err((what, help)) = section.sink().path(&file) {
        section.fault("signature", what, help);
        return None;
    }
    Some(folder.join(file))
}

/// When the component's registry is asked.
fn pull(section: &mut Section<'_>, source: Option<&PluginSource>) -> Pull {
    let pull = section.one_of("pull", &[("if_missing", Pull::IfMissing), ("always", Pull::Always)]);
    if let Some(source) = source.filter(|source| pull.is_some() && !matches!(source, PluginSource::Registry(_))) {
        let what = if matches!(source, PluginSource::BuiltIn(_)) { "a built-in component" } else { "a file" };
        section.fault("pull", format!("{what} is not pulled: only what is in a registry (oci://…) is"), None);
    }
    pull.unwrap_or_default()
}

/// The output's `aws` over the common one, or its tenant's. Who a tenant's outputs are is the tenant's: were it each output's own, one could
/// take on a role that trusts the host for another tenant's sake.
fn aws(section: &mut Section<'_>, tenant: Option<&str>, defaults: &Aws) -> AwsConfig {
    let own = section.section("aws").map(|block| {
        if let Some(tenant) = tenant {
            for key in super::aws::IDENTITY.into_iter().filter(|key| block.is_written(key)) {
                let help =
                    format!("write it under tenants.{tenant}.aws; what only one output needs is another tenant's");
                block.fault(key, "all outputs of a tenant have the tenant's identity", Some(help));
            }
        }
        super::aws::read(block, defaults)
    });
    let it = own.as_ref().unwrap_or(defaults);
    let mut aws = it.config.clone();
    if aws.role_arn.is_none() {
        if !it.role_is_written {
            section.sink().extend(it.for_a_role.clone());
        }
        // Said once is enough: what opens connections would say it again.
        (aws.external_id, aws.session_name) = (None, None);
    }
    aws
}

fn matches(section: &mut Section<'_>) -> Option<Vec<String>> {
    let globs = section.words("match")?;
    if globs.is_empty() {
        section.fault("match", "is empty", Some("write \"*\" for all tags".into()));
        return None;
    }
    Some(globs)
}

pub(crate) fn batch(mut section: Section<'_>) -> BatchConfig {
    let batch = BatchConfig {
        max_bytes: section.size("max_bytes", 1..=1 << 40),
        max_records: section.count("max_records", 1..=u64::from(u32::MAX)),
        max_age: section.duration("max_age", MOMENT..=FOREVER),
    };
    section.finish(&[("max_size", "did you mean \"max_bytes\"?"), ("timeout", "did you mean \"max_age\"?")]);
    batch
}

fn queue(mut section: Section<'_>) -> QueueConfig {
    let policies =
        [("block", WhenFull::Block), ("drop_oldest", WhenFull::DropOldest), ("drop_newest", WhenFull::DropNewest)];
    let queue = QueueConfig {
        max_bytes: section.size("max_size", 1..=u64::MAX),
        when_full: section.one_of("when_full", &policies).unwrap_or(WhenFull::Block),
    };
    section.finish(&[("max_bytes", "did you mean \"max_size\"?")]);
    queue
}

pub(crate) fn retry(mut section: Section<'_>) -> RetryConfig {
    let default = RetryConfig::default();
    let initial = section.duration("initial", MOMENT..=FOREVER);
    let max = section.duration("max", MOMENT..=FOREVER);
    let max_age = section.duration("max_age", Duration::ZERO..=FOREVER).unwrap_or(default.max_age);
    let retry = RetryConfig {
        max_age,
        initial: initial.unwrap_or(default.initial.min(max.unwrap_or(default.max))),
        max: max.unwrap_or(default.max),
    };
    if retry.initial > retry.max {
        if max.is_some() {
            section.fault("initial", "is longer than \"max\"", None);
        } else if !section.is_written("max") {
            let message =
                format!("is longer than \"max\", which is {} where it is left out", format_duration(retry.max));
            section.fault("initial", message, Some("write \"max\" as well, or a shorter \"initial\"".into()));
        }
    }
    section.finish(&[
        ("limit", "retries are limited by time: \"max_age\""),
        ("max_attempts", "retries are limited by time: \"max_age\""),
    ]);
    retry
}

pub(crate) fn grants(mut section: Section<'_>, known: &Credentials) -> GrantsConfig {
    let considered = ["s3", "cloudwatch_logs", "http"].into_iter().filter(|key| section.has(key)).collect();
    let storage_bytes = section.size("storage", 0..=1 << 40);
    let sequences = super::own_grants::sequences(&mut section);
    let s3 = each_grant(&mut section, "s3", "{ bucket, key_prefix }", s3_grant);
    let cloudwatch_logs = each_grant(&mut section, "cloudwatch_logs", "{ log_group }", log_group_grant);
    let http = super::http::granted(&mut section);
    let credentials = super::http::granted_credentials(&mut section, known);
    section.finish(&[
        ("logs", "did you mean \"cloudwatch_logs\"?"),
        ("hosts", "did you mean \"http\"?"),
        ("https", "did you mean \"http\"?"),
        ("sequence", "did you mean \"sequences\"?"),
        ("storage_bytes", "did you mean \"storage\"?"),
    ]);
    GrantsConfig { s3, cloudwatch_logs, http, credentials, storage_bytes, sequences, considered }
}

/// The grants of one service, a list of maps; one alone may stand for a list of one.
fn each_grant<T>(
    section: &mut Section<'_>,
    key: &'static str,
    form: &str,
    one: fn(&Section<'_>, String, &super::node::Node) -> Option<T>,
) -> Vec<T> {
    let path = section.path_of(key);
    let Some(Entry { value: node, .. }) = section.entry(key) else { return Vec::new() };
    let items: &[_] = match &node.value {
        Value::List(list) => list,
        Value::Map(_) => std::slice::from_ref(node),
        _ => {
            let message = format!("expected a list of {form}, found {}", node.found());
            section.sink().add(node.at, &path, message);
            &[]
        }
    };
    items.iter().enumerate().filter_map(|(n, item)| one(section, format!("{path}[{n}]"), item)).collect()
}

fn s3_grant(section: &Section<'_>, path: String, item: &super::node::Node) -> Option<S3Grant> {
    let mut grant = Section::of(section.sink(), path, item.at, item)?;
    grant.missing("bucket", "name the bucket that the plugin may write to");
    let bucket = grant.text("bucket");
    let key_prefix = grant.text("key_prefix").unwrap_or_default();
    grant.finish(&[("prefix", "did you mean \"key_prefix\"?")]);
    Some(S3Grant { bucket: bucket?, key_prefix })
}

fn log_group_grant(section: &Section<'_>, path: String, item: &super::node::Node) -> Option<LogGroupGrant> {
    let mut grant = Section::of(section.sink(), path, item.at, item)?;
    grant.missing(
        "log_group",
        "name the log group that the plugin may write to, or the beginning of names with a * behind it",
    );
    let log_group = grant.text("log_group");
    if log_group.as_deref().is_some_and(|name| name.strip_suffix('*').unwrap_or(name).contains('*')) {
        grant.fault(
            "log_group",
            "has a * that is not its last letter",
            Some("only names that begin alike can be granted together".into()),
        );
    }
    grant.finish(&[("log_group_name", "did you mean \"log_group\"?"), ("name", "did you mean \"log_group\"?")]);
    Some(LogGroupGrant { log_group: log_group? })
}

/// The plugin's `config` as JSON, with the places of all that is in it.
pub(crate) fn plugin_config(section: &mut Section<'_>, name: &str) -> (serde_json::Value, PluginConfigSpans) {
    let plugin_at = section.place_of("plugin");
    let path = section.path_of("config");
    let mut spans = PluginConfigSpans::new(section.sink().file().clone(), name, plugin_at, section.hidden("plugin"));
    spans.note_pin(section.place_of("sha256"), section.hidden("sha256"));
    let empty = serde_json::Value::Object(serde_json::Map::new());
    let at = section.at();
    let Some(entry) = section.entry("config") else {
        spans.note_missing(at);
        return (empty, spans);
    };
    spans.note("", entry.key_at, &entry.value);
    match Section::of(section.sink(), path.clone(), entry.key_at, &entry.value) {
        Some(map) if map.is_empty() => return (empty, spans),
        Some(_) => {}
        None => spans.note_faulty(""),
    }
    let json = json::of(&entry.value, "", &path, section.sink(), &mut spans);
    (json.filter(serde_json::Value::is_object).unwrap_or(empty), spans)
}
