//! Attributes of an object on the SDK's builders, which have the same setters for `PutObject` and `CreateMultipartUpload`.

use std::collections::HashMap;

use crate::capability::bindings::types::HostError;

/// Puts WIT's `attributes` on a builder; `$with` is used up.
macro_rules! with_attributes {
    ($builder:expr, $with:expr) => {{
        let with = $with;
        $builder
            .set_content_type(with.content_type)
            .set_content_encoding(with.content_encoding)
            .set_storage_class(with.storage_class.as_deref().map(Into::into))
            .set_acl(with.acl.as_deref().map(Into::into))
            .set_grant_full_control(with.grant_full_control)
            .set_grant_read(with.grant_read)
            .set_grant_read_acp(with.grant_read_acp)
            .set_grant_write_acp(with.grant_write_acp)
            .set_server_side_encryption(with.server_side_encryption.as_deref().map(Into::into))
            .set_ssekms_key_id(with.kms_key_id)
            .set_bucket_key_enabled(with.bucket_key)
            .set_tagging($crate::capability::s3::attributes::tagging(&with.tags))
            .set_metadata(Some(with.metadata.into_iter().collect()))
            .set_expected_bucket_owner(with.expected_bucket_owner)
    }};
}
pub(super) use with_attributes;

/// Tags as the `x-amz-tagging` header has them: a query string.
pub(super) fn tagging(tags: &[(String, String)]) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    let pairs: Vec<String> = tags.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
    Some(pairs.join("&"))
}

/// Percent-encoding of everything but RFC 3986's unreserved characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&hex::encode_upper([byte]));
        }
    }
    encoded
}

/// Metadata travels in headers: the name must be a token (RFC 9110, section 5.6.2), the value visible ASCII, and all of it at most 2 KB
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
pub(super) fn check_metadata(metadata: &[(String, String)]) -> Result<(), HostError> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    for (name, value) in metadata {
        let shown = crate::capability::escape::one_line(name, 64);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(HostError::Invalid(format!("metadata name {shown:?} cannot be part of a header's name")));
        }
        if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
            return Err(HostError::Invalid(format!("the value of metadata {shown:?} must be printable ASCII")));
        }
    }
    let bytes: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > 2048 {
        return Err(HostError::Invalid(format!("metadata has {bytes} bytes, and S3 takes at most 2048")));
    }
    Ok(())
}

/// Metadata of an answer, in an order that does not change.
pub(super) fn metadata(metadata: Option<&HashMap<String, String>>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> =
        metadata.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect();
    pairs.sort();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn tags_are_a_query_string() {
        assert_eq!(
            tagging(&pairs(&[("team", "a&b=c"), ("env", "größe 1")])).unwrap(),
            "team=a%26b%3Dc&env=gr%C3%B6%C3%9Fe%201"
        );
        assert_eq!(tagging(&[]), None);
    }

    #[test]
    fn metadata_that_could_become_another_header_is_invalid() {
        for (name, value, good) in [
            ("batch", "0123", true),
            ("x-y_z", "a b", true),
            ("", "v", false),
            ("a b", "v", false),
            ("a:b", "v", false),
            ("a", "v\r\nx-amz-acl: public-read", false),
            ("a", "ü", false),
        ] {
            assert_eq!(check_metadata(&pairs(&[(name, value)])).is_ok(), good, "{name} {value}");
        }
        assert!(check_metadata(&pairs(&[("n", &"v".repeat(2048))])).is_err());
    }
}
