//! Log groups: making, deleting, retention, listing.

use std::ops::Bound;

use serde::Serialize;

use super::check::{Check, is_group_character};
use super::endpoint::LogsEndpoint;
use super::failure::{Failure, Outcome};
use super::input::{self, group_of};
use super::rules;
use super::store::Group;
use super::tags::check_tags;

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_LogGroup.html>
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogGroup {
    log_group_name: String,
    creation_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_in_days: Option<i64>,
    metric_filter_count: u32,
    /// With `:*` at the end.
    arn: String,
    /// Without.
    log_group_arn: String,
    stored_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<String>,
    log_group_class: String,
    deletion_protection_enabled: bool,
}

/// The answer of DescribeLogGroups.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogGroups {
    log_groups: Vec<LogGroup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

impl LogsEndpoint {
    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
    pub(crate) fn create_log_group(&self, input: &input::CreateLogGroup<'_>) -> Outcome<()> {
        let mut check = Check::default();
        let name = check.group(input.log_group_name.as_deref());
        if let Some(key) = &input.kms_key_id {
            check.length(key, "kmsKeyId", 0, rules::MAX_KMS_KEY_CHARACTERS);
        }
        let class = input.log_group_class.as_deref().unwrap_or(rules::DEFAULT_CLASS);
        check.one_of(class, "logGroupClass", rules::CLASSES);
        let tags = input.tags.clone().unwrap_or_default();
        if input.tags.is_some() {
            check_tags(&mut check, &tags);
        }
        check.end(self.undocumented.all_violations)?;
        if name.starts_with(rules::RESERVED_GROUP_PREFIX) {
            return Err(Failure::invalid(format!(
                "Log groups starting with {} are reserved for AWS.",
                rules::RESERVED_GROUP_PREFIX
            )));
        }
        let mut held = self.store.lock();
        if held.groups.contains_key(name) {
            return Err(Failure::new("ResourceAlreadyExistsException", "The specified log group already exists"));
        }
        if held.groups.len() >= self.max_groups {
            return Err(Failure::new("LimitExceededException", "Resource limit exceeded."));
        }
        let group = Group {
            created: self.clock.now(),
            class: class.to_owned(),
            kms_key_id: input.kms_key_id.as_deref().map(str::to_owned),
            tags,
            protected: input.deletion_protection_enabled == Some(true),
            ..Group::default()
        };
        held.groups.insert(name.to_owned(), group);
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DeleteLogGroup.html>
    pub(crate) fn delete_log_group(&self, input: &input::Group<'_>) -> Outcome<()> {
        let name = self.group_name(input)?;
        let mut held = self.store.lock();
        if held.group(name)?.protected {
            return Err(Failure::new("ValidationException", "The log group is protected against deletion."));
        }
        held.groups.remove(name);
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html>
    pub(crate) fn put_retention_policy(&self, input: &input::PutRetentionPolicy<'_>) -> Outcome<()> {
        let mut check = Check::default();
        let name = check.group(input.log_group_name.as_deref());
        let days = input.retention_in_days.unwrap_or_default();
        if input.retention_in_days.is_none() {
            check.missing("retentionInDays");
        } else if !rules::RETENTION_DAYS.contains(&days) {
            let allowed: Vec<String> = rules::RETENTION_DAYS.iter().map(i64::to_string).collect();
            check.one_of(&days.to_string(), "retentionInDays", &allowed.iter().map(String::as_str).collect::<Vec<_>>());
        }
        check.end(self.undocumented.all_violations)?;
        self.store.lock().group(name)?.retention_days = Some(days);
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DeleteRetentionPolicy.html>
    pub(crate) fn delete_retention_policy(&self, input: &input::Group<'_>) -> Outcome<()> {
        self.store.lock().group(self.group_name(input)?)?.retention_days = None;
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogGroups.html>
    pub(crate) fn describe_log_groups(&self, input: &input::DescribeLogGroups<'_>) -> Outcome<LogGroups> {
        let mut check = Check::default();
        let limit = check.limit(input.limit, rules::MAX_DESCRIBED);
        if let Some(prefix) = &input.log_group_name_prefix {
            check.group(Some(prefix));
        }
        if let Some(part) = &input.log_group_name_pattern {
            check.length(part, "logGroupNamePattern", 0, rules::MAX_GROUP_NAME_CHARACTERS);
            check.pattern(part, "logGroupNamePattern", r"[\.\-_/#A-Za-z0-9]*", is_group_character);
        }
        if let Some(class) = &input.log_group_class {
            check.one_of(class, "logGroupClass", rules::CLASSES);
        }
        check.end(self.undocumented.all_violations)?;
        if input.log_group_name_prefix.is_some() && input.log_group_name_pattern.is_some() {
            return Err(Failure::invalid("logGroupNamePrefix and logGroupNamePattern are mutually exclusive."));
        }
        if input.account_identifiers.is_some() || input.include_linked_accounts == Some(true) {
            return Err(Failure::invalid("This server knows of no linked accounts."));
        }
        let prefix = input.log_group_name_prefix.as_deref().unwrap_or_default();
        let part = input.log_group_name_pattern.as_deref().unwrap_or_default();
        let wanted = |name: &str, group: &Group| {
            name.starts_with(prefix)
                && name.contains(part)
                && input.log_group_class.as_deref().is_none_or(|class| class == group.class)
                && input.log_group_identifiers.as_ref().is_none_or(|all| all.iter().any(|one| group_of(one) == name))
        };
        let held = self.store.lock();
        // A token is the name that came last.
        let from = input.next_token.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut found =
            held.groups.range::<str, _>((from, Bound::Unbounded)).filter(|(name, group)| wanted(name, group));
        let log_groups: Vec<LogGroup> =
            found.by_ref().take(limit).map(|(name, group)| self.describe_group(name, group)).collect();
        let more = found.next().is_some();
        let next_token = log_groups.last().filter(|_| more).map(|last| last.log_group_name.clone());
        Ok(LogGroups { log_groups, next_token })
    }

    fn describe_group(&self, name: &str, group: &Group) -> LogGroup {
        let log_group_arn = self.arn(name);
        LogGroup {
            log_group_name: name.to_owned(),
            creation_time: group.created,
            retention_in_days: group.retention_days,
            metric_filter_count: 0,
            arn: format!("{log_group_arn}:*"),
            log_group_arn,
            stored_bytes: group.streams.values().map(|stream| stream.message_bytes + 26 * stream.events).sum(),
            kms_key_id: group.kms_key_id.clone(),
            log_group_class: group.class.clone(),
            deletion_protection_enabled: group.protected,
        }
    }
    /// A name, checked.
    pub(crate) fn group_name<'n>(&self, input: &'n input::Group<'_>) -> Outcome<&'n str> {
        let mut check = Check::default();
        let name = check.group(input.log_group_name.as_deref());
        check.end(self.undocumented.all_violations)?;
        Ok(name)
    }
    /// The log group that a reader means: by name or by identifier, one of the two.
    pub(crate) fn group_meant<'n>(&self, name: Option<&'n str>, identifier: Option<&'n str>) -> Outcome<&'n str> {
        let name = match (name, identifier) {
            (Some(name), None) => name,
            (None, Some(identifier)) => group_of(identifier),
            _ => return Err(Failure::invalid("Exactly one of logGroupName and logGroupIdentifier must be given.")),
        };
        let mut check = Check::default();
        check.group(Some(name));
        check.end(self.undocumented.all_violations)?;
        Ok(name)
    }
    /// Makes a group as somebody else could, by the same rules.
    pub(crate) fn place_group(&self, name: &str) -> Outcome<()> {
        let input = input::CreateLogGroup { log_group_name: Some(name.into()), ..input::CreateLogGroup::default() };
        self.create_log_group(&input)
    }
}
