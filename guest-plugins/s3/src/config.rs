//! The plugin's `config`, as it is written. `settings` makes sense of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wharf_plugin::units::{Size, Time};

/// Writes each batch as one object into an Amazon S3 bucket, or into what speaks like S3.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bucket's name.
    pub bucket: String,
    /// The object's key, without the bucket: `$TAG`, `$TAG[n]`, `$INDEX`, `$UUID` and strftime conversions are replaced. One
    /// leading `/` is dropped. Default: `/wharf-logs/$TAG/%Y/%m/%d/%H/%M/%S-$UUID`.
    #[serde(default)]
    pub key_format: Option<String>,
    /// Characters that split the tag into the parts `$TAG[0]`, `$TAG[1]`, … Default: `.`
    #[serde(default)]
    pub tag_delimiters: Option<String>,
    /// Time zone of the conversions in `key_format`: `UTC` (default) or an IANA name such as `Europe/Berlin`.
    #[serde(default)]
    pub timezone: Option<String>,
    /// First number of `$INDEX`. Default: 0.
    #[serde(default)]
    pub index_start: Option<u64>,
    /// What one `$INDEX` counter covers: `output` (default), or `key`: each distinct rest of the key has its own.
    #[serde(default)]
    #[schemars(extend("examples" = ["output", "key"]))]
    pub index_scope: Option<String>,
    /// What happens when the key is taken by somebody else's object: `next_index` (default with `$INDEX`), `dead_letter`, or `hold`
    /// (default without).
    #[serde(default)]
    #[schemars(extend("examples" = ["next_index", "dead_letter", "hold"]))]
    pub on_conflict: Option<String>,
    /// Write with `If-None-Match: *`, so that S3 itself never lets an object be overwritten. Default: true. `false` is for
    /// servers that do not know it: then Wharf asks (HEAD) before it writes.
    #[serde(default)]
    pub conditional_write: Option<bool>,
    /// Leave the key as it is, where `key_format` has neither `$INDEX` nor `$UUID` to make it unique. Default: false, which puts
    /// `-$UUID` before the extension.
    #[serde(default)]
    pub static_file_path: Option<bool>,

    /// How records are written: `json_lines` (default), or `text`: each record's text and a line feed.
    #[serde(default)]
    #[schemars(extend("examples" = ["json_lines", "text"]))]
    pub format: Option<String>,
    /// Write only the value of this key (`format: text`, which is then the default). Records without it become dead letters.
    #[serde(default)]
    pub log_key: Option<String>,
    /// Key of the record's time in `json_lines`; `false` leaves the time out. Default: `date`.
    #[serde(default)]
    pub date_key: Option<NameOrFalse>,
    /// `iso8601` (default), `iso8601_nanos`, `double`, `epoch`, `epoch_ms` or `java_sql_timestamp`.
    #[serde(default)]
    #[schemars(extend("examples" = ["iso8601", "iso8601_nanos", "double", "epoch", "epoch_ms", "java_sql_timestamp"]))]
    pub date_format: Option<String>,

    /// `none` (default), `gzip` or `zstd`.
    #[serde(default)]
    #[schemars(extend("examples" = ["none", "gzip", "zstd"]))]
    pub compression: Option<String>,
    /// Level of the compression: gzip 1 to 9 (default 2), zstd 1 to 19 (default 3).
    #[serde(default)]
    #[schemars(range(min = 1, max = 19))]
    pub compression_level: Option<i32>,

    /// `Content-Type`. Default: `application/x-ndjson`, or `text/plain` with `format: text`.
    #[serde(default)]
    pub content_type: Option<String>,
    /// `Content-Encoding`. Default: the compression's name. `""` sends none, for readers that must see the compressed bytes.
    #[serde(default)]
    pub content_encoding: Option<String>,
    /// Storage class, such as `STANDARD_IA` or `GLACIER_IR`, or one of your server's own. Default: the bucket's.
    #[serde(default)]
    #[schemars(extend("examples" = ["STANDARD", "STANDARD_IA", "INTELLIGENT_TIERING", "GLACIER_IR"]))]
    pub storage_class: Option<String>,
    /// Canned ACL, such as `bucket-owner-full-control`.
    #[serde(default)]
    #[schemars(extend("examples" = ["private", "bucket-owner-full-control"]))]
    pub acl: Option<String>,
    /// Grants of the object's ACL. Not together with `acl`.
    #[serde(default)]
    pub grants: Option<Grants>,
    /// `AES256`, `aws:kms` or `aws:kms:dsse`. Default: the bucket's.
    #[serde(default)]
    #[schemars(extend("examples" = ["AES256", "aws:kms", "aws:kms:dsse"]))]
    pub server_side_encryption: Option<String>,
    /// The KMS key: its id, ARN or alias. Makes `server_side_encryption` `aws:kms` where that is not given.
    #[serde(default)]
    pub kms_key_id: Option<String>,
    /// Use an S3 Bucket Key, which calls KMS less often. With `server_side_encryption: aws:kms`.
    #[serde(default)]
    pub bucket_key: Option<bool>,
    /// Tags of each object, at most 10: names of 1 to 128 characters, values of up to 256.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// User metadata of each object (`x-amz-meta-…`), at most 2 KB. `wharf-batch` is Wharf's own.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Checksum that S3 verifies and keeps: `crc32c` (default), `crc32`, `crc64nvme`, `sha1` or `sha256`.
    #[serde(default)]
    #[schemars(extend("examples" = ["crc32c", "crc32", "crc64nvme", "sha1", "sha256"]))]
    pub checksum: Option<String>,
    /// Account id (12 digits, in quotes) that has to own the bucket: S3 refuses the write (403) otherwise.
    #[serde(default)]
    pub expected_bucket_owner: Option<String>,

    /// Objects up to this size, as sent, go in one request; larger ones by multipart upload. Default: 8MiB; 64MiB at most.
    /// Rounded up to whole parts.
    #[serde(default)]
    pub multipart_threshold: Option<Size>,
    /// Size of a part: 5MiB to 64MiB. Default: 8MiB.
    #[serde(default)]
    pub part_size: Option<Size>,
    /// Default for `batch.max_bytes`, under Fluent Bit's name. Default: 100MB.
    #[serde(default)]
    pub total_file_size: Option<Size>,
    /// Default for `batch.max_age`, under Fluent Bit's name: `10m`, or a number of seconds. Default: 10m.
    #[serde(default)]
    pub upload_timeout: Option<Time>,
}

/// A name, or `false` for none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a key, or false")]
#[schemars(inline, extend("x-expected" = "the name of a key, or false"))]
pub enum NameOrFalse {
    /// `false`.
    Flag(bool),
    /// The name.
    Name(String),
}

/// Who gets which right on the object: grantees as in S3's headers, such as `id="…"` or `uri="…"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Grants {
    /// All of the rights below.
    #[serde(default)]
    pub full_control: Option<String>,
    /// Reading the object.
    #[serde(default)]
    pub read: Option<String>,
    /// Reading its ACL.
    #[serde(default)]
    pub read_acp: Option<String>,
    /// Writing its ACL.
    #[serde(default)]
    pub write_acp: Option<String>,
}
