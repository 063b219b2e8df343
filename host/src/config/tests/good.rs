//! What good files mean.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::config::{
    AwsConfig, BatchConfig, CompressedFiles, JournalConfig, Limit, Limits, LogConfig, PluginsConfig, QueueConfig,
    RetryConfig, SourceKind,
};
use crate::plugin::PluginSource;
use crate::queue::WhenFull;

const DESIGN: &str = r#"
data_dir: /var/lib/wharf
aws:
  region: us-east-1            # or AWS_REGION; credentials come from the usual AWS chain
  endpoint: http://127.0.0.1:5000   # optional, for S3-compatible servers and tests
sources:
  app:
    type: tail
    paths: [/var/log/app/segment_*]
    read_from: beginning       # or end, for files seen for the first time
    tag: app
outputs:
  archive:
    plugin: s3                 # a built-in component, a file path, or an OCI reference
    match: "app"
    workers: 2
    batch: { max_bytes: 50MB, max_age: 10m }
    config:
      bucket: my-bucket
      key_format: /logs/myapp/segment_$INDEX
  live:
    plugin: cloudwatch_logs
    match: "app.*"
    workers: 4
    config: { log_group_name: /myapp, log_stream_prefix: "host-", auto_create_group: true }
"#;

#[test]
fn the_example_of_the_design_is_read_as_it_is_meant() {
    let config = parse(DESIGN).unwrap();
    assert_eq!(config.data_dir, Path::new("/var/lib/wharf"));
    assert_eq!(config.grace, Duration::from_secs(30));
    assert_eq!(config.aws.region.as_deref(), Some("us-east-1"));
    assert_eq!(config.aws.endpoint.as_deref(), Some("http://127.0.0.1:5000"));
    assert!(config.admin.is_none());

    let [app] = config.sources.as_slice() else { panic!("one source") };
    assert_eq!((&*app.name, &*app.tag), ("app", "app"));
    let SourceKind::Tail(tail) = &app.kind else { panic!("a tail source") };
    assert_eq!(tail.paths, ["/var/log/app/segment_*"]);
    assert!(tail.read_from_beginning);

    let [archive, live] = config.outputs.as_slice() else { panic!("two outputs") };
    assert_eq!((&*archive.name, archive.plugin.as_str(), archive.workers), ("archive", "s3", 2));
    assert_eq!(archive.matches, ["app"]);
    assert_eq!(
        archive.batch,
        BatchConfig { max_bytes: Some(50_000_000), max_records: None, max_age: Some(Duration::from_secs(600)) }
    );
    assert_eq!(archive.config, json!({"bucket": "my-bucket", "key_format": "/logs/myapp/segment_$INDEX"}));
    assert_eq!(archive.aws, config.aws);
    assert_eq!((&*live.name, live.plugin.as_str(), live.workers), ("live", "cloudwatch_logs", 4));
    assert_eq!(live.matches, ["app.*"]);
    assert_eq!(
        live.config,
        json!({"log_group_name": "/myapp", "log_stream_prefix": "host-", "auto_create_group": true})
    );
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let config = parse(&source("type: tail\npaths: /var/log/app.log")).unwrap();
    assert_eq!(config.data_dir, Path::new("/var/lib/wharf"));
    assert_eq!(config.aws, AwsConfig::default());
    assert_eq!(config.journal, JournalConfig { segment_bytes: 33_554_432, max_bytes: None, reserve_bytes: 67_108_864 });
    assert_eq!(config.log, LogConfig { level: "info".into(), json: false });
    assert_eq!(
        config.plugins,
        PluginsConfig {
            dirs: vec![],
            trusted_keys: None,
            require_signature: true,
            registry: crate::config::RegistryConfig::default(),
            limits: Limits::default(),
        }
    );
    let SourceKind::Tail(tail) = &config.sources[0].kind else { panic!("a tail source") };
    assert_eq!(tail.paths, ["/var/log/app.log"]);
    assert!(tail.exclude.is_empty() && tail.read_from_beginning);
    assert_eq!((tail.max_line_bytes, tail.compressed), (1_048_576, CompressedFiles::Read));
    assert_eq!((tail.refresh_interval, tail.rotate_wait), (Duration::from_secs(5), Duration::from_secs(5)));
    let output = &config.outputs[0];
    assert_eq!(output.workers, 1);
    assert_eq!(output.batch, BatchConfig::default());
    assert_eq!(output.queue, QueueConfig { max_bytes: None, when_full: WhenFull::Block });
    assert_eq!(
        output.retry,
        RetryConfig {
            max_age: Duration::from_secs(86_400),
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
        }
    );
    assert_eq!(output.config, json!({}));
    assert!(output.grants.s3.is_empty());
}

#[test]
fn every_key_of_every_source_is_read() {
    let text = r#"
sources:
  files:
    type: tail
    paths: ["/a/*.log", /b]
    exclude: "/a/*.gz"
    read_from: end
    refresh_interval: 500ms
    max_line_size: 64KiB
    rotate_wait: 1m
    compressed: skip
    tag: files.a
  in: { type: stdin, tag: piped }
  web: { type: http, listen: "127.0.0.1:9880", max_body_size: 1MiB, header_timeout: 2s, max_connections: 16 }
  trial: { type: generate, rate: 1000, count: 5000, record_size: 300 }
outputs:
  archive: { plugin: s3, match: "*" }
"#;
    let config = parse(text).unwrap();
    let [files, stdin, web, trial] = config.sources.as_slice() else { panic!("four sources") };
    let SourceKind::Tail(tail) = &files.kind else { panic!("a tail source") };
    assert_eq!((tail.paths.len(), tail.exclude.as_slice()), (2, &["/a/*.gz".to_owned()][..]));
    assert!(!tail.read_from_beginning);
    assert_eq!((tail.refresh_interval, tail.rotate_wait), (Duration::from_millis(500), Duration::from_secs(60)));
    assert_eq!(tail.compressed, CompressedFiles::Skip);
    assert_eq!((tail.max_line_bytes, &*files.tag), (65_536, "files.a"));
    assert!(matches!(stdin.kind, SourceKind::Stdin));
    assert_eq!(&*stdin.tag, "piped");
    let SourceKind::Http(http) = &web.kind else { panic!("an http source") };
    assert_eq!((http.header_timeout, http.idle_timeout), (Duration::from_secs(2), Duration::from_secs(75)));
    assert_eq!(http.max_connections, 16);
    assert_eq!((http.listen, http.max_body_bytes), ("127.0.0.1:9880".parse().unwrap(), 1_048_576));
    assert_eq!(&*web.tag, "web");
    let SourceKind::Generate(generate) = &trial.kind else { panic!("a generate source") };
    assert_eq!((generate.rate, generate.count, generate.record_bytes), (Some(1000), Some(5000), 300));
}

#[test]
fn every_other_key_is_read() {
    let text = r#"
data_dir: data
grace: 5s
journal: { segment_size: 8MiB, max_size: 2GB, reserve: 0 }
log: { level: "info,wharf::journal=debug", format: json }
admin: { listen: "[::1]:9600" }
plugins: { max_memory: 128MiB, cpu_per_call: 2s, deliver_timeout: 1h }
sources:
  app: { type: stdin }
outputs:
  archive:
    plugin: ./plugins/own.wasm
    match: [app, "web.*\n  other"]
    workers: 64
    batch: { max_bytes: 1GiB, max_records: 1000, max_age: 1d }
    queue: { max_size: 10GB, when_full: drop_oldest }
    retry: { max_age: 1h, initial: 250ms, max: 5m }
    grants: { s3: [{ bucket: b, key_prefix: logs/ }, { bucket: c }] }
"#;
    let config = parse(text).unwrap();
    assert_eq!((config.data_dir.as_path(), config.grace), (Path::new("data"), Duration::from_secs(5)));
    assert_eq!(
        config.journal,
        JournalConfig { segment_bytes: 8_388_608, max_bytes: Some(2_000_000_000), reserve_bytes: 0 }
    );
    assert_eq!(config.log, LogConfig { level: "info,wharf::journal=debug".into(), json: true });
    assert_eq!(config.admin.unwrap().listen, "[::1]:9600".parse().unwrap());
    assert_eq!(config.plugins.limits.of(Limit::Memory), 134_217_728);
    assert_eq!(config.plugins.limits.duration(Limit::CpuPerCall), Duration::from_secs(2));
    assert_eq!(config.plugins.limits.duration(Limit::DeliverTimeout), Duration::from_secs(3600));
    let output = &config.outputs[0];
    assert_eq!(output.plugin_source(), PluginSource::File("./plugins/own.wasm".into()));
    assert_eq!(output.matches, ["app", "web.*", "other"]);
    assert_eq!(output.workers, 64);
    assert_eq!(
        output.batch,
        BatchConfig {
            max_bytes: Some(1_073_741_824),
            max_records: Some(1000),
            max_age: Some(Duration::from_secs(86_400)),
        }
    );
    assert_eq!(output.queue, QueueConfig { max_bytes: Some(10_000_000_000), when_full: WhenFull::DropOldest });
    assert_eq!(
        output.retry,
        RetryConfig {
            max_age: Duration::from_secs(3600),
            initial: Duration::from_millis(250),
            max: Duration::from_secs(300),
        }
    );
    let grants: Vec<_> = output.grants.s3.iter().map(|g| (g.bucket.as_str(), g.key_prefix.as_str())).collect();
    assert_eq!(grants, [("b", "logs/"), ("c", "")]);
}

#[test]
fn a_name_is_a_built_in_or_is_looked_for_and_a_path_is_a_file() {
    for (plugin, source) in [
        ("s3", PluginSource::BuiltIn("s3".into())),
        ("no_such", PluginSource::Named { name: "no_such".into(), dirs: vec![] }),
        ("own.wasm", PluginSource::File("own.wasm".into())),
        ("./own", PluginSource::File("./own".into())),
        ("/opt/own.wasm", PluginSource::File("/opt/own.wasm".into())),
    ] {
        let text = output("").replace("plugin: s3", &format!("plugin: {plugin}"));
        assert_eq!(parse(&text).unwrap().outputs[0].plugin_source(), source, "{plugin}");
    }
}

#[test]
fn components_are_looked_for_from_the_files_own_folder() {
    let one = |path: &str, plugin: &str, dir: &str| {
        let text =
            format!("plugins: {{ dir: {dir} }}\n{}", output("").replace("plugin: s3", &format!("plugin: {plugin}")));
        Config::parse(&text, path.as_ref(), &|_| None).unwrap().outputs.remove(0).plugin_source()
    };
    let named = |dirs: &[&str]| PluginSource::Named { name: "own".into(), dirs: dirs.iter().map(Into::into).collect() };
    for (path, plugin, dir, source) in [
        ("wharf.yaml", "./own.wasm", "plugins", PluginSource::File("./own.wasm".into())),
        ("/etc/wharf/wharf.yaml", "own.wasm", "plugins", PluginSource::File("/etc/wharf/own.wasm".into())),
        ("conf/wharf.yaml", "../own.wasm", "plugins", PluginSource::File("conf/../own.wasm".into())),
        ("conf/wharf.yaml", "/opt/own.wasm", "plugins", PluginSource::File("/opt/own.wasm".into())),
        ("conf/wharf.yaml", "own", "plugins", named(&["conf/plugins"])),
        ("/etc/wharf.yaml", "own", "[/opt/a, b]", named(&["/opt/a", "/etc/b"])),
        // A built-in's name is never another's.
        ("conf/wharf.yaml", "s3", "plugins", PluginSource::BuiltIn("s3".into())),
    ] {
        assert_eq!(one(path, plugin, dir), source, "{path} {plugin} {dir}");
    }
}

#[test]
fn a_component_is_pinned_by_its_digest_beside_it() {
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let with = |line: &str| output(line).replace("plugin: s3", "plugin: ./own.wasm");
    let pinned = parse(&with(&format!("sha256: {digest}"))).unwrap();
    assert_eq!(pinned.outputs[0].pin.unwrap().to_string(), digest);
    assert_eq!(parse(&with("")).unwrap().outputs[0].pin, None);
    // Digits alone, which YAML takes for a number.
    assert!(faults(&with(&format!("sha256: {}", "1".repeat(64)))).contains("put it in quotes"));
    let expected = "wharf.yaml:7:13: outputs.archive.sha256: expected the SHA-256 of the component, 64 hexadecimal digits, found text \"9f86\"\n    \
                    help: `sha256sum FILE` and `wharf plugin inspect FILE` show it";
    assert_eq!(faults(&with("sha256: 9f86")), expected);
    let expected = "wharf.yaml:7:13: outputs.archive.sha256: a built-in component cannot be pinned: s3 is part of this program, and changes with it\n    \
                    help: leave sha256 out; what is pinned is the version of Wharf";
    assert_eq!(faults(&output(&format!("sha256: {digest}"))), expected);
    let expected = "wharf.yaml:5:13: outputs.archive.plugin: has its digest behind it, which has a key of its own\n    \
                    help: write plugin: ./own.wasm and, beside it, sha256: with the 64 hexadecimal digits";
    assert_eq!(faults(&output("").replace("plugin: s3", &format!("plugin: ./own.wasm@sha256:{digest}"))), expected);
}

#[test]
fn a_grant_covers_its_bucket_and_longer_prefixes() {
    use crate::config::S3Grant;
    let config = parse(&output("grants: { s3: [{ bucket: b, key_prefix: logs/ }, { bucket: open }] }")).unwrap();
    let grants = &config.outputs[0].grants;
    for (bucket, prefix, granted) in [
        ("b", "logs/", true),
        ("b", "logs/app/", true),
        ("b", "", false),
        ("b", "log", false),
        ("b", "other/", false),
        ("open", "", true),
        ("open", "any", true),
        ("c", "logs/", false),
    ] {
        let wanted = [S3Grant { bucket: bucket.into(), key_prefix: prefix.into() }];
        assert_eq!(grants.missing(&wanted).is_empty(), granted, "{bucket} {prefix}");
    }
}

#[test]
fn a_grant_covers_its_log_group_or_longer_names() {
    let config = parse(&output("grants: { cloudwatch_logs: [{ log_group: /app }, { log_group: /web/* }] }")).unwrap();
    let grants = &config.outputs[0].grants;
    for (wanted, granted) in [
        ("/app", true),
        ("/app*", false),
        ("/app/x", false),
        ("/ap", false),
        ("/web/1", true),
        ("/web/", true),
        ("/web/*", true),
        ("/web/a/*", true),
        ("/web*", false),
        ("/web", false),
        ("*", false),
    ] {
        assert_eq!(grants.missing_log_groups(&[wanted.into()]).is_empty(), granted, "{wanted}");
    }
    let all = parse(&output("grants: { cloudwatch_logs: { log_group: \"*\" } }")).unwrap();
    assert!(all.outputs[0].grants.missing_log_groups(&["*".into(), "/any".into(), "/any*".into()]).is_empty());
}
