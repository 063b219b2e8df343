//! Requests as they come, read strictly: an unknown member is an error, as it is a mistake of the client. Strings are borrowed from the
//! request's body where it has no escapes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;

use serde::Deserialize;

use super::failure::{Failure, Outcome};
use crate::Operation;

/// A string, borrowed where it has no escapes. As a type of its own, since serde borrows no `Cow` inside an `Option`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// A string that a request may have.
pub(crate) type Text<'a> = Option<Str<'a>>;

/// PutLogEvents.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct PutLogEvents<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_stream_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_events: Option<Vec<InputLogEvent<'a>>>,
    #[serde(borrow)]
    pub(crate) sequence_token: Text<'a>,
    pub(crate) entity: Option<Entity>,
}

/// One event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputLogEvent<'a> {
    pub(crate) timestamp: Option<i64>,
    #[serde(borrow)]
    pub(crate) message: Text<'a>,
}

/// What events are about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Entity {
    pub(crate) key_attributes: Option<BTreeMap<String, String>>,
    pub(crate) attributes: Option<BTreeMap<String, String>>,
}

/// CreateLogGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreateLogGroup<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) kms_key_id: Text<'a>,
    pub(crate) tags: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    pub(crate) log_group_class: Text<'a>,
    pub(crate) deletion_protection_enabled: Option<bool>,
}

/// DeleteLogGroup, DeleteRetentionPolicy, ListTagsLogGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Group<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
}

/// CreateLogStream, DeleteLogStream.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Stream<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_stream_name: Text<'a>,
}

/// PutRetentionPolicy.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct PutRetentionPolicy<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    pub(crate) retention_in_days: Option<i64>,
}

/// DescribeLogGroups.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DescribeLogGroups<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name_prefix: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_group_name_pattern: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_group_class: Text<'a>,
    pub(crate) log_group_identifiers: Option<Vec<String>>,
    pub(crate) account_identifiers: Option<Vec<String>>,
    pub(crate) include_linked_accounts: Option<bool>,
    #[serde(borrow)]
    pub(crate) next_token: Text<'a>,
    pub(crate) limit: Option<i64>,
}

/// DescribeLogStreams.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DescribeLogStreams<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_group_identifier: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_stream_name_prefix: Text<'a>,
    #[serde(borrow)]
    pub(crate) order_by: Text<'a>,
    pub(crate) descending: Option<bool>,
    #[serde(borrow)]
    pub(crate) next_token: Text<'a>,
    pub(crate) limit: Option<i64>,
}

/// GetLogEvents.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct GetLogEvents<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_group_identifier: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_stream_name: Text<'a>,
    pub(crate) start_time: Option<i64>,
    pub(crate) end_time: Option<i64>,
    #[serde(borrow)]
    pub(crate) next_token: Text<'a>,
    pub(crate) limit: Option<i64>,
    pub(crate) start_from_head: Option<bool>,
    pub(crate) unmask: Option<bool>,
}

/// FilterLogEvents.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct FilterLogEvents<'a> {
    #[serde(borrow)]
    pub(crate) log_group_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) log_group_identifier: Text<'a>,
    pub(crate) log_stream_names: Option<Vec<String>>,
    #[serde(borrow)]
    pub(crate) log_stream_name_prefix: Text<'a>,
    pub(crate) start_time: Option<i64>,
    pub(crate) end_time: Option<i64>,
    #[serde(borrow)]
    pub(crate) filter_pattern: Text<'a>,
    #[serde(borrow)]
    pub(crate) next_token: Text<'a>,
    pub(crate) limit: Option<i64>,
    pub(crate) start_from_head: Option<bool>,
    pub(crate) interleaved: Option<bool>,
    pub(crate) unmask: Option<bool>,
}

/// TagResource.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct TagResource<'a> {
    #[serde(borrow)]
    pub(crate) resource_arn: Text<'a>,
    pub(crate) tags: Option<BTreeMap<String, String>>,
}

/// UntagResource.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct UntagResource<'a> {
    #[serde(borrow)]
    pub(crate) resource_arn: Text<'a>,
    pub(crate) tag_keys: Option<Vec<String>>,
}

/// ListTagsForResource.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Resource<'a> {
    #[serde(borrow)]
    pub(crate) resource_arn: Text<'a>,
}

/// A request, read.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    PutLogEvents(PutLogEvents<'a>),
    CreateLogGroup(CreateLogGroup<'a>),
    CreateLogStream(Stream<'a>),
    DeleteLogGroup(Group<'a>),
    DeleteLogStream(Stream<'a>),
    PutRetentionPolicy(PutRetentionPolicy<'a>),
    DeleteRetentionPolicy(Group<'a>),
    DescribeLogGroups(DescribeLogGroups<'a>),
    DescribeLogStreams(DescribeLogStreams<'a>),
    GetLogEvents(GetLogEvents<'a>),
    FilterLogEvents(FilterLogEvents<'a>),
    TagResource(TagResource<'a>),
    UntagResource(UntagResource<'a>),
    ListTagsForResource(Resource<'a>),
    ListTagsLogGroup(Group<'a>),
}

impl<'a> Input<'a> {
    /// Reads a request's body. `target` is what the client called it.
    pub(crate) fn read(operation: Operation, target: &str, body: &'a [u8]) -> Outcome<Self> {
        macro_rules! read {
            ($($name:ident),*) => {
                match operation {
                    $(Operation::$name => serde_json::from_slice(body).map(Self::$name),)*
                    _ => {
                        let known = "this server has no such operation of CloudWatch Logs";
                        return Err(Failure::new("UnknownOperationException", format!("{known}: {target}")));
                    }
                }
            };
        }
        let read = read!(
            PutLogEvents,
            CreateLogGroup,
            CreateLogStream,
            DeleteLogGroup,
            DeleteLogStream,
            PutRetentionPolicy,
            DeleteRetentionPolicy,
            DescribeLogGroups,
            DescribeLogStreams,
            GetLogEvents,
            FilterLogEvents,
            TagResource,
            UntagResource,
            ListTagsForResource,
            ListTagsLogGroup
        );
        read.map_err(|cause| Failure::new("SerializationException", format!("the request cannot be read: {cause}")))
    }
    /// Log group and log stream that it names; empty where it names none.
    pub(crate) fn names(&self) -> (&str, &str) {
        fn named<'t>(text: &'t Text<'_>) -> &'t str {
            text.as_deref().unwrap_or_default()
        }
        fn either<'t>(name: &'t Text<'_>, identifier: &'t Text<'_>) -> &'t str {
            name.as_deref().or(identifier.as_deref()).map_or("", group_of)
        }
        match self {
            Self::PutLogEvents(input) => (named(&input.log_group_name), named(&input.log_stream_name)),
            Self::CreateLogGroup(input) => (named(&input.log_group_name), ""),
            Self::CreateLogStream(input) | Self::DeleteLogStream(input) => {
                (named(&input.log_group_name), named(&input.log_stream_name))
            }
            Self::DeleteLogGroup(input) | Self::DeleteRetentionPolicy(input) | Self::ListTagsLogGroup(input) => {
                (named(&input.log_group_name), "")
            }
            Self::PutRetentionPolicy(input) => (named(&input.log_group_name), ""),
            Self::DescribeLogGroups(input) => (named(&input.log_group_name_prefix), ""),
            Self::DescribeLogStreams(input) => (either(&input.log_group_name, &input.log_group_identifier), ""),
            Self::GetLogEvents(input) => {
                (either(&input.log_group_name, &input.log_group_identifier), named(&input.log_stream_name))
            }
            Self::FilterLogEvents(input) => (either(&input.log_group_name, &input.log_group_identifier), ""),
            Self::TagResource(input) => (group_of(named(&input.resource_arn)), ""),
            Self::UntagResource(input) => (group_of(named(&input.resource_arn)), ""),
            Self::ListTagsForResource(input) => (group_of(named(&input.resource_arn)), ""),
        }
    }
    /// Events, and their bytes as AWS counts them, of PutLogEvents.
    pub(crate) fn volume(&self) -> (usize, usize) {
        let Self::PutLogEvents(PutLogEvents { log_events: Some(events), .. }) = self else {
            return (0, 0);
        };
        let bytes = events.iter().map(|event| event.message.as_deref().unwrap_or_default().len());
        (events.len(), bytes.sum::<usize>() + events.len() * super::rules::EVENT_OVERHEAD_BYTES)
    }
}

/// The log group's name in an identifier, which is a name or `arn:aws:logs:REGION:ACCOUNT:log-group:NAME`.
pub(crate) fn group_of(identifier: &str) -> &str {
    if identifier.starts_with("arn:") { identifier.splitn(7, ':').nth(6).unwrap_or_default() } else { identifier }
}
