//! The records of a request on their way to chunks: one chunk for each tag.

use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::denied::Denied;
use super::record::{Around, time_of};
use crate::config::OtlpFormat;
use crate::record::{BodyKind, Chunk, ChunkBuilder};
use crate::source::room::Held;

/// A record of more than this is rejected: in memory, one that is made for it takes thirty times its bytes.
pub(super) const LARGEST_RECORD: usize = 2 << 20;

/// How deep lists and maps may be nested in a value: as OTLP/JSON that is less than the 128 levels that readers of JSON take.
const MAX_DEPTH: usize = 32;

/// Longest tag from an attribute.
const LONGEST_TAG: usize = 255;

/// Most tags of one request.
const TAGS: usize = 1024;

/// What a record takes besides its body, about.
const OVERHEAD: usize = 16;

/// Room that is taken at a time.
const STEP: u64 = 1 << 20;

/// How records become chunks.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) format: OtlpFormat,
    pub(crate) tag: Arc<str>,
    pub(crate) tag_from: Option<String>,
    /// The most that all records of a request may have as JSON.
    pub(crate) most_bytes: u64,
}

/// Records that are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) records: u64,
    /// Of the first: its number in the request, from 1, and what is wrong with it.
    first: (u64, String),
}

impl Rejected {
    pub(crate) fn message(&self) -> String {
        let (number, why) = &self.first;
        match self.records {
            1 => format!("record {number} is not taken: {why}"),
            records => format!("{records} records are not taken; the first is record {number}: {why}"),
        }
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) rejected: Option<Rejected>,
}

/// Takes the parts of a request in turn.
pub(crate) struct Gather<'a> {
    shape: &'a Shape,
    held: &'a mut Held,
    arrival_ns: i64,
    chunks: Vec<(Arc<str>, ChunkBuilder)>,
    current: usize,
    resource: (Option<Resource>, String),
    around: Around,
    scratch: Vec<u8>,
    bytes: u64,
    counted: u64,
    number: u64,
    rejected: Option<Rejected>,
}

impl<'a> Gather<'a> {
    /// What it keeps in memory is added to `held`.
    pub(crate) fn new(shape: &'a Shape, held: &'a mut Held, arrival_ns: i64) -> Self {
        Self {
            shape,
            held,
            arrival_ns,
            chunks: Vec::new(),
            current: 0,
            resource: (None, String::new()),
            around: Around::default(),
            scratch: Vec::new(),
            bytes: 0,
            counted: 0,
            number: 0,
            rejected: None,
        }
    }

    /// What follows is of this resource.
    pub(super) fn resource(&mut self, resource: Option<Resource>, schema_url: String) -> Result<(), Denied> {
        shallow(resource.as_ref().map_or(&[][..], |resource| &resource.attributes))?;
        let tag = self.tag(resource.as_ref());
        self.resource = (resource, schema_url);
        self.current = match self.chunks.iter().rposition(|(known, _)| *known == tag) {
            Some(at) => at,
            None if self.chunks.len() == TAGS => {
                return Err(Denied::Malformed(format!("its records have more than {TAGS} tags")));
            }
            None => {
                let builder = ChunkBuilder::arrived(BodyKind::Json, tag.clone(), self.arrival_ns);
                self.chunks.push((tag, builder));
                self.chunks.len() - 1
            }
        };
        Ok(())
    }

    /// What follows is of this scope.
    pub(super) fn scope(&mut self, scope: Option<&InstrumentationScope>, schema_url: &str) -> Result<(), Denied> {
        shallow(scope.map_or(&[][..], |scope| &scope.attributes))?;
        let (resource, resource_schema) = &self.resource;
        self.around = Around::new(self.shape.format, resource.as_ref(), resource_schema, scope, schema_url);
        Ok(())
    }

    /// A record, or why it is none.
    pub(super) fn record(&mut self, record: Result<LogRecord, String>) -> Result<(), Denied> {
        self.number += 1;
        let record = record.and_then(|record| {
            let is_deep = record.body.iter().chain(record.attributes.iter().filter_map(|pair| pair.value.as_ref()));
            let is_deep = is_deep.into_iter().any(|any| !is_shallow(any, MAX_DEPTH));
            if is_deep { Err(format!("its values are nested more than {MAX_DEPTH} deep")) } else { Ok(record) }
        });
        let record = match record {
            Ok(record) => record,
            Err(why) => {
                let rejected = self.rejected.get_or_insert(Rejected { records: 0, first: (self.number, why) });
                rejected.records += 1;
                return Ok(());
            }
        };
        // Before it is written: what its resource says may be large, and there for each record.
        self.count((self.around.bytes() + OVERHEAD) as u64)?;
        self.around.write(self.shape.format, &record, &mut self.scratch);
        self.count((self.scratch.len() - self.around.bytes()) as u64)?;
        let pushed = self
            .chunks
            .get_mut(self.current)
            .is_some_and(|(_, chunk)| chunk.push(time_of(&record).unwrap_or(self.arrival_ns), &self.scratch));
        if pushed { Ok(()) } else { Err(Denied::TooLargeAsJson(self.shape.most_bytes)) }
    }

    pub(crate) fn finish(self) -> Gathered {
        let chunks = self.chunks.into_iter().filter_map(|(_, chunk)| chunk.finish()).collect();
        Gathered { chunks, rejected: self.rejected }
    }

    fn count(&mut self, bytes: u64) -> Result<(), Denied> {
        self.bytes += bytes;
        if self.bytes > self.shape.most_bytes {
            return Err(Denied::TooLargeAsJson(self.shape.most_bytes));
        }
        if self.bytes > self.counted {
            let more = (self.bytes - self.counted).max(STEP);
            self.held.add(more).map_err(|_| Denied::Busy)?;
            self.counted += more;
        }
        Ok(())
    }

    /// The value of the attribute that is asked for, where it can be a tag; else the source's.
    fn tag(&self, resource: Option<&Resource>) -> Arc<str> {
        let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
        let sent = self.shape.tag_from.as_ref().and_then(|name| attributes.iter().find(|pair| pair.key == *name));
        match sent.and_then(|pair| pair.value.as_ref()?.value.as_ref()) {
            Some(Value::StringValue(text)) if is_tag(text) => text.as_str().into(),
            _ => self.shape.tag.clone(),
        }
    }
}

fn is_tag(text: &str) -> bool {
    (1..=LONGEST_TAG).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn is_shallow(any: &AnyValue, depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match &any.value {
        Some(Value::ArrayValue(array)) => array.values.iter().all(|any| is_shallow(any, deeper)),
        Some(Value::KvlistValue(list)) => {
            list.values.iter().filter_map(|pair| pair.value.as_ref()).all(|any| is_shallow(any, deeper))
        }
        _ => true,
    }
}

/// Of a resource or a scope, whose records cannot be without it.
fn shallow(attributes: &[KeyValue]) -> Result<(), Denied> {
    let mut values = attributes.iter().filter_map(|pair| pair.value.as_ref());
    if values.all(|any| is_shallow(any, MAX_DEPTH)) {
        return Ok(());
    }
    Err(Denied::Malformed(format!("an attribute of a resource or scope is nested more than {MAX_DEPTH} deep")))
}
