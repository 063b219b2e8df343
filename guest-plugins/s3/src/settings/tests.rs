use serde_json::{Value, json};
use wharf_plugin::{PartitionKey, schema};

use super::*;
use crate::template::Facts;

mod refused;

fn new(config: Value) -> Result<(Settings, Plan), Faults> {
    let mut config = config;
    config["bucket"] = config.get("bucket").cloned().unwrap_or_else(|| "my-bucket".into());
    schema::resolve_aliases(&mut config, names::ALIASES)?;
    Settings::new(serde_json::from_value(config).unwrap())
}

fn attributes(config: Value) -> s3::Attributes {
    new(config).unwrap().0.target.attributes("b1")
}

#[test]
fn a_bucket_is_enough() {
    let (settings, plan) = new(json!({})).unwrap();
    assert_eq!(plan.partition_by, [PartitionKey::Tag]);
    assert_eq!((plan.max_bytes, plan.max_age_ms), (Some(100_000_000), Some(600_000)));
    assert_eq!(plan.s3, [s3::Scope::new("my-bucket", "wharf-logs/")]);
    assert_eq!((settings.threshold, settings.part_size), (8 << 20, 8 << 20));
    let attributes = settings.target.attributes("b1");
    assert_eq!(attributes.content_type.as_deref(), Some("application/x-ndjson"));
    assert_eq!(attributes.content_encoding, None);
    assert_eq!(attributes.checksum, "crc32c");
    assert_eq!(attributes.metadata, [("wharf-batch".to_owned(), "b1".to_owned())]);
}

#[test]
fn the_names_of_fluent_bit_mean_the_same() {
    let (settings, plan) = new(json!({
        "s3_key_format": "/logs/$TAG[1]/segment_$INDEX",
        "s3_key_format_tag_delimiters": ".-",
        "total_file_size": "50M",
        "upload_timeout": "1h",
        "upload_chunk_size": "6M",
        "canned_acl": "bucket-owner-full-control",
        "json_date_key": "ts",
        "json_date_format": "epoch",
        "compression": "gzip",
    }))
    .unwrap();
    assert_eq!((plan.max_bytes, plan.max_age_ms), (Some(50_000_000), Some(3_600_000)));
    assert_eq!(plan.s3, [s3::Scope::new("my-bucket", "logs/")]);
    assert_eq!((settings.threshold, settings.part_size), (12_000_000, 6_000_000));
    assert_eq!(settings.on_conflict, OnConflict::NextIndex);
    let facts = Facts { id: "b".into(), tag: "a-b.c".into(), time: 0 };
    assert_eq!(settings.key.key(&facts, Some(3)).unwrap(), "logs/b/segment_3");
    let attributes = settings.target.attributes("b1");
    assert_eq!(attributes.acl.as_deref(), Some("bucket-owner-full-control"));
    assert_eq!(attributes.content_encoding.as_deref(), Some("gzip"));
    // {"ts":1767225600,"log":""}\n
    assert_eq!(plan.record_overhead, 27);
}

#[test]
fn what_a_record_costs_is_what_encoding_adds() {
    // {"date":"2026-01-01T00:00:00.000000Z","log":""}\n
    assert_eq!(new(json!({})).unwrap().1.record_overhead, 48);
    assert_eq!(new(json!({ "date_key": false })).unwrap().1.record_overhead, 11);
    assert_eq!(new(json!({ "format": "text" })).unwrap().1.record_overhead, 1);
}

#[test]
fn a_batch_has_one_tag_only_where_the_key_needs_it() {
    for (format, by_tag) in [("/$TAG", true), ("/$TAG[0]", true), ("/%Y/$INDEX", false), ("/x", false)] {
        let plan = new(json!({ "key_format": format })).unwrap().1;
        assert_eq!(plan.partition_by.contains(&PartitionKey::Tag), by_tag, "{format}");
    }
}

#[test]
fn a_key_that_nothing_makes_unique_gets_the_batchs_short_id_unless_told_otherwise() {
    let uses_uuid = |config| new(config).unwrap().0.key.uses_uuid();
    assert!(uses_uuid(json!({ "key_format": "/logs/%H.json" })));
    assert!(!uses_uuid(json!({ "key_format": "/logs/%H.json", "static_file_path": true })));
    assert!(!uses_uuid(json!({ "key_format": "/logs/$INDEX" })));
    assert_eq!(new(json!({ "key_format": "/logs/%H" })).unwrap().0.on_conflict, OnConflict::Hold);
}

#[test]
fn the_content_encoding_follows_the_compression_and_can_be_turned_off() {
    for (config, expected) in [
        (json!({ "compression": "zstd" }), Some("zstd")),
        (json!({ "compression": "gzip", "content_encoding": "" }), None),
        (json!({ "compression": "gzip", "content_encoding": "x" }), Some("x")),
        (json!({ "compression": "none" }), None),
    ] {
        assert_eq!(attributes(config.clone()).content_encoding.as_deref(), expected, "{config}");
    }
}

#[test]
fn all_attributes_reach_the_object() {
    let it = attributes(json!({
        "content_type": "text/csv", "storage_class": "STANDARD_IA",
        "grants": { "full_control": "id=\"1\"", "read": "uri=\"2\"", "read_acp": "id=\"3\"", "write_acp": "id=\"4\"" },
        "kms_key_id": "alias/k", "bucket_key": true, "tags": { "team": "a" }, "metadata": { "host": "h" },
        "checksum": "sha256", "expected_bucket_owner": "123456789012",
    }));
    assert_eq!(it.content_type.as_deref(), Some("text/csv"));
    assert_eq!(it.storage_class.as_deref(), Some("STANDARD_IA"));
    assert_eq!(it.grant_full_control.as_deref(), Some("id=\"1\""));
    assert_eq!(it.grant_read.as_deref(), Some("uri=\"2\""));
    assert_eq!(it.grant_read_acp.as_deref(), Some("id=\"3\""));
    assert_eq!(it.grant_write_acp.as_deref(), Some("id=\"4\""));
    assert_eq!(it.server_side_encryption.as_deref(), Some("aws:kms"), "a KMS key says so by itself");
    assert_eq!((it.kms_key_id.as_deref(), it.bucket_key), (Some("alias/k"), Some(true)));
    assert_eq!(it.tags, [("team".to_owned(), "a".to_owned())]);
    assert_eq!(it.metadata[0], ("host".to_owned(), "h".to_owned()));
    assert_eq!((it.checksum.as_str(), it.expected_bucket_owner.as_deref()), ("sha256", Some("123456789012")));
}

#[test]
fn all_faults_come_at_once() {
    let faults = new(json!({ "key_format": "/$X/$Y", "format": "csv", "part_size": 1, "checksum": "md5" }))
        .map(|_| ())
        .unwrap_err();
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(paths, ["/key_format", "/key_format", "/format", "/part_size", "/checksum"]);
}

#[test]
fn a_wrong_part_size_does_not_hide_a_wrong_threshold() {
    let faults = new(json!({ "part_size": "1MB", "multipart_threshold": "1GB" })).map(|_| ()).unwrap_err();
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(paths, ["/part_size", "/multipart_threshold"]);
}

#[test]
fn the_threshold_is_whole_parts() {
    for (threshold, part, expected) in [
        ("16MiB", "8MiB", 16 << 20),
        ("1M", "8MiB", 8 << 20),
        ("17MiB", "8MiB", 24 << 20),
        ("64MiB", "40MiB", 40 << 20),
    ] {
        let (settings, _) = new(json!({ "multipart_threshold": threshold, "part_size": part })).unwrap();
        assert_eq!(settings.threshold, expected, "{threshold} of {part}");
    }
}

#[test]
fn the_schema_describes_every_option_and_names_what_belongs_elsewhere() {
    let schema = schema::of_output::<crate::S3>();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["bucket"]));
    let properties = schema["properties"].as_object().unwrap();
    for (name, property) in properties {
        assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {property}");
    }
    for (alias, option) in names::ALIASES {
        assert!(properties.contains_key(*option), "{alias} stands for {option}");
        assert_eq!(properties[*alias]["x-alias-of"], *option);
    }
    for (name, _) in names::ELSEWHERE {
        assert!(!properties.contains_key(*name), "{name} is an option");
    }
    assert!(!schema.to_string().contains("$ref"), "the schema stands alone");
}
