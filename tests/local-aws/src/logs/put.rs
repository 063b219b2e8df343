//! PutLogEvents.
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::check::Check;
use super::clock::millis;
use super::endpoint::LogsEndpoint;
use super::entity;
use super::failure::{Failure, Outcome};
use super::input::{InputLogEvent, PutLogEvents};
use super::rules;
use super::store::Call;
use crate::Reject;

/// Where AWS does not say how it behaves, or does not say it clearly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undocumented {
    /// Whether log group and stream are looked for before the events are checked.
    pub existence_first: bool,
    /// Whether events that are both too old and past the retention set both indexes, or only the one that reaches further.
    pub both_old_indexes: bool,
    /// Whether a refusal names all violations of a request, or the first.
    pub all_violations: bool,
    /// The largest event with its overhead: [`rules::MAX_EVENT_BYTES`], or 262,144 as it was before April 2025.
    pub max_event_bytes: usize,
}

impl Default for Undocumented {
    fn default() -> Self {
        Self {
            existence_first: false,
            both_old_indexes: true,
            all_violations: true,
            max_event_bytes: rules::MAX_EVENT_BYTES,
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    /// Of no use, and still sent.
    next_sequence_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_log_events_info: Option<Rejected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_entity_info: Option<RejectedEntity>,
}

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_RejectedLogEventsInfo.html>
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rejected {
    #[serde(skip_serializing_if = "Option::is_none")]
    too_new_log_event_start_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_old_log_event_end_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_log_event_end_index: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedEntity {
    error_type: &'static str,
}

/// One event, checked.
type Message<'e> = (i64, &'e str);

impl LogsEndpoint {
    pub(crate) fn put_log_events(
        &self,
        input: &PutLogEvents<'_>,
        log_format: Option<&str>,
        reject: Option<&Reject>,
    ) -> Outcome<Accepted> {
        let unsaid = &self.undocumented;
        let mut check = Check::default();
        let group = check.group(input.log_group_name.as_deref());
        let stream = check.stream(input.log_stream_name.as_deref());
        if let Some(token) = &input.sequence_token {
            check.length(token, "sequenceToken", 1, usize::MAX);
        }
        if unsaid.existence_first {
            check.end(unsaid.all_violations)?;
            self.store.lock().group(group)?.stream(stream)?;
            check = Check::default();
        }
        let events = messages(&mut check, input.log_events.as_deref());
        check.end(unsaid.all_violations)?;
        let bytes = check_volume(&events, unsaid)?;
        if !events.is_sorted_by_key(|event| event.0) {
            return Err(Failure::invalid(
                "Log events in a single PutLogEvents request must be in chronological order.",
            ));
        }

        let now = self.clock.now();
        let mut held = self.store.lock();
        let retention_days = held.group(group)?.retention_days;
        held.group(group)?.stream(stream)?;
        let (taken, rejected) = sort_out(&events, now, retention_days, reject, unsaid.both_old_indexes);
        let valid = events.get(taken).unwrap_or_default();
        if let (Some(first), Some(last)) = (valid.first(), valid.last())
            && last.0 - first.0 > millis(rules::MAX_CALL_SPAN)
        {
            return Err(Failure::invalid(
                "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.",
            ));
        }
        let entity_error =
            reject.and_then(|reject| reject.entity).or_else(|| input.entity.as_ref().and_then(entity::fault_of));

        held.calls += 1;
        let number = held.calls;
        let call = (!self.discard).then(|| {
            let entity = input.entity.as_ref().filter(|_| entity_error.is_none());
            let (marks, text) = pack(valid);
            Arc::new(Call {
                number,
                group: group.to_owned(),
                stream: stream.to_owned(),
                ingested: now,
                log_format: log_format.map(str::to_owned),
                entity: entity.map(|entity| {
                    [entity.key_attributes.clone(), entity.attributes.clone()].map(Option::unwrap_or_default)
                }),
                marks,
                text,
            })
        });
        held.accepted.extend(call.clone());
        let stream = held.group(group)?.stream(stream)?;
        stream.events += valid.len() as u64;
        stream.message_bytes += valid.iter().map(|event| event.1.len() as u64).sum::<u64>();
        if let (Some(first), Some(last)) = (valid.first(), valid.last()) {
            stream.first_event = Some(stream.first_event.map_or(first.0, |known| known.min(first.0)));
            stream.last_event = Some(stream.last_event.map_or(last.0, |known| known.max(last.0)));
            stream.last_ingestion = Some(now);
        }
        stream.calls.extend(call);
        drop(held);

        self.requests.count(events.len(), bytes);
        Ok(Accepted {
            next_sequence_token: format!("{number:056}"),
            rejected_log_events_info: Some(rejected).filter(|rejected| *rejected != Rejected::default()),
            rejected_entity_info: entity_error.map(|error_type| RejectedEntity { error_type }),
        })
    }
}

/// The events with what the model demands of each.
fn messages<'e>(check: &mut Check, events: Option<&'e [InputLogEvent<'_>]>) -> Vec<Message<'e>> {
    let Some(events) = events else {
        check.missing("logEvents");
        return Vec::new();
    };
    check.count(events.len(), "logEvents", 1, rules::MAX_CALL_EVENTS);
    let mut messages = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        // Its place is written only where something is wrong: there may be 10,000 of them.
        let place = |member: &str| format!("logEvents.{}.member.{member}", index + 1);
        match &event.message {
            None => check.missing(&place("message")),
            Some(message) if message.is_empty() => check.length("", &place("message"), 1, usize::MAX),
            Some(_) => {}
        }
        match event.timestamp {
            None => check.missing(&place("timestamp")),
            Some(time) if time < 0 => check.time(Some(time), &place("timestamp")),
            Some(_) => {}
        }
        messages.push((event.timestamp.unwrap_or_default(), event.message.as_deref().unwrap_or_default()));
    }
    messages
}

/// Bytes of the call, as AWS counts them.
fn check_volume(events: &[Message<'_>], unsaid: &Undocumented) -> Outcome<usize> {
    let mut bytes = 0;
    for (_, message) in events {
        let size = message.len() + rules::EVENT_OVERHEAD_BYTES;
        if size > unsaid.max_event_bytes {
            let most = unsaid.max_event_bytes;
            return Err(Failure::invalid(format!("Log event too large: {size} bytes exceeds limit of {most}")));
        }
        bytes += size;
    }
    if bytes > rules::MAX_CALL_BYTES {
        let most = rules::MAX_CALL_BYTES;
        return Err(Failure::invalid(format!("Upload too large: {bytes} bytes exceeds limit of {most}")));
    }
    Ok(bytes)
}

/// Which events are taken, of those in chronological order, and what is said about the others.
fn sort_out(
    events: &[Message<'_>],
    now: i64,
    retention_days: Option<i64>,
    reject: Option<&Reject>,
    both_old_indexes: bool,
) -> (Range<usize>, Rejected) {
    let demanded = reject.cloned().unwrap_or_default();
    let older_than = |limit: i64| events.partition_point(|event| event.0 < limit);
    let too_old = older_than(now - millis(rules::MAX_AGE)).max(demanded.too_old.min(events.len()));
    let expired = retention_days.map_or(0, |days| older_than(now - days * 86_400_000));
    let expired = expired.max(demanded.expired.min(events.len()));
    let too_new = events.partition_point(|event| event.0 <= now + millis(rules::MAX_AHEAD));
    let too_new = too_new.min(events.len().saturating_sub(demanded.too_new));
    let begin = too_old.max(expired);
    let shown = |end: usize| Some(end).filter(|end| *end > 0 && (both_old_indexes || *end == begin));
    let rejected = Rejected {
        too_new_log_event_start_index: Some(too_new).filter(|start| *start < events.len()),
        too_old_log_event_end_index: shown(too_old),
        expired_log_event_end_index: shown(expired).filter(|_| both_old_indexes || too_old < begin),
    };
    (begin..too_new.max(begin), rejected)
}

/// Times and ends, and all messages one behind the other.
fn pack(events: &[Message<'_>]) -> (Vec<(i64, usize)>, String) {
    let mut text = String::with_capacity(events.iter().map(|event| event.1.len()).sum());
    let mut marks = Vec::with_capacity(events.len());
    for (time, message) in events {
        text.push_str(message);
        marks.push((*time, text.len()));
    }
    (marks, text)
}
