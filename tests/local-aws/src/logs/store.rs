//! What the server holds: groups, streams, and the events of each call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::failure::{Failure, Outcome};

/// One accepted call of PutLogEvents, without the events that were rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Calls are numbered as they were accepted, over all streams.
    pub number: u64,
    /// Its log group.
    pub group: String,
    /// Its log stream.
    pub stream: String,
    /// When it came, in milliseconds since 1970 UTC.
    pub ingested: i64,
    /// The header `x-amzn-logs-format`.
    pub log_format: Option<String>,
    /// The entity's key attributes and attributes, where one was accepted.
    pub entity: Option<[BTreeMap<String, String>; 2]>,
    /// Times and ends of the events, whose messages lie one behind the other in `text`.
    pub(crate) marks: Vec<(i64, usize)>,
    pub(crate) text: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    /// Milliseconds since 1970 UTC.
    pub timestamp: i64,
    /// What it says.
    pub message: String,
}

impl Call {
    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.marks.len()
    }
    /// Whether all were rejected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }
    /// Its events, in the order of the call.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        (0..self.len()).map(|index| {
            let (timestamp, message) = self.event(index);
            Event { timestamp, message: message.to_owned() }
        })
    }
    pub(crate) fn event(&self, index: usize) -> (i64, &str) {
        let begin = index.checked_sub(1).and_then(|before| self.marks.get(before)).map_or(0, |mark| mark.1);
        let (time, end) = self.marks.get(index).copied().unwrap_or((0, begin));
        (time, self.text.get(begin..end).unwrap_or_default())
    }
}

/// A log group, as somebody outside sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// Name.
    pub name: String,
    /// Class.
    pub class: String,
    /// Days; none keeps events for ever.
    pub retention_days: Option<i64>,
    /// Key that encrypts it.
    pub kms_key_id: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Streams by name.
    pub streams: Vec<StreamView>,
}

/// A log stream, as somebody outside sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamView {
    /// Name.
    pub name: String,
    /// Events that it holds, or would hold where they are discarded.
    pub events: u64,
    /// Bytes of their messages.
    pub message_bytes: u64,
}

/// Where an event stands in reading order: time, number of its call, place in its call.
pub(crate) type Place = (i64, u64, usize);

#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) created: i64,
    pub(crate) calls: Vec<Arc<Call>>,
    pub(crate) events: u64,
    pub(crate) message_bytes: u64,
    pub(crate) first_event: Option<i64>,
    pub(crate) last_event: Option<i64>,
    pub(crate) last_ingestion: Option<i64>,
    /// The places of the events of the first `sorted_calls` calls.
    pub(super) sorted: Vec<Place>,
    pub(super) sorted_calls: usize,
}

impl Stream {
    /// All events in reading order.
    pub(crate) fn sorted(&mut self) -> &[Place] {
        if self.sorted_calls < self.calls.len() {
            for call in self.calls.get(self.sorted_calls..).unwrap_or_default() {
                self.sorted.extend(call.marks.iter().enumerate().map(|(index, mark)| (mark.0, call.number, index)));
            }
            self.sorted_calls = self.calls.len();
            // Mostly in order already, which this sort is quick with.
            self.sorted.sort();
        }
        &self.sorted
    }
    /// The call of that number.
    pub(crate) fn call(&self, number: u64) -> Option<&Arc<Call>> {
        let at = self.calls.binary_search_by_key(&number, |call| call.number).ok()?;
        self.calls.get(at)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) created: i64,
    pub(crate) class: String,
    pub(crate) retention_days: Option<i64>,
    pub(crate) kms_key_id: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) protected: bool,
    pub(crate) streams: BTreeMap<String, Stream>,
}

impl Group {
    pub(crate) fn stream(&mut self, name: &str) -> Outcome<&mut Stream> {
        self.streams.get_mut(name).ok_or_else(Failure::no_stream)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) groups: BTreeMap<String, Group>,
    /// All calls that were ever accepted and not discarded, also those of groups and streams that are gone.
    pub(crate) accepted: Vec<Arc<Call>>,
    pub(crate) calls: u64,
}

impl Held {
    pub(crate) fn group(&mut self, name: &str) -> Outcome<&mut Group> {
        self.groups.get_mut(name).ok_or_else(Failure::no_group)
    }
}

/// The store. All that has to be atomic is decided under its one lock.
#[derive(Debug, Default)]
pub(crate) struct Store {
    held: Mutex<Held>,
}

impl Store {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn views(&self) -> Vec<GroupView> {
        let held = self.lock();
        let views = held.groups.iter().map(|(name, group)| GroupView {
            name: name.clone(),
            class: group.class.clone(),
            retention_days: group.retention_days,
            kms_key_id: group.kms_key_id.clone(),
            tags: group.tags.clone(),
            streams: group
                .streams
                .iter()
                .map(|(name, stream)| StreamView {
                    name: name.clone(),
                    events: stream.events,
                    message_bytes: stream.message_bytes,
                })
                .collect(),
        });
        views.collect()
    }
}
