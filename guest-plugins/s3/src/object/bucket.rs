//! The bucket's name.

use wharf_plugin::Faults;

/// The longest name that S3 ever gave: us-east-1 before March 2018. ARNs, which access points have, are longer.
const LONGEST: usize = 255;

/// Refuses what is no bucket's name anywhere. S3's own rules for new buckets (User Guide, "General purpose bucket naming rules":
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>) are narrower, but old buckets of us-east-1 have upper
/// case and `_`, and other servers have rules of their own: which server it is, only the host knows. Instead of a name S3 takes the ARN or
/// the alias of an access point (User Guide, "Using Amazon S3 access points").
pub(super) fn check(bucket: &str, faults: &mut Faults) {
    let is_arn = bucket.starts_with("arn:");
    let fault = if bucket.trim().is_empty() {
        "the bucket has no name".to_owned()
    } else if bucket.contains("://") || (bucket.contains('/') && !is_arn) {
        "write the bucket's bare name, without `s3://` and without a path: the path belongs to `key_format`".to_owned()
    } else if bucket.contains('$') || bucket.contains('%') {
        "the bucket's name is taken as it is: only `key_format` knows `$TAG` and the like".to_owned()
    } else if bucket.contains(char::is_control) {
        "the bucket's name has a control character, perhaps a line break: no bucket's name has".to_owned()
    } else if bucket.contains(char::is_whitespace) {
        "the bucket's name has a blank: no bucket's name has".to_owned()
    } else if let Some(c) = bucket.chars().find(|c| "?#\\".contains(*c)) {
        format!("the bucket's name has a `{c}`: no bucket's name has")
    } else if matches!(bucket, "." | "..") {
        "this is no name, but a step of a path".to_owned()
    } else if bucket.len() > LONGEST && !is_arn {
        format!("the bucket's name has {} characters: S3 takes 63, and never took more than {LONGEST}", bucket.len())
    } else {
        return;
    };
    faults.add("bucket", fault);
}
