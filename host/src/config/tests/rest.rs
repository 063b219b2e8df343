//! What is left of a file with faults, and what a component says of it: every fault, and none that only follows from another.

use std::path::Path;

use serde_json::{Value, json};

use super::plugin::schema;
use super::*;
use crate::config::{Draft, Faults, check_plugin_config};

fn draft(text: &str) -> Draft {
    let variable = |name: &str| match name {
        "SEVEN" => Some("7".to_owned()),
        "OWNER" => Some("012345678901".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    Draft::parse(text, Path::new("wharf.yaml"), &variable)
}

/// An output whose `config` has these lines, from line 8 on.
fn config(lines: &str) -> String {
    output(&format!("config:\n{}", lines.lines().map(|l| format!("  {l}\n")).collect::<String>()))
}

/// What the component of the schema above is asked about this `config`.
fn asked(lines: &str) -> Option<Value> {
    let draft = draft(&config(lines));
    check_plugin_config(&draft.config().unwrap().outputs[0], &schema()).config().cloned()
}

/// All faults of a `config` of which the component says this.
fn told(lines: &str, said: &[(&str, &str)]) -> String {
    let draft = draft(&config(lines));
    let output = &draft.config().unwrap().outputs[0];
    let check = check_plugin_config(output, &schema());
    let mut faults = [draft.faults(), check.faults.as_slice()].concat();
    faults.extend(
        said.iter().filter_map(|(pointer, message)| check.fault_of_component(output, pointer, (*message).to_owned())),
    );
    Faults::of(faults).map(|faults| faults.to_string()).unwrap_or_default()
}

#[test]
fn outputs_with_faults_can_still_be_asked() {
    let text = "sources: 5\noutputs:\n  a: { plugin: s3, match: \"*\", workers: 0, config: { bucket: b } }\n  b: { plugin: s3, config: { bucket: c } }\n  c: { match: x }\n  d: 7\n";
    let draft = draft(text);
    let outputs = &draft.config().unwrap().outputs;
    let names: Vec<&str> = outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["a", "b"], "of the others no component is known");
    assert_eq!(outputs[1].config, json!({ "bucket": "c" }));
    assert_eq!(draft.faults().len(), 5);
    assert!(draft.finish().is_err());
}

#[test]
fn the_component_is_asked_about_what_passes_its_schema() {
    for (lines, expected) in [
        ("bucket: b\ncolour: red\nlevel: 99\ncompression: gzip", json!({ "bucket": "b", "compression": "gzip" })),
        ("bucket: b\ntags: { a: 1, b: x }", json!({ "bucket": "b", "tags": { "b": "x" } })),
        ("bucket: b\ntags: { a: x, b: x, c: x }", json!({ "bucket": "b" })),
        (
            "bucket: b\ngrants: [{ grantee: x, other: y }, { grantee: z }]",
            json!({ "bucket": "b", "grants": [{ "grantee": "x" }, { "grantee": "z" }] }),
        ),
        ("bucket: b\ngrants: [x, { grantee: z }]", json!({ "bucket": "b" })),
        ("bucket: b\nkey_format: x\ns3_key_format: y", json!({ "bucket": "b", "key_format": "x" })),
        ("bucket: b\nkey_format: ${NOT_SET}\nlevel: 1", json!({ "bucket": "b", "level": 1 })),
        ("bucket: b\ngrants: [{ grantee: \"${NOT_SET}\" }]", json!({ "bucket": "b", "grants": [{}] })),
        ("s3_bucket: b\nlevel: x", json!({ "s3_bucket": "b" })),
        // Without a bucket nothing could be read: something stands in for it.
        ("level: 1", json!({ "level": 1, "bucket": "x" })),
        ("bucket: 5\nlevel: 1", json!({ "level": 1, "bucket": "x" })),
        ("bukcet: b\nlevel: 1", json!({ "level": 1, "bucket": "x" })),
    ] {
        assert_eq!(asked(lines), Some(expected), "{lines}");
    }
}

#[test]
fn a_component_of_whose_config_nothing_is_left_is_not_asked() {
    for lines in ["config: [a]", "config: ${NOT_SET}", "confg: { bucket: b }", "bucket: b"] {
        let draft = draft(&output(lines));
        let check = check_plugin_config(&draft.config().unwrap().outputs[0], &schema());
        assert_eq!((check.config(), check.faults.len()), (None, 0), "{lines}");
        assert_eq!(draft.faults().len(), 1, "{lines}: {:?}", draft.faults());
    }
}

#[test]
fn faults_of_the_component_stand_beside_those_of_its_schema() {
    assert_eq!(
        told("bucket: b\ncolour: red\nkey_format: /$X\nlevel: 99", &[("/key_format", "`$X` is not known")]),
        "wharf.yaml:9:7: outputs.archive.config: unknown key \"colour\"\n    \
         help: known keys: bucket, key_format, compression, level, part_size, threshold, owner, bucket_key, tags, grants\n\
         wharf.yaml:10:19: outputs.archive.config.key_format: `$X` is not known\n\
         wharf.yaml:11:14: outputs.archive.config.level: the number 99 is too large; the most is 9"
    );
}

#[test]
fn what_may_only_follow_from_what_was_left_out_is_not_told() {
    for (lines, pointer, message) in [
        // It is not there any more.
        ("bucket: b\nlevel: 99", "/level", "no"),
        ("bucket: b\nlevel: 99", "", "no"),
        // It may be what an unknown key was meant to be.
        ("bucket: b\ncolour: red", "/owner", "is missing"),
        ("bucket: b\nownr: x", "/owner", "is missing"),
        ("bucket_name: b", "/bucket", "is missing"),
        ("<<: 7", "/owner", "is missing"),
        ("bucket: b\ntags: { a: 1 }", "/tags/a", "no"),
        ("bucket: 5", "/bucket", "no such bucket"),
        ("level: 1", "/bucket", "no such bucket"),
        // It speaks of what is not there any more.
        ("bucket: b\ncompression: gzpi\nlevel: 3", "/level", "it has no effect without `compression: gzip`"),
        ("bucket: b\ncompresion: gzip\nlevel: 3", "/level", "it has no effect without `compression: gzip`"),
        ("bucket: b\ncompression: ${NOT_SET}\nlevel: 3", "/level", "it has no effect without \"compression\""),
        ("bucket: b\ns3_key_format: 5\nlevel: 3", "/level", "it has no effect without `key_format`"),
        ("bucket: b\nlevel: 99", "/owner", "with `level` it is needed"),
    ] {
        assert_eq!(told(lines, &[]), told(lines, &[(pointer, message)]), "{lines}: {pointer}: {message}");
    }
    let sure =
        told("bucket: b\ncompression: gzpi\nlevel: 3\ntags: { a: 1 }", &[("/level", "too low"), ("/tags", "too many")]);
    assert!(sure.contains("config.level: too low") && sure.contains("config.tags: too many"), "{sure}");
}

#[test]
fn what_is_missing_is_told_by_schema_and_component_at_once() {
    let said = [("/owner", "nobody is named: write `owner`")];
    assert_eq!(
        told("level: 3", &said),
        "wharf.yaml:7:5: outputs.archive.config: the key \"bucket\" is missing\n    help: bucket: the bucket that objects go to\n\
         wharf.yaml:8:7: outputs.archive.config.owner: nobody is named: write `owner`"
    );
    assert!(told("bucket: b\nlevel: 99", &said).contains("config.owner: nobody is named"));
}

#[test]
fn what_could_not_be_merged_makes_no_key_missing() {
    assert_eq!(told("<<: 7", &[]), "wharf.yaml:8:11: outputs.archive.config: `<<` merges maps, found the number 7");
}

#[test]
fn an_option_is_found_under_the_name_that_is_written() {
    assert_eq!(
        told("bucket: b\ns3_key_format: /$X\nlevel: 3", &[("/key_format", "`$X` is not known")]),
        "wharf.yaml:9:22: outputs.archive.config.s3_key_format: `$X` is not known\n    \
         help: \"s3_key_format\" is another name of \"key_format\""
    );
    assert_eq!(
        told("bucket: b\ns3_key_format: /x\nlevel: 3", &[("/level", "no effect, since `key_format` has no `$INDEX`")]),
        "wharf.yaml:10:14: outputs.archive.config.level: no effect, since `key_format` has no `$INDEX`\n    \
         help: \"s3_key_format\" is another name of \"key_format\""
    );
}

#[test]
fn a_misspelt_key_is_not_missing_as_well() {
    assert_eq!(
        told("bukcet: b", &[]),
        "wharf.yaml:8:7: outputs.archive.config: unknown key \"bukcet\"; did you mean \"bucket\"?"
    );
    assert_eq!(
        draft(&output("").replace("match", "matsch")).finish().unwrap_err().to_string(),
        "wharf.yaml:6:5: outputs.archive: unknown key \"matsch\"; did you mean \"match\"?"
    );
}

#[test]
fn a_value_from_the_environment_has_the_type_that_the_component_wants() {
    for (lines, expected) in [
        ("bucket: b\nlevel: \"${SEVEN}\"", json!({ "bucket": "b", "level": 7 })),
        ("bucket: b\nlevel: ${SEVEN}", json!({ "bucket": "b", "level": 7 })),
        ("bucket: b\nowner: ${OWNER}", json!({ "bucket": "b", "owner": "012345678901" })),
        (
            "bucket: ${SEVEN}\ntags: { a: \"${SEVEN}\", b: \"${NOT_SET:-8}\" }",
            json!({ "bucket": "7", "tags": { "a": "7", "b": "8" } }),
        ),
        ("bucket: b\nthreshold: \"${EMPTY}\"", json!({ "bucket": "b", "threshold": "" })),
        ("bucket: b\nbucket_key: \"${NOT_SET:-true}\"", json!({ "bucket": "b", "bucket_key": true })),
    ] {
        assert_eq!(asked(lines), Some(expected), "{lines}");
    }
    assert_eq!(
        told("bucket: b\nlevel: \"${OWNER}x\"\nowner: 5", &[]),
        "wharf.yaml:9:14: outputs.archive.config.level: expected a whole number from 1 to 9, found text from the environment variable OWNER\n\
         wharf.yaml:10:14: outputs.archive.config.owner: expected text, found the number 5\n    help: put it in quotes: \"5\""
    );
}

#[test]
fn what_a_component_says_of_the_environment_is_only_told_where_it_shows_nothing_of_it() {
    let refused = "the component refuses this, in words that would show what the environment variable";
    for (lines, pointer, message, expected) in [
        (
            "bucket: b\nkey_format: \"${OWNER}\"",
            "/key_format",
            "`012345678901` is no key",
            format!(
                "9:19: outputs.archive.config.key_format: {refused} OWNER holds\n    help: key_format: the objects' keys"
            ),
        ),
        (
            "bucket: b\nlevel: ${SEVEN}",
            "/level",
            "AWS does not take 7 levels",
            format!("9:14: outputs.archive.config.level: {refused} SEVEN holds"),
        ),
        (
            "bucket: \"${OWNER}\"\nkey_format: x",
            "/key_format",
            "no keys in 012345678901",
            format!(
                "9:19: outputs.archive.config.key_format: {refused} OWNER holds\n    help: key_format: the objects' keys"
            ),
        ),
        (
            "bucket: b\nkey_format: \"/${OWNER}/$X\"",
            "/key_format",
            "`$X` is not known",
            "9:19: outputs.archive.config.key_format: `$X` is not known".to_owned(),
        ),
        (
            "bucket: \"${SEVEN}\"\nkey_format: x",
            "/key_format",
            "it may have 7 letters",
            "9:19: outputs.archive.config.key_format: it may have 7 letters".to_owned(),
        ),
    ] {
        assert_eq!(told(lines, &[(pointer, message)]), format!("wharf.yaml:{expected}"), "{lines}: {message}");
    }
}
