//! Reads `sources`.

use std::sync::Arc;
use std::time::Duration;

use super::fault::{Place, choices, nearest};
use super::forward;
use super::http_source;
use super::model::{GenerateConfig, SourceConfig, SourceKind, TailConfig};
use super::otlp;
use super::parse;
use super::reader::{Elsewhere, Section};
use super::syslog;
use super::tokens::Named;
use super::top::MOMENT;

/// A source, the file and the place where its address is written, and whether that came from the environment.
pub(crate) struct Read {
    pub config: SourceConfig,
    pub file: Arc<str>,
    pub listen_at: Place,
    pub listen_is_hidden: bool,
    /// Tenants that it names.
    pub tenants: Vec<Named>,
}

const TYPES: [&str; 7] = ["tail", "stdin", "http", "forward", "otlp", "syslog", "generate"];

/// Keys behind which addresses are.
const LISTENING: [&str; 5] = ["listen", "grpc", "http", "tcp", "udp"];

const NAME: (&str, &str) = ("name", "the source's name is its key under \"sources\"; what it does is \"type\"");
const TAIL: Elsewhere = &[
    NAME,
    ("path", "did you mean \"paths\"?"),
    ("include", "did you mean \"paths\"?"),
    ("exclude_path", "did you mean \"exclude\"?"),
    ("read_from_head", "write read_from: beginning"),
    ("start_position", "write read_from: beginning or end"),
    ("db", "positions are kept in data_dir by themselves"),
    ("max_line_bytes", "did you mean \"max_line_size\"?"),
    ("parser", "write parse: { format: json }, regex, logfmt or cri"),
    ("format", "write parse: { format: json }, regex, logfmt or cri"),
    ("multiline.parser", "write multiline: docker, cri, java, python or go, or a list of them"),
    ("ignore_older_secs", "did you mean \"ignore_older\"?"),
    ("file_key", "did you mean \"path_key\"?"),
    ("charset", "did you mean \"encoding\"?"),
    ("skip_long_lines", "write long_lines: truncate, split or skip"),
    ("compression", "write compressed: read or skip"),
];
const OTHERS: Elsewhere = &[NAME];

/// Reads every source, of a tenant where `tenant` names it; those with faults are left out.
pub(crate) fn read(top: &mut Section<'_>, tenant: Option<&str>) -> Vec<Read> {
    let help = "add one, for example:\n    sources:\n      app: { type: tail, paths: [/var/log/app/*.log] }";
    // A tenant may have none of its own, but tags of the operator's; and where there are tenants, the operator may have none.
    if tenant.is_none() && !super::tenants::may_be_in(top) {
        top.missing("sources", help);
    }
    let Some(section) = top.section("sources").filter(|_| top.is_written("sources")) else { return vec![] };
    if section.is_empty() && tenant.is_none() {
        section.sink().add_with_help(section.at(), "sources", "there is no source", help);
    }
    let mut read = vec![];
    let mut stdin: Option<&str> = None;
    for entry in section.entries() {
        name(&section, &entry.key, entry.key_at, "source");
        if tenant.is_none() && entry.key == crate::dead_letter::REPLAY_SOURCE {
            section.sink().add(entry.key_at, section.path(), format!("the name {:?} is Wharf's own", entry.key));
        }
        let path = section.path_of(&entry.key);
        let Some(source) = Section::of(section.sink(), path, entry.key_at, &entry.value) else { continue };
        let listen_key = LISTENING.into_iter().find(|key| source.is_written(key)).unwrap_or("listen");
        let listen_is_hidden = LISTENING.into_iter().any(|key| source.is_hidden(key));
        let listen_at = source.place_of(listen_key);
        let sink = source.sink();
        let mut tenants = vec![];
        let Some(config) = one(source, &entry.key, tenant, &mut tenants) else { continue };
        if matches!(config.kind, SourceKind::Stdin) {
            if tenant.is_some() {
                let message = "the standard input is the operator's, and no tenant's";
                sink.add(entry.key_at, &section.path_of(&entry.key), message);
            } else if let Some(first) = stdin {
                let message = format!("source {first} reads the standard input already");
                sink.add(entry.key_at, &section.path_of(&entry.key), message);
            }
            stdin = Some(&entry.key);
        }
        read.push(Read { config, file: sink.file().clone(), listen_at, listen_is_hidden, tenants });
    }
    read
}

/// Names become file names and labels: few characters, no surprises.
pub(crate) fn name(section: &Section<'_>, name: &str, at: Place, what: &str) {
    if !is_name(name) {
        let shown = super::node::shortened(name);
        let message = format!("{shown:?} cannot be the name of {} {what}", if what == "output" { "an" } else { "a" });
        let help = "names have 1 to 64 of the characters a-z, 0-9, _ and -";
        section.sink().add_with_help(at, section.path(), message, help);
    }
}

/// Whether a source, an output, a tenant or a credential may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn one(mut section: Section<'_>, name: &str, tenant: Option<&str>, tenants: &mut Vec<Named>) -> Option<SourceConfig> {
    section.missing("type", &format!("write type: {}", TYPES.join(", ")));
    let kind = section.text("type");
    let tag = section.text("tag");
    if tag.as_deref().is_some_and(|t| t.contains(char::is_whitespace)) {
        section.fault("tag", "a tag has no blanks", None);
    }
    if tag.as_deref().is_some_and(|t| t.len() > 255) {
        section.fault("tag", "a tag has at most 255 bytes", None);
    }
    let Some(kind) = kind else {
        section.report_missing();
        return None;
    };
    let (kind, elsewhere) = match kind.as_str() {
        "tail" => (tail(&mut section).map(SourceKind::Tail), TAIL),
        "stdin" => (Some(SourceKind::Stdin), OTHERS),
        "http" => (
            http_source::http(&mut section, tenant, tenants).map(|it| SourceKind::Http(Box::new(it))),
            http_source::ELSEWHERE,
        ),
        "forward" => (
            forward::forward(&mut section, tag.as_deref(), tenant, tenants).map(|it| SourceKind::Forward(Box::new(it))),
            forward::ELSEWHERE,
        ),
        "otlp" => (otlp::otlp(&mut section).map(|it| SourceKind::Otlp(Box::new(it))), otlp::ELSEWHERE),
        "syslog" => (syslog::syslog(&mut section).map(|it| SourceKind::Syslog(Box::new(it))), syslog::ELSEWHERE),
        "generate" => (Some(SourceKind::Generate(generate(&mut section))), OTHERS),
        _ if section.is_hidden("type") => {
            let message = format!("expected {}, found {}", choices(&TYPES), section.found("type"));
            section.fault("type", message, None);
            return None;
        }
        other => {
            let guess = nearest(other, &TYPES).map(|t| format!("; did you mean {t:?}?")).unwrap_or_default();
            let message = format!(
                "there is no source type {other:?}; known are {}{guess}",
                choices(&TYPES).replace(" or ", " and ")
            );
            section.fault("type", message, None);
            return None;
        }
    };
    let parse = match &kind {
        Some(SourceKind::Tail(_) | SourceKind::Stdin | SourceKind::Http(_)) => parse::parse(&mut section),
        _ => None,
    };
    section.finish(elsewhere);
    Some(SourceConfig {
        parse: parse.map(Arc::new),
        name: super::tenants::full_name(tenant, name),
        tenant: tenant.map(Arc::from),
        tag: tag.map_or_else(|| name.into(), Arc::from),
        kind: kind?,
    })
}

fn tail(section: &mut Section<'_>) -> Option<TailConfig> {
    section.missing("paths", "name the files, for example paths: [/var/log/app/*.log]");
    let paths = section.texts("paths");
    if paths.as_ref().is_some_and(Vec::is_empty) {
        section.fault("paths", "is empty", Some("name at least one file or glob".into()));
    }
    let exclude = section.texts("exclude").unwrap_or_default();
    for (key, globs) in [("paths", paths.as_deref().unwrap_or_default()), ("exclude", &exclude)] {
        for glob in globs {
            if let Err(cause) = globset::Glob::new(glob) {
                let shown = if section.is_hidden(key) { "what is there".to_owned() } else { format!("{glob:?}") };
                section.fault(key, format!("{shown} is not a glob: {}", cause.kind()), None);
            }
        }
    }
    let defaults = TailConfig::of(paths.clone().unwrap_or_default());
    let config = TailConfig {
        exclude,
        read_from_beginning: section.one_of("read_from", &[("beginning", true), ("end", false)]).unwrap_or(true),
        refresh_interval: section
            .duration("refresh_interval", 10 * MOMENT..=Duration::from_secs(3600))
            .unwrap_or(defaults.refresh_interval),
        max_line_bytes: section.size("max_line_size", 1..=64 << 20).unwrap_or(defaults.max_line_bytes),
        long_lines: super::tail::long_lines(section),
        multiline: super::tail::multiline(section).map(Arc::new),
        ignore_older: section.duration("ignore_older", MOMENT..=Duration::from_secs(10 * 365 * 86_400)),
        encoding: super::tail::encoding(section),
        path_key: super::tail::path_key(section),
        kubernetes: section.boolean("kubernetes").unwrap_or_default(),
        compressed: super::tail::compressed(section),
        rotate_wait: section
            .duration("rotate_wait", Duration::ZERO..=Duration::from_secs(24 * 3600))
            .unwrap_or(defaults.rotate_wait),
        ..defaults
    };
    paths.map(|_| config)
}

fn generate(section: &mut Section<'_>) -> GenerateConfig {
    GenerateConfig {
        rate: section.count("rate", 1..=u64::MAX),
        count: section.count("count", 1..=u64::MAX),
        record_bytes: section.size("record_size", 1..=1 << 20).unwrap_or(200),
    }
}
