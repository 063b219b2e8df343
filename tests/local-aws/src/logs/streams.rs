//! Log streams: making, deleting, listing.

use serde::Serialize;

use super::check::Check;
use super::endpoint::LogsEndpoint;
use super::failure::{Failure, Outcome};
use super::input;
use super::rules;
use super::store::Stream;

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_LogStream.html>
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogStream {
    log_stream_name: String,
    creation_time: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_event_timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_ingestion_time: Option<i64>,
    arn: String,
    /// "Starting on June 17, 2019, this parameter … will be reported as zero."
    stored_bytes: u64,
}

/// The answer of DescribeLogStreams.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogStreams {
    log_streams: Vec<LogStream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

impl LogsEndpoint {
    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>
    pub(crate) fn create_log_stream(&self, input: &input::Stream<'_>) -> Outcome<()> {
        let (group, name) = self.stream_names(input)?;
        let mut held = self.store.lock();
        let group = held.group(group)?;
        if group.streams.contains_key(name) {
            return Err(Failure::new("ResourceAlreadyExistsException", "The specified log stream already exists"));
        }
        let stream = Stream { created: self.clock.now(), ..Stream::default() };
        group.streams.insert(name.to_owned(), stream);
        Ok(())
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DeleteLogStream.html>
    pub(crate) fn delete_log_stream(&self, input: &input::Stream<'_>) -> Outcome<()> {
        let (group, name) = self.stream_names(input)?;
        let mut held = self.store.lock();
        held.group(group)?.streams.remove(name).map(drop).ok_or_else(Failure::no_stream)
    }

    /// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogStreams.html>
    pub(crate) fn describe_log_streams(&self, input: &input::DescribeLogStreams<'_>) -> Outcome<LogStreams> {
        let mut check = Check::default();
        let limit = check.limit(input.limit, rules::MAX_DESCRIBED);
        let order = input.order_by.as_deref().unwrap_or("LogStreamName");
        check.one_of(order, "orderBy", &["LogStreamName", "LastEventTime"]);
        if let Some(prefix) = &input.log_stream_name_prefix {
            check.stream_at(prefix, "logStreamNamePrefix");
        }
        check.end(self.undocumented.all_violations)?;
        let by_time = order == "LastEventTime";
        if by_time && input.log_stream_name_prefix.is_some() {
            return Err(Failure::invalid("Cannot order by LastEventTime with a logStreamNamePrefix."));
        }
        let group = self.group_meant(input.log_group_name.as_deref(), input.log_group_identifier.as_deref())?;
        // A token is how many came before.
        let skipped = match input.next_token.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(skipped)) => skipped,
            Some(Err(_)) => return Err(Failure::invalid("The specified nextToken is invalid.")),
        };
        let prefix = input.log_stream_name_prefix.as_deref().unwrap_or_default();
        let mut held = self.store.lock();
        let mut found: Vec<_> =
            held.group(group)?.streams.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        if by_time {
            found.sort_by_key(|(_, stream)| stream.last_event);
        }
        if input.descending == Some(true) {
            found.reverse();
        }
        let shown = found.iter().skip(skipped).take(limit).map(|(name, stream)| LogStream {
            log_stream_name: (*name).clone(),
            creation_time: stream.created,
            first_event_timestamp: stream.first_event,
            last_event_timestamp: stream.last_event,
            last_ingestion_time: stream.last_ingestion,
            arn: format!("{}:log-stream:{name}", self.arn(group)),
            stored_bytes: 0,
        });
        let log_streams: Vec<_> = shown.collect();
        let behind = skipped.saturating_add(log_streams.len());
        let next_token = (behind < found.len()).then(|| behind.to_string());
        Ok(LogStreams { log_streams, next_token })
    }

    fn stream_names<'n>(&self, input: &'n input::Stream<'_>) -> Outcome<(&'n str, &'n str)> {
        let mut check = Check::default();
        let group = check.group(input.log_group_name.as_deref());
        let stream = check.stream(input.log_stream_name.as_deref());
        check.end(self.undocumented.all_violations)?;
        Ok((group, stream))
    }
}
