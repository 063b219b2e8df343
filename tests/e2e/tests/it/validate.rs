//! `wharf validate`, and `wharf run` before it begins: every fault of a file at once, whoever finds it, each with its place.

use std::path::{Path, PathBuf};

use wharf_e2e::{command, wharf_binary};

/// Faults of the file, of the schema of a component's `config`, and of what only the component knows, all mixed.
const FAULTY: &str = r#"grase: 30s
data_dir: DATA
sources:
  app:
    type: tail
    paths: [/var/log/app/*.log]
    refresh_interval: 5
  other:
    type: stdin
    path: /var/log/other.log
outputs:
  archive:
    plugin: s3
    match: "*"
    workers: 0
    aws: { role_arn: archive-writer }
    config:
      bucket: my logs
      s3_key_format: /logs/$HOST
      colour: red
      upload_chunk_size: 1KB
      total_file_size: 1e9
      acl: bucket-owner
      tags: { "aws:team": a }
      compresion: gzip
      compression_level: 3
  live:
    plugin: s3
    matsch: live
    config:
      bucket: ""
      date_key: false
      date_format: epoch
"#;

/// Where each of them is, and what is said there. `compression_level` is not among them: it only seems to have no effect because
/// `compression` is misspelt.
const FAULTS: [&str; 16] = [
    r#":1:1: unknown key "grase"; did you mean "grace"?"#,
    r#":7:23: sources.app.refresh_interval: the number 5 is not a duration such as 10s: it has no unit: write 5ms, 5s, 5m, 5h or 5d"#,
    r#":10:5: sources.other: unknown key "path""#,
    r#":15:14: outputs.archive.workers: the number 0 is out of range; it must be 1 to 64"#,
    r#":16:22: outputs.archive.aws.role_arn: expected the ARN of a role, found text "archive-writer""#,
    r#":18:15: outputs.archive.config.bucket: the bucket's name has a blank: no bucket's name has"#,
    r#":19:22: outputs.archive.config.s3_key_format: `$HOST` is not known"#,
    r#":20:7: outputs.archive.config: unknown key "colour""#,
    r#":21:26: outputs.archive.config.upload_chunk_size: 1000 bytes: S3 takes parts from 5MiB (5242880)"#,
    r#":22:24: outputs.archive.config.total_file_size: expected a size such as 50MB or 64MiB, or a whole number of bytes, found the number 1e9"#,
    r#":23:12: outputs.archive.config.acl: `bucket-owner` is not known: write `private`"#,
    r#":24:27: outputs.archive.config.tags.aws:team: names of tags that begin with `aws:` are AWS's own"#,
    r#":25:7: outputs.archive.config: unknown key "compresion"; did you mean "compression"?"#,
    r#":29:5: outputs.live: unknown key "matsch"; did you mean "match"?"#,
    r#":31:15: outputs.live.config.bucket: the bucket has no name"#,
    r#":33:20: outputs.live.config.date_format: it has no effect with `date_key: false`"#,
];

fn write(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("wharf.yaml");
    std::fs::write(&file, text.replace("DATA", &folder.join("data").display().to_string())).unwrap();
    file
}

/// What a subcommand says of a file on standard error, with its exit code.
fn say(subcommand: &str, file: &Path) -> (String, Option<i32>) {
    let ended = command(wharf_binary().unwrap()).args([subcommand, "-c"]).arg(file).output().unwrap();
    (String::from_utf8(ended.stderr).unwrap(), ended.status.code())
}

#[test]
fn every_fault_of_the_file_and_of_its_components_is_told_at_once_in_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), FAULTY);
    for subcommand in ["validate", "run"] {
        let (said, code) = say(subcommand, &file);
        assert_eq!(code, Some(78), "{said}");
        let name = file.display().to_string();
        let lines: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix(&name)).collect();
        for (line, expected) in lines.iter().zip(FAULTS) {
            assert!(line.starts_with(expected), "{subcommand}: expected {expected}\n   found {line}\n{said}");
        }
        assert_eq!(lines.len(), FAULTS.len(), "{subcommand}: {said}");
        assert!(said.ends_with("wharf: 16 faults in the configuration\n"), "{said}");
        assert!(!folder.path().join("data").exists(), "{subcommand}: a faulty file is never half used");
    }
}

/// Wharf's own messages, those of schemas, and those of components.
#[test]
fn nothing_that_came_from_the_environment_is_shown() {
    const TEXT: &str = r#"sources:
  app: { type: stdin }
outputs:
  a: { plugin: "${WORD}", match: "*" }
  b:
    plugin: cloudwatch_logs
    match: "*"
    queue: { max_size: "${SIZE}" }
    config:
      log_group_name: "${GROUP}"
      log_stream_template: "${TEMPLATE}"
      log_retention_days: ${NUMBER}
      auto_create_group: true
  c:
    plugin: s3
    match: "*"
    config: { bucket: b, format: "${WORD}", timezone: "${WORD}", compression_level: "${NUMBER}", tags: { "aws:a": "${WORD}" } }
"#;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), TEXT);
    let mut validate = command(wharf_binary().unwrap());
    validate.args(["validate", "-c"]).arg(&file);
    for (name, value) in [
        ("WORD", "Hushhush"),
        ("SIZE", "50HUSH"),
        ("GROUP", "hush hush"),
        ("TEMPLATE", "$hush[x"),
        ("NUMBER", "987654"),
    ] {
        validate.env(name, value);
    }
    let ended = validate.output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(78), "{said}");
    for shown in ["hush", "987654", "[x"] {
        assert!(!said.to_lowercase().contains(shown), "{shown} is shown: {said}");
    }
    for (place, variable) in [
        (":4:16: outputs.a.plugin: ", "WORD"),
        (":8:24: outputs.b.queue.max_size: ", "SIZE"),
        (":11:28: outputs.b.config.log_stream_template: ", "TEMPLATE"),
        (":12:27: outputs.b.config.log_retention_days: ", "NUMBER"),
        (":17:34: outputs.c.config.format: ", "WORD"),
    ] {
        let line = said.lines().find(|line| line.contains(place));
        assert!(line.is_some_and(|line| line.contains(&format!("environment variable {variable}"))), "{place}: {said}");
    }
    assert!(said.contains("outputs.c.config.tags.aws:a: names of tags that begin with `aws:` are AWS's own"), "{said}");
    assert!(said.contains("there is none of this name"), "{said}");
}

/// The other way round: with each fault mended the same file is fine.
#[test]
fn the_same_file_with_its_faults_mended_is_valid() {
    let mut text = FAULTY.to_owned();
    for (faulty, mended) in [
        ("grase", "grace"),
        ("interval: 5", "interval: 5s"),
        ("    path: /var/log/other.log\n", ""),
        ("workers: 0", "workers: 1"),
        ("archive-writer", "\"arn:aws:iam::123456789012:role/archive-writer\""),
        ("my logs", "my-logs"),
        ("$HOST", "$TAG"),
        ("      colour: red\n", ""),
        ("1KB", "8MiB"),
        ("1e9", "1GB"),
        ("acl: bucket-owner", "acl: bucket-owner-read"),
        ("aws:team", "team"),
        ("compresion", "compression"),
        ("matsch", "match"),
        ("bucket: \"\"", "bucket: live"),
        ("      date_format: epoch\n", ""),
    ] {
        assert!(text.contains(faulty), "{faulty}");
        text = text.replace(faulty, mended);
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(say("validate", &write(folder.path(), &text)), (String::new(), Some(0)));
}
