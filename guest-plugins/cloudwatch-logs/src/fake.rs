//! A small CloudWatch Logs and a small host in memory, for tests. It enforces the rules of
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>, and what it keeps outlives an attempt.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use wharf_plugin::HostError;
use wharf_plugin::cloudwatch_logs::{Accepted, Entity, Error, NO_MESSAGE, Put, ServiceError};
use wharf_plugin::service::Service;

use crate::world::{Events, World};

/// The time, milliseconds since 1970 UTC.
pub const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// A message with this in it is refused.
pub const POISON: &str = "POISON";

/// A record's event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub time: i64,
    pub message: Option<String>,
}

impl Event {
    pub fn new(time: i64, message: &str) -> Self {
        Self { time, message: Some(message.into()) }
    }
    pub fn without_message(time: i64) -> Self {
        Self { time, message: None }
    }
}

#[derive(Debug, Clone)]
pub struct FakeEvents(Rc<Vec<Event>>);

impl FakeEvents {
    pub fn new(events: Vec<Event>) -> Self {
        Self(Rc::new(events))
    }
    fn message(&self, event: u32) -> &str {
        self.0[event as usize].message.as_deref().expect("the event has a message")
    }
}

impl Events for FakeEvents {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn times(&self, first: u32, count: u32) -> Vec<i64> {
        self.0.iter().skip(first as usize).take(count as usize).map(|event| event.time).collect()
    }
    fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, HostError> {
        let size = |event: &Event| event.message.as_ref().map_or(NO_MESSAGE, |message| message.len() as u32);
        Ok(self.0.iter().skip(first as usize).take(count as usize).map(size).collect())
    }
    fn read(&self, event: u32, offset: u32, length: u32) -> Result<Vec<u8>, HostError> {
        assert!(length <= 1 << 20, "the host gives 1 MiB at most");
        let message = self.message(event).as_bytes();
        Ok(message[offset as usize..message.len().min((offset + length) as usize)].to_vec())
    }
}

/// A log group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub class: Option<String>,
    pub tags: Vec<(String, String)>,
    pub kms_key_id: Option<String>,
    pub retention_days: Option<u32>,
}

/// A call that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which call: `put`, `group`, `stream`, `retention`, `progress`, `store`.
    pub call: &'static str,
    /// How many such calls go well before.
    pub after: usize,
    /// How many go wrong.
    pub times: usize,
    pub error: Error,
    /// Whether what is asked is done all the same, and the answer is lost.
    pub done: bool,
}

#[derive(Debug, Default)]
pub struct Shared {
    pub groups: BTreeMap<String, Group>,
    /// Events by group and stream, in the order in which they came.
    pub streams: BTreeMap<(String, String), Vec<(i64, String)>>,
    pub calls: Vec<String>,
    pub faults: Vec<Fault>,
    pub entity_is_bad: bool,
    pub last_format: Option<String>,
    pub last_entity: Option<Entity>,

    pub clock: Duration,
    /// How long CloudWatch Logs takes for a call.
    pub put_takes: Duration,
    pub progress: BTreeMap<String, Vec<u8>>,
    pub stored: BTreeMap<String, Vec<u8>>,
    pub counts: BTreeMap<String, u64>,
    pub gauges: BTreeMap<String, usize>,
    pub progress_writes: usize,
}

/// The host and CloudWatch Logs, as one batch's delivery sees them.
#[derive(Debug, Clone)]
pub struct Fake {
    pub shared: Rc<RefCell<Shared>>,
    pub records: FakeEvents,
    pub partition: Vec<Option<String>>,
    pub tag: String,
}

pub fn service(status: u16, code: &str) -> Error {
    let service = Service::CloudWatchLogs;
    Error::Service(ServiceError { service, status, code: code.into(), message: "said so".into(), retry_after_ms: None })
}

fn invalid(message: &str) -> Error {
    let service = Service::CloudWatchLogs;
    let code = "InvalidParameterException".into();
    Error::Service(ServiceError { service, status: 400, code, message: message.into(), retry_after_ms: None })
}

impl Fake {
    pub fn new(records: Vec<Event>) -> Self {
        let records = FakeEvents::new(records);
        Self { shared: Rc::default(), records, partition: vec![], tag: "app".into() }
    }
    /// With the group and the stream there.
    pub fn with_stream(records: Vec<Event>, group: &str, stream: &str) -> Self {
        let fake = Self::new(records);
        fake.add(group, stream);
        fake
    }
    pub fn add(&self, group: &str, stream: &str) {
        let shared = &mut *self.shared.borrow_mut();
        shared.groups.entry(group.into()).or_default();
        shared.streams.entry((group.into(), stream.into())).or_default();
    }
    /// The same host with other records: the next batch, when the one before is settled.
    pub fn with(&self, records: Vec<Event>) -> Self {
        Self { records: FakeEvents::new(records), ..self.clone() }
    }
    pub fn fail(&self, call: &'static str, after: usize, error: Error) {
        self.shared.borrow_mut().faults.push(Fault { call, after, times: 1, error, done: false });
    }
    pub fn fail_always(&self, call: &'static str, error: Error) {
        self.shared.borrow_mut().faults.push(Fault { call, after: 0, times: usize::MAX, error, done: false });
    }
    pub fn lose_answer(&self, call: &'static str, after: usize) {
        let error = Error::Connection(Service::CloudWatchLogs, "reset".into());
        self.shared.borrow_mut().faults.push(Fault { call, after, times: 1, error, done: true });
    }
    pub fn mend(&self) {
        self.shared.borrow_mut().faults.clear();
    }
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.borrow_mut().calls)
    }
    /// Messages of a stream.
    pub fn messages(&self, group: &str, stream: &str) -> Vec<String> {
        let shared = self.shared.borrow();
        let events = shared.streams.get(&(group.into(), stream.into())).cloned().unwrap_or_default();
        events.into_iter().map(|(_, message)| message).collect()
    }
    pub fn counted(&self, name: &str) -> u64 {
        self.shared.borrow().counts.get(name).copied().unwrap_or(0)
    }
    pub fn delete_group(&self, group: &str) {
        let shared = &mut *self.shared.borrow_mut();
        shared.groups.remove(group);
        shared.streams.retain(|(of, _), _| of != group);
    }
    pub fn delete_stream(&self, group: &str, stream: &str) {
        self.shared.borrow_mut().streams.remove(&(group.into(), stream.into()));
    }
    pub fn wait(&self, time: Duration) {
        self.shared.borrow_mut().clock += time;
    }
    /// The host settles a batch: its rows go away.
    pub fn settle(&self) {
        self.shared.borrow_mut().progress.clear();
    }

    /// Notes the call; does it, unless a fault says that it is not done.
    fn call<T>(
        &self,
        call: &'static str,
        on: &str,
        work: impl FnOnce(&mut Shared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let shared = &mut *self.shared.borrow_mut();
        shared.calls.push(format!("{call} {on}").trim_end().to_owned());
        let Some(fault) = due(shared, call) else { return work(shared) };
        if fault.done {
            work(shared)?;
        }
        Err(fault.error)
    }
}

fn due(shared: &mut Shared, call: &'static str) -> Option<Fault> {
    let place = shared.faults.iter_mut().position(|fault| {
        let now = fault.call == call && fault.after == 0;
        if fault.call == call && fault.after > 0 {
            fault.after -= 1;
        }
        now
    })?;
    shared.faults[place].times -= 1;
    let fault = shared.faults[place].clone();
    if fault.times == 0 {
        shared.faults.remove(place);
    }
    Some(fault)
}

fn is_name(name: &str, allowed: impl Fn(char) -> bool) -> bool {
    (1..=512).contains(&name.chars().count()) && name.chars().all(allowed)
}
fn is_group_name(name: &str) -> bool {
    is_name(name, |c| c.is_ascii_alphanumeric() || "._/#-".contains(c)) && !name.starts_with("aws/")
}
fn is_stream_name(name: &str) -> bool {
    is_name(name, |c| c != ':' && c != '*')
}

/// The events of a call, as AWS sees them.
fn events_of(events: &FakeEvents, put: &Put) -> Vec<(i64, String)> {
    let count = events.count();
    put.order
        .iter()
        .map(|number| match number.checked_sub(count) {
            None => (events.0[*number as usize].time, events.message(*number).to_owned()),
            Some(piece) => {
                let piece = &put.pieces[piece as usize];
                let (offset, length) = (piece.offset as usize, piece.length as usize);
                // Panics within a character, as the host would refuse it.
                let text = &events.message(piece.event)[offset..offset + length];
                (events.0[piece.event as usize].time, format!("{}{text}{}", piece.before, piece.after))
            }
        })
        .collect()
}

fn check(events: &[(i64, String)], valid: &[&(i64, String)]) -> Result<(), Error> {
    let bytes: usize = events.iter().map(|(_, message)| message.len() + 26).sum();
    let spans = |events: &[&(i64, String)]| match (events.first(), events.last()) {
        (Some((first, _)), Some((last, _))) => last - first > DAY,
        _ => false,
    };
    let broken = [
        (!(1..=10_000).contains(&events.len()), "between 1 and 10000 events"),
        (events.iter().any(|(_, message)| message.is_empty()), "a message has a length of at least 1"),
        (events.iter().any(|(time, _)| *time < 0), "a timestamp is at least 0"),
        (events.iter().any(|(_, message)| message.len() > 1 << 20), "Log event too large"),
        (bytes > 1_048_576, "Upload too large"),
        (
            !events.is_sorted_by_key(|(time, _)| *time),
            "Log events in a single PutLogEvents request must be in chronological order.",
        ),
        (spans(valid), "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."),
        (events.iter().any(|(_, message)| message.contains(POISON)), "this message is not for us"),
    ];
    broken.iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, message)| Err(invalid(message)))
}

impl World for Fake {
    type Events = FakeEvents;

    fn partition(&self) -> Vec<Option<String>> {
        self.partition.clone()
    }
    fn tag(&self) -> String {
        self.tag.clone()
    }
    fn prepare(&self, _: Option<&str>) -> Result<FakeEvents, HostError> {
        Ok(self.records.clone())
    }

    fn put(&self, events: &FakeEvents, put: &Put) -> Result<Accepted, Error> {
        let sent = events_of(events, put);
        self.call("put", &sent.len().to_string(), |shared| {
            shared.clock += shared.put_takes;
            if !is_group_name(&put.log_group) || !is_stream_name(&put.log_stream) {
                return Err(invalid("a name"));
            }
            shared.last_format.clone_from(&put.log_format);
            shared.last_entity.clone_from(&put.entity);
            let retention = shared.groups.get(&put.log_group).and_then(|group| group.retention_days);
            let there = shared.streams.get_mut(&(put.log_group.clone(), put.log_stream.clone()));
            let there = there.ok_or_else(|| service(400, "ResourceNotFoundException"))?;
            let expiry = retention.map_or(i64::MIN, |days| NOW - i64::from(days) * DAY);
            let valid: Vec<_> =
                sent.iter().filter(|(time, _)| (NOW - 14 * DAY..=NOW + 2 * HOUR).contains(time)).collect();
            check(&sent, &valid)?;
            let ends = |limit: i64| sent.iter().take_while(|(time, _)| *time < limit).count();
            let (old, expired) = (ends(NOW - 14 * DAY), ends(expiry));
            let new = sent.iter().take_while(|(time, _)| *time <= NOW + 2 * HOUR).count();
            there.extend(sent.iter().take(new).skip(old.max(expired)).cloned());
            Ok(Accepted {
                too_old_end: (old > 0).then_some(old as u32),
                expired_end: (expired > 0).then_some(expired as u32),
                too_new_start: (new < sent.len()).then_some(new as u32),
                rejected_entity: shared.entity_is_bad.then(|| "InvalidEntity".into()),
            })
        })
    }
    fn create_group(
        &self,
        name: &str,
        class: Option<&str>,
        tags: &[(String, String)],
        kms_key_id: Option<&str>,
    ) -> Result<(), Error> {
        let labels = [class.map(|_| "class"), (!tags.is_empty()).then_some("tags"), kms_key_id.map(|_| "kms")];
        let labels: Vec<_> = labels.into_iter().flatten().collect();
        self.call("group", &format!("{name} {}", labels.join(" ")), |shared| {
            if !is_group_name(name) {
                return Err(invalid("a name"));
            }
            if shared.groups.contains_key(name) {
                return Err(service(400, "ResourceAlreadyExistsException"));
            }
            let group = Group {
                class: class.map(str::to_owned),
                tags: tags.to_vec(),
                kms_key_id: kms_key_id.map(str::to_owned),
                retention_days: None,
            };
            shared.groups.insert(name.into(), group);
            Ok(())
        })
    }
    fn create_stream(&self, group: &str, name: &str) -> Result<(), Error> {
        self.call("stream", name, |shared| {
            if !is_stream_name(name) {
                return Err(invalid("a name"));
            }
            if !shared.groups.contains_key(group) {
                return Err(service(400, "ResourceNotFoundException"));
            }
            let place = (group.to_owned(), name.to_owned());
            if shared.streams.contains_key(&place) {
                return Err(service(400, "ResourceAlreadyExistsException"));
            }
            shared.streams.insert(place, Vec::new());
            Ok(())
        })
    }
    fn put_retention(&self, group: &str, days: u32) -> Result<(), Error> {
        self.call("retention", &days.to_string(), |shared| {
            let group = shared.groups.get_mut(group).ok_or_else(|| service(400, "ResourceNotFoundException"))?;
            group.retention_days = Some(days);
            Ok(())
        })
    }

    fn progress(&self) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        Ok(self.shared.borrow().progress.clone().into_iter().collect())
    }
    fn set_progress(&self, row: &str, value: &[u8]) -> Result<(), HostError> {
        assert!(row.len() <= 512 && value.len() <= 1024, "{row} has {} bytes", value.len());
        let shared = &mut *self.shared.borrow_mut();
        if due(shared, "progress").is_some() {
            return Err(HostError::Unavailable("the disk".into()));
        }
        shared.progress_writes += 1;
        shared.progress.insert(row.into(), value.into());
        Ok(())
    }
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        Ok(self.shared.borrow().stored.get(row).cloned())
    }
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        assert!(row.len() <= 512, "{row}");
        let shared = &mut *self.shared.borrow_mut();
        if due(shared, "store").is_some() {
            return Err(HostError::Unavailable("the disk".into()));
        }
        match value {
            Some(value) => shared.stored.insert(row.into(), value.into()),
            None => shared.stored.remove(row),
        };
        Ok(())
    }

    fn now(&self) -> Duration {
        self.shared.borrow().clock
    }
    fn count(&self, name: &str, value: u64) {
        *self.shared.borrow_mut().counts.entry(name.into()).or_default() += value;
    }
    fn count_all(&self, name: &str, value: u64, labels: &[(&str, &str)]) {
        let labels: Vec<_> = labels.iter().map(|(_, value)| *value).collect();
        self.count([&[name], labels.as_slice()].concat().join(" ").as_str(), value);
    }
    fn gauge(&self, name: &str, value: usize) {
        self.shared.borrow_mut().gauges.insert(name.into(), value);
    }
}
