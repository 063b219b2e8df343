//! Log events: what a guest knows of the records that it is about to send, without their messages.
//!
//! Nothing bulky is kept but the chunks that were read last: each window of sizes, and each request, goes through the records again. A guest
//! that asks for sizes no further ahead than it sends has each chunk read once.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::recent::Recent;
use crate::capability::Reached;
use crate::capability::batch::Batch;
use crate::capability::bindings::types::HostError;
use crate::capability::body::Charge;
use crate::capability::records::unreadable;
use crate::config::Unit;
use crate::journal::ReadError;
use crate::record::encode::{Message, Messages, Selection};
use crate::record::{BodyKind, RecordRef};

/// Most bytes of one `read`.
const MAX_READ: usize = 1 << 20;
/// The size of a message that is not there.
const NO_MESSAGE: u32 = u32::MAX;

/// Log events that a guest has a handle of. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    batch: Batch,
    selection: Selection,
    messages: Messages,
    recent: Mutex<Recent>,
    /// For a list of selected records.
    _charge: Option<Charge>,
}

/// Goes through events, in any order.
pub(super) struct Reader<'a> {
    inner: &'a Inner,
    recent: MutexGuard<'a, Recent>,
    /// The portion of the last event, and the numbers of its records: the next event is mostly there too.
    portion: usize,
    records: Range<u32>,
}

/// One event before its message is made.
pub(super) struct Event<'a> {
    kind: BodyKind,
    record: RecordRef<'a>,
    messages: &'a Messages,
}

impl Events {
    pub(super) fn new(batch: Batch, selection: Selection, log_key: Option<&str>, charge: Option<Charge>) -> Self {
        let messages = Messages::new(log_key);
        Self { inner: Arc::new(Inner { batch, selection, messages, recent: Mutex::default(), _charge: charge }) }
    }

    /// How many.
    pub(super) fn count(&self) -> u32 {
        match &self.inner.selection {
            Selection::All => self.inner.batch.count(),
            Selection::Range(_, count) => *count,
            // A batch has no more records than that.
            Selection::Indexes(numbers) => u32::try_from(numbers.len()).unwrap_or(u32::MAX),
        }
    }

    /// Bytes of a record's body, on average over the batch.
    pub(super) fn usual_bytes(&self) -> u64 {
        self.inner.batch.size() / u64::from(self.inner.batch.count().max(1))
    }

    /// Times of `count` events from `first`, milliseconds. Blocks on the disk, where metadata do not tell.
    pub(super) fn times(&self, first: u32, count: u32) -> Result<Vec<i64>, ReadError> {
        self.map(first, count, |reader, number| reader.time_ms(number))
    }

    /// Sizes of their messages. Blocks on the disk.
    pub(super) fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, ReadError> {
        let mut made = Vec::new();
        self.map(first, count, |reader, number| {
            // A body has less than 4 GiB; should its message have more, it is none that could be sent.
            let size = |message: Message<'_>| u32::try_from(message.len()).unwrap_or(NO_MESSAGE - 1);
            Ok(reader.event(number)?.map(|event| event.message(&mut made).map_or(NO_MESSAGE, size)))
        })
    }

    /// A part of a message. Blocks on the disk.
    pub(super) fn read(&self, event: u32, offset: u32, length: u32) -> Result<Vec<u8>, HostError> {
        let (mut reader, mut made) = (self.reader(), Vec::new());
        let found = reader.event(event).map_err(|error| unreadable(&error))?.ok_or_else(|| self.no_event(event))?;
        let message = found.message(&mut made).ok_or_else(|| no_message(event))?.text();
        let rest = message.as_bytes().get(offset as usize..).unwrap_or_default();
        let part = rest.get(..length as usize).unwrap_or(rest);
        if part.len() > MAX_READ {
            let reached = Reached::fixed("what one read gives", Unit::Bytes, MAX_READ as u64, part.len() as u64);
            return Err(reached.refusal_with("take smaller parts of the message"));
        }
        Ok(part.to_vec())
    }

    /// Goes through the events. One at a time can.
    pub(super) fn reader(&self) -> Reader<'_> {
        let recent = self.inner.recent.lock().unwrap_or_else(PoisonError::into_inner);
        Reader { inner: &self.inner, recent, portion: 0, records: 0..0 }
    }

    /// Says that there is no such event.
    pub(super) fn no_event(&self, event: u32) -> HostError {
        HostError::Invalid(format!("there is no event {event}: there are {}", self.count()))
    }

    fn map<T>(
        &self,
        first: u32,
        count: u32,
        mut value: impl FnMut(&mut Reader<'_>, u32) -> Result<Option<T>, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        let mut reader = self.reader();
        let numbers = first..first.saturating_add(count).min(self.count());
        let mut values = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(value) = value(&mut reader, number)? else { break };
            values.push(value);
        }
        Ok(values)
    }
}

/// Says that an event cannot be read or sent.
pub(super) fn no_message(event: u32) -> HostError {
    HostError::Invalid(format!("event {event} has no message: its record has no such key, which its size says"))
}

impl Reader<'_> {
    /// Event `number`, where there is one. Blocks on the disk.
    pub(super) fn event(&mut self, number: u32) -> Result<Option<Event<'_>>, ReadError> {
        let Some((portion, record)) = self.place(number) else { return Ok(None) };
        let chunk = self.recent.chunk(&self.inner.batch, portion)?;
        let kind = chunk.meta().kind;
        Ok(chunk.record(record).map(|record| Event { kind, record, messages: &self.inner.messages }))
    }

    /// The time of event `number`, milliseconds, where there is one. Blocks on the disk, but only where its neighbours have other times.
    fn time_ms(&mut self, number: u32) -> Result<Option<i64>, ReadError> {
        match self.place(number).and_then(|(portion, _)| self.inner.batch.one_time(portion)) {
            Some(time_ns) => Ok(Some(milliseconds(time_ns))),
            None => Ok(self.event(number)?.map(|event| event.time_ms())),
        }
    }

    /// Where event `number` is: in which portion, and the number of its record there.
    fn place(&mut self, number: u32) -> Option<(usize, u32)> {
        let record = match &self.inner.selection {
            Selection::All => number,
            Selection::Range(first, count) => (number < *count).then(|| first.saturating_add(number))?,
            Selection::Indexes(numbers) => *numbers.get(number as usize)?,
        };
        if !self.records.contains(&record) {
            (self.portion, self.records) = self.inner.batch.portion_of(record)?;
        }
        Some((self.portion, record - self.records.start))
    }
}

/// Rounded down, also before 1970.
fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000)
}

impl<'a> Event<'a> {
    /// Milliseconds since 1970 UTC.
    pub(super) fn time_ms(&self) -> i64 {
        milliseconds(self.record.time_ns)
    }

    /// Its message, where it has one. `made` is for what has to be written anew.
    pub(super) fn message<'m>(&self, made: &'m mut Vec<u8>) -> Option<Message<'m>>
    where
        'a: 'm,
    {
        self.messages.of(self.kind, self.record.body, made)
    }
}
