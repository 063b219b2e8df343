//! What log groups are like that Wharf makes. Rules of
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>.

use wharf_plugin::{Faults, listed};

use crate::config::Config;
use crate::names::{CLASSES, RETENTION_DAYS};

/// AWS takes so many tags of a log group.
const MAX_TAGS: usize = 50;

/// Whether missing log groups are made, and what they are like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewGroup {
    /// Whether they are made at all.
    pub create: bool,
    /// Their class; none leaves it to the service.
    pub class: Option<String>,
    /// Their tags.
    pub tags: Vec<(String, String)>,
    /// The key that encrypts them.
    pub kms_key_id: Option<String>,
    /// Days for which they keep events; none is for ever.
    pub retention_days: Option<u32>,
}

pub(super) fn new_group(config: &Config, faults: &mut Faults) -> NewGroup {
    let class = config.log_group_class.clone().filter(|class| !class.is_empty());
    let retention_days = config.log_retention_days.filter(|days| *days != 0);
    let create = config.auto_create_group == Some(true);
    if !create {
        for (given, option) in [
            (class.is_some(), "log_group_class"),
            (retention_days.is_some(), "log_retention_days"),
            (!config.tags.is_empty(), "tags"),
            (config.kms_key_id.is_some(), "kms_key_id"),
        ] {
            if given {
                faults.add(option, "it is for log groups that Wharf makes, and so has no effect: add `auto_create_group: true` or leave it out");
            }
        }
    }
    if let Some(class) = class.as_deref().filter(|class| !CLASSES.contains(class)) {
        faults.add("log_group_class", format!("`{class}` is not known: write {}", listed(&CLASSES)));
    }
    if let Some(days) = retention_days.filter(|days| !RETENTION_DAYS.contains(days)) {
        let known: Vec<_> = RETENTION_DAYS.iter().map(u32::to_string).collect();
        faults.add(
            "log_retention_days",
            format!("AWS does not take {days} days: write 0 (for ever), {}", known.join(", ")),
        );
    }
    check_tags(config, faults);
    if let Some(key) = config.kms_key_id.as_deref().filter(|key| !is_key(key)) {
        faults.add(
            "kms_key_id",
            format!("`{key}` is no KMS key that a log group can have: write its ARN, as in `arn:aws:kms:us-east-1:123456789012:key/…`"),
        );
    }
    NewGroup {
        create,
        class,
        tags: config.tags.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        kms_key_id: config.kms_key_id.clone(),
        retention_days,
    }
}

/// Lengths and letters as in AWS's service model: `^([\p{L}\p{Z}\p{N}_.:/=+\-@]+)$`.
fn check_tags(config: &Config, faults: &mut Faults) {
    if config.tags.len() > MAX_TAGS {
        faults.add("tags", format!("{} tags: AWS takes {MAX_TAGS}", config.tags.len()));
    }
    let odd =
        |text: &str| text.chars().find(|c| !c.is_alphanumeric() && !c.is_whitespace() && !"_.:/=+-@".contains(*c));
    for (name, value) in &config.tags {
        if !(1..=128).contains(&name.chars().count()) {
            faults.add("tags", format!("the name `{name}`: AWS takes 1 to 128 characters"));
        }
        if name.to_ascii_lowercase().starts_with("aws:") {
            faults.add("tags", format!("the name `{name}`: names that begin with `aws:` are AWS's own"));
        }
        if value.chars().count() > 256 {
            faults.add("tags", format!("the value of `{name}`: AWS takes 256 characters"));
        }
        if let Some(c) = odd(name).or_else(|| odd(value)) {
            faults.add(
                "tags",
                format!("`{name}`: {c:?} is not allowed; AWS takes letters, digits, blanks and `_.:/=+-@`"),
            );
        }
    }
}

/// An ARN of a key, or a key's id: a UUID, or `mrk-` and 32 hexadecimal digits.
fn is_key(text: &str) -> bool {
    let id = |text: &str| {
        let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.strip_prefix("mrk-") {
            Some(rest) => rest.len() == 32 && hexadecimal(rest),
            None => text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.split('-').all(hexadecimal),
        }
    };
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", partition, "kms", region, account, key] => {
            partition.starts_with("aws")
                && !region.is_empty()
                && account.len() == 12
                && account.bytes().all(|byte| byte.is_ascii_digit())
                && key.strip_prefix("key/").is_some_and(id)
        }
        _ => id(text),
    }
}
