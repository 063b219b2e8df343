//! How S3 is to encrypt the object.

use crate::config::Config;
use wharf_plugin::Faults;

/// Values of `x-amz-server-side-encryption` that Wharf sends (API Reference, `PutObject`).
const ALGORITHMS: [&str; 3] = ["AES256", "aws:kms", "aws:kms:dsse"];

/// The algorithm: a KMS key alone means KMS.
pub(super) fn algorithm(config: &Config) -> Option<&str> {
    config.server_side_encryption.as_deref().or(config.kms_key_id.as_ref().map(|_| "aws:kms"))
}

/// User Guide, "Specifying server-side encryption with AWS KMS":
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/specifying-kms-encryption.html>. DSSE-KMS has no S3 Bucket Keys ("Using
/// dual-layer server-side encryption with AWS KMS keys":
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingDSSEncryption.html>).
pub(super) fn check(config: &Config, faults: &mut Faults) {
    let given = config.server_side_encryption.as_deref();
    faults.one_of("server_side_encryption", given, &ALGORITHMS);
    if given.is_some_and(|name| !ALGORITHMS.contains(&name)) {
        return;
    }
    if config.kms_key_id.is_some() && given == Some("AES256") {
        faults.add("kms_key_id", "it has no effect with `server_side_encryption: AES256`: write `aws:kms`");
    }
    if config.bucket_key != Some(true) {
        return;
    }
    match algorithm(config) {
        Some("AES256") => {
            faults.add("bucket_key", "it has no effect with `server_side_encryption: AES256`: write `aws:kms`");
        }
        Some("aws:kms:dsse") => faults.add(
            "bucket_key",
            "`server_side_encryption: aws:kms:dsse` has no S3 Bucket Keys: leave it out, or write `aws:kms`",
        ),
        None => faults.add(
            "bucket_key",
            "it belongs to SSE-KMS: write `server_side_encryption: aws:kms` and the key as `kms_key_id`, or leave it out and let the bucket's default decide",
        ),
        Some(_) => {}
    }
}
