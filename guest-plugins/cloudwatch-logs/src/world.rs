//! What delivery needs of the host, for one batch: a seam, so that the logic runs in native tests against a small CloudWatch Logs in
//! memory.

use std::time::Duration;

use wharf_plugin::cloudwatch_logs::{self, Accepted, Error, Put};
use wharf_plugin::{Batch, HostError, Selection, clock, metrics, storage};

/// The host, as one batch's delivery sees it.
pub trait World {
    /// Log events that stay in the host.
    type Events: Events;

    /// Values of the plan's partition keys.
    fn partition(&self) -> Vec<Option<String>>;
    /// The tag.
    fn tag(&self) -> String;
    /// All records as events.
    fn prepare(&self, log_key: Option<&str>) -> Result<Self::Events, HostError>;

    /// Sends events.
    fn put(&self, events: &Self::Events, put: &Put) -> Result<Accepted, Error>;
    /// Makes a log group.
    fn create_group(
        &self,
        name: &str,
        class: Option<&str>,
        tags: &[(String, String)],
        kms_key_id: Option<&str>,
    ) -> Result<(), Error>;
    /// Makes a log stream.
    fn create_stream(&self, group: &str, name: &str) -> Result<(), Error>;
    /// Says how long a log group keeps events.
    fn put_retention(&self, group: &str, days: u32) -> Result<(), Error>;

    /// Rows of the batch.
    fn progress(&self) -> Result<Vec<(String, Vec<u8>)>, HostError>;
    /// Sets a row of the batch.
    fn set_progress(&self, row: &str, value: &[u8]) -> Result<(), HostError>;
    /// A row of the output.
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError>;
    /// Sets or deletes a row of the output.
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError>;

    /// Time that never steps back.
    fn now(&self) -> Duration;
    /// Counts something of this worker.
    fn count(&self, name: &str, value: u64);
    /// Counts something of the whole output.
    fn count_all(&self, name: &str, value: u64, labels: &[(&str, &str)]);
    /// Says how much of something this worker has.
    fn gauge(&self, name: &str, value: usize);
}

/// Log events.
pub trait Events {
    /// How many.
    fn count(&self) -> u32;
    /// Milliseconds since 1970 UTC.
    fn times(&self, first: u32, count: u32) -> Vec<i64>;
    /// Bytes of each message.
    fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, HostError>;
    /// Some of a message.
    fn read(&self, event: u32, offset: u32, length: u32) -> Result<Vec<u8>, HostError>;
}

/// The real host.
#[derive(Debug)]
pub struct Live<'a> {
    batch: &'a Batch<'a>,
    worker: &'a str,
}

impl<'a> Live<'a> {
    /// For a batch in a worker.
    pub fn new(batch: &'a Batch<'a>, worker: &'a str) -> Self {
        Self { batch, worker }
    }
}

impl World for Live<'_> {
    type Events = cloudwatch_logs::Events;

    fn partition(&self) -> Vec<Option<String>> {
        self.batch.partition()
    }
    fn tag(&self) -> String {
        self.batch.tag()
    }
    fn prepare(&self, log_key: Option<&str>) -> Result<Self::Events, HostError> {
        cloudwatch_logs::prepare(self.batch, &Selection::All, log_key)
    }

    fn put(&self, events: &Self::Events, put: &Put) -> Result<Accepted, Error> {
        cloudwatch_logs::put_log_events(events, put)
    }
    fn create_group(
        &self,
        name: &str,
        class: Option<&str>,
        tags: &[(String, String)],
        kms_key_id: Option<&str>,
    ) -> Result<(), Error> {
        cloudwatch_logs::create_log_group(name, class, tags, kms_key_id)
    }
    fn create_stream(&self, group: &str, name: &str) -> Result<(), Error> {
        cloudwatch_logs::create_log_stream(group, name)
    }
    fn put_retention(&self, group: &str, days: u32) -> Result<(), Error> {
        cloudwatch_logs::put_retention_policy(group, days)
    }

    fn progress(&self) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        self.batch.progress().list("")
    }
    fn set_progress(&self, row: &str, value: &[u8]) -> Result<(), HostError> {
        self.batch.progress().set(row, value)
    }
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        storage::get(row)
    }
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        match value {
            Some(value) => storage::set(row, value),
            None => storage::delete(row),
        }
    }

    fn now(&self) -> Duration {
        clock::monotonic()
    }
    fn count(&self, name: &str, value: u64) {
        metrics::add(name, value, &[("worker", self.worker)]);
    }
    fn count_all(&self, name: &str, value: u64, labels: &[(&str, &str)]) {
        metrics::add(name, value, labels);
    }
    fn gauge(&self, name: &str, value: usize) {
        metrics::set(name, value as f64, &[("worker", self.worker)]);
    }
}

impl Events for cloudwatch_logs::Events {
    fn count(&self) -> u32 {
        cloudwatch_logs::Events::count(self)
    }
    fn times(&self, first: u32, count: u32) -> Vec<i64> {
        cloudwatch_logs::Events::times(self, first, count)
    }
    fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, HostError> {
        cloudwatch_logs::Events::sizes(self, first, count)
    }
    fn read(&self, event: u32, offset: u32, length: u32) -> Result<Vec<u8>, HostError> {
        cloudwatch_logs::Events::read(self, event, offset, length)
    }
}
