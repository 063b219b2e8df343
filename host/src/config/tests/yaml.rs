//! YAML itself: syntax, references, anchors, and files that mean harm.

use std::io::Write;

use serde_json::json;

use super::*;

#[test]
fn a_syntax_fault_has_its_place() {
    assert_eq!(faults("sources: [a, b\noutputs: {}\n").lines().next().unwrap().split(": ").nth(1), Some("not YAML"));
    assert!(faults("a: b: c\n").starts_with("wharf.yaml:1:"), "{}", faults("a: b: c\n"));
}

#[test]
fn a_tab_in_the_indentation_is_called_one() {
    assert_eq!(
        faults("sources:\n\tapp: { type: stdin }\n"),
        "wharf.yaml:2:1: a tab in the indentation\n    help: YAML wants blanks there"
    );
}

#[test]
fn an_empty_file_is_told() {
    let expected = "wharf.yaml:1:1: the file is empty\n    help: `wharf --help` shows a first configuration";
    for text in ["", "\n\n", "# nothing\n", "---\n", "null\n"] {
        assert_eq!(faults(text), expected, "{text:?}");
    }
}

#[test]
fn a_file_that_is_no_map_is_told() {
    assert_eq!(faults("- a\n"), "wharf.yaml:1:1: expected a map of keys, found a list");
    assert_eq!(faults("hello\n"), "wharf.yaml:1:1: expected a map of keys, found text \"hello\"");
}

#[test]
fn a_second_document_is_refused() {
    let text = format!("{}---\na: b\n", output(""));
    assert_eq!(
        faults(&text),
        "wharf.yaml:7:1: a second YAML document begins here\n    help: keep one document in the file, without `---` between"
    );
}

#[test]
fn a_duplicate_key_names_the_first() {
    assert_eq!(
        faults(&output("plugin: other")),
        "wharf.yaml:7:5: outputs.archive: duplicate key \"plugin\"; it is already at line 5"
    );
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    parse(&format!("\u{feff}{}", output("").replace('\n', "\r\n"))).unwrap();
}

#[test]
fn references_are_read_in_values_only_and_never_as_yaml() {
    let config = parse(&output(
        "aws: { region: \"${REGION}\" }\nworkers: ${WORKERS:-3}\nconfig:\n  bucket: ${BUCKET}-logs\n  \
         key_format: /a/$TAG[1]/$INDEX/$${X}\n  yaml: \"${NOT_SET:-[a, b]}\"\n  plain: ${NOT_SET:-true}\n  ${BUCKET}: 1",
    ))
    .unwrap();
    let output = &config.outputs[0];
    assert_eq!(output.aws.region.as_deref(), Some("eu-west-1"));
    assert_eq!(output.workers, 3);
    assert_eq!(
        output.config,
        json!({
            "bucket": "from-env-logs", "key_format": "/a/$TAG[1]/$INDEX/${X}", "yaml": "[a, b]", "plain": true, "${BUCKET}": 1,
        })
    );
}

#[test]
fn a_text_from_the_environment_may_look_like_a_number() {
    let config =
        parse(&output("aws: { profile: \"x\", region: r }").replace("region: r", "region: '${NUMBER}'")).unwrap();
    assert_eq!(config.outputs[0].aws.region.as_deref(), Some("12345"));
    let config = parse(&output("aws:\n  region: ${NUMBER}")).unwrap();
    assert_eq!(config.outputs[0].aws.region.as_deref(), Some("12345"));
}

#[test]
fn a_variable_that_is_not_set_is_a_fault() {
    assert_eq!(
        faults(&output("aws:\n  region: ${NOT_SET}\nconfig: { bucket: \"${A B}\" }")),
        "wharf.yaml:8:15: outputs.archive.aws.region: the environment variable NOT_SET is not set\n    \
         help: set it, or give a default: ${NOT_SET:-…}\n\
         wharf.yaml:9:23: outputs.archive.config.bucket: `${A B}` is not a reference to an environment variable\n    \
         help: write ${NAME} or ${NAME:-default}; write $$ for a literal dollar sign"
    );
}

#[test]
fn what_comes_from_the_environment_is_not_shown() {
    assert_eq!(
        faults(&output("queue:\n  when_full: ${BUCKET}")),
        "wharf.yaml:8:18: outputs.archive.queue.when_full: expected \"block\", \"drop_oldest\" or \"drop_newest\", found text from the environment variable BUCKET"
    );
    let found = "from the environment variable";
    for (text, expected) in [
        (
            output("queue:\n  max_size: ${SIZE}"),
            format!("8:17: outputs.archive.queue.max_size: text {found} SIZE is not a size such as 50MB"),
        ),
        (
            output("retry:\n  initial: ${SIZE}"),
            format!("8:16: outputs.archive.retry.initial: text {found} SIZE is not a duration such as 10s"),
        ),
        (
            output("batch:\n  max_age: ${NUMBER}"),
            format!("8:16: outputs.archive.batch.max_age: the number {found} NUMBER is not a duration such as 10s"),
        ),
        (
            output("batch:\n  max_age: ${EMPTY}"),
            format!(
                "8:16: outputs.archive.batch.max_age: text {found} EMPTY is not a duration such as 10s: it is empty"
            ),
        ),
        (
            output("workers: ${NUMBER}"),
            format!("7:14: outputs.archive.workers: the number {found} NUMBER is out of range; it must be 1 to 64"),
        ),
        (
            output("aws:\n  endpoint: ${REGION}"),
            format!(
                "8:17: outputs.archive.aws.endpoint: expected an http or https URL, found text {found} REGION\n    \
                 help: write http:// or https://, a host, and perhaps a port: http://127.0.0.1:9000 or https://storage.example.com"
            ),
        ),
        (
            top("plugins:\n  max_memory: ${NUMBER}"),
            format!("6:15: plugins.max_memory: the number {found} NUMBER is too small; the least is 4 MiB"),
        ),
        (
            top("log:\n  level: ${SIZE}"),
            format!(
                "6:10: log.level: expected \"error\", \"warn\", \"info\", \"debug\", \"trace\" or \"off\", found text {found} SIZE"
            ),
        ),
        (
            top("admin:\n  listen: ${HOST}"),
            format!("6:11: admin.listen: expected an address such as 127.0.0.1:9880, found text {found} HOST"),
        ),
        (
            source("type: ${BUCKET}"),
            format!(
                "5:11: sources.app.type: expected \"tail\", \"stdin\", \"http\", \"forward\", \"otlp\", \"syslog\" or \"generate\", found text {found} BUCKET"
            ),
        ),
        (
            source("type: tail\npaths: ${GLOB}"),
            "6:12: sources.app.paths: what is there is not a glob: unclosed character class; missing ']'".to_owned(),
        ),
        (
            format!("{}admin: {{ listen: \"127.0.0.1:9602\" }}\n", source("type: http\nlisten: ${ADDRESS}")),
            "6:13: sources.app.listen: is taken: admin listens on the same address\n    help: give each its own port"
                .into(),
        ),
        // A default is written in the file, and may be shown.
        (
            output("workers: ${NOT_SET:-99}"),
            "7:14: outputs.archive.workers: the number 99 is out of range; it must be 1 to 64".into(),
        ),
    ] {
        assert_eq!(faults(&text), format!("wharf.yaml:{expected}"), "{text}");
    }
}

#[test]
fn a_reference_without_quotes_inside_braces_is_explained() {
    let text = faults(&output("config: { bucket: ${BUCKET} }"));
    assert!(text.ends_with("help: inside { } and [ ], quote references: \"${NAME}\""), "{text}");
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    let text = r#"
x-common: &common
  plugin: s3
  workers: 4
  config: &config { bucket: b, compression: gzip }
sources: { app: { type: stdin } }
outputs:
  one:
    <<: *common
    match: one
  two:
    match: two
    <<: [{ workers: 2 }, *common]
    config:
      <<: *config
      bucket: c
  three:
    plugin: s3
    match: three
    config: *config
"#;
    let config = parse(text).unwrap();
    let read: Vec<_> = config.outputs.iter().map(|o| (&*o.name, o.workers, o.config.clone())).collect();
    assert_eq!(
        read,
        [
            ("one", 4, json!({"bucket": "b", "compression": "gzip"})),
            ("two", 2, json!({"bucket": "c", "compression": "gzip"})),
            ("three", 1, json!({"bucket": "b", "compression": "gzip"})),
        ]
    );
}

#[test]
fn merging_what_is_no_map_is_a_fault() {
    assert_eq!(
        faults(&output("config:\n  <<: [a]")),
        "wharf.yaml:8:12: outputs.archive.config: `<<` merges maps, found text \"a\""
    );
}

/// What would have come by it, nobody knows.
#[test]
fn nothing_is_missing_where_something_could_not_be_merged() {
    let sources = "sources: { app: { type: stdin } }\n";
    for (text, expected) in [
        (format!("{sources}outputs:\n  a:\n    <<: 7\n"), "4:9: outputs.a: `<<` merges maps, found the number 7"),
        (format!("{sources}outputs:\n  <<: 7\n"), "3:7: outputs: `<<` merges maps, found the number 7"),
        (format!("{sources}<<: 7\n"), "2:5: `<<` merges maps, found the number 7"),
        (
            format!("x-a: &a\n  <<: 7\n{sources}outputs:\n  a:\n    <<: *a\n    workers: 2\n"),
            "2:7: x-a: `<<` merges maps, found the number 7",
        ),
    ] {
        assert_eq!(faults(&text), format!("wharf.yaml:{expected}"), "{text}");
    }
}

#[test]
fn an_alias_of_itself_is_a_fault() {
    assert_eq!(
        faults(&output("config: &self\n  a: *self")),
        "wharf.yaml:8:10: outputs.archive.config.a: the alias refers to a value that contains it"
    );
}

#[test]
fn an_alias_of_nothing_is_a_fault() {
    let text = faults(&output("config: *nothing"));
    assert!(text.starts_with("wharf.yaml:7:13: not YAML:"), "{text}");
}

/// The "billion laughs": ten levels of ten aliases each.
#[test]
fn a_file_that_would_expand_without_bounds_is_refused() {
    let mut text = String::from("x-0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for n in 1..10 {
        let aliases = vec![format!("*x{}", n - 1); 10].join(", ");
        text.push_str(&format!("x-{n}: &x{n} [{aliases}]\n"));
    }
    let shown = faults(&text);
    assert!(shown.contains("with its aliases expanded the file is larger than 32 MiB"), "{shown}");
}

#[test]
fn a_large_text_repeated_by_aliases_is_bounded_too() {
    let text = format!("x-a: &a {}\nx-b: [{}]\n", "y".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert!(faults(&text).contains("larger than 32 MiB"));
}

#[test]
fn a_file_that_is_nested_too_deeply_is_refused() {
    let text = format!("x-a: {}{}\n", "[".repeat(100), "]".repeat(100));
    assert!(faults(&text).contains("nested deeper than 64 levels"));
    let text = format!("x-a: {}", "[".repeat(1_000_000));
    parse(&text).unwrap_err();
}

#[test]
fn unknown_tags_and_odd_keys_are_faults() {
    assert_eq!(
        faults(&output("workers: !secret 3\nconfig: { ? [a] : b }")),
        "wharf.yaml:7:14: outputs.archive.workers: the tag !secret is not known: leave it out\n\
         wharf.yaml:8:17: outputs.archive.config: a key must be a word"
    );
    assert_eq!(parse(&output("config: { a: !!str 5 }")).unwrap().outputs[0].config, json!({"a": "5"}));
}

#[test]
fn only_the_tags_of_the_core_schema_are_known_and_each_on_what_it_is_for() {
    for (lines, expected) in [
        (
            "config: !!python/object { a: 1 }",
            "wharf.yaml:7:13: outputs.archive.config: the tag !!python/object is not known: leave it out",
        ),
        (
            "config: { a: !!binary \"YQ==\" }",
            "wharf.yaml:7:18: outputs.archive.config.a: the tag !!binary is not known: leave it out",
        ),
        (
            "config: { a: !!set { b } }",
            "wharf.yaml:7:18: outputs.archive.config.a: the tag !!set is not known: leave it out",
        ),
        (
            "config: { a: !!map [] }",
            "wharf.yaml:7:18: outputs.archive.config.a: the tag !!map is not known: leave it out",
        ),
        (
            "config: { !!python/name a: 1 }",
            "wharf.yaml:7:15: outputs.archive.config: the tag !!python/name is not known: leave it out",
        ),
        ("workers: !!int two", "wharf.yaml:7:14: outputs.archive.workers: what follows is no !!int: leave the tag out"),
    ] {
        let shown = faults(&output(lines));
        assert_eq!(shown.split_once(": ").unwrap().1, expected.split_once(": ").unwrap().1, "{lines}");
    }
    let text = "config: !!map { a: !!int \"5\", b: !!seq [!!bool true], c: !!float 1, d: !!null '', !!str e: !!str 5 }";
    let expected = json!({ "a": 5, "b": [true], "c": 1, "d": null, "e": "5" });
    assert_eq!(parse(&output(text)).unwrap().outputs[0].config, expected);
}

#[test]
fn a_number_from_the_environment_is_one_in_quotes_too() {
    let text = "workers: \"${SEVEN}\"\nbatch: { max_records: \"${NUMBER}\" }\naws: { path_style: \"${YES}\" }";
    let config = parse(&output(text)).unwrap();
    let output = &config.outputs[0];
    assert_eq!((output.workers, output.batch.max_records, output.aws.path_style), (7, Some(12345), Some(true)));
    assert_eq!(
        faults(&super::output("workers: \"${BUCKET}\"\nqueue: { max_size: \"7\" }\nbatch: { max_records: \"7\" }")),
        "wharf.yaml:7:14: outputs.archive.workers: expected a whole number, found text from the environment variable BUCKET\n\
         wharf.yaml:9:27: outputs.archive.batch.max_records: expected a whole number, found text \"7\""
    );
}

#[test]
fn a_file_is_loaded_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wharf.yaml");
    std::fs::write(&path, output("")).unwrap();
    assert_eq!(Config::load(&path).unwrap().outputs.len(), 1);
}

#[test]
fn a_file_that_is_not_there_too_large_or_not_utf_8_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wharf.yaml");
    let load = || Config::load(&path).unwrap_err().to_string().replace(&path.display().to_string(), "wharf.yaml");
    assert_eq!(
        load(),
        "wharf.yaml: cannot be read: No such file or directory (os error 2)\n    help: name the file with -c FILE"
    );
    std::fs::write(&path, b"sources:\n  a\xff: b\n").unwrap();
    assert_eq!(load(), "wharf.yaml:2:4: not UTF-8\n    help: save the file as UTF-8");
    let mut file = std::fs::File::create(&path).unwrap();
    for _ in 0..5 {
        file.write_all(&vec![b'#'; 1 << 20]).unwrap();
    }
    assert_eq!(load(), "wharf.yaml: is larger than 4 MiB, so it is no configuration");
}

/// Bytes that people and fuzzers come up with: a result, never a panic.
#[test]
fn no_text_makes_reading_panic() {
    let good = output("config: { a: [1, \"${B:-x}\"], b: &x { c: *y } }\nbatch: { max_bytes: 5MB }");
    for cut in 0..good.len() {
        if good.is_char_boundary(cut) {
            let _ = parse(&good[..cut]);
            for insert in ["\t", "{", "]", ":", "\u{0}", "&", "*", "!", "|", "\"", "- ", "? ", "%", "\u{2028}"] {
                let _ = parse(&format!("{}{insert}{}", &good[..cut], &good[cut..]));
            }
        }
    }
}
