//! The limits of CloudWatch Logs, each with the AWS page that it is from. An end-to-end test holds those that AWS publishes for machines
//! against the service description that comes with botocore.

use std::time::Duration;

/// A call of PutLogEvents: "The maximum batch size is 1,048,576 bytes."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const MAX_CALL_BYTES: usize = 1_048_576;

/// "This size is calculated as the sum of all event messages in UTF-8, plus 26 bytes for each log event."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const EVENT_OVERHEAD_BYTES: usize = 26;

/// "The maximum number of log events in a batch is 10,000."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const MAX_CALL_EVENTS: usize = 10_000;

/// "Each log event can be no larger than 1 MB." Since April 2025; it was 256 KB before. Counted with its overhead, as a call of one event is.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
pub const MAX_EVENT_BYTES: usize = 1_048_576;

/// "For valid events (within 14 days in the past to 2 hours in future), the time span in a single batch cannot exceed 24 hours.
/// Otherwise, the operation fails."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const MAX_CALL_SPAN: Duration = Duration::from_secs(24 * 3600);

/// "Events older than 14 days or preceding the log group's retention period are rejected while processing remaining valid events."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const MAX_AGE: Duration = Duration::from_secs(14 * 86_400);

/// "Events more than 2 hours in the future are rejected while processing remaining valid events."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>
pub const MAX_AHEAD: Duration = Duration::from_secs(2 * 3600);

/// "Log group names can be between 1 and 512 characters long."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const MAX_GROUP_NAME_CHARACTERS: usize = 512;

/// What a log group's name is made of.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html#API_CreateLogGroup_RequestSyntax>
pub const GROUP_NAME_PATTERN: &str = r"[\.\-_/#A-Za-z0-9]+";

/// "Log group names can't start with the string `aws/`".
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const RESERVED_GROUP_PREFIX: &str = "aws/";

/// "Log stream names can be between 1 and 512 characters long."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>
pub const MAX_STREAM_NAME_CHARACTERS: usize = 512;

/// "Don't use ':' (colon) or '*' (asterisk) characters."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>
pub const STREAM_NAME_PATTERN: &str = "[^:*]*";

/// Log classes. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const CLASSES: &[&str] = &["STANDARD", "INFREQUENT_ACCESS", "DELIVERY", "ESSENTIALS"];

/// The class of a log group for which none was named. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const DEFAULT_CLASS: &str = "STANDARD";

/// "Possible values are: …". <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html>
pub const RETENTION_DAYS: &[i64] =
    &[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653];

/// "You can associate as many as 50 tags with a CloudWatch Logs resource."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_TagResource.html>
pub const MAX_TAGS: usize = 50;

/// A tag's key. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_TagResource.html>
pub const MAX_TAG_KEY_CHARACTERS: usize = 128;

/// A tag's value. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_TagResource.html>
pub const MAX_TAG_VALUE_CHARACTERS: usize = 256;

/// A KMS key's name. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const MAX_KMS_KEY_CHARACTERS: usize = 256;

/// "You can create up to 1,000,000 log groups per Region per account."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html>
pub const MAX_GROUPS: usize = 1_000_000;

/// PutLogEvents: requests a second for each account and Region, which AWS raises on request.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html>
pub const PUT_LOG_EVENTS_PER_SECOND: u32 = 5000;

/// "There is a limit of 50 TPS on CreateLogStream operations, after which transactions are throttled."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>
pub const CREATE_LOG_STREAM_PER_SECOND: u32 = 50;

/// "This operation has a limit of 25 transactions per second, after which transactions are throttled."
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogStreams.html>
pub const DESCRIBE_LOG_STREAMS_PER_SECOND: u32 = 25;

/// An answer of DescribeLogGroups or DescribeLogStreams: "the default is up to 50 items", which is the most as well.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogStreams.html>
pub const MAX_DESCRIBED: usize = 50;

/// A page of GetLogEvents or FilterLogEvents: "up to 1 MB of log events or up to 10,000 log events".
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html>
pub const MAX_PAGE_EVENTS: usize = 10_000;

/// See [`MAX_PAGE_EVENTS`].
pub const MAX_PAGE_BYTES: usize = 1_048_576;

/// Streams that FilterLogEvents can be told by name.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>
pub const MAX_FILTERED_STREAMS: usize = 100;

/// A filter pattern. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>
pub const MAX_FILTER_PATTERN_CHARACTERS: usize = 1024;

/// How many `keyAttributes` an entity has.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>
pub const KEY_ATTRIBUTES: std::ops::RangeInclusive<usize> = 2..=4;

/// "There are five allowed attributes (key names)".
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>
pub const KEY_ATTRIBUTE_NAMES: &[&str] = &["Type", "ResourceType", "Identifier", "Name", "Environment"];

/// An entity's `attributes`. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>
pub const MAX_ATTRIBUTES: usize = 10;

/// The name of one of them. <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>
pub const MAX_ATTRIBUTE_NAME_CHARACTERS: usize = 256;

/// The value of a key attribute, or of another.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>
pub const MAX_ATTRIBUTE_VALUE_CHARACTERS: usize = 512;

/// Why an entity is rejected.
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_RejectedEntityInfo.html>
pub const ENTITY_ERRORS: &[&str] = &[
    "InvalidEntity",
    "InvalidTypeValue",
    "InvalidKeyAttributes",
    "InvalidAttributes",
    "EntitySizeTooLarge",
    "UnsupportedLogGroupType",
    "MissingRequiredFields",
];
