//! GetLogEvents: a stream's events in the order of their times, by pages in both directions.
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html>

use std::sync::Arc;

use serde::Serialize;
use serde::ser::Serializer;

use super::check::Check;
use super::endpoint::LogsEndpoint;
use super::failure::{Failure, Outcome};
use super::input::GetLogEvents;
use super::rules;
use super::store::{Call, Place};

/// An event that is shown, and where it lies.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) call: Arc<Call>,
    pub(crate) index: usize,
}

impl Shown {
    pub(crate) fn place(&self) -> Place {
        (self.call.event(self.index).0, self.call.number, self.index)
    }
    /// Bytes that it takes of a page.
    pub(crate) fn size(&self) -> usize {
        self.call.event(self.index).1.len() + rules::EVENT_OVERHEAD_BYTES
    }
}

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_OutputLogEvent.html>
impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct OutputLogEvent<'e> {
            timestamp: i64,
            message: &'e str,
            ingestion_time: i64,
        }
        let (timestamp, message) = self.call.event(self.index);
        OutputLogEvent { timestamp, message, ingestion_time: self.call.ingested }.serialize(serializer)
    }
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    events: Vec<Shown>,
    next_forward_token: String,
    next_backward_token: String,
}

/// A place as text, of 56 digits.
pub(crate) fn token_of(place: Place) -> String {
    format!("{:020}{:020}{:016}", place.0, place.1, place.2)
}

/// The place of such a text.
pub(crate) fn place_of(token: &str) -> Outcome<Place> {
    let part = |from: usize, to: usize| token.get(from..to).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let read = || {
        Some((part(0, 20)?.parse().ok()?, part(20, 40)?.parse().ok()?, part(40, token.len().max(56))?.parse().ok()?))
    };
    read().ok_or_else(|| Failure::invalid("The specified nextToken is invalid."))
}

impl LogsEndpoint {
    pub(crate) fn get_log_events(&self, input: &GetLogEvents<'_>) -> Outcome<Page> {
        let mut check = Check::default();
        let stream = check.stream(input.log_stream_name.as_deref());
        let limit = check.limit(input.limit, rules::MAX_PAGE_EVENTS);
        check.time(input.start_time, "startTime");
        check.time(input.end_time, "endTime");
        check.end(self.undocumented.all_violations)?;
        let group = self.group_meant(input.log_group_name.as_deref(), input.log_group_identifier.as_deref())?;

        let mut held = self.store.lock();
        let stream = held.group(group)?.stream(stream)?;
        // A token is a place between events: `f/` shows what is at or behind it, `b/` what is before it.
        let (forward, from) = match input.next_token.as_deref() {
            None => (input.start_from_head == Some(true), None),
            Some(token) => match token.split_once('/') {
                Some(("f", place)) => (true, Some(place_of(place)?)),
                Some(("b", place)) => (false, Some(place_of(place)?)),
                _ => return Err(Failure::invalid("The specified nextToken is invalid.")),
            },
        };
        let sorted = stream.sorted();
        let begin = sorted.partition_point(|place| input.start_time.is_some_and(|start| place.0 < start));
        // "Events with a timestamp equal to or later than this time are not included."
        let end = sorted.partition_point(|place| input.end_time.is_none_or(|end| place.0 < end)).max(begin);
        let at = from.map(|from| sorted.partition_point(|place| *place < from).clamp(begin, end));
        let places: Vec<Place> = if forward {
            sorted.get(at.unwrap_or(begin)..end).unwrap_or_default().iter().take(limit).copied().collect()
        } else {
            sorted.get(begin..at.unwrap_or(end)).unwrap_or_default().iter().rev().take(limit).copied().collect()
        };
        let shown = places
            .iter()
            .filter_map(|(_, number, index)| Some(Shown { call: Arc::clone(stream.call(*number)?), index: *index }));
        let mut events = fitting(shown);
        drop(held);
        if !forward {
            events.reverse();
        }
        let nowhere = from.unwrap_or_default();
        let first = events.first().map_or(nowhere, Shown::place);
        let behind = events.last().map_or(nowhere, |last| {
            let (time, number, index) = last.place();
            (time, number, index + 1)
        });
        Ok(Page {
            events,
            next_forward_token: format!("f/{}", token_of(behind)),
            next_backward_token: format!("b/{}", token_of(first)),
        })
    }
}

/// As many as fit into a page, one at least.
pub(crate) fn fitting(events: impl Iterator<Item = Shown>) -> Vec<Shown> {
    let mut bytes = 0;
    let mut page = Vec::new();
    for event in events {
        bytes += event.size();
        if bytes > rules::MAX_PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(event);
    }
    page
}
