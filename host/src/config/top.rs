//! Reads the file's top level and everything that is not a source or an output.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::aws::{self, Aws};
use super::fault::{Fault, Place, Sink, nearest};
use super::hidden::Hidden;
use super::limits::{self, Level, Limit, Limits};
use super::model::{AdminConfig, Config, JournalConfig, LogConfig, PluginsConfig, section_of};
use super::node::Node;
use super::reader::{Elsewhere, Section};
use super::{http, outputs, sources, tenants, tokens};

pub(crate) const FOREVER: Duration = Duration::from_secs(3650 * 24 * 3600);
pub(crate) const MOMENT: Duration = Duration::from_millis(1);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// The built-in components describe and configure themselves in 1.5 MiB; the rest is for large configurations and batches.
pub(crate) const LEAST_MEMORY: u64 = 4 << 20;

const ELSEWHERE: Elsewhere = &[
    ("inputs", "did you mean \"sources\"?"),
    ("input", "did you mean \"sources\"?"),
    ("pipeline", "Wharf has \"sources\" and \"outputs\" at the top level"),
    ("service", "Wharf has \"log\", \"admin\" and \"grace\" at the top level"),
    ("sinks", "did you mean \"outputs\"?"),
    ("plugin", "it belongs to an output: outputs.NAME.plugin"),
    ("tenant", "did you mean \"tenants\"?"),
    ("limits", "write tenant_defaults: { limits: … } for all tenants, or tenants.NAME.limits for one"),
    ("region", "it belongs under \"aws\""),
    ("listen", "it belongs under \"admin\", or to a source"),
];

/// Reads the whole configuration. `folder` is the file's: components and tenants' files are looked for from there. `variable` gives the
/// environment, for those files. The result is only good where the sink stayed empty.
pub(crate) fn read(
    root: &Node,
    folder: &Path,
    sink: &Sink,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Config> {
    let mut top = Section::of(sink, String::new(), Place { line: 1, column: 1 }, root)?;
    let data_dir = top.text("data_dir").map_or_else(|| PathBuf::from("/var/lib/wharf"), PathBuf::from);
    let grace = top.duration("grace", Duration::ZERO..=YEAR).unwrap_or(Duration::from_secs(30));
    let watch = top.boolean("watch").unwrap_or(false);
    let aws = top.section("aws").map(|section| aws::read(section, &Aws::default())).unwrap_or_default();
    let journal = top.section("journal").map(journal).unwrap_or_default();
    let log = top.section("log").map(log).unwrap_or_default();
    let (admin, admin_is_hidden) = top.section("admin").map(admin).unwrap_or_default();
    let (plugins, dirs_hidden) = top.section("plugins").map(|section| plugins(section, folder)).unwrap_or_default();
    let mut sources = sources::read(&mut top, None);
    let http = top.section("http").map(http::read).unwrap_or_default();
    let credentials = http::credentials(&mut top);
    let components =
        outputs::Components { folder, dirs: &plugins.dirs, dirs_hidden: &dirs_hidden, limits: &plugins.limits };
    let mut outputs = outputs::read(&mut top, None, &aws, &credentials, components);
    let tenants = tenants::read(&mut top, tenants::Around { aws: &aws, components, variable });
    let named: Vec<tokens::Named> = sources.iter_mut().flat_map(|source| std::mem::take(&mut source.tenants)).collect();
    tokens::check(&top, &named, &tenants.tenants, tenants.is_open);
    sources.extend(tenants.sources);
    outputs.extend(tenants.outputs);
    one_address_each(&top, &sources, admin.as_ref().map(|admin| (admin.listen, admin_is_hidden)));
    // Anchors need a place to live: `x-…` at the top level is the file's own.
    top.finish_but(ELSEWHERE, |key| key.starts_with("x-"));
    Some(Config {
        data_dir,
        grace,
        watch,
        aws: aws.config,
        journal,
        log,
        admin,
        plugins,
        http,
        credentials: credentials.whole,
        tenants: tenants.tenants,
        tenants_dir: tenants.dir,
        sources: sources.into_iter().map(|s| s.config).collect(),
        outputs,
    })
}

fn journal(mut section: Section<'_>) -> JournalConfig {
    let default = JournalConfig::default();
    let segment_bytes = section.size("segment_size", 64 << 10..=4 << 30);
    // Nothing can be said of two segments where one is written and makes no sense.
    let segment_is_faulty = segment_bytes.is_none() && section.is_written("segment_size");
    let journal = JournalConfig {
        segment_bytes: segment_bytes.unwrap_or(default.segment_bytes),
        max_bytes: section.size("max_size", 1..=u64::MAX),
        reserve_bytes: section.size("reserve", 0..=1 << 50).unwrap_or(default.reserve_bytes),
    };
    if let Some(most) = journal.max_bytes
        && most < journal.segment_bytes.saturating_mul(2)
        && !segment_is_faulty
    {
        let segment = match section.is_hidden("segment_size") {
            true => section.found("segment_size"),
            false => super::units::format_size(journal.segment_bytes),
        };
        let message = format!("is less than two segments; a segment has {segment}");
        section.fault("max_size", message, Some("raise max_size, or lower segment_size".into()));
    }
    section.finish(&[("max_bytes", "did you mean \"max_size\"?"), ("segment_bytes", "did you mean \"segment_size\"?")]);
    journal
}

fn log(mut section: Section<'_>) -> LogConfig {
    let level = section.text("level").unwrap_or_else(|| "info".into());
    if let Err(reason) = level_fault(&level, &section) {
        section.fault("level", reason, None);
    }
    let json = section.one_of("format", &[("text", false), ("json", true)]).unwrap_or(false);
    section.finish(&[]);
    LogConfig { level, json }
}

/// A level alone, or a filter such as `info,wharf::journal=debug`.
fn level_fault(level: &str, section: &Section<'_>) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let simple = !level.contains(['=', ',', '[']);
    if simple && !LEVELS.contains(&level.to_ascii_lowercase().as_str()) {
        let guess = nearest(level, &LEVELS).filter(|_| !section.is_hidden("level"));
        let guess = guess.map(|l| format!("; did you mean {l:?}?")).unwrap_or_default();
        let found = section.found("level");
        return Err(format!("expected {}, found {found}{guess}", super::fault::choices(&LEVELS)));
    }
    match tracing_subscriber::EnvFilter::builder().parse(level) {
        Ok(_) => Ok(()),
        Err(_) if section.is_hidden("level") => Err(format!("{} is not a log filter", section.found("level"))),
        Err(cause) => Err(format!("{level:?} is not a log filter: {cause}")),
    }
}

/// The admin server, and whether its address came from the environment.
fn admin(mut section: Section<'_>) -> (Option<AdminConfig>, bool) {
    let is_hidden = section.is_hidden("listen");
    let listen = section.address("listen");
    section.missing("listen", "write for example listen: 127.0.0.1:9600, or leave \"admin\" out for no admin server");
    let reload = section.boolean("reload").unwrap_or(true);
    let end_quarantine = section.boolean("end_quarantine").unwrap_or(true);
    section.finish(&[("address", "did you mean \"listen\"?"), ("port", "did you mean \"listen\"?")]);
    (listen.map(|listen| AdminConfig { listen, reload, end_quarantine }), is_hidden)
}

/// And what of its folders came from the environment.
fn plugins(mut section: Section<'_>, folder: &Path) -> (PluginsConfig, Hidden) {
    let dirs = section.texts("dir").unwrap_or_default();
    let hidden = section.hidden("dir");
    let trusted_keys = super::trust::trusted_keys(&mut section, folder);
    let require_signature = section.boolean("require_signature");
    if require_signature == Some(true) && !section.has("trusted_keys") {
        let help = "write trusted_keys: [KEY.pub]; `wharf plugin keygen` makes a key";
        section.fault(
            "require_signature",
            "there are no trusted_keys that a signature could be checked with",
            Some(help.into()),
        );
    }
    let registry = section.section("registry").map(|section| super::trust::registry(section, folder));
    let plugins = PluginsConfig {
        trusted_keys,
        require_signature: require_signature.unwrap_or(true),
        registry: registry.unwrap_or_default(),
        dirs: dirs.iter().map(|dir| folder.join(dir)).collect(),
        limits: plugin_limits(&mut section),
    };
    section.finish(&[
        ("dirs", "did you mean \"dir\"? It may be a list"),
        ("path", "did you mean \"dir\"?"),
        ("folder", "did you mean \"dir\"?"),
        ("keys", "did you mean \"trusted_keys\"?"),
        ("public_keys", "did you mean \"trusted_keys\"?"),
        ("registries", "did you mean \"registry\"?"),
        ("signature", "it belongs to an output, beside \"plugin\""),
        ("pull", "it belongs to an output, beside \"plugin\""),
        ("sha256", "it belongs to an output, beside \"plugin\""),
    ]);
    (plugins, hidden)
}

/// `limits`, three of which may stand beside it: they were there before it.
fn plugin_limits(section: &mut Section<'_>) -> Limits {
    let inside = section.section("limits");
    let is_inside = |limit: Limit| inside.as_ref().is_some_and(|inside| inside.is_written(limit.key()));
    let beside = [Limit::Memory, Limit::CpuPerCall, Limit::DeliverTimeout];
    let twice: Vec<Limit> = beside.into_iter().filter(|limit| is_inside(*limit)).collect();
    let mut limits = inside.map(limits::of_plugins).unwrap_or_default();
    for limit in beside {
        let Some(amount) = limits::amount(section, limit) else { continue };
        if twice.contains(&limit) {
            section.fault(limit.key(), "is said twice, here and under \"limits\"", Some("leave this one out".into()));
        } else {
            limits = limits.with(limit, amount, Level::Plugins);
        }
    }
    limits
}

/// No two things listen on one address. `admin` is an address, and whether it came from the environment.
fn one_address_each(top: &Section<'_>, sources: &[sources::Read], admin: Option<(SocketAddr, bool)>) {
    let mut taken: HashMap<u16, Vec<(SocketAddr, bool, String)>> = HashMap::new();
    if let Some((listen, is_hidden)) = admin {
        taken.entry(listen.port()).or_default().push((listen, is_hidden, "admin".into()));
    }
    let listening =
        sources.iter().flat_map(|source| source.config.kind.listens().into_iter().map(move |at| (source, at)));
    for (source, (key, listen)) in listening {
        let port = taken.entry(listen.port()).or_default();
        let clash = port.iter().find(|(other, _, _)| listen.port() != 0 && overlap(*other, listen));
        if let Some((other, is_hidden, name)) = clash {
            let path = format!("{}.{key}", section_of("sources", &source.config.name));
            let message = match *is_hidden || source.listen_is_hidden {
                true => format!("is taken: {name} listens on the same address"),
                false => format!("{listen} is taken: {name} listens on {other}"),
            };
            let (file, place) = (source.file.clone(), Some(source.listen_at));
            let help = Some("give each its own port".to_owned());
            top.sink().extend(vec![Fault { file, place, path, message, help }]);
        } else {
            port.push((listen, source.listen_is_hidden, format!("source {}", source.config.name)));
        }
    }
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified()
}
