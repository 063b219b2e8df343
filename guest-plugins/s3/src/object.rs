//! Where objects go, and what they are like.

use wharf_plugin::Faults;
use wharf_plugin::s3::Attributes;

use crate::config::{Config, Grants};
use crate::settings::Format;

/// The metadata by which an object is recognised as this batch's.
pub const BATCH_METADATA: &str = "wharf-batch";

/// Where objects go, and what they are like.
#[derive(Debug, Clone)]
pub struct Target {
    /// The bucket.
    pub bucket: String,
    /// Whether S3 itself guards against overwriting; else Wharf asks before it writes.
    pub conditional: bool,
    attributes: Attributes,
}

impl Target {
    /// Attributes of a batch's object.
    pub fn attributes(&self, batch_id: &str) -> Attributes {
        let mut attributes = self.attributes.clone();
        attributes.metadata.push((BATCH_METADATA.into(), batch_id.into()));
        attributes
    }
    /// Name of the checksum's algorithm.
    pub fn checksum(&self) -> &str {
        &self.attributes.checksum
    }
    /// Who has to own the bucket.
    pub fn owner(&self) -> Option<&str> {
        self.attributes.expected_bucket_owner.as_deref()
    }
}

/// Reads the options that say where objects go and what they are like.
pub fn target(config: &Config, format: Format, faults: &mut Faults) -> Target {
    check_bucket(&config.bucket, faults);
    check_encryption(config, faults);
    check_labels(config, faults);
    let grants = config.grants.clone().unwrap_or_default();
    if config.acl.is_some() && grants != Grants::default() {
        faults.add("grants", "S3 takes either `acl` or `grants`, not both");
    }
    let content_type = match format {
        Format::JsonLines => "application/x-ndjson",
        Format::Text => "text/plain",
    };
    let compression = config.compression.clone().filter(|name| name != "none");
    Target {
        bucket: config.bucket.clone(),
        conditional: config.conditional_write.unwrap_or(true),
        attributes: Attributes {
            content_type: given(config.content_type.clone().or_else(|| Some(content_type.into()))),
            content_encoding: given(config.content_encoding.clone().or(compression)),
            storage_class: given(config.storage_class.clone()),
            acl: given(config.acl.clone()),
            grant_full_control: given(grants.full_control),
            grant_read: given(grants.read),
            grant_read_acp: given(grants.read_acp),
            grant_write_acp: given(grants.write_acp),
            server_side_encryption: given(config.server_side_encryption.clone())
                .or_else(|| config.kms_key_id.as_ref().map(|_| "aws:kms".into())),
            kms_key_id: given(config.kms_key_id.clone()),
            bucket_key: config.bucket_key,
            tags: config.tags.clone().into_iter().collect(),
            metadata: config.metadata.clone().into_iter().collect(),
            checksum: faults
                .one_of("checksum", config.checksum.as_deref(), &["crc32c", "crc32", "crc64nvme", "sha1", "sha256"])
                .into(),
            expected_bucket_owner: given(config.expected_bucket_owner.clone()),
        },
    }
}

/// An empty text is how a configuration made from variables leaves an option out.
fn given(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.is_empty())
}

fn check_bucket(bucket: &str, faults: &mut Faults) {
    let fault = if bucket.is_empty() {
        "the bucket has no name"
    } else if bucket.contains("://") || (bucket.contains('/') && !bucket.starts_with("arn:")) {
        "write the bucket's bare name, without `s3://` and without a path: the path belongs to `key_format`"
    } else if bucket.contains('$') || bucket.contains('%') {
        "the bucket's name is taken as it is: only `key_format` knows `$TAG` and the like"
    } else if bucket.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "the bucket's name has a blank"
    } else {
        return;
    };
    faults.add("bucket", fault);
}

fn check_encryption(config: &Config, faults: &mut Faults) {
    let by_kms = match config.server_side_encryption.as_deref() {
        Some("") | None => config.kms_key_id.is_some(),
        Some(other) => {
            matches!(
                faults.one_of("server_side_encryption", Some(other), &["AES256", "aws:kms", "aws:kms:dsse"]),
                "aws:kms" | "aws:kms:dsse"
            )
        }
    };
    if config.kms_key_id.is_some() && !by_kms {
        faults.add("kms_key_id", "it has no effect with `server_side_encryption: AES256`: write `aws:kms`");
    }
    if config.bucket_key == Some(true) && config.server_side_encryption.as_deref() == Some("AES256") {
        faults.add("bucket_key", "it has no effect with `server_side_encryption: AES256`: write `aws:kms`");
    }
}

/// S3's limits: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html> and `UsingMetadata.html`.
fn check_labels(config: &Config, faults: &mut Faults) {
    if config.tags.len() > 10 {
        faults.add("tags", format!("{} tags: S3 takes 10 for an object", config.tags.len()));
    }
    for (name, value) in &config.tags {
        if name.is_empty() || name.chars().count() > 128 || value.chars().count() > 256 {
            faults.add("tags", format!("`{name}`: S3 takes names of 1 to 128 and values of up to 256 characters"));
        }
    }
    let mut bytes = BATCH_METADATA.len() + 32;
    for (name, value) in &config.metadata {
        bytes += name.len() + value.len();
        if name.eq_ignore_ascii_case(BATCH_METADATA) {
            faults.add("metadata", format!("`{name}` is Wharf's own: by it an object is recognised as a batch's"));
        } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            faults.add("metadata", format!("`{name}` is no name of a header: write letters, digits, `-`, `_` and `.`"));
        } else if !value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            faults.add(
                "metadata",
                format!("the value of `{name}` goes into a header, so it may have visible ASCII characters only"),
            );
        }
    }
    if bytes > 2048 {
        faults.add("metadata", format!("{bytes} bytes with Wharf's own: S3 takes 2048"));
    }
}
