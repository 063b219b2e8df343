//! The server that programs start, and what they can look at in it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::clock::Clock;
use super::endpoint::LogsEndpoint;
use super::put::Undocumented;
use super::requests::{Request, Totals};
use super::rules;
use super::store::{Call, Event, GroupView};
use crate::port::{Port, Services};
use crate::{Faults, Operation, Vanish};

/// What is asked of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signatures {
    /// They are recomputed with [`crate::SECRET_KEY`].
    Checked,
    /// There must be one; whose it is does not matter.
    AnyKey,
    /// They are not looked at: for benchmarks, where hashing is the larger part of the work.
    Ignored,
}

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub address: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Log groups that are there from the beginning.
    pub groups: Vec<String>,
    /// The region that signatures must name, and that ARNs have.
    pub region: String,
    /// What is asked of signatures.
    pub signatures: Signatures,
    /// Events are checked and counted, and then dropped: for benchmarks.
    pub discard: bool,
    /// What time it is, for the rules about the age of events.
    pub clock: Clock,
    /// Behaviour that AWS does not document.
    pub undocumented: Undocumented,
    /// Log groups that there can be: [`rules::MAX_GROUPS`].
    pub max_groups: usize,
    /// Seed for faults by chance.
    pub seed: u64,
    /// Threads that serve.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            groups: Vec::new(),
            region: "us-east-1".to_owned(),
            signatures: Signatures::Checked,
            discard: false,
            clock: Clock::default(),
            undocumented: Undocumented::default(),
            max_groups: rules::MAX_GROUPS,
            seed: 1,
            threads: 1,
        }
    }
}

/// A CloudWatch Logs server. Dropping it stops it.
pub struct Logs {
    endpoint: Arc<LogsEndpoint>,
    port: Arc<Port>,
}

impl Logs {
    /// Starts a server.
    ///
    /// # Errors
    /// Where the port is taken, a log group's name is not a valid one, or no thread can be had.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let (address, threads) = ((options.address, options.port).into(), options.threads);
        let endpoint = Arc::new(LogsEndpoint::new(options)?);
        let services = Services { s3: None, logs: Some(Arc::clone(&endpoint)) };
        Ok(Self::on(endpoint, Arc::new(Port::open(address, threads, services)?)))
    }
    pub(crate) fn on(endpoint: Arc<LogsEndpoint>, port: Arc<Port>) -> Self {
        Self { endpoint, port }
    }
    /// Starts again after [`Logs::stop`], on the same port and with everything that was stored.
    ///
    /// # Errors
    /// See [`Logs::start`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.port.restart()
    }
    /// Stops: the port is closed and every connection breaks. What is stored stays.
    pub fn stop(&mut self) {
        self.port.stop();
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.port.endpoint()
    }
    /// The faults in force. Their keys are `GROUP:STREAM`.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.endpoint.faults
    }
    /// The clock that the age of events is told by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.endpoint.clock
    }
    /// Sets how often an operation may be called; none is without limit. [`rules`] has what AWS allows, which is in force otherwise. One
    /// second's worth, and one call at least, may come at once.
    pub fn set_rate(&self, operation: Operation, per_second: Option<f64>) {
        self.endpoint.rates.set(operation, per_second);
    }
    /// All log groups, by name.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupView> {
        self.endpoint.store.views()
    }
    /// Every call that was ever accepted, in that order, also to groups and streams that are gone since. Empty where events are discarded.
    #[must_use]
    pub fn accepted(&self) -> Vec<Arc<Call>> {
        self.endpoint.store.lock().accepted.clone()
    }
    /// The accepted calls to one stream that is there.
    #[must_use]
    pub fn calls(&self, group: &str, stream: &str) -> Vec<Arc<Call>> {
        let mut held = self.endpoint.store.lock();
        held.group(group).and_then(|group| group.stream(stream)).map(|stream| stream.calls.clone()).unwrap_or_default()
    }
    /// A stream's events as they came: the order of calls, and within each that of the call.
    #[must_use]
    pub fn events(&self, group: &str, stream: &str) -> Vec<Event> {
        self.calls(group, stream).iter().flat_map(|call| call.events().collect::<Vec<_>>()).collect()
    }
    /// Every request so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.endpoint.requests.all()
    }
    /// The requests that a rule of the service refused, and not a fault that was asked for.
    #[must_use]
    pub fn refused(&self) -> Vec<Request> {
        let mut all = self.requests();
        all.retain(|request| request.code.is_some() && request.fault.is_none());
        all
    }
    /// Sums over all accepted calls of PutLogEvents.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.endpoint.requests.totals()
    }
    /// Makes a log group as somebody else could.
    ///
    /// # Errors
    /// Where it is there already, or cannot have that name.
    pub fn place_group(&self, name: &str) -> anyhow::Result<()> {
        self.endpoint.place_group(name).map_err(|failure| anyhow::anyhow!("making {name}: {}", failure.message))
    }
    /// Deletes a log group as somebody else could, if it is there.
    pub fn delete_group(&self, group: &str) {
        self.endpoint.vanish(Vanish::Group, (group, ""));
    }
    /// Deletes a log stream as somebody else could, if it is there.
    pub fn delete_stream(&self, group: &str, stream: &str) {
        self.endpoint.vanish(Vanish::Stream, (group, stream));
    }
}
