//! What of a new configuration is another than that of the one at work, by value: a line that moved is no change, a component with other
//! bytes under the same path is one.

use std::sync::Arc;

use crate::admin::{Changed, Parts};
use crate::config::{Config, OutputConfig, PluginsConfig, SourceConfig, SourceKind, TailConfig, TenantConfig};

use super::CheckedOutput;

/// Keys of an output that its workers do not need to know of.
const WITHOUT_WORKERS: [&str; 3] = ["match", "batch", "queue"];

/// An output as it is at work, or shall be.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub(super) config: &'a Config,
    pub(super) output: &'a OutputConfig,
    pub(super) checked: &'a CheckedOutput,
}

/// The keys of an output that are others than before.
pub(super) fn of_output(old: Whole<'_>, new: Whole<'_>) -> Vec<&'static str> {
    // Every field is named, so that a new one has to be thought of here.
    let OutputConfig {
        name: _,
        tenant: _,
        plugin: _,
        plugin_source,
        // What it must be says nothing about what it is.
        pin: _,
        signature: _,
        pull: _,
        matches,
        workers,
        batch,
        queue,
        retry,
        on_quarantine,
        limits,
        aws,
        grants,
        // What of it came to the component is in `checked`.
        config: _,
        config_spans: _,
    } = old.output;
    let is = new.output;
    let same_component =
        *plugin_source == is.plugin_source && old.checked.plugin.digest() == new.checked.plugin.digest();
    let credentials = |whole: Whole<'_>| {
        let granted = &whole.output.grants.credentials;
        let of_output = whole.config.credentials_of(whole.output).iter();
        of_output.filter(|one| granted.iter().any(|grant| grant.name == one.name)).cloned().collect::<Vec<_>>()
    };
    [
        ("plugin", !same_component),
        ("match", *matches != is.matches),
        ("workers", *workers != is.workers),
        ("batch", *batch != is.batch),
        ("queue", *queue != is.queue),
        ("retry", *retry != is.retry),
        ("on_quarantine", *on_quarantine != is.on_quarantine),
        ("limits", *limits != is.limits),
        ("aws", *aws != is.aws),
        ("grants", *grants != is.grants),
        ("credentials", credentials(old) != credentials(new)),
        ("config", old.checked.config != new.checked.config),
        ("http", old.config.http != new.config.http),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}

/// Whether an output that differs in these keys needs other workers.
pub(super) fn needs_workers(keys: &[&str]) -> bool {
    keys.iter().any(|key| !WITHOUT_WORKERS.contains(key))
}

/// The keys of a source that are others than before.
pub(super) fn of_source(old: &SourceConfig, new: &SourceConfig) -> Vec<&'static str> {
    let SourceConfig { name: _, tenant: _, tag, kind, parse } = old;
    let mut keys = vec![];
    if *tag != new.tag {
        keys.push("tag");
    }
    if *parse != new.parse {
        keys.push("parse");
    }
    match (kind, &new.kind) {
        (SourceKind::Tail(old), SourceKind::Tail(new)) => {
            let TailConfig { paths, exclude, .. } = old;
            if *paths != new.paths || *exclude != new.exclude {
                keys.push("paths");
            }
            let rest = TailConfig { paths: paths.clone(), exclude: exclude.clone(), ..new.clone() };
            if *old != rest {
                keys.push("settings");
            }
        }
        (old, new) if std::mem::discriminant(old) != std::mem::discriminant(new) => keys.push("type"),
        (old, new) if old.listens() != new.listens() => keys.push("listen"),
        (old, new) if old != new => keys.push("settings"),
        _ => {}
    }
    keys
}

/// What stays as it was until the next start, though the file says otherwise.
pub(super) fn needs_restart(old: &Config, new: &Config) -> Vec<String> {
    // Whose signature a component needs is looked at whenever it is loaded.
    let PluginsConfig { dirs: _, limits, trusted_keys: _, require_signature: _, registry } = &old.plugins;
    let registry = *registry != new.plugins.registry;
    let limits = *limits != new.plugins.limits;
    [
        ("journal", old.journal != new.journal),
        ("log", old.log != new.log),
        ("admin", old.admin != new.admin),
        ("plugins.limits of the whole process", limits),
        ("plugins.registry", registry),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(key, _)| key.to_owned())
    .collect()
}

/// Whether what takes effect at once, and belongs to no output and no source alone, is as it was.
pub(super) fn is_the_rest_the_same(old: &Config, new: &Config) -> bool {
    let tenant = |tenant: &TenantConfig| {
        let TenantConfig { name, share, tags, limits, .. } = tenant;
        (name.clone(), *share, tags.clone(), *limits)
    };
    (old.grace, old.watch) == (new.grace, new.watch)
        && old.tenants.iter().map(tenant).eq(new.tenants.iter().map(tenant))
}

/// Sorts what there was and what there is. `keys` gives what of one differs.
pub(super) fn parts<Old, New>(
    old: &[Old],
    new: &[New],
    name_of_old: impl Fn(&Old) -> Arc<str>,
    name_of_new: impl Fn(&New) -> Arc<str>,
    keys: impl Fn(&Old, &New) -> Vec<&'static str>,
) -> Parts {
    let mut parts = Parts::default();
    for one in new {
        let name = name_of_new(one);
        let Some(before) = old.iter().find(|before| name_of_old(before) == name) else {
            parts.added.push(name.to_string());
            continue;
        };
        match keys(before, one) {
            keys if keys.is_empty() => parts.unchanged.push(name.to_string()),
            keys => {
                let what = keys.into_iter().map(str::to_owned).collect();
                parts.changed.push(Changed { name: name.to_string(), what });
            }
        }
    }
    let is_new = |name: &Arc<str>| new.iter().any(|one| name_of_new(one) == *name);
    let gone = old.iter().map(name_of_old).filter(|name| !is_new(name));
    parts.removed.extend(gone.map(|name| name.to_string()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{HostOptions, PluginHost};
    use crate::run::check_outputs;

    const OUTPUTS: &str = "\
        outputs:\n  archive:\n    plugin: s3\n    match: app\n    workers: 2\n    batch: { max_age: 1m }\n    queue: { max_size: 1GB }\n    \
        retry: { max: 1m }\n    aws: { region: us-east-1 }\n    config: { bucket: logs, key_format: /a/$INDEX }\n";
    const SOURCES: &str = "\
        sources:\n  app: { type: tail, paths: [/a], tag: app }\n  posts: { type: http, listen: \"127.0.0.1:9000\", tag: app }\n";

    fn parse(text: &str) -> Config {
        Config::parse(text, "wharf.yaml".as_ref(), &|_| None).unwrap()
    }

    /// The keys of `archive` that differ when `from` is written as `to`.
    async fn changed(host: &PluginHost, from: &str, to: &str) -> Vec<&'static str> {
        let text = format!("{SOURCES}{OUTPUTS}");
        assert!(text.contains(from), "{from}");
        let (old, new) = (parse(&text), parse(&text.replace(from, to)));
        let (was, is) = (check_outputs(&old, host).await.unwrap(), check_outputs(&new, host).await.unwrap());
        let whole = |config, output, checked| Whole { config, output, checked };
        of_output(whole(&old, &old.outputs[0], &was[0]), whole(&new, &new.outputs[0], &is[0]))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_output_differs_in_what_means_something_else_and_not_in_how_it_is_written() {
        let host = PluginHost::new(HostOptions::new(None, crate::config::Limits::default(), 4)).unwrap();
        for (from, to, keys) in [
            ("outputs:\n", "# a comment\n\noutputs:\n", &[][..]),
            ("max_age: 1m", "max_age: 60s", &[]),
            ("workers: 2", "workers: 3", &["workers"]),
            ("match: app", "match: \"app web\"", &["match"]),
            ("max_age: 1m", "max_age: 2m", &["batch"]),
            ("max_size: 1GB", "max_size: 2GB", &["queue"]),
            ("retry: { max: 1m }", "retry: { max: 2m }", &["retry"]),
            ("us-east-1", "eu-west-1", &["aws"]),
            ("bucket: logs", "bucket: other", &["config"]),
            ("sources:\n", "http: { max_concurrent: 3 }\nsources:\n", &["http"]),
            ("sources:\n", "grace: 3s\nsources:\n", &[]),
        ] {
            assert_eq!(changed(&host, from, to).await, keys, "{from} to {to}");
        }
        assert!(!needs_workers(&["match", "batch", "queue"]));
        assert!(needs_workers(&["match", "config"]));
    }

    #[test]
    fn sources_are_sorted_by_what_became_of_them() {
        let (old, new) = (
            parse(&format!("{SOURCES}{OUTPUTS}")),
            parse(&format!("{SOURCES}{OUTPUTS}").replace("paths: [/a]", "paths: [/a, /b]").replace("posts:", "web:")),
        );
        let name = |source: &SourceConfig| source.name.clone();
        let found = parts(&old.sources, &new.sources, name, name, of_source);
        let changed = Changed { name: "app".into(), what: vec!["paths".into()] };
        let expected = Parts {
            added: vec!["web".into()],
            changed: vec![changed],
            removed: vec!["posts".into()],
            unchanged: vec![],
        };
        assert_eq!(found, expected);
        assert!(parts(&old.sources, &old.sources, name, name, of_source).are_unchanged());
    }

    #[test]
    fn what_is_made_once_at_the_start_needs_another_one() {
        let text = format!("{SOURCES}{OUTPUTS}");
        let old = parse(&text);
        for (more, keys) in [
            ("grace: 3s\nwatch: true\n", &[][..]),
            ("journal: { max_size: 1GB }\n", &["journal"]),
            ("log: { level: debug }\n", &["log"]),
            ("admin: { listen: \"127.0.0.1:1\" }\n", &["admin"]),
            ("plugins: { dir: [/x] }\n", &[]),
            ("plugins: { max_memory: 128MiB }\n", &["plugins.limits of the whole process"]),
        ] {
            assert_eq!(needs_restart(&old, &parse(&format!("{more}{text}"))), keys, "{more}");
        }
    }
}
