//! Amazon CloudWatch Logs and what speaks like it. The host signs, connects, and holds the credentials; each call is one attempt, and
//! nothing is retried behind the plugin's back. Messages stay in the host.

use crate::bindings::wharf::output::cloudwatch_logs as wit;
use crate::bindings::wharf::output::types::CallError;
use crate::service::Service;
use crate::{Batch, HostError, Selection};

pub use crate::service::{Error, ServiceError};

fn error(error: CallError) -> Error {
    Error::of(Service::CloudWatchLogs, error)
}

/// Starts log events: one for each selected record, numbered from 0 in the batch's order. With `log_key` a message is that key's value: a
/// string as it is, anything else as JSON. Without, it is the whole record as one JSON object.
///
/// # Errors
/// [`HostError::Invalid`] where the selection is outside of the batch.
pub fn prepare(batch: &Batch, selection: &Selection, log_key: Option<&str>) -> Result<Events, HostError> {
    Ok(Events(wit::prepare(batch.wit(), &selection.to_wit(), log_key)?))
}

/// What [`Events::sizes`] gives for an event that has no message.
pub const NO_MESSAGE: u32 = u32::MAX;

/// Log events, messages and times.
#[derive(Debug)]
pub struct Events(wit::Events);

impl Events {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.count()
    }
    /// Milliseconds since 1970 UTC, rounded down, of `count` events from `first`. Ends early at the last.
    #[must_use]
    pub fn times(&self, first: u32, count: u32) -> Vec<i64> {
        self.0.times(first, count)
    }
    /// Bytes of each message in UTF-8, as the service counts them, without the 26 bytes that it adds to an event. [`NO_MESSAGE`] where the
    /// record has no `log_key`, or is no JSON.
    ///
    /// # Errors
    /// Where the host cannot read the records.
    pub fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, HostError> {
        Ok(self.0.sizes(first, count)?)
    }
    /// `length` bytes of a message from `offset`, or fewer at its end; at most 1 MiB.
    ///
    /// # Errors
    /// Where the host cannot read the record.
    pub fn read(&self, event: u32, offset: u32, length: u32) -> Result<Vec<u8>, HostError> {
        Ok(self.0.read(event, offset, length)?)
    }
}

/// A part of a message, sent as an event of its own: `before`, then `length` bytes from `offset`, then `after`. Both ends lie between
/// characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// Whose message.
    pub event: u32,
    /// Where it begins, bytes.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// Text before it.
    pub before: String,
    /// Text behind it.
    pub after: String,
}

/// What the events are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entity {
    /// What identifies it: `Type`, `Name`, `Environment`, …
    pub key_attributes: Vec<(String, String)>,
    /// What else is known of it.
    pub attributes: Vec<(String, String)>,
}

/// One call of PutLogEvents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Put {
    /// The log group.
    pub log_group: String,
    /// The log stream.
    pub log_stream: String,
    /// The events in the order in which they are sent. A number below [`Events::count`] is that whole event; `count` + n is the n-th of
    /// `pieces`.
    pub order: Vec<u32>,
    /// Parts of messages.
    pub pieces: Vec<Piece>,
    /// `json/emf` asks the service to take metrics out of the messages.
    pub log_format: Option<String>,
    /// What the events are about.
    pub entity: Option<Entity>,
}

/// The service took the call; but not the events that are named here, by their places in [`Put::order`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The first event too far in the future: it and all behind it were rejected.
    pub too_new_start: Option<u32>,
    /// One past the last event that is too old.
    pub too_old_end: Option<u32>,
    /// One past the last event that is older than the log group's retention.
    pub expired_end: Option<u32>,
    /// Why the entity was rejected; events were taken all the same.
    pub rejected_entity: Option<String>,
}

/// Sends events.
///
/// # Errors
/// See [`Error`]; so in all functions here.
pub fn put_log_events(events: &Events, put: &Put) -> Result<Accepted, Error> {
    let Put { log_group, log_stream, order, pieces, log_format, entity } = put.clone();
    let pieces = pieces.into_iter().map(|piece| {
        let Piece { event, offset, length, before, after } = piece;
        wit::Piece { event, offset, length, before, after }
    });
    let entity = entity.map(|Entity { key_attributes, attributes }| wit::Entity { key_attributes, attributes });
    let what = wit::Put { log_group, log_stream, order, pieces: pieces.collect(), log_format, entity };
    let accepted = wit::put_log_events(&events.0, &what).map_err(error)?;
    Ok(Accepted {
        too_new_start: accepted.too_new_start,
        too_old_end: accepted.too_old_end,
        expired_end: accepted.expired_end,
        rejected_entity: accepted.rejected_entity,
    })
}

/// Makes a log group. `class` is the service's own value, such as `INFREQUENT_ACCESS`; none leaves it to the service.
///
/// # Errors
/// See [`Error`].
pub fn create_log_group(
    name: &str,
    class: Option<&str>,
    tags: &[(String, String)],
    kms_key_id: Option<&str>,
) -> Result<(), Error> {
    wit::create_log_group(name, class, tags, kms_key_id).map_err(error)
}

/// Makes a log stream.
///
/// # Errors
/// See [`Error`].
pub fn create_log_stream(log_group: &str, name: &str) -> Result<(), Error> {
    wit::create_log_stream(log_group, name).map_err(error)
}

/// Says for how many days a log group keeps its events.
///
/// # Errors
/// See [`Error`].
pub fn put_retention_policy(log_group: &str, days: u32) -> Result<(), Error> {
    wit::put_retention_policy(log_group, days).map_err(error)
}
