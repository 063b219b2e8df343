//! What is wrong, and exactly what an operator reads.

use super::*;

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one() {
    assert_eq!(
        faults(&output("wokers: 2\nbatch: { max_byte: 5MB }")),
        "wharf.yaml:7:5: outputs.archive: unknown key \"wokers\"; did you mean \"workers\"?\n\
         wharf.yaml:8:14: outputs.archive.batch: unknown key \"max_byte\"; did you mean \"max_bytes\"?"
    );
}

#[test]
fn a_key_like_no_known_one_is_answered_with_the_known_ones() {
    assert_eq!(
        faults(&output("bucket: b")),
        "wharf.yaml:7:5: outputs.archive: unknown key \"bucket\"\n    \
         help: options of the plugin itself belong under \"config\"; known keys: plugin, sha256, signature, pull, match, workers, batch, queue, retry, on_quarantine, limits, aws, grants, config"
    );
    assert_eq!(
        faults(&output("queue: { colour: red }")),
        "wharf.yaml:7:14: outputs.archive.queue: unknown key \"colour\"\n    help: known keys: max_size, when_full"
    );
}

#[test]
fn names_that_other_shippers_use_are_answered_with_ours() {
    assert_eq!(
        faults(
            "inputs:\n  app: { type: stdin }\noutputs:\n  a: { type: s3, tag: x, plugin: s3, match: \"*\", retry_limit: 5 }"
        ),
        "wharf.yaml:1:1: unknown key \"inputs\"; did you mean \"sources\"?\n\
         wharf.yaml:4:8: outputs.a: unknown key \"type\"; did you mean \"plugin\"?\n\
         wharf.yaml:4:18: outputs.a: unknown key \"tag\"; did you mean \"match\"?\n\
         wharf.yaml:4:50: outputs.a: unknown key \"retry_limit\"; retries are limited by time: write retry: { max_age: 24h }"
    );
}

#[test]
fn all_faults_come_at_once_in_the_order_of_the_file() {
    let text = r#"data_dir: 5
grace: 10
sources:
  App: { type: stdin }
  web: { type: http, listen: 8080 }
outputs:
  archive:
    workers: 0
    batch: { max_bytes: 50M, max_age: soon, max_records: -1 }
"#;
    assert_eq!(
        faults(text),
        "wharf.yaml:1:11: data_dir: expected text, found the number 5\n    help: put it in quotes: \"5\"\n\
         wharf.yaml:2:8: grace: the number 10 is not a duration such as 10s: it has no unit: write 10ms, 10s, 10m, 10h or 10d\n\
         wharf.yaml:4:3: sources: \"App\" cannot be the name of a source\n    help: names have 1 to 64 of the characters a-z, 0-9, _ and -\n\
         wharf.yaml:5:30: sources.web.listen: expected an address such as 127.0.0.1:9880, found the number 8080\n    \
         help: write 127.0.0.1:8080 for this machine alone, 0.0.0.0:8080 or [::]:8080 for all\n\
         wharf.yaml:7:3: outputs.archive: the key \"match\" is missing\n    help: say which tags it takes: match: \"*\" for all\n\
         wharf.yaml:7:3: outputs.archive: the key \"plugin\" is missing\n    help: write plugin: s3, or the path of a component\n\
         wharf.yaml:8:14: outputs.archive.workers: the number 0 is out of range; it must be 1 to 64\n\
         wharf.yaml:9:25: outputs.archive.batch.max_bytes: text \"50M\" is not a size such as 50MB: the unit \"M\" is not known: write 50MB (powers of 1000) or 50MiB (powers of 1024)\n\
         wharf.yaml:9:39: outputs.archive.batch.max_age: text \"soon\" is not a duration such as 10s: the unit \"soon\" is not known: write ms, s, m, h or d\n\
         wharf.yaml:9:58: outputs.archive.batch.max_records: the number -1 is out of range; it must be 1 to 4294967295"
    );
}

#[test]
fn a_wrong_type_says_what_was_found_and_what_is_expected() {
    for (lines, expected) in [
        ("workers: two", "wharf.yaml:7:14: outputs.archive.workers: expected a whole number, found text \"two\""),
        ("workers: 1.5", "wharf.yaml:7:14: outputs.archive.workers: expected a whole number, found the number 1.5"),
        ("workers: [1]", "wharf.yaml:7:14: outputs.archive.workers: expected a whole number, found a list"),
        ("batch: 5MB", "wharf.yaml:7:12: outputs.archive.batch: expected a map of keys, found text \"5MB\""),
        (
            "queue: { max_size: {} }",
            "wharf.yaml:7:24: outputs.archive.queue.max_size: expected a size such as 50MB, found a map",
        ),
        (
            "queue: { max_size: true }",
            "wharf.yaml:7:24: outputs.archive.queue.max_size: expected a size such as 50MB, found true",
        ),
        (
            "queue: { when_full: drop }",
            "wharf.yaml:7:25: outputs.archive.queue.when_full: expected \"block\", \"drop_oldest\" or \"drop_newest\", found text \"drop\"; did you mean \"drop_oldest\"?",
        ),
        (
            "aws: { path_style: yes }",
            "wharf.yaml:7:24: outputs.archive.aws.path_style: expected true or false, found text \"yes\"",
        ),
        ("config: [a]", "wharf.yaml:7:13: outputs.archive.config: expected a map of keys, found a list"),
        (
            "grants: { s3: all }",
            "wharf.yaml:7:19: outputs.archive.grants.s3: expected a list of { bucket, key_prefix }, found text \"all\"",
        ),
        (
            "grants: { cloudwatch_logs: /app }",
            "wharf.yaml:7:32: outputs.archive.grants.cloudwatch_logs: expected a list of { log_group }, found text \"/app\"",
        ),
        (
            "grants: { cloudwatch_logs: [{ log_group: \"/a*/b\" }] }",
            "wharf.yaml:7:46: outputs.archive.grants.cloudwatch_logs[0].log_group: has a * that is not its last letter\n    \
             help: only names that begin alike can be granted together",
        ),
        (
            // That `log_group` is missing follows, and is not told as well.
            "grants: { cloudwatch_logs: [{ log_group_name: /app }] }",
            "wharf.yaml:7:35: outputs.archive.grants.cloudwatch_logs[0]: unknown key \"log_group_name\"; did you mean \"log_group\"?",
        ),
        ("retry: { initial: 2m, max: 1m }", "wharf.yaml:7:23: outputs.archive.retry.initial: is longer than \"max\""),
        (
            "retry: { initial: 2m }",
            "wharf.yaml:7:23: outputs.archive.retry.initial: is longer than \"max\", which is 1m where it is left out\n    \
             help: write \"max\" as well, or a shorter \"initial\"",
        ),
        (
            "retry: { initial: 2m, max: soon }",
            "wharf.yaml:7:32: outputs.archive.retry.max: text \"soon\" is not a duration such as 10s: the unit \"soon\" is not known: write ms, s, m, h or d",
        ),
        (
            "batch: { max_bytes: 0 }",
            "wharf.yaml:7:25: outputs.archive.batch.max_bytes: 0 B is too small; the least is 1 B",
        ),
        (
            "batch: { max_age: 0s }",
            "wharf.yaml:7:23: outputs.archive.batch.max_age: 0ms is too small; the least is 1ms",
        ),
    ] {
        assert_eq!(faults(&output(lines)), expected, "{lines}");
    }
}

#[test]
fn a_key_without_a_value_is_a_fault_but_null_and_an_empty_section_are_not() {
    assert_eq!(
        faults(&output("workers:")),
        "wharf.yaml:7:5: outputs.archive.workers: has no value\n    help: write one, or leave the key out"
    );
    let config = parse(&output("workers: null\nbatch:\nqueue: ~\nconfig:")).unwrap();
    assert_eq!(config.outputs[0].workers, 1);
}

#[test]
fn a_required_key_that_is_empty_is_told_once() {
    assert_eq!(
        faults(&source("type:")),
        "wharf.yaml:5:5: sources.app.type: has no value\n    help: write one, or leave the key out"
    );
}

#[test]
fn a_tenant_whose_outputs_are_empty_is_named() {
    let told =
        faults("outputs: { a: { plugin: s3, match: a, config: { bucket: logs } } }\ntenants: { t: { outputs: {} } }\n");
    assert!(told.contains(": tenants.t.outputs: there is no output\n"), "{told}");
}

#[test]
fn without_a_source_or_an_output_there_is_nothing_to_do() {
    assert_eq!(
        faults("sources: {}\noutputs:\n"),
        "wharf.yaml:1:1: sources: there is no source\n    help: add one, for example:\n    sources:\n      app: { type: tail, paths: [/var/log/app/*.log] }\n\
         wharf.yaml:2:1: outputs: there is no output\n    help: add one, for example:\n    outputs:\n      archive: { plugin: s3, match: \"*\", config: { bucket: my-bucket } }"
    );
}

#[test]
fn names_that_could_not_be_file_names_are_refused() {
    for name in ["A", "a.b", "a b", "../a", "ü", &"a".repeat(65)] {
        let text = output("").replace("archive:", &format!("\"{name}\":"));
        let shown = if name.len() > 60 { format!("{}…", "a".repeat(60)) } else { name.to_owned() };
        assert_eq!(
            faults(&text),
            format!(
                "wharf.yaml:4:3: outputs: {shown:?} cannot be the name of an output\n    help: names have 1 to 64 of the characters a-z, 0-9, _ and -"
            ),
        );
    }
    assert_eq!(
        faults(&output("").replace("archive:", "replay:")),
        "wharf.yaml:4:3: outputs: the name \"replay\" is Wharf's own"
    );
    parse(&output("").replace("archive:", &format!("{}:", "a".repeat(64)))).unwrap();
}

#[test]
fn two_sources_cannot_share_an_address() {
    let text = r#"
admin: { listen: 127.0.0.1:9600 }
sources:
  a: { type: http, listen: 127.0.0.1:9880 }
  b: { type: http, listen: 127.0.0.1:9880 }
  c: { type: http, listen: 0.0.0.0:9600 }
  d: { type: http, listen: 127.0.0.2:9880 }
  e: { type: http, listen: 127.0.0.1:0 }
  f: { type: http, listen: 127.0.0.1:0 }
  g: { type: stdin }
  h: { type: stdin }
outputs:
  archive: { plugin: s3, match: "*" }
"#;
    assert_eq!(
        faults(text),
        "wharf.yaml:5:28: sources.b.listen: 127.0.0.1:9880 is taken: source a listens on 127.0.0.1:9880\n    help: give each its own port\n\
         wharf.yaml:6:28: sources.c.listen: 0.0.0.0:9600 is taken: admin listens on 127.0.0.1:9600\n    help: give each its own port\n\
         wharf.yaml:11:3: sources.h: source g reads the standard input already"
    );
}

#[test]
fn faults_of_sources_are_told_by_their_type() {
    for (lines, expected) in [
        (
            "tag: x",
            "wharf.yaml:4:3: sources.app: the key \"type\" is missing\n    help: write type: tail, stdin, http, forward, otlp, syslog, generate",
        ),
        (
            "type: tial",
            "wharf.yaml:5:11: sources.app.type: there is no source type \"tial\"; known are \"tail\", \"stdin\", \"http\", \"forward\", \"otlp\", \"syslog\" and \"generate\"; did you mean \"tail\"?",
        ),
        (
            "type: tail",
            "wharf.yaml:4:3: sources.app: the key \"paths\" is missing\n    help: name the files, for example paths: [/var/log/app/*.log]",
        ),
        (
            "type: tail\npaths: []",
            "wharf.yaml:6:12: sources.app.paths: is empty\n    help: name at least one file or glob",
        ),
        (
            "type: tail\npaths: [\"/a/[b\"]",
            "wharf.yaml:6:12: sources.app.paths: \"/a/[b\" is not a glob: unclosed character class; missing ']'",
        ),
        (
            "type: tail\npaths: [5, /a]",
            "wharf.yaml:6:13: sources.app.paths[0]: expected text, found the number 5\n    help: put it in quotes: \"5\"",
        ),
        (
            "type: tail\npaths: /a\nread_from: start",
            "wharf.yaml:7:16: sources.app.read_from: expected \"beginning\" or \"end\", found text \"start\"",
        ),
        (
            "type: tail\npath: /a\npaths: /a",
            "wharf.yaml:6:5: sources.app: unknown key \"path\"; did you mean \"paths\"?",
        ),
        (
            "type: tail\npaths: /a\nlong_lines: cut",
            "wharf.yaml:7:17: sources.app.long_lines: expected \"truncate\", \"split\" or \"skip\", found text \"cut\"",
        ),
        (
            "type: tail\npaths: /a\ncompressed: gzip",
            "wharf.yaml:7:17: sources.app.compressed: expected \"read\" or \"skip\", found text \"gzip\"",
        ),
        (
            "type: tail\npaths: /a\ncompression: gzip",
            "wharf.yaml:7:5: sources.app: unknown key \"compression\"; write compressed: read or skip",
        ),
        (
            "type: tail\npaths: /a\nmultiline: jave",
            "wharf.yaml:7:16: sources.app.multiline: expected \"java\", \"python\", \"go\", \"docker\" or \"cri\", found \"jave\"; did you \
             mean \"java\"?",
        ),
        (
            "type: tail\npaths: /a\nmultiline: [cri, docker]",
            "wharf.yaml:7:16: sources.app.multiline: joins the same lines in two ways\n    \
             help: at most one of docker and cri, and one of java, python and go",
        ),
        (
            "type: tail\npaths: /a\nencoding: utf-61",
            "wharf.yaml:7:15: sources.app.encoding: there is no encoding \"utf-61\"\n    help: known are utf-8, utf-16le, utf-16be, \
             latin1, shift_jis, euc-jp, gb18030, big5, euc-kr, koi8-r, windows-1251 and others",
        ),
        (
            "type: stdin\nlisten: 127.0.0.1:1",
            "wharf.yaml:6:5: sources.app: unknown key \"listen\"\n    help: known keys: type, tag, parse",
        ),
        (
            "type: http\nlisten: localhost:9880",
            "wharf.yaml:6:13: sources.app.listen: expected an address such as 127.0.0.1:9880, found text \"localhost:9880\"\n    \
             help: write 127.0.0.1:9880 for this machine alone, 0.0.0.0:9880 or [::]:9880 for all",
        ),
        (
            "type: generate\nrate: 0",
            "wharf.yaml:6:11: sources.app.rate: the number 0 is out of range; it must be at least 1",
        ),
        ("type: tail\npath: /a", "wharf.yaml:6:5: sources.app: unknown key \"path\"; did you mean \"paths\"?"),
        (
            "type: stdin\npath: /a",
            "wharf.yaml:6:5: sources.app: unknown key \"path\"\n    help: known keys: type, tag, parse",
        ),
        (
            "type: tail\npaths: \"\"",
            "wharf.yaml:6:12: sources.app.paths: is empty\n    help: name at least one file or glob",
        ),
        (
            "type: tail\npaths: [\"\", \"/a\\0\"]",
            "wharf.yaml:6:13: sources.app.paths[0]: is empty\n\
             wharf.yaml:6:17: sources.app.paths[1]: has a control character, U+0000\n    help: leave it out",
        ),
        (
            "type: stdin\ntag: \"a\\0b\"",
            "wharf.yaml:6:10: sources.app.tag: has a control character, U+0000\n    help: leave it out",
        ),
        (
            "type: stdin\ntag: \"a\\x1b[31m\"",
            "wharf.yaml:6:10: sources.app.tag: has a control character, U+001B\n    help: leave it out",
        ),
        (
            "type: tail\npaths: /a\nrotate_wait: -1s",
            "wharf.yaml:7:18: sources.app.rotate_wait: text \"-1s\" is not a duration such as 10s: it is negative",
        ),
        (
            "type: tail\npaths: /a\nrotate_wait: 99999999999999999999s",
            "wharf.yaml:7:18: sources.app.rotate_wait: text \"99999999999999999999s\" is not a duration such as 10s: it is longer than ten years",
        ),
        (
            "type: generate\nrecord_size: 99999999999999999999",
            "wharf.yaml:6:18: sources.app.record_size: the number 99999999999999999999 is not a size such as 50MB: it is larger than any disk",
        ),
        (
            "type: generate\nrecord_size: -5",
            "wharf.yaml:6:18: sources.app.record_size: the number -5 is not a size such as 50MB: it is negative",
        ),
        (
            "type: generate\ncount: 99999999999999999999999999999999999999999",
            "wharf.yaml:6:12: sources.app.count: the number 99999999999999999999999999999999999999999 is out of range; it must be at least 1",
        ),
        ("type: stdin\ntag: a b", "wharf.yaml:6:10: sources.app.tag: a tag has no blanks"),
    ] {
        assert_eq!(faults(&source(lines)), expected, "{lines}");
    }
}

#[test]
fn faults_of_the_other_sections_are_told() {
    for (lines, expected) in [
        (
            "log: { level: inof }",
            "wharf.yaml:5:15: log.level: expected \"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\", found text \"inof\"; did you mean \"info\"?",
        ),
        ("log: { format: xml }", "wharf.yaml:5:16: log.format: expected \"text\" or \"json\", found text \"xml\""),
        (
            "admin: {}",
            "wharf.yaml:5:1: admin: the key \"listen\" is missing\n    help: write for example listen: 127.0.0.1:9600, or leave \"admin\" out for no admin server",
        ),
        (
            "journal: { segment_size: 32MiB, max_size: 40MiB }",
            "wharf.yaml:5:43: journal.max_size: is less than two segments; a segment has 32 MiB\n    help: raise max_size, or lower segment_size",
        ),
        (
            "journal: { segment_size: 1KB }",
            "wharf.yaml:5:26: journal.segment_size: 1 KB is too small; the least is 64 KiB",
        ),
        (
            "journal: { segment_size: 1KB, max_size: 1MB }",
            "wharf.yaml:5:26: journal.segment_size: 1 KB is too small; the least is 64 KiB",
        ),
        (
            "plugins: { max_memory: 1MiB }",
            "wharf.yaml:5:24: plugins.max_memory: 1 MiB is too small; the least is 4 MiB",
        ),
        ("plugins: { max_memory: 8GiB }", "wharf.yaml:5:24: plugins.max_memory: 8 GiB is too large; the most is 4 GiB"),
        ("region: us-east-1", "wharf.yaml:5:1: unknown key \"region\"; it belongs under \"aws\""),
    ] {
        assert_eq!(faults(&top(lines)), expected, "{lines}");
    }
}

#[test]
fn a_time_that_no_group_captures_and_lines_that_nothing_joins_are_told() {
    let parse = |more: &str| {
        source(&format!(
            "type: tail\npaths: [/x]\nparse:\n  format: regex\n  pattern: '^(?<time>\\S+) (?<level>\\w+)'\n{more}"
        ))
    };
    assert!(super::parse(&parse("  time_key: time")).is_ok());
    let told = faults(&parse("  time_key: tmie"));
    assert!(
        told.contains("parse.time_key: no named group of \"pattern\" is called \"tmie\"; did you mean \"time\"?\n    help: it has time, level"),
        "{told}"
    );
    assert!(!faults(&parse("  time_key: \"${SEVEN}\"")).contains("\"7\""));
    // Keys of an object may be any.
    assert!(super::parse(&source("type: tail\npaths: [/x]\nparse: { format: json, time_key: when }")).is_ok());
    for written in ["multiline: []", "multiline: { type: [] }"] {
        let told = faults(&source(&format!("type: tail\npaths: [/x]\n{written}")));
        assert!(
            told.contains(
                "names nothing that lines could be joined by\n    help: name one of java, python, go, docker, cri"
            ),
            "{told}"
        );
    }
}
