//! What an output plugin is: one trait, and the types that it speaks.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Batch, Failure, Faults, s3};

/// An output plugin. One value lives in each worker, and takes one batch at a time. [`export!`](crate::export) makes it the component's.
pub trait Output: Sized + 'static {
    /// The output's `config`: a struct whose JSON schema is derived with it. Doc comments become the descriptions that operators read. Options
    /// that it does not name are refused, `#[serde(deny_unknown_fields)]` or not.
    type Config: DeserializeOwned + JsonSchema;

    /// Other names of options, and the option that each stands for. The SDK renames them before [`Config`](Self::Config)
    /// is read, refuses both at once, and lists them in the schema. An option with other names must not be required.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
    /// Option names that people bring along from elsewhere and that this plugin does not take, each with what to do
    /// instead. They become `x-elsewhere` in the schema.
    const ELSEWHERE: &'static [(&'static str, &'static str)] = &[];

    /// Checks the configuration and says what the host has to know. Makes no calls but [`log`](crate::log) and
    /// [`clock`](crate::clock): it also serves `wharf validate`. Where the schema refuses a part of what is written, the rest of it is asked
    /// about, so that all faults come at once.
    ///
    /// # Errors
    /// Everything that is wrong, all at once.
    fn configure(config: Self::Config, context: &Context) -> Result<(Self, Plan), Faults>;

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

/// ```
/// use wharf_plugin::Plan;
///
/// let plan = Plan { max_records: Some(500), ..Plan::default() }.with_http("https://api.example.com/v1/events?source=wharf");
/// assert_eq!(plan.http, ["https://api.example.com"]);
/// ```
impl Plan {
    /// The output will send requests to where this URL leads.
    #[must_use]
    pub fn with_http(mut self, url: &str) -> Self {
        self.http.push(origin(url).to_owned());
        self
    }
    /// Its requests will name this credential.
    #[must_use]
    pub fn with_credential(mut self, name: impl Into<String>) -> Self {
        self.credentials.push(name.into());
        self
    }
    /// It will touch keys of this bucket that begin so; with an empty prefix, every key.
    #[must_use]
    pub fn with_s3(mut self, bucket: impl Into<String>, key_prefix: impl Into<String>) -> Self {
        self.s3.push(s3::Scope::new(bucket, key_prefix));
        self
    }
    /// It will touch this log group; with `*` at the end, all whose names begin so.
    #[must_use]
    pub fn with_log_group(mut self, name: impl Into<String>) -> Self {
        self.log_groups.push(name.into());
        self
    }
}

/// Scheme, host and port of a URL; what is none stays as it is, for the host to say so.
fn origin(url: &str) -> &str {
    let Some(authority) = url.find("://").map(|colon| colon + 3) else { return url };
    let rest = url.get(authority..).unwrap_or_default();
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(..authority + length).unwrap_or(url)
}

/// What tells one record from another before they are put into batches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionKey {
    /// The record's tag.
    Tag,
    /// The value at this path of keys in a JSON record. A text record has one key, `log`.
    Field(Vec<String>),
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
    /// any order, each record once. Equal reasons are kept once, however many records have them: leave numbers and names out that differ
    /// from record to record.
    ///
    /// ```
    /// # use wharf_plugin::{Report, testing};
    /// # let batch = testing::batch(["one", ""]);
    /// let mut report = Report::all_delivered();
    /// for record in batch.records() {
    ///     let record = record?;
    ///     if record.bytes().is_empty() {
    ///         report.reject(record.index(), "the destination takes no empty records");
    ///     }
    /// }
    /// assert_eq!(report.rejected(), [(1, "the destination takes no empty records")]);
    /// # Ok::<(), wharf_plugin::Failure>(())
    /// ```
    pub fn reject(&mut self, record: u32, reason: impl fmt::Display) {
        self.rejected.entry(reason.to_string()).or_default().push(record);
    }

    /// What was made of a record; or nothing, and the record is rejected with the error as the reason.
    ///
    /// ```
    /// # use wharf_plugin::{Report, testing};
    /// #[derive(serde::Deserialize)]
    /// struct Event {
    ///     level: String,
    /// }
    /// # let batch = testing::batch([r#"{"level":"info"}"#, "no event"]);
    /// let mut report = Report::all_delivered();
    /// for record in batch.records() {
    ///     let record = record?;
    ///     let Some(event) = report.or_reject(record.index(), record.json::<Event>()) else { continue };
    ///     println!("{}", event.level);
    /// }
    /// assert_eq!(report.rejections(), 1);
    /// # Ok::<(), wharf_plugin::Failure>(())
    /// ```
    pub fn or_reject<T, E: fmt::Display>(&mut self, record: u32, made: Result<T, E>) -> Option<T> {
        made.map_err(|reason| self.reject(record, reason)).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheme and authority, after RFC 3986, section 3.
    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, expected) in [
            ("https://api.example.com/v1?x=1#y", "https://api.example.com"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://h:1?q=http://other/", "https://h:1"),
            ("https://h#a/b", "https://h"),
            ("not a url", "not a url"),
            ("", ""),
        ] {
            assert_eq!(origin(url), expected, "{url}");
        }
    }

    #[test]
    fn rejected_records_are_told_by_number_and_kept_by_reason() {
        let mut report = Report::all_delivered();
        report.reject(5, "b");
        report.reject(2, "a");
        report.reject(3, String::from("b"));
        assert_eq!(report.rejected(), [(2, "a"), (3, "b"), (5, "b")]);
        assert_eq!(report.rejections(), 3);
        let reasons = report.into_reasons();
        assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("a".to_owned(), vec![2]), ("b".to_owned(), vec![3, 5])]);
    }
}
