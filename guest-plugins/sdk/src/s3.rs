//! Amazon S3 and what speaks like it. The host signs, connects, and holds the credentials; each call is one attempt, and
//! nothing is retried behind the plugin's back.

use crate::Body;
use crate::bindings::wharf::output::s3 as wit;
use crate::bindings::wharf::output::types::CallError;
use crate::service::Service;

pub use crate::service::{Error, ServiceError};

fn error(error: CallError) -> Error {
    Error::of(Service::S3, error)
}

/// A bucket, and the beginning that all keys written to it have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The bucket.
    pub bucket: String,
    /// The keys' beginning; empty is every key.
    pub key_prefix: String,
}

impl Scope {
    /// A bucket and a prefix.
    pub fn new(bucket: impl Into<String>, key_prefix: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key_prefix: key_prefix.into() }
    }
}

/// Attributes of an object. Texts are S3's own values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `STANDARD_IA`, …
    pub storage_class: Option<String>,
    /// Canned ACL.
    pub acl: Option<String>,
    /// Grantees, as in `x-amz-grant-full-control`.
    pub grant_full_control: Option<String>,
    /// Grantees, as in `x-amz-grant-read`.
    pub grant_read: Option<String>,
    /// Grantees, as in `x-amz-grant-read-acp`.
    pub grant_read_acp: Option<String>,
    /// Grantees, as in `x-amz-grant-write-acp`.
    pub grant_write_acp: Option<String>,
    /// `AES256`, `aws:kms` or `aws:kms:dsse`.
    pub server_side_encryption: Option<String>,
    /// Key for `aws:kms`.
    pub kms_key_id: Option<String>,
    /// S3 Bucket Key for `aws:kms`.
    pub bucket_key: Option<bool>,
    /// Object tags.
    pub tags: Vec<(String, String)>,
    /// User metadata.
    pub metadata: Vec<(String, String)>,
    /// `crc32`, `crc32c`, `crc64nvme`, `sha1` or `sha256`.
    pub checksum: String,
    /// Account that has to own the bucket.
    pub expected_bucket_owner: Option<String>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            content_type: None,
            content_encoding: None,
            storage_class: None,
            acl: None,
            grant_full_control: None,
            grant_read: None,
            grant_read_acp: None,
            grant_write_acp: None,
            server_side_encryption: None,
            kms_key_id: None,
            bucket_key: None,
            tags: Vec::new(),
            metadata: Vec::new(),
            checksum: "crc32c".into(),
            expected_bucket_owner: None,
        }
    }
}

impl Attributes {
    fn to_wit(&self) -> wit::Attributes {
        let it = self.clone();
        wit::Attributes {
            content_type: it.content_type,
            content_encoding: it.content_encoding,
            storage_class: it.storage_class,
            acl: it.acl,
            grant_full_control: it.grant_full_control,
            grant_read: it.grant_read,
            grant_read_acp: it.grant_read_acp,
            grant_write_acp: it.grant_write_acp,
            server_side_encryption: it.server_side_encryption,
            kms_key_id: it.kms_key_id,
            bucket_key: it.bucket_key,
            tags: it.tags,
            metadata: it.metadata,
            checksum: it.checksum,
            expected_bucket_owner: it.expected_bucket_owner,
        }
    }
}

/// An object that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Its entity tag.
    pub etag: Option<String>,
    /// Its version, in a bucket with versions.
    pub version_id: Option<String>,
}

/// What S3 says of an object without giving it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Its entity tag.
    pub etag: Option<String>,
    /// Bytes.
    pub size: u64,
    /// User metadata.
    pub metadata: Vec<(String, String)>,
}

/// A part that S3 has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// 1 to 10,000.
    pub number: u16,
    /// Its entity tag.
    pub etag: String,
    /// Base64, of the upload's checksum algorithm.
    pub checksum: Option<String>,
}

/// An unfinished upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The key that it will have.
    pub key: String,
    /// Its id.
    pub upload_id: String,
    /// Nanoseconds since 1970 UTC.
    pub initiated: Option<i64>,
}

/// A part on its way.
#[derive(Debug)]
pub struct PendingPart(wit::PendingPart);

impl PendingPart {
    /// Waits for the end. A second call gives the same answer.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn wait(&self) -> Result<Part, Error> {
        let part = self.0.wait().map_err(error)?;
        Ok(Part { number: part.number, etag: part.etag, checksum: part.checksum })
    }
}

/// Writes an object. `only_if_absent`: S3 refuses with 412 where the key exists.
///
/// # Errors
/// See [`Error`]; so in all functions here.
pub fn put_object(
    bucket: &str,
    key: &str,
    content: &Body,
    attributes: &Attributes,
    only_if_absent: bool,
) -> Result<Written, Error> {
    let written = wit::put_object(bucket, key, content.wit(), &attributes.to_wit(), only_if_absent).map_err(error)?;
    Ok(Written { etag: written.etag, version_id: written.version_id })
}

/// Asks about an object; none where there is no such object.
///
/// # Errors
/// See [`Error`].
pub fn head_object(bucket: &str, key: &str, expected_bucket_owner: Option<&str>) -> Result<Option<Head>, Error> {
    let head = wit::head_object(bucket, key, expected_bucket_owner).map_err(error)?;
    Ok(head.map(|head| Head { etag: head.etag, size: head.size, metadata: head.metadata }))
}

/// Begins a multipart upload; gives its id.
///
/// # Errors
/// See [`Error`].
pub fn create_multipart_upload(bucket: &str, key: &str, attributes: &Attributes) -> Result<String, Error> {
    wit::create_multipart_upload(bucket, key, &attributes.to_wit()).map_err(error)
}

/// Starts sending a part and returns at once, so that parts can travel in parallel (at most 16 at a time).
///
/// # Errors
/// See [`Error`].
pub fn upload_part(
    bucket: &str,
    key: &str,
    upload_id: &str,
    number: u16,
    content: &Body,
    checksum: &str,
    expected_bucket_owner: Option<&str>,
) -> Result<PendingPart, Error> {
    wit::upload_part(bucket, key, upload_id, number, content.wit(), checksum, expected_bucket_owner)
        .map(PendingPart)
        .map_err(error)
}

/// Makes the parts, in ascending order, one object. `only_if_absent`: S3 refuses with 412 where the key exists.
///
/// # Errors
/// See [`Error`].
pub fn complete_multipart_upload(
    bucket: &str,
    key: &str,
    upload_id: &str,
    parts: &[Part],
    checksum: &str,
    expected_bucket_owner: Option<&str>,
    only_if_absent: bool,
) -> Result<Written, Error> {
    let parts: Vec<_> = parts
        .iter()
        .map(|part| wit::Part { number: part.number, etag: part.etag.clone(), checksum: part.checksum.clone() })
        .collect();
    let written =
        wit::complete_multipart_upload(bucket, key, upload_id, &parts, checksum, expected_bucket_owner, only_if_absent)
            .map_err(error)?;
    Ok(Written { etag: written.etag, version_id: written.version_id })
}

/// Gives an upload up. One that is not there any more is no error.
///
/// # Errors
/// See [`Error`].
pub fn abort_multipart_upload(
    bucket: &str,
    key: &str,
    upload_id: &str,
    expected_bucket_owner: Option<&str>,
) -> Result<(), Error> {
    wit::abort_multipart_upload(bucket, key, upload_id, expected_bucket_owner).map_err(error)
}

/// Unfinished uploads whose keys begin with `prefix`, at most 1,000.
///
/// # Errors
/// See [`Error`].
pub fn list_multipart_uploads(
    bucket: &str,
    prefix: &str,
    expected_bucket_owner: Option<&str>,
) -> Result<Vec<Upload>, Error> {
    let uploads = wit::list_multipart_uploads(bucket, prefix, expected_bucket_owner).map_err(error)?;
    Ok(uploads
        .into_iter()
        .map(|upload| Upload { key: upload.key, upload_id: upload.upload_id, initiated: upload.initiated })
        .collect())
}
