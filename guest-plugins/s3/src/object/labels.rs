//! Tags and metadata of the object.

use std::collections::BTreeMap;

use super::BATCH_METADATA;
use super::texts::control_character;
use crate::config::Config;
use wharf_plugin::Faults;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    check_tags(&config.tags, faults);
    check_metadata(&config.metadata, faults);
}

/// User Guide, "Categorizing your objects using tags": <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html>; names
/// that begin with `aws:` are AWS's own ("User-defined tag restrictions" in the Billing User Guide:
/// <https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/allocation-tag-restrictions.html>).
fn check_tags(tags: &BTreeMap<String, String>, faults: &mut Faults) {
    if tags.len() > 10 {
        faults.add("tags", format!("{} tags: S3 takes 10 for an object", tags.len()));
    }
    for (name, value) in tags {
        let fault = if name.is_empty() || name.chars().count() > 128 {
            format!("the name of a tag has {} characters: S3 takes 1 to 128", name.chars().count())
        } else if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:")) {
            "names of tags that begin with `aws:` are AWS's own: write another".to_owned()
        } else if value.chars().count() > 256 {
            format!("the value of a tag has {} characters: S3 takes up to 256", value.chars().count())
        } else if name.contains(char::is_control) || value.contains(char::is_control) {
            "a tag has a control character, perhaps a line break, which S3 does not take: leave it out".to_owned()
        } else {
            continue;
        };
        faults.add_at(&["tags", name], fault);
    }
}

/// User Guide, "Working with object metadata": <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>. Names become
/// names of headers, in which case does not matter.
fn check_metadata(metadata: &BTreeMap<String, String>, faults: &mut Faults) {
    let mut bytes = BATCH_METADATA.len() + 32;
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (name, value) in metadata {
        bytes += name.len() + value.len();
        let fault = if name.eq_ignore_ascii_case(BATCH_METADATA) {
            format!("`{name}` is Wharf's own: by it an object is recognised as a batch's")
        } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            format!("`{}` is no name of a header: write letters, digits, `-`, `_` and `.`", name.escape_debug())
        } else if let Some(other) = seen.insert(name.to_ascii_lowercase(), name) {
            format!("`{name}` and `{other}` are the same header: leave one of them out")
        } else if let Some(control) = value.chars().find(|c| c.is_control()) {
            control_character(control)
        } else if !value.is_ascii() {
            format!("the value of `{name}` goes into a header, so it may have visible ASCII characters only")
        } else {
            continue;
        };
        faults.add_at(&["metadata", name], fault);
    }
    if bytes > 2048 {
        faults.add("metadata", format!("{bytes} bytes with Wharf's own: S3 takes 2048"));
    }
}
