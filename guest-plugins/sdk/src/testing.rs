//! Batches for an author's native tests (`cargo test`), where there is no host.
//!
//! They hold what a test gives them, for the plugin's own logic: how records are grouped, read, refused. What calls the host
//! ([`Batch::encode`](crate::Batch::encode) and all services) needs one: `wharf plugin test` runs the whole plugin with scripted answers.
//!
//! ```
//! use serde_json::json;
//! use wharf_plugin::testing::{Sample, batch};
//!
//! let batch = batch([Sample::text("plain"), Sample::json(json!({ "level": "warn" })).at(5).tag("app")]);
//! let tags: Vec<_> = batch.records().map(|record| record.unwrap().tag().to_owned()).collect();
//! assert_eq!(tags, ["test", "app"]);
//! ```

use std::rc::Rc;

use serde_json::Value;

use crate::bindings::wharf::output::records::Window;
use crate::source::Source;
use crate::{Batch, Kind};

/// Why what needs the host does not work.
pub(crate) const NO_HOST: &str = "a native test has no host: what calls it is tested by `wharf plugin test`";

/// A record of a test's batch: with the tag `test`, and time 0, unless it is said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    time: i64,
    tag: String,
    kind: Kind,
    body: Vec<u8>,
}

impl Sample {
    /// A text record.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Self { time: 0, tag: "test".into(), kind: Kind::Text, body: text.as_ref().to_vec() }
    }
    /// A JSON record.
    #[must_use]
    pub fn json(object: Value) -> Self {
        Self { kind: Kind::Json, ..Self::text(object.to_string()) }
    }
    /// With this time, nanoseconds since 1970 UTC.
    #[must_use]
    pub fn at(self, time: i64) -> Self {
        Self { time, ..self }
    }
    /// With this tag.
    #[must_use]
    pub fn tag(self, tag: impl Into<String>) -> Self {
        Self { tag: tag.into(), ..self }
    }
}

impl From<&str> for Sample {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Value> for Sample {
    fn from(object: Value) -> Self {
        Self::json(object)
    }
}

/// A batch of these records, its first attempt: texts, JSON objects, or [`Sample`]s.
pub fn batch<T: Into<Sample>>(records: impl IntoIterator<Item = T>) -> Batch<'static> {
    Batch::new(Source::Memory(Rc::new(Memory(records.into_iter().map(Into::into).collect()))))
}

/// What answers for the host.
#[derive(Debug)]
pub(crate) struct Memory(Vec<Sample>);

impl Memory {
    pub(crate) fn id(&self) -> String {
        "0".repeat(32)
    }
    pub(crate) fn attempt(&self) -> u32 {
        1
    }
    pub(crate) fn tag(&self) -> String {
        self.0.first().map(|record| record.tag.clone()).unwrap_or_default()
    }
    pub(crate) fn partition(&self) -> Vec<Option<String>> {
        Vec::new()
    }
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
    pub(crate) fn size(&self) -> u64 {
        self.0.iter().map(|record| record.body.len() as u64).sum()
    }
    pub(crate) fn first_time(&self) -> i64 {
        self.0.iter().map(|record| record.time).min().unwrap_or(0)
    }
    pub(crate) fn last_time(&self) -> i64 {
        self.0.iter().map(|record| record.time).max().unwrap_or(0)
    }
    pub(crate) fn times(&self, first: u32, count: u32) -> Vec<i64> {
        self.some(first, count).map(|record| record.time).collect()
    }
    pub(crate) fn sizes(&self, first: u32, count: u32) -> Vec<u32> {
        self.some(first, count).map(|record| u32::try_from(record.body.len()).unwrap_or(u32::MAX)).collect()
    }
    pub(crate) fn kinds(&self, first: u32, count: u32) -> Vec<u8> {
        self.some(first, count).map(|record| u8::from(record.kind == Kind::Json)).collect()
    }
    pub(crate) fn tags(&self, first: u32, count: u32) -> Vec<(String, u32)> {
        self.some(first, count).map(|record| (record.tag.clone(), 1)).collect()
    }
    pub(crate) fn read_window(&self, first: u32, max_bytes: u32) -> Window {
        let mut window = Window { sizes: Vec::new(), lines: Vec::new() };
        for Sample { body, .. } in self.some(first, u32::MAX) {
            if !window.sizes.is_empty() && window.lines.len() + body.len() + 1 > max_bytes as usize {
                break;
            }
            window.sizes.push(u32::try_from(body.len()).unwrap_or(u32::MAX));
            window.lines.extend_from_slice(body);
            window.lines.push(b'\n');
        }
        window
    }

    fn some(&self, first: u32, count: u32) -> impl Iterator<Item = &Sample> {
        self.0.iter().skip(first as usize).take(count as usize)
    }
}
