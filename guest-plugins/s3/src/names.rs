//! Names that people bring along from Fluent Bit and others: those that mean the same, and what to do about those that do not.

/// Same meaning, other name.
pub const ALIASES: &[(&str, &str)] = &[
    ("s3_key_format", "key_format"),
    ("s3_key_format_tag_delimiters", "tag_delimiters"),
    ("canned_acl", "acl"),
    ("json_date_key", "date_key"),
    ("json_date_format", "date_format"),
    ("upload_chunk_size", "part_size"),
    ("use_bucket_key", "bucket_key"),
    ("ssekms_key_id", "kms_key_id"),
    ("default_tag_delimiters", "tag_delimiters"),
];

/// Names that this plugin does not take, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("region", "it belongs to the output's `aws.region` (or the file's `aws.region`, or AWS_REGION)"),
    ("endpoint", "it belongs to `aws.endpoint` of the output or of the file"),
    ("role_arn", "it belongs to `aws.role_arn`: plugins never see credentials"),
    ("external_id", "it belongs to `aws.external_id`"),
    ("sts_endpoint", "it belongs to `aws.sts_endpoint`"),
    ("profile", "it belongs to `aws.profile`"),
    ("force_path_style", "it belongs to `aws.path_style`, and is the default where `aws.endpoint` is set"),
    ("workers", "it belongs beside `config`, as the output's `workers`; any number is safe here"),
    ("match", "it belongs beside `config`, as the output's `match`"),
    ("use_put_object", "Wharf decides by size: objects up to `multipart_threshold` go in one request; leave it out"),
    ("preserve_data_ordering", "records of one batch always stay in order; leave it out"),
    ("store_dir", "records are kept under the file's `data_dir`"),
    (
        "store_dir_limit_size",
        "it belongs to the output's `queue.max_size`; what happens when it is full is `queue.when_full`",
    ),
    ("retry_limit", "retries are limited by time: the output's `retry.max_age` (default 24h)"),
    (
        "retry_exhausted_action",
        "a batch that cannot be delivered becomes dead letters, which can be replayed: `wharf dead-letter`",
    ),
    ("quarantine_dir_limit_size", "a batch that cannot be delivered becomes dead letters: `wharf dead-letter`"),
    ("auto_retry_requests", "retries are the host's: the output's `retry`"),
    (
        "send_content_md5",
        "write `checksum: crc32c` (the default) or another algorithm: S3 verifies it as it would Content-MD5",
    ),
    ("blob_database_file", "Wharf has no blob records"),
    ("file_delivery_attempt_limit", "Wharf has no blob records; retries are the output's `retry`"),
    ("part_delivery_attempt_limit", "parts are tried again with their batch: the output's `retry`"),
    ("upload_parts_timeout", "the host limits each request by `aws.request_timeout`"),
    (
        "upload_part_freshness_limit",
        "an unfinished upload is resumed for as long as its batch is tried: the output's `retry.max_age`",
    ),
    (
        "authorization_endpoint_url",
        "Wharf does not take pre-signed addresses from a broker; use `aws.role_arn` or a profile",
    ),
    ("authorization_endpoint_username", "Wharf does not take pre-signed addresses from a broker"),
    ("authorization_endpoint_password", "Wharf does not take pre-signed addresses from a broker"),
    ("authorization_endpoint_bearer_token", "Wharf does not take pre-signed addresses from a broker"),
    ("tls", "TLS is on unless `aws.endpoint` begins with http://"),
    ("key_prefix", "write the whole key as `key_format`, for example `/prefix/$TAG/%Y/%m/%d/%H%M%S-$UUID`"),
    ("filename_time_format", "write the whole key as `key_format`, with strftime conversions"),
    ("filename_extension", "write the whole key as `key_format`, for example `…-$UUID.json.gz`"),
    ("time_slice_format", "write the whole key as `key_format`, with strftime conversions"),
    ("path", "write the whole key as `key_format`"),
    ("batch", "it belongs beside `config`, as the output's `batch`"),
    ("level", "it is called `compression_level`"),
];

/// Why a value of `format` that is known elsewhere is none here.
pub fn refused_format(value: &str) -> Option<&'static str> {
    Some(match value {
        "json" => "Fluent Bit takes `json` and silently writes JSON lines; write `json_lines`",
        "parquet" | "arrow" => "this plugin writes no columnar files; write `json_lines` and convert behind the bucket",
        "otlp_json" => "this plugin writes no OTLP; write `json_lines`",
        _ => return None,
    })
}

/// Why a value of `compression` that is known elsewhere is none here.
pub fn refused_compression(value: &str) -> Option<&'static str> {
    Some(match value {
        "snappy" => "this plugin writes no snappy; write `zstd`, which is smaller, or `gzip`",
        "arrow" | "parquet" => "in Fluent Bit this is an old name of a format; this plugin writes no columnar files",
        _ => return None,
    })
}
