//! Where objects go, and what they are like. What S3 alone would refuse, and hours later, is refused here: one file a theme.

mod access;
mod bucket;
mod encryption;
mod labels;
mod storage_class;
mod texts;

use wharf_plugin::Faults;
use wharf_plugin::s3::Attributes;

use crate::config::Config;
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
    bucket::check(&config.bucket, faults);
    texts::check(config, faults);
    access::check(config, faults);
    storage_class::check(config, faults);
    encryption::check(config, faults);
    labels::check(config, faults);
    let grants = config.grants.clone().unwrap_or_default();
    let content_type = match format {
        Format::JsonLines => "application/x-ndjson",
        Format::Text => "text/plain",
    };
    let compression = config.compression.clone().filter(|name| name != "none");
    Target {
        bucket: config.bucket.clone(),
        conditional: config.conditional_write.unwrap_or(true),
        attributes: Attributes {
            content_type: config.content_type.clone().or_else(|| Some(content_type.into())),
            // An empty one sends none.
            content_encoding: config.content_encoding.clone().or(compression).filter(|name| !name.is_empty()),
            storage_class: config.storage_class.clone(),
            acl: config.acl.clone(),
            grant_full_control: grants.full_control,
            grant_read: grants.read,
            grant_read_acp: grants.read_acp,
            grant_write_acp: grants.write_acp,
            server_side_encryption: encryption::algorithm(config).map(str::to_owned),
            kms_key_id: config.kms_key_id.clone(),
            bucket_key: config.bucket_key,
            tags: config.tags.clone().into_iter().collect(),
            metadata: config.metadata.clone().into_iter().collect(),
            checksum: faults
                .one_of("checksum", config.checksum.as_deref(), &["crc32c", "crc32", "crc64nvme", "sha1", "sha256"])
                .into(),
            expected_bucket_owner: config.expected_bucket_owner.clone(),
        },
    }
}
