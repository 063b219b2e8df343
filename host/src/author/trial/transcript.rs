//! What happened in a test: as values that expectations are held against, and as the YAML of a golden file, which has the same keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::wire::notes::{Heard, Moment};
use super::yaml;
use crate::capability::Usage;
use crate::config::Fault;
use crate::config::units::format_duration;
use crate::plugin::{DeathCause, Outcome};

/// Headers that a golden file leaves out: they say nothing that the body does not, and change with the compression library.
const NOT_IN_GOLDEN: [&str; 2] = ["x-amz-sdk-checksum-algorithm", "content-md5"];

/// What happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    /// What was asked of services and counters.
    pub(crate) calls: Vec<(Moment, Map<String, Value>)>,
    pub(crate) batches: Vec<BatchTold>,
    pub(crate) storage: BTreeMap<String, String>,
    pub(crate) log: Vec<String>,
    /// What the script has for calls that nobody made.
    pub(crate) unused: Vec<String>,
    pub(crate) metrics: BTreeMap<String, String>,
    /// What each call of the component took, by the attempt that it was made for.
    pub(crate) usage: Vec<(Moment, Usage)>,
    /// What is wrong with the configuration: then nothing else happened.
    pub(crate) faults: Vec<Fault>,
}

/// A batch's way.
#[derive(Debug, Clone)]
pub(crate) struct BatchTold {
    pub(crate) id: String,
    pub(crate) tag: String,
    pub(crate) records: u64,
    pub(crate) attempts: Vec<Attempted>,
    pub(crate) ended: Ended,
}

/// How a batch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All but these.
    Delivered(Vec<(u32, Arc<str>)>),
    /// Dead letters, all of it.
    Dead { failure: &'static str, reason: String },
    /// Not within the attempts of the test.
    Waiting,
    /// The plugin dies of whatever it is given.
    Quarantined,
}

/// An attempt's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attempted {
    /// `delivered`, a kind of failure, or a cause of death.
    pub(crate) ended: &'static str,
    pub(crate) message: Option<String>,
    /// Why it was no success, for a person: also where that is another text each time.
    pub(crate) why: Option<String>,
    /// What the service asked for.
    pub(crate) retry_after: Option<Duration>,
    /// What came before the next attempt.
    pub(crate) wait: Option<Duration>,
    pub(crate) rejected: usize,
}

impl Attempted {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Delivered { rejected } => Self { ended: "delivered", rejected: rejected.len(), ..Self::default() },
            Outcome::Failed(failure) => Self {
                ended: failure.kind.as_str(),
                message: Some(failure.message.clone()),
                why: Some(failure.message.clone()),
                retry_after: failure.retry_after,
                ..Self::default()
            },
            Outcome::Died(death) => {
                // What a call took is another number each time.
                let told = death.cause != DeathCause::CpuLimit && death.cause != DeathCause::OutOfMemory;
                let message = told.then(|| death.in_short.clone());
                Self { ended: death.cause.as_str(), message, why: Some(death.in_short.clone()), ..Self::default() }
            }
        }
    }

    fn value(&self) -> Value {
        let mut told = Map::new();
        told.insert("ended".into(), self.ended.into());
        if let Some(message) = &self.message {
            told.insert("message".into(), message.clone().into());
        }
        for (key, time) in [("retry_after", self.retry_after), ("wait", self.wait)] {
            if let Some(time) = time {
                told.insert(key.into(), format_duration(time).into());
            }
        }
        if self.rejected > 0 {
            told.insert("rejected".into(), self.rejected.into());
        }
        told.into()
    }
}

impl BatchTold {
    fn value(&self) -> Map<String, Value> {
        let mut told = Map::new();
        told.insert("tag".into(), self.tag.clone().into());
        told.insert("records".into(), self.records.into());
        told.insert("outcome".into(), self.outcome().into());
        match &self.ended {
            Ended::Dead { reason, .. } => {
                told.insert("reason".into(), without_times(reason).into());
            }
            Ended::Delivered(rejected) if !rejected.is_empty() => {
                let reasons = rejected.iter().map(|(n, reason)| (n.to_string(), Value::from(reason.to_string())));
                told.insert("rejected".into(), Value::Object(reasons.collect()));
            }
            _ => {}
        }
        told.insert("attempts".into(), self.attempts.iter().map(Attempted::value).collect());
        told.insert("id".into(), self.id.clone().into());
        told
    }

    /// One word for it.
    pub(crate) fn outcome(&self) -> &'static str {
        match &self.ended {
            Ended::Delivered(_) => "delivered",
            Ended::Dead { failure, .. } => failure,
            Ended::Waiting => "waiting",
            Ended::Quarantined => "quarantined",
        }
    }
}

/// Takes out what is another number each time.
fn without_times(text: &str) -> String {
    match Regex::new(r"took [0-9.]+(ns|µs|ms|s) of CPU time") {
        Ok(time) => time.replace_all(text, "took … of CPU time").into_owned(),
        Err(_) => text.to_owned(),
    }
}

impl Transcript {
    pub(crate) fn of_faults(faults: Vec<Fault>) -> Self {
        Self { faults, ..Self::default() }
    }

    pub(crate) fn of(
        heard: Heard,
        batches: Vec<BatchTold>,
        storage: BTreeMap<String, String>,
        metrics: BTreeMap<String, String>,
    ) -> Self {
        let mut calls: Vec<_> = heard.calls.into_iter().map(|call| (call.moment, call.said)).collect();
        in_parts_order(&mut calls);
        Self { calls, batches, storage, log: heard.log, metrics, usage: heard.usage, ..Self::default() }
    }

    /// As expectations have it.
    pub(crate) fn value(&self) -> Map<String, Value> {
        let mut told = Map::new();
        told.insert("calls".into(), self.calls.iter().map(|(_, call)| Value::from(call.clone())).collect());
        told.insert("batches".into(), self.batches.iter().map(|batch| Value::from(batch.value())).collect());
        told.insert("dead_letters".into(), self.dead_letters().collect());
        told.insert("storage".into(), texts(&self.storage));
        told.insert("log".into(), self.log.clone().into());
        told.insert("metrics".into(), texts(&self.metrics));
        let fault = |fault: &Fault| json!({ "path": fault.path, "message": fault.message });
        told.insert("config_faults".into(), self.faults.iter().map(fault).collect());
        told
    }

    /// Records that were not delivered and will not be, whether their batch was refused or they alone.
    fn dead_letters(&self) -> impl Iterator<Item = Value> {
        let of = |(number, batch): (usize, &BatchTold)| {
            let letters: Vec<(u64, String)> = match &batch.ended {
                Ended::Delivered(rejected) => rejected.iter().map(|(n, why)| ((*n).into(), why.to_string())).collect(),
                Ended::Dead { reason, .. } => (0..batch.records).map(|n| (n, without_times(reason))).collect(),
                Ended::Waiting | Ended::Quarantined => vec![],
            };
            letters.into_iter().map(move |(n, reason)| json!({ "batch": number, "record": n, "reason": reason }))
        };
        (1..).zip(&self.batches).flat_map(of)
    }

    /// Records of all batches.
    pub(crate) fn records(&self) -> u64 {
        self.batches.iter().map(|batch| batch.records).sum()
    }

    /// What happened, with the component's log, for a person.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        if !self.log.is_empty() {
            section(&mut text, "log", Some(&self.log.clone().into()));
        }
        text
    }

    /// A line for each batch.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        for (number, batch) in (1..).zip(&self.batches) {
            let last = batch.attempts.last();
            let why = last.and_then(|attempt| attempt.why.as_deref()).map(|why| format!(": {why}"));
            let outcome = match &batch.ended {
                Ended::Waiting => last.map_or("waiting", |attempt| attempt.ended),
                _ => batch.outcome(),
            };
            let rejected = last.map_or(0, |attempt| attempt.rejected);
            let but = if rejected > 0 { format!(", {rejected} of them rejected") } else { String::new() };
            let again = last.and_then(|attempt| attempt.wait);
            let again = again.map(|wait| format!(" (Wharf would try again in {})", format_duration(wait)));
            let (why, again) = (why.unwrap_or_default(), again.unwrap_or_default());
            let records = if batch.records == 1 { "1 record".to_owned() } else { format!("{} records", batch.records) };
            let _ = writeln!(text, "batch {number}: {records}: {outcome}{but}{why}{again}");
        }
        text
    }

    /// Whether every record was delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.batches.iter().all(|batch| matches!(&batch.ended, Ended::Delivered(rejected) if rejected.is_empty()))
    }

    /// The whole of it, for a golden file.
    pub(crate) fn golden(&self, name: &str) -> String {
        let mut text = format!(
            "# What happens in {name}.yaml: written by `wharf plugin test --update`, compared by `wharf plugin test`.\n"
        );
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        let all = self.value();
        if !self.faults.is_empty() {
            section(text, "config_faults", all.get("config_faults"));
            return;
        }
        text.push_str(if self.calls.is_empty() { "calls: []\n" } else { "calls:\n" });
        let mut last = Moment::default();
        for (moment, call) in &self.calls {
            if *moment != last && moment.batch > 0 {
                let _ = writeln!(text, "# batch {}, attempt {}", moment.batch, moment.attempt);
                last = *moment;
            }
            yaml::item(text, &Value::Object(without_noise(call)));
        }
        section(text, "batches", all.get("batches"));
        if !self.storage.is_empty() {
            section(text, "storage", all.get("storage"));
        }
    }
}

fn section(text: &mut String, key: &str, value: Option<&Value>) {
    let mut map = Map::new();
    map.insert(key.to_owned(), value.cloned().unwrap_or(Value::Null));
    yaml::write(text, &Value::Object(map));
}

fn texts(map: &BTreeMap<String, String>) -> Value {
    Value::Object(map.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect())
}

fn without_noise(call: &Map<String, Value>) -> Map<String, Value> {
    let mut call = call.clone();
    if let Some(Value::Object(headers)) = call.get_mut("headers") {
        headers.retain(|name, _| !name.starts_with("x-amz-checksum-") && !NOT_IN_GOLDEN.contains(&name.as_str()));
        if headers.is_empty() {
            call.shift_remove("headers");
        }
    }
    call
}

/// Parts of one upload are sent side by side, and come in any order.
fn in_parts_order(calls: &mut [(Moment, Map<String, Value>)]) {
    let part = |call: &Map<String, Value>| call.get("part").and_then(Value::as_u64);
    for run in calls.chunk_by_mut(|(a, one), (b, other)| {
        a == b && part(one).is_some() && part(other).is_some() && one.get("key") == other.get("key")
    }) {
        run.sort_by_key(|(_, call)| part(call));
    }
}
