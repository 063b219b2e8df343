//! FilterLogEvents: events of many streams in one order, and those patterns that are made of terms.
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>

use std::sync::Arc;

use serde::Serialize;

use super::check::Check;
use super::endpoint::LogsEndpoint;
use super::failure::{Failure, Outcome};
use super::input::FilterLogEvents;
use super::read::{Shown, fitting, place_of, token_of};
use super::rules;

/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilteredLogEvent.html>
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FilteredLogEvent {
    log_stream_name: String,
    #[serde(flatten)]
    event: Shown,
    event_id: String,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Filtered {
    events: Vec<FilteredLogEvent>,
    /// "This field is deprecated": always empty.
    searched_log_streams: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

impl LogsEndpoint {
    pub(crate) fn filter_log_events(&self, input: &FilterLogEvents<'_>) -> Outcome<Filtered> {
        let mut check = Check::default();
        let limit = check.limit(input.limit, rules::MAX_PAGE_EVENTS);
        check.time(input.start_time, "startTime");
        check.time(input.end_time, "endTime");
        if let Some(names) = &input.log_stream_names {
            check.count(names.len(), "logStreamNames", 1, rules::MAX_FILTERED_STREAMS);
        }
        if let Some(prefix) = &input.log_stream_name_prefix {
            check.stream_at(prefix, "logStreamNamePrefix");
        }
        let pattern = input.filter_pattern.as_deref().unwrap_or_default();
        check.length(pattern, "filterPattern", 0, rules::MAX_FILTER_PATTERN_CHARACTERS);
        check.end(self.undocumented.all_violations)?;
        if input.log_stream_names.is_some() && input.log_stream_name_prefix.is_some() {
            return Err(Failure::invalid("logStreamNames and logStreamNamePrefix are mutually exclusive."));
        }
        if input.start_from_head == Some(false) {
            return Err(Failure::invalid(
                "This server shows the oldest events first: startFromHead must not be false.",
            ));
        }
        let pattern = Pattern::read(pattern)?;
        let from = input.next_token.as_deref().map(place_of).transpose()?.unwrap_or_default();
        let group = self.group_meant(input.log_group_name.as_deref(), input.log_group_identifier.as_deref())?;
        let prefix = input.log_stream_name_prefix.as_deref().unwrap_or_default();
        let wanted = |name: &String| {
            name.starts_with(prefix) && input.log_stream_names.as_ref().is_none_or(|names| names.contains(name))
        };

        let mut held = self.store.lock();
        let mut found = Vec::new();
        for (_, stream) in held.group(group)?.streams.iter_mut().filter(|(name, _)| wanted(name)) {
            let sorted = stream.sorted();
            let begin =
                sorted.partition_point(|place| *place < from || input.start_time.is_some_and(|start| place.0 < start));
            // "Events with a timestamp later than this time are not returned": here the end is included.
            let end = sorted.partition_point(|place| input.end_time.is_none_or(|end| place.0 <= end));
            let places = sorted.get(begin..end).unwrap_or_default().to_vec();
            let shown = places
                .into_iter()
                .filter_map(|(_, number, index)| Some(Shown { call: Arc::clone(stream.call(number)?), index }));
            // One more than fit, to know whether there is more.
            found.extend(shown.filter(|shown| pattern.matches(shown.call.event(shown.index).1)).take(limit + 1));
        }
        drop(held);
        found.sort_by_key(Shown::place);
        let all = found.len();
        let behind: Vec<_> = found.iter().map(Shown::place).collect();
        let page = fitting(found.into_iter().take(limit));
        let next_token = behind.get(page.len()).filter(|_| page.len() < all).map(|place| token_of(*place));
        let events = page
            .into_iter()
            .map(|event| FilteredLogEvent {
                log_stream_name: event.call.stream.clone(),
                event_id: token_of(event.place()),
                event,
            })
            .collect();
        Ok(Filtered { events, searched_log_streams: [], next_token })
    }
}

/// Terms of a filter pattern.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html>
#[derive(Debug, Default, PartialEq, Eq)]
struct Pattern {
    /// All of them must be there.
    all: Vec<String>,
    /// One of them must be there (`?term`), where there are any.
    any: Vec<String>,
    /// None of them may be there (`-term`).
    none: Vec<String>,
}

impl Pattern {
    fn read(text: &str) -> Outcome<Self> {
        let text = text.trim();
        if text.starts_with(['{', '[']) || text.contains('%') {
            return Err(Failure::invalid(
                "This server knows filter patterns of terms only: no JSON, no columns, no regular expressions.",
            ));
        }
        let mut pattern = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (list, tail) = match (rest.strip_prefix('?'), rest.strip_prefix('-')) {
                (Some(tail), _) => (&mut pattern.any, tail),
                (_, Some(tail)) => (&mut pattern.none, tail),
                _ => (&mut pattern.all, rest),
            };
            let (term, tail) = match tail.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or_else(|| Failure::invalid("Invalid filter pattern"))?,
                None => tail.split_once(' ').unwrap_or((tail, "")),
            };
            list.push(term.to_owned());
            rest = tail.trim_start();
        }
        Ok(pattern)
    }
    /// Terms are case-sensitive, and may stand anywhere.
    fn matches(&self, message: &str) -> bool {
        let there = |term: &String| message.contains(term.as_str());
        self.all.iter().all(there)
            && (self.any.is_empty() || self.any.iter().any(there))
            && !self.none.iter().any(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Matching terms using unstructured log events" in the page above.
    #[test]
    fn patterns_of_terms_match_as_in_the_guide() {
        let lines = [
            "[ERROR 400] BAD REQUEST",
            "[ERROR 401] UNAUTHORIZED REQUEST",
            "[ERROR 419] MISSING ARGUMENTS",
            "[ERROR 420] INVALID ARGUMENTS",
        ];
        let matching = |pattern: &str| {
            let pattern = Pattern::read(pattern).unwrap();
            (0..lines.len()).filter(|line| pattern.matches(lines[*line])).collect::<Vec<_>>()
        };
        assert_eq!(matching(""), [0, 1, 2, 3]);
        assert_eq!(matching("ERROR ARGUMENTS"), [2, 3]);
        assert_eq!(matching("?ERROR ?ARGUMENTS"), [0, 1, 2, 3]);
        assert_eq!(matching("ERROR -ARGUMENTS"), [0, 1]);
        assert_eq!(matching("\"INVALID ARGUMENTS\""), [3]);
        assert_eq!(matching("error"), [0; 0]);
        for unknown in ["{ $.level = \"ERROR\" }", "[ip, user]", "%4[0-9]{2}%", "\"open"] {
            assert!(Pattern::read(unknown).is_err(), "{unknown}");
        }
    }
}
