//! Tags of log groups.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::{Check, is_group_character};
use super::endpoint::LogsEndpoint;
use super::failure::{Failure, Outcome};
use super::input::{self, group_of};
use super::rules;

/// The answer of ListTagsForResource and ListTagsLogGroup.
#[derive(Debug, Serialize)]
pub(crate) struct Tags {
    tags: BTreeMap<String, String>,
}

/// What the model demands of tags: <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_TagResource.html>
pub(crate) fn check_tags(check: &mut Check, tags: &BTreeMap<String, String>) {
    check.count(tags.len(), "tags", 1, rules::MAX_TAGS);
    for (key, value) in tags {
        check.length(key, "tags", 1, rules::MAX_TAG_KEY_CHARACTERS);
        check.pattern(key, "tags", r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]+)$", is_tag_character);
        check.length(value, "tags", 0, rules::MAX_TAG_VALUE_CHARACTERS);
        check.pattern(value, "tags", r"^([\p{L}\p{Z}\p{N}_.:/=+\-@]*)$", is_tag_character);
        // "Do not use the aws: prefix in your tag names or values because it is reserved for AWS use."
        // https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
        if key.starts_with("aws:") {
            check.wrong(key, "tags", "aws: prefixed tag key names are not allowed for external use.");
        }
    }
}

fn is_tag_character(c: char) -> bool {
    let separator = c.is_whitespace() && !c.is_control();
    c.is_alphabetic() || c.is_numeric() || separator || "_.:/=+-@".contains(c)
}

impl LogsEndpoint {
    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_TagResource.html>
    pub(crate) fn tag_resource(&self, input: &input::TagResource<'_>) -> Outcome<()> {
        let mut check = Check::default();
        let arn = check.required(input.resource_arn.as_deref(), "resourceArn");
        match &input.tags {
            None => check.missing("tags"),
            Some(tags) => check_tags(&mut check, tags),
        }
        check.end(self.undocumented.all_violations)?;
        let name = self.tagged(arn)?;
        let mut held = self.store.lock();
        let group = held.group(name)?;
        let mut tags = group.tags.clone();
        tags.extend(input.tags.clone().unwrap_or_default());
        if tags.len() > rules::MAX_TAGS {
            return Err(Failure::new("TooManyTagsException", "A resource can have no more than 50 tags."));
        }
        group.tags = tags;
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_UntagResource.html>
    pub(crate) fn untag_resource(&self, input: &input::UntagResource<'_>) -> Outcome<()> {
        let mut check = Check::default();
        let arn = check.required(input.resource_arn.as_deref(), "resourceArn");
        match &input.tag_keys {
            None => check.missing("tagKeys"),
            Some(keys) => check.count(keys.len(), "tagKeys", 0, rules::MAX_TAGS),
        }
        check.end(self.undocumented.all_violations)?;
        let mut held = self.store.lock();
        let group = held.group(self.tagged(arn)?)?;
        group.tags.retain(|key, _| !input.tag_keys.as_ref().is_some_and(|keys| keys.contains(key)));
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_ListTagsForResource.html>
    pub(crate) fn list_tags_for_resource(&self, input: &input::Resource<'_>) -> Outcome<Tags> {
        let mut check = Check::default();
        let arn = check.required(input.resource_arn.as_deref(), "resourceArn");
        check.end(self.undocumented.all_violations)?;
        let tags = self.store.lock().group(self.tagged(arn)?)?.tags.clone();
        Ok(Tags { tags })
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_ListTagsLogGroup.html>
    pub(crate) fn list_tags_log_group(&self, input: &input::Group<'_>) -> Outcome<Tags> {
        let tags = self.store.lock().group(self.group_name(input)?)?.tags.clone();
        Ok(Tags { tags })
    }

    /// The log group of an ARN, which here has no `:*` at its end.
    fn tagged<'n>(&self, arn: &'n str) -> Outcome<&'n str> {
        let name = group_of(arn);
        if self.arn(name) != arn || !name.chars().all(is_group_character) {
            return Err(Failure::invalid(format!(
                "The ARN of a log group looks like {}, without :* at its end; not like {arn}",
                self.arn("NAME")
            )));
        }
        Ok(name)
    }
}
