//! What a CloudWatch Logs server holds of one log group, and the promises about it.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context as _, bail, ensure};
use wharf_local_aws::Logs;
use wharf_local_aws::logs::Event;

use crate::{script, tools};

/// Events by stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logged {
    /// Each stream's events in the order of their times, and of their arrival where those are the same.
    pub streams: BTreeMap<String, Vec<Event>>,
}

impl Logged {
    /// What a local server holds.
    #[must_use]
    pub fn of(logs: &Logs, group: &str) -> Self {
        let mut logged = Self::default();
        for stream in logs.groups().into_iter().filter(|view| view.name == group).flat_map(|view| view.streams) {
            let mut events = logs.events(group, &stream.name);
            events.sort_by_key(|event| event.timestamp);
            logged.streams.insert(stream.name, events);
        }
        logged
    }
    /// What a local server ever accepted, also in streams and groups that were deleted since.
    #[must_use]
    pub fn ever(logs: &Logs, group: &str) -> Self {
        let mut logged = Self::default();
        for call in logs.accepted().iter().filter(|call| call.group == group) {
            logged.streams.entry(call.stream.clone()).or_default().extend(call.events());
        }
        for events in logged.streams.values_mut() {
            events.sort_by_key(|event| event.timestamp);
        }
        logged
    }
    /// What any server holds, read back by boto3 (GetLogEvents, page by page).
    ///
    /// # Errors
    /// Where the tools cannot be had, or reading fails.
    pub fn read_back(endpoint: &str, group: &str) -> anyhow::Result<Self> {
        let venv = tools::venv()?;
        let lines = tools::python(&venv, &script("logs_client.py")?, &["read", endpoint, group])?;
        let mut logged = Self::default();
        for line in lines.lines() {
            let value: serde_json::Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
            let text =
                |name: &str| value[name].as_str().map(str::to_owned).with_context(|| format!("no {name}: {line}"));
            let timestamp = value["timestamp"].as_i64().with_context(|| format!("no timestamp: {line}"))?;
            let event = Event { timestamp, message: text("message")? };
            logged.streams.entry(text("stream")?).or_default().push(event);
        }
        Ok(logged)
    }
    /// A stream's messages.
    #[must_use]
    pub fn messages(&self, stream: &str) -> Vec<&str> {
        self.streams.get(stream).into_iter().flatten().map(|event| event.message.as_str()).collect()
    }
    /// All events of all streams.
    pub fn events(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.streams.iter().flat_map(|(stream, events)| events.iter().map(move |event| (stream.as_str(), event)))
    }
    /// The names of all lines (`source-00000000`): of messages that are the line itself, or JSON with it under `log`.
    ///
    /// # Panics
    /// Where a message is JSON without `log`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let named = self.events().map(|(stream, event)| name_of(stream, &event.message));
        named.collect::<anyhow::Result<_>>().unwrap_or_else(|error| panic!("{error:#}"))
    }
    /// How many events are there more than once, each counted as often as it is too many: same stream, time and message.
    #[must_use]
    pub fn duplicates(&self) -> usize {
        let all = self.events().count();
        all - self.events().collect::<HashSet<_>>().len()
    }
    /// Every one of these lines is there, and no other.
    ///
    /// # Panics
    /// Where one is lost, or one is there that nobody wrote.
    pub fn assert_none_lost(&self, written: impl IntoIterator<Item = String>) {
        panic_with(self.check_none_lost(written));
    }
    /// The same, and no line is there twice.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn assert_each_once(&self, written: impl IntoIterator<Item = String>) {
        panic_with(self.check_each_once(written));
    }
    /// See [`Logged::assert_none_lost`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_none_lost(&self, written: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        let named = self.events().map(|(stream, event)| name_of(stream, &event.message));
        let there: HashSet<String> = named.collect::<anyhow::Result<_>>()?;
        let written: HashSet<String> = written.into_iter().collect();
        let mut lost: Vec<_> = written.difference(&there).collect();
        lost.sort();
        ensure!(lost.is_empty(), "{} of {} lines are lost: {:?}", lost.len(), written.len(), lost.first());
        let strange: Vec<_> = there.difference(&written).take(3).collect();
        ensure!(strange.is_empty(), "lines arrived that nobody wrote: {strange:?}");
        Ok(())
    }
    /// See [`Logged::assert_each_once`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_each_once(&self, written: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        self.check_none_lost(written)?;
        let mut seen: HashMap<String, &str> = HashMap::new();
        for (stream, event) in self.events() {
            let name = name_of(stream, &event.message)?;
            if let Some(before) = seen.insert(name.clone(), stream) {
                bail!("{name} is twice: in {before} and in {stream}");
            }
        }
        Ok(())
    }
    /// In every stream, each source's lines stand in the order in which they were written.
    ///
    /// # Errors
    /// Where not.
    pub fn check_in_order(&self) -> anyhow::Result<()> {
        let mut last: HashMap<(&str, String), u64> = HashMap::new();
        for (stream, event) in self.events() {
            let name = name_of(stream, &event.message)?;
            let Some((source, number)) = name.rsplit_once('-') else { continue };
            let Ok(number) = number.parse() else { continue };
            if let Some(before) = last.insert((stream, source.to_owned()), number) {
                ensure!(before < number, "{stream}: {name} stands behind {source}-{before:08}");
            }
        }
        Ok(())
    }
}

fn name_of(stream: &str, message: &str) -> anyhow::Result<String> {
    let line = match serde_json::from_str::<serde_json::Value>(message) {
        Ok(serde_json::Value::Object(fields)) => {
            let log = fields.get("log").and_then(|log| log.as_str());
            log.with_context(|| format!("an event in {stream} has no `log`: {message}"))?.to_owned()
        }
        _ => message.to_owned(),
    };
    Ok(line.split(' ').next().unwrap_or_default().to_owned())
}

fn panic_with(checked: anyhow::Result<()>) {
    if let Err(error) = checked {
        panic!("{error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(events: &[(&str, i64, &str)]) -> Logged {
        let mut logged = Logged::default();
        for (stream, timestamp, message) in events {
            let event = Event { timestamp: *timestamp, message: (*message).to_owned() };
            logged.streams.entry((*stream).to_owned()).or_default().push(event);
        }
        logged
    }

    const WRITTEN: [&str; 2] = ["a-00000000", "a-00000001"];

    #[test]
    fn a_whole_delivery_passes_whether_its_messages_are_lines_or_json() {
        let all = logged(&[("s", 1, "a-00000000 fox"), ("t", 2, "{\"log\":\"a-00000001 fox\"}")]);
        all.assert_each_once(WRITTEN.map(str::to_owned));
        assert_eq!(all.duplicates(), 0);
    }

    #[test]
    fn the_same_event_again_is_a_duplicate_and_the_same_message_later_is_none() {
        let all = logged(&[("s", 1, "x"), ("s", 1, "x"), ("s", 1, "x"), ("s", 2, "x"), ("t", 1, "x")]);
        assert_eq!(all.duplicates(), 2);
    }

    #[test]
    #[should_panic(expected = "1 of 2 lines are lost: Some(\"a-00000001\")")]
    fn a_lost_line_is_found() {
        logged(&[("s", 1, "a-00000000 fox")]).assert_none_lost(WRITTEN.map(str::to_owned));
    }

    #[test]
    #[should_panic(expected = "a-00000000 is twice: in s and in t")]
    fn a_doubled_line_is_found() {
        let all = logged(&[("s", 1, "a-00000000"), ("t", 1, "a-00000000"), ("s", 1, "a-00000001")]);
        all.assert_each_once(WRITTEN.map(str::to_owned));
    }

    #[test]
    fn a_wrong_order_within_a_stream_is_found() {
        let all =
            logged(&[("s", 1, "a-00000001"), ("t", 1, "a-00000000"), ("s", 2, "b-00000000"), ("s", 3, "a-00000002")]);
        all.check_in_order().unwrap();
        let wrong = logged(&[("s", 1, "a-00000001 fox"), ("s", 1, "a-00000000 fox")]).check_in_order().unwrap_err();
        assert_eq!(wrong.to_string(), "s: a-00000000 stands behind a-00000001");
    }
}
