//! What an output plugin is: one trait, and the types that it speaks.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Batch, Failure, s3};

/// An output plugin. One value lives in each worker, and takes one batch at a time.
pub trait Output: Sized + 'static {
    /// As in `plugin: <name>`: lower-case letters, digits, `_` and `-`.
    const NAME: &'static str;
    /// Other names of options, and the option that each stands for. The SDK renames them before [`Config`](Self::Config)
    /// is read, refuses both at once, and lists them in the schema. An option with other names must not be required.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// Option names that people bring along from elsewhere and that this plugin does not take, each with what to do
    /// instead. They become `x-elsewhere` in the schema.
    const ELSEWHERE: &'static [(&'static str, &'static str)] = &[];

    /// The output's `config`.
    type Config: DeserializeOwned;

    /// JSON schema of [`Config`](Self::Config); [`schema::of`](crate::schema::of) derives it. Aliases and hints are added to it.
    fn schema() -> Value;

    /// Checks the configuration and says what the host has to know. Makes no calls but [`log`](crate::log) and
    /// [`clock`](crate::clock): it also serves `wharf validate`. Where the schema refuses a part of what is written, the rest of it is asked
    /// about, so that all faults come at once.
    ///
    /// # Errors
    /// Everything that is wrong, all at once.
    fn configure(config: Self::Config, context: &Context) -> Result<(Self, Plan), Vec<ConfigFault>>;

    /// Delivers a batch. May be called again with the same batch after a failure, a trap or a restart:
    /// [`sequence`](crate::sequence), [`storage`](crate::storage) progress and conditional writes make that harmless.
    ///
    /// # Errors
    /// Where the batch is not delivered. The kind tells the host when to try again.
    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure>;

    /// The host gives this batch up: undo what was left half done outside. Best effort.
    fn abandon(&mut self, _batch: &Batch) {}

    /// Before the worker is dropped in peace.
    fn close(&mut self) {}
}

/// What surrounds this output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The output's name.
    pub output: String,
    /// The machine's name.
    pub hostname: String,
    /// This worker's number, from 0.
    pub worker: u32,
}

/// What the host has to know before it makes batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Records that differ in one of these never share a batch.
    pub partition_by: Vec<PartitionKey>,
    /// Batches of one partition are delivered one after the other, in the order in which they were closed.
    pub in_order: bool,
    /// Bytes that encoding adds to each record, for an honest `max_bytes`.
    pub record_overhead: u32,
    /// The plugin's own default for `batch.max_bytes`.
    pub max_bytes: Option<u64>,
    /// The plugin's own default for `batch.max_records`.
    pub max_records: Option<u32>,
    /// The plugin's own default for `batch.max_age`, milliseconds.
    pub max_age_ms: Option<u64>,
    /// What the output will touch in S3.
    pub s3: Vec<s3::Scope>,
    /// Log groups that the output will touch. One that ends in `*` stands for all that begin so.
    pub log_groups: Vec<String>,
    /// Where the output will send HTTP requests: scheme, host and, where it is not the scheme's own, port (`https://api.example.com`).
    pub http: Vec<String>,
    /// Names of credentials that its requests will name.
    pub credentials: Vec<String>,
}

/// What tells one record from another before they are put into batches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionKey {
    /// The record's tag.
    Tag,
    /// The value at this path of keys in a JSON record. A text record has one key, `log`.
    Field(Vec<String>),
}

/// One thing wrong in the configuration. Name other options in backquotes in the message (`` `key_format` ``): where such an option could not
/// be read, the host leaves a fault out that may only come of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// JSON Pointer into `config`, "" for the whole.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl ConfigFault {
    /// A fault of one top-level option.
    pub fn of(option: &str, message: impl Into<String>) -> Self {
        Self::at(&[option], message)
    }

    /// A fault of something inside an option: `&["tags", "team"]`.
    pub fn at(steps: &[&str], message: impl Into<String>) -> Self {
        let escaped = steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
        Self { path: escaped.collect(), message: message.into() }
    }
}

/// A settled batch: every record is delivered but those that the report rejects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Record numbers by reason: there may be a million of them for one.
    rejected: BTreeMap<String, Vec<u32>>,
}

impl Report {
    /// Every record is delivered.
    #[must_use]
    pub fn all_delivered() -> Self {
        Self::default()
    }

    /// The destination will never take this record, by its number in the batch from 0: it becomes a dead letter with the reason. In
    /// any order, each record once.
    pub fn reject(&mut self, record: u32, reason: &str) {
        match self.rejected.get_mut(reason) {
            Some(records) => records.push(record),
            None => {
                self.rejected.insert(reason.to_owned(), vec![record]);
            }
        }
    }

    /// How many records are rejected.
    #[must_use]
    pub fn rejections(&self) -> usize {
        self.rejected.values().map(Vec::len).sum()
    }

    /// The rejected records and their reasons, by record.
    #[must_use]
    pub fn rejected(&self) -> Vec<(u32, &str)> {
        let mut all = Vec::with_capacity(self.rejections());
        for (reason, records) in &self.rejected {
            all.extend(records.iter().map(|record| (*record, reason.as_str())));
        }
        all.sort_unstable();
        all
    }

    /// Reasons, and the records of each, ascending.
    pub(crate) fn into_reasons(mut self) -> BTreeMap<String, Vec<u32>> {
        for records in self.rejected.values_mut() {
            records.sort_unstable();
        }
        self.rejected
    }
}
