//! What a test has heard so far, and its clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use super::lock;
use crate::capability::{Usage, Watch};
use crate::record::now_ns;

/// Notes of one test. The clock stands, and is moved by the waits between attempts.
#[derive(Debug)]
pub(crate) struct Notes {
    /// None is this machine's clock.
    now_ns: Option<AtomicI64>,
    heard: Mutex<Heard>,
}

/// Everything that was heard.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heard {
    /// What was asked of services and counters, in order.
    pub(crate) calls: Vec<Call>,
    /// Lines of the component's log.
    pub(crate) log: Vec<String>,
    /// What each call of the component took.
    pub(crate) usage: Vec<(Moment, Usage)>,
    moment: Moment,
}

/// Which attempt at which batch, both from 1.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) batch: usize,
    pub(crate) attempt: u32,
}

/// Something that was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) moment: Moment,
    /// The capability and function first, then what is to be said of it.
    pub(crate) said: Map<String, Value>,
}

impl Notes {
    pub(crate) fn new(now_ns: i64) -> Self {
        Self { now_ns: Some(AtomicI64::new(now_ns)), heard: Mutex::default() }
    }

    /// With this machine's clock.
    pub(crate) fn of_now() -> Self {
        Self { now_ns: None, heard: Mutex::default() }
    }

    /// From now on what is heard belongs to this attempt.
    pub(crate) fn begin(&self, moment: Moment) {
        lock(&self.heard).moment = moment;
    }

    /// The clock goes on.
    pub(crate) fn wait(&self, time: Duration) {
        if let Some(now_ns) = &self.now_ns {
            now_ns.fetch_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// Notes a call. Gives its place, for its answer.
    pub(crate) fn asked(&self, said: Map<String, Value>) -> usize {
        let mut heard = lock(&self.heard);
        let moment = heard.moment;
        heard.calls.push(Call { moment, said });
        heard.calls.len() - 1
    }

    /// Notes what was answered.
    pub(crate) fn answered(&self, call: usize, answer: &str) {
        if let Some(call) = lock(&self.heard).calls.get_mut(call) {
            call.said.insert("answer".into(), answer.into());
        }
    }

    /// All that was heard.
    pub(crate) fn heard(&self) -> Heard {
        lock(&self.heard).clone()
    }
}

impl Watch for Notes {
    fn now_ns(&self) -> i64 {
        self.now_ns.as_ref().map_or_else(now_ns, |now_ns| now_ns.load(Ordering::Relaxed))
    }

    fn numbered(&self, function: &'static str, counter: &str, number: u64) {
        let mut said = Map::new();
        said.insert("sequence".into(), function.into());
        said.insert("name".into(), counter.into());
        said.insert("number".into(), number.into());
        self.asked(said);
    }

    fn logged(&self, level: &'static str, line: &str, fields: &str) {
        let separator = if fields.is_empty() { "" } else { " " };
        lock(&self.heard).log.push(format!("{level}: {line}{separator}{fields}"));
    }

    fn used(&self, usage: Usage) {
        let mut heard = lock(&self.heard);
        let moment = heard.moment;
        heard.usage.push((moment, usage));
    }
}
