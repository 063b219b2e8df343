//! What is refused, and with which words: tables of one mistake each.

use super::*;

#[test]
fn each_wrong_value_is_a_fault_that_says_what_to_write_instead() {
    for (config, path, expected) in [
        (json!({ "bucket": "" }), "/bucket", "no name"),
        (json!({ "bucket": "s3://b/x" }), "/bucket", "the path belongs to `key_format`"),
        (json!({ "bucket": "logs-$TAG" }), "/bucket", "only `key_format` knows `$TAG`"),
        (json!({ "key_format": "/$HOST" }), "/key_format", "`$HOST` is not known"),
        (json!({ "tag_delimiters": "" }), "/tag_delimiters", "no characters"),
        (json!({ "timezone": "Berlin" }), "/timezone", "`Berlin` is no IANA time zone"),
        (json!({ "format": "json" }), "/format", "silently writes JSON lines; write `json_lines`"),
        (json!({ "format": "parquet" }), "/format", "no columnar files"),
        (json!({ "format": "csv" }), "/format", "write `json_lines` or `text`"),
        (json!({ "log_key": "m", "format": "json_lines" }), "/log_key", "write `format: text`"),
        (json!({ "date_key": true }), "/date_key", "`false` to leave the time out"),
        (json!({ "date_key": "" }), "/date_key", "`false` to leave the time out"),
        (json!({ "date_format": "rfc3339" }), "/date_format", "`iso8601`, `iso8601_nanos`, `double`"),
        (json!({ "format": "text", "date_key": "d" }), "/date_key", "no effect with `format: text`"),
        (json!({ "compression": "snappy" }), "/compression", "write `zstd`"),
        (json!({ "compression": "lz4" }), "/compression", "write `none`, `gzip` or `zstd`"),
        (json!({ "compression": "gzip", "compression_level": 10 }), "/compression_level", "outside of gzip's 1 to 9"),
        (json!({ "compression": "zstd", "compression_level": 20 }), "/compression_level", "outside of zstd's 1 to 19"),
        (json!({ "compression_level": 3 }), "/compression_level", "no effect without"),
        (json!({ "part_size": "1M" }), "/part_size", "from 5MiB (5242880)"),
        (json!({ "part_size": "1G" }), "/part_size", "up to 64MiB"),
        (
            json!({ "part_size": "lots" }),
            "/part_size",
            "`lots` is no size: write a whole number of bytes, or one with KB",
        ),
        (json!({ "multipart_threshold": "1GB" }), "/multipart_threshold", "64MiB (67108864) at most"),
        (json!({ "total_file_size": 0 }), "/total_file_size", "0 bytes"),
        (
            json!({ "upload_timeout": "soon" }),
            "/upload_timeout",
            "`soon` is no time: write a whole number of seconds, or one with ms",
        ),
        (json!({ "acl": "private", "grants": { "read": "id=\"1\"" } }), "/grants", "not both"),
        (json!({ "server_side_encryption": "kms" }), "/server_side_encryption", "`aws:kms`"),
        (json!({ "server_side_encryption": "AES256", "kms_key_id": "k" }), "/kms_key_id", "write `aws:kms`"),
        (json!({ "server_side_encryption": "AES256", "bucket_key": true }), "/bucket_key", "write `aws:kms`"),
        (json!({ "checksum": "md5" }), "/checksum", "`crc32c`, `crc32`"),
        (json!({ "metadata": { "Wharf-Batch": "x" } }), "/metadata/Wharf-Batch", "is Wharf's own"),
        (json!({ "metadata": { "a b": "x" } }), "/metadata/a b", "no name of a header"),
        (json!({ "metadata": { "a": "ä" } }), "/metadata/a", "visible ASCII"),
        (json!({ "metadata": { "a": "x".repeat(2048) } }), "/metadata", "S3 takes 2048"),
        (json!({ "tags": { "": "x" } }), "/tags/", "1 to 128"),
        (json!({ "log_key": "" }), "/log_key", "it is empty: write the name of a key"),
        (json!({ "date_key": false, "date_format": "epoch" }), "/date_format", "no effect with `date_key: false`"),
        (json!({ "upload_timeout": 0 }), "/upload_timeout", "such as `10m`"),
        (json!({ "upload_timeout": "0s" }), "/upload_timeout", "such as `10m`"),
        (json!({ "upload_timeout": "4000d" }), "/upload_timeout", "longer than ten years"),
        (json!({ "upload_timeout": u64::MAX }), "/upload_timeout", "too long"),
        (json!({ "total_file_size": "99999999999999999999" }), "/total_file_size", "is too large"),
        (json!({ "key_format": "/$INDEX", "index_scope": "tag" }), "/index_scope", "write `output` or `key`"),
        (json!({ "key_format": "/$UUID/$INDEX", "index_scope": "key" }), "/index_scope", "every key is distinct"),
        (
            json!({ "key_format": "/$INDEX", "index_start": u64::MAX / 2 + 1 }),
            "/index_start",
            "9223372036854775807 at most",
        ),
        (json!({ "key_format": "/x", "on_conflict": "next_index" }), "/on_conflict", "no `$INDEX`"),
        (json!({ "key_format": "/x", "index_start": 4 }), "/index_start", "no `$INDEX`"),
        (
            json!({ "key_format": "/$INDEX", "on_conflict": "overwrite" }),
            "/on_conflict",
            "`next_index`, `dead_letter` or `hold`",
        ),
        (json!({ "key_format": "/a", "s3_key_format": "/b" }), "/s3_key_format", "`key_format` is given as well"),
    ] {
        let faults = new(config.clone()).map(|_| ()).unwrap_err();
        let found = faults.iter().any(|fault| fault.path == path && fault.message.contains(expected));
        assert!(found, "{config}: {faults:?}");
        assert_eq!(faults.len(), 1, "{config}: one mistake, one fault: {faults:?}");
    }
}

/// The rules of S3 that only S3 would tell otherwise, and only when the first object is written.
#[test]
fn what_s3_would_refuse_is_refused_before_a_record_is_taken() {
    let eleven: serde_json::Map<String, Value> = (0..11).map(|n| (format!("t{n}"), "x".into())).collect();
    for (config, path, expected) in [
        (json!({ "bucket": "logs/app" }), "/bucket", "the path belongs to `key_format`"),
        (json!({ "bucket": "my logs" }), "/bucket", "has a blank"),
        (json!({ "bucket": "  " }), "/bucket", "has no name"),
        (json!({ "bucket": "logs\n" }), "/bucket", "a control character, perhaps a line break"),
        (json!({ "bucket": "logs\u{0}" }), "/bucket", "a control character"),
        (json!({ "bucket": "logs?acl" }), "/bucket", "has a `?`"),
        (json!({ "bucket": ".." }), "/bucket", "a step of a path"),
        (json!({ "bucket": "b".repeat(256) }), "/bucket", "256 characters"),
        (json!({ "acl": "bucket-owner" }), "/acl", "`bucket-owner-read` or `bucket-owner-full-control`"),
        (json!({ "acl": "log-delivery-write" }), "/acl", "is not known: write `private`"),
        (json!({ "acl": "" }), "/acl", "it is empty: write `private`"),
        (json!({ "storage_class": "standard_ia" }), "/storage_class", "write `STANDARD_IA`"),
        (json!({ "storage_class": "STANDARD-IA" }), "/storage_class", "write `STANDARD_IA`"),
        (json!({ "storage_class": "GLACIAR" }), "/storage_class", "write `GLACIER`"),
        (json!({ "storage_class": "COLD TIER" }), "/storage_class", "it has ' ': the name of a class has letters"),
        (json!({ "storage_class": "COLD\n" }), "/storage_class", "it has '\\n'"),
        (json!({ "storage_class": "" }), "/storage_class", "it is empty: write the name of a class"),
        (json!({ "content_type": "a\nb" }), "/content_type", "(U+000A, a line break)"),
        (json!({ "content_type": "" }), "/content_type", "it is empty"),
        (json!({ "content_encoding": "gzip\r" }), "/content_encoding", "(U+000D, a line break)"),
        (json!({ "content_encoding": " " }), "/content_encoding", "it is empty"),
        (json!({ "grants": { "read": "id=\"1\"\n" } }), "/grants/read", "(U+000A, a line break)"),
        (json!({ "grants": { "read": "" } }), "/grants/read", "it is empty"),
        (json!({ "grants": { "read_acp": "everybody" } }), "/grants/read_acp", "write `id=\"…\"` or `uri=\"…\"`"),
        (json!({ "grants": { "read": "id=\"1\", 2" } }), "/grants/read", "names no grantee"),
        (json!({ "kms_key_id": "" }), "/kms_key_id", "it is empty"),
        (json!({ "kms_key_id": "k\u{7f}" }), "/kms_key_id", "(U+007F)"),
        (json!({ "server_side_encryption": "" }), "/server_side_encryption", "it is empty: write `AES256`"),
        (json!({ "bucket_key": true }), "/bucket_key", "write `server_side_encryption: aws:kms`"),
        (
            json!({ "bucket_key": true, "server_side_encryption": "aws:kms:dsse" }),
            "/bucket_key",
            "has no S3 Bucket Keys",
        ),
        (json!({ "expected_bucket_owner": "" }), "/expected_bucket_owner", "it is empty"),
        (json!({ "expected_bucket_owner": "12345678901" }), "/expected_bucket_owner", "those have 12 digits"),
        (json!({ "expected_bucket_owner": "arn:aws:iam::123456789012:root" }), "/expected_bucket_owner", "12 digits"),
        (json!({ "tags": eleven }), "/tags", "11 tags: S3 takes 10"),
        (json!({ "tags": { "x".repeat(129): "" } }), &format!("/tags/{}", "x".repeat(129)), "129 characters"),
        (json!({ "tags": { "team": "x".repeat(257) } }), "/tags/team", "257 characters: S3 takes up to 256"),
        (json!({ "tags": { "AWS:team": "x" } }), "/tags/AWS:team", "are AWS's own"),
        (json!({ "tags": { "a/b": "x\n" } }), "/tags/a~1b", "a control character"),
        (json!({ "metadata": { "host": "a\nb" } }), "/metadata/host", "(U+000A, a line break)"),
        (
            json!({ "metadata": { "Host": "a", "host": "b" } }),
            "/metadata/host",
            "`host` and `Host` are the same header",
        ),
    ] {
        let faults = new(config.clone()).map(|_| ()).unwrap_err();
        let found = faults.iter().any(|fault| fault.path == path && fault.message.contains(expected));
        assert!(found, "{config}: {faults:?}");
        assert_eq!(faults.len(), 1, "{config}: one mistake, one fault: {faults:?}");
    }
}

/// Old buckets, access points, directory buckets and servers that are not AWS's have names beyond today's rules.
#[test]
fn what_could_be_right_somewhere_is_not_refused() {
    for config in [
        json!({ "bucket": "My_Old_Bucket" }),
        json!({ "bucket": "b" }),
        json!({ "bucket": "b".repeat(255) }),
        json!({ "bucket": "tenant:logs" }),
        json!({ "bucket": "logs--usw2-az1--x-s3" }),
        json!({ "bucket": "arn:aws:s3:us-west-2:123456789012:accesspoint/logs" }),
        json!({ "acl": "bucket-owner-full-control", "storage_class": "GLACIER_IR" }),
        json!({ "storage_class": "COLD" }),
        json!({ "storage_class": "tier-2_hdd" }),
        json!({ "content_encoding": "" }),
        json!({ "content_type": "application/x-ndjson; charset=utf-8" }),
        json!({ "grants": { "full_control": "id=\"1\", uri=\"http://acs.amazonaws.com/groups/s3/LogDelivery\"" } }),
        json!({ "kms_key_id": "alias/k", "bucket_key": true }),
        json!({ "bucket_key": false }),
        json!({ "expected_bucket_owner": "012345678901" }),
        json!({ "tags": { "x".repeat(128): "ä".repeat(256), "aws": "", "größe": "a b+-=._:/@" } }),
    ] {
        assert!(new(config.clone()).is_ok(), "{config}: {:?}", new(config.clone()).map(|_| ()));
    }
}
