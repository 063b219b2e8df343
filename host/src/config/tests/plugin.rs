//! A plugin's own `config`: JSON, places, and what its schema says.

use serde_json::{Value, json};

use super::*;
use crate::config::check_plugin_config;

/// As a component describes itself, with everything that a schema may have.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["bucket"],
        "properties": {
            "bucket": { "type": "string", "minLength": 1, "description": "the bucket that objects go to" },
            "key_format": { "type": "string", "description": "the objects' keys" },
            "s3_key_format": { "type": "string", "x-alias-of": "key_format" },
            "s3_bucket": { "type": "string", "x-alias-of": "bucket" },
            "compression": { "enum": ["none", "gzip", "zstd"] },
            "level": { "type": "integer", "minimum": 1, "maximum": 9 },
            "part_size": { "anyOf": [{ "type": "integer", "minimum": 5 }, { "type": "string", "pattern": "^[0-9]+(MB|MiB)$" }],
                           "description": "a size such as 5MiB" },
            "threshold": { "anyOf": [{ "type": ["integer", "string"], "x-expected": "a size such as 50MB" }, { "type": "null" }],
                           "description": "the largest request", "x-expected": "a size such as 50MB" },
            "s3_threshold": { "type": ["integer", "string"], "x-expected": "a size such as 50MB", "x-alias-of": "threshold" },
            "owner": { "type": "string" },
            "bucket_key": { "type": "boolean" },
            "tags": { "type": "object", "additionalProperties": { "type": "string" }, "maxProperties": 2 },
            "grants": { "type": "array", "items": { "type": "object", "additionalProperties": false,
                        "properties": { "grantee": { "type": "string" } } } }
        },
        "x-elsewhere": {
            "bucket_name": "it is called `bucket`",
            "total_file_size": "write batch: { max_bytes: … } beside \"config\"",
            "region": "write aws: { region: … } beside \"config\""
        }
    })
}

fn check(lines: &str) -> String {
    let config =
        parse(&output(&format!("config:\n{}", lines.lines().map(|l| format!("  {l}\n")).collect::<String>()))).unwrap();
    let faults = check_plugin_config(&config.outputs[0], &schema()).faults;
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn config_becomes_json_with_the_types_of_the_core_schema_and_keys_in_order() {
    let config = parse(&output(
        "config:\n  z: text\n  a: 5\n  m: -3\n  big: 18446744073709551615\n  f: 1.5\n  t: true\n  n: null\n  e:\n  q: \"5\"\n  l: [1, [x]]\n  o: { k: v }",
    ))
    .unwrap();
    assert_eq!(
        config.outputs[0].config.to_string(),
        r#"{"z":"text","a":5,"m":-3,"big":18446744073709551615,"f":1.5,"t":true,"n":null,"e":null,"q":"5","l":[1,["x"]],"o":{"k":"v"}}"#
    );
}

#[test]
fn a_number_that_json_does_not_have_is_a_fault() {
    assert_eq!(
        faults(&output("config: { a: [.inf, 99999999999999999999] }")),
        "wharf.yaml:7:19: outputs.archive.config.a[0]: the number .inf is none that a plugin could be given: JSON has no infinity\n    \
         help: whole numbers go from -9223372036854775808 to 18446744073709551615; put it in quotes if a text is meant\n\
         wharf.yaml:7:25: outputs.archive.config.a[1]: the number 99999999999999999999 is too large\n    \
         help: whole numbers go from -9223372036854775808 to 18446744073709551615; put it in quotes if a text is meant"
    );
}

#[test]
fn a_fault_of_the_component_has_the_place_of_its_pointer() {
    let config = parse(&output("config:\n  bucket: b\n  tags: { \"a/b\": c }\n  list: [x, y]")).unwrap();
    let fault_at = |config: &Config, pointer: &str, message: &str| {
        let check = check_plugin_config(&config.outputs[0], &json!({}));
        check.fault_of_component(&config.outputs[0], pointer, message.into()).unwrap().to_string()
    };
    for (pointer, shown) in [
        ("/bucket", "wharf.yaml:8:15: outputs.archive.config.bucket: no"),
        ("/tags/a~1b", "wharf.yaml:9:22: outputs.archive.config.tags.a/b: no"),
        ("/list/1", "wharf.yaml:10:17: outputs.archive.config.list[1]: no"),
        ("", "wharf.yaml:8:7: outputs.archive.config: no"),
        ("/not_written", "wharf.yaml:8:7: outputs.archive.config.not_written: no"),
        ("/tags/not/written", "wharf.yaml:9:13: outputs.archive.config.tags.not.written: no"),
        ("nonsense", "wharf.yaml:8:7: outputs.archive.config: no"),
    ] {
        assert_eq!(fault_at(&config, pointer, "no"), shown, "{pointer}");
    }
    let config = parse(&super::output("")).unwrap();
    assert_eq!(fault_at(&config, "/bucket", "is missing"), "wharf.yaml:4:3: outputs.archive.config.bucket: is missing");
}

#[test]
fn a_good_config_has_no_faults() {
    let lines = "bucket: b\nkey_format: /a/$INDEX\ncompression: gzip\nlevel: 9\npart_size: 5MiB\ntags: { a: b }\ngrants: [{ grantee: x }]";
    assert_eq!(check(lines), "");
    assert_eq!(check("s3_bucket: b\ns3_key_format: x"), "");
}

#[test]
fn what_the_schema_does_not_know_is_named_with_the_nearest_or_where_it_is() {
    assert_eq!(
        check("bukcet: b\ntotal_file_size: 50M\nRegion: x\nbucket: b\ncolour: red\ngrants:\n  - granted: x"),
        "wharf.yaml:8:7: outputs.archive.config: unknown key \"bukcet\"; did you mean \"bucket\"?\n\
         wharf.yaml:9:7: outputs.archive.config: unknown key \"total_file_size\"; write batch: { max_bytes: … } beside \"config\"\n\
         wharf.yaml:10:7: outputs.archive.config: unknown key \"Region\"; write aws: { region: … } beside \"config\"\n\
         wharf.yaml:12:7: outputs.archive.config: unknown key \"colour\"\n    \
         help: known keys: bucket, key_format, compression, level, part_size, threshold, owner, bucket_key, tags, grants\n\
         wharf.yaml:14:11: outputs.archive.config.grants[0]: unknown key \"granted\"; did you mean \"grantee\"?"
    );
}

#[test]
fn a_missing_key_is_told_with_what_it_is_for() {
    let shown = check("level: 1");
    assert_eq!(
        shown,
        "wharf.yaml:7:5: outputs.archive.config: the key \"bucket\" is missing\n    help: bucket: the bucket that objects go to"
    );
}

#[test]
fn wrong_values_are_told_in_words() {
    for (lines, expected) in [
        (
            "bucket: ''",
            "wharf.yaml:8:15: outputs.archive.config.bucket: is empty\n    help: bucket: the bucket that objects go to",
        ),
        (
            "bucket: b\ncompression: gzpi",
            "wharf.yaml:9:20: outputs.archive.config.compression: expected \"none\", \"gzip\" or \"zstd\", found text \"gzpi\"; did you mean \"gzip\"?",
        ),
        (
            "bucket: b\nlevel: 12",
            "wharf.yaml:9:14: outputs.archive.config.level: the number 12 is too large; the most is 9",
        ),
        (
            // That it is less than 1 as well helps nobody.
            "bucket: b\nlevel: 0.5",
            "wharf.yaml:9:14: outputs.archive.config.level: expected a whole number from 1 to 9, found the number 0.5",
        ),
        (
            // That `bucket` is missing follows, and is not told as well.
            "bucket_name: b",
            "wharf.yaml:8:7: outputs.archive.config: unknown key \"bucket_name\"; it is called `bucket`",
        ),
        (
            "bucket: b\nlevel: high",
            "wharf.yaml:9:14: outputs.archive.config.level: expected a whole number from 1 to 9, found text \"high\"",
        ),
        (
            "bucket: b\nowner: 012345678901",
            "wharf.yaml:9:14: outputs.archive.config.owner: expected text, found the number 012345678901\n    help: put it in quotes: \"012345678901\"",
        ),
        (
            "bucket: b\nbucket_key: yes",
            "wharf.yaml:9:19: outputs.archive.config.bucket_key: expected true or false, found text \"yes\"",
        ),
        (
            "bucket: b\npart_size: 5M",
            "wharf.yaml:9:18: outputs.archive.config.part_size: text \"5M\" does not have the form that is wanted\n    help: part_size: a size such as 5MiB",
        ),
        (
            "bucket: b\nlevel: 1e0",
            "wharf.yaml:9:14: outputs.archive.config.level: expected a whole number from 1 to 9, found the number 1e0",
        ),
        (
            "bucket: b\nthreshold: 1e9",
            "wharf.yaml:9:18: outputs.archive.config.threshold: expected a size such as 50MB, found the number 1e9\n    help: threshold: the largest request",
        ),
        (
            "bucket: b\ns3_threshold: [1]",
            "wharf.yaml:9:21: outputs.archive.config.s3_threshold: expected a size such as 50MB, found a list\n    help: s3_threshold: the largest request",
        ),
        (
            "bucket: b\npart_size: 3",
            "wharf.yaml:9:18: outputs.archive.config.part_size: the number 3 is too small; the least is 5\n    help: part_size: a size such as 5MiB",
        ),
        (
            "bucket: b\npart_size: [1]",
            "wharf.yaml:9:18: outputs.archive.config.part_size: expected a whole number of at least 5 or text, found a list\n    help: part_size: a size such as 5MiB",
        ),
        (
            "bucket: b\ntags: { a: 1 }",
            "wharf.yaml:9:18: outputs.archive.config.tags.a: expected text, found the number 1\n    help: put it in quotes: \"1\"",
        ),
        (
            "bucket: b\ntags: { a: x, b: x, c: x }",
            "wharf.yaml:9:13: outputs.archive.config.tags: the map is too large; it may have 2 keys",
        ),
        (
            "bucket: b\nkey_format: a\ns3_key_format: b",
            "wharf.yaml:10:7: outputs.archive.config: \"s3_key_format\" and \"key_format\" are two names of the same option\n    help: keep one of them",
        ),
    ] {
        assert_eq!(check(lines), expected, "{lines}");
    }
}

#[test]
fn a_schema_that_is_none_is_the_plugins_fault() {
    let config = parse(&output("")).unwrap();
    let faults = check_plugin_config(&config.outputs[0], &json!({ "type": "no such type" })).faults;
    assert_eq!(faults.len(), 1);
    let shown = faults[0].to_string();
    assert!(shown.starts_with("wharf.yaml:5:13: outputs.archive.plugin: the plugin's own schema"), "{shown}");
}
