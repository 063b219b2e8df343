//! The records of a request on their way to chunks: one chunk for each tag.

use std::borrow::Cow;
use std::sync::Arc;

use super::denied::Denied;
use super::record::{Around, Owner, Record, time_of};
use super::value::{Pair, Value};
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

/// What a request's records may have as JSON, in its largest sizes: each of them has its resource with it.
pub(super) const AS_JSON: usize = 8;

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
    resource: (Option<Owner<'a>>, Cow<'a, str>),
    around: Around,
    /// What the records of the scope have as they were sent, until the first of them is there.
    ahead: Option<usize>,
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
            resource: (None, Cow::default()),
            around: Around::default(),
            ahead: None,
            bytes: 0,
            counted: 0,
            number: 0,
            rejected: None,
        }
    }

    /// What follows is of this resource.
    pub(super) fn resource(&mut self, resource: Option<Owner<'a>>, schema_url: Cow<'a, str>) -> Result<(), Denied> {
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

    /// What follows is of this scope, and has about so many bytes as it was sent.
    pub(super) fn scope(&mut self, scope: Option<&Owner<'_>>, schema_url: &str, ahead: usize) -> Result<(), Denied> {
        shallow(scope.map_or(&[][..], |scope| &scope.attributes))?;
        let (resource, resource_schema) = &self.resource;
        self.around = Around::new(self.shape.format, resource.as_ref(), resource_schema, scope, schema_url);
        self.ahead = Some(ahead);
        Ok(())
    }

    /// A record, or why it is none, of so many bytes as it was sent.
    pub(super) fn record(&mut self, record: Result<&Record<'_>, String>, sent: usize) -> Result<(), Denied> {
        self.number += 1;
        let record = record.and_then(|record| {
            let is_shallow = record.body.as_ref().is_none_or(|body| body.is_shallow(MAX_DEPTH))
                && record.attributes.iter().all(|pair| pair.is_shallow(MAX_DEPTH));
            if is_shallow { Ok(record) } else { Err(format!("its values are nested more than {MAX_DEPTH} deep")) }
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
        let time_ns = time_of(record).unwrap_or(self.arrival_ns);
        let chunk = self.chunks.get_mut(self.current).map(|(_, chunk)| chunk);
        let written = chunk.and_then(|chunk| {
            let written = chunk.push_with(time_ns, |out| self.around.write(self.shape.format, record, out))?;
            // The others are mostly like the first. Of what is too much the memory is never touched.
            if let Some(ahead) = self.ahead.take() {
                chunk.reserve((ahead.saturating_mul(written) / sent.max(1)).min(ahead * AS_JSON));
            }
            Some(written)
        });
        let written = written.ok_or(Denied::TooLargeAsJson(self.shape.most_bytes))?;
        self.count((written - self.around.bytes()) as u64)
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
    fn tag(&self, resource: Option<&Owner<'_>>) -> Arc<str> {
        let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
        let sent = self.shape.tag_from.as_ref().and_then(|name| attributes.iter().find(|pair| pair.key == *name));
        match sent.and_then(|pair| pair.value.as_ref()) {
            Some(Value::Text(text)) if is_tag(text) => text.as_ref().into(),
            _ => self.shape.tag.clone(),
        }
    }
}

fn is_tag(text: &str) -> bool {
    (1..=LONGEST_TAG).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Of a resource or a scope, whose records cannot be without it.
fn shallow(attributes: &[Pair<'_>]) -> Result<(), Denied> {
    if attributes.iter().all(|pair| pair.is_shallow(MAX_DEPTH)) {
        return Ok(());
    }
    Err(Denied::Malformed(format!("an attribute of a resource or scope is nested more than {MAX_DEPTH} deep")))
}
