//! A batch as the guest's handle sees it: portions of chunks one behind the other, records counted through.
//!
//! What the chunks' metadata tells is told without reading them. Everything else reads one chunk at a time from the journal, takes the
//! batch's portion of it, and keeps the last one, since a guest goes through a batch in order.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::journal::{Journal, ReadError};
use crate::record::encode::Chunks;
use crate::record::{BodyKind, Chunk, ChunkId, Partitioning, Portion};
use crate::state::BatchId;

/// Most bytes of one `read`: windows of 64 to 256 KiB are what is fast.
const MAX_READ: u64 = 1 << 20;

/// A batch that a guest has a handle of. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Batch {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: BatchId,
    attempt: u32,
    portions: Arc<[Portion]>,
    partitioning: Arc<Partitioning>,
    /// Number of the first record of each portion, and of the one behind the last.
    starts: Vec<u32>,
    journal: Journal,
    last_read: Mutex<Option<(usize, Chunk)>>,
}

/// Some neighbouring records of one portion, counted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    portion: usize,
    first: u32,
    count: u32,
}

/// Why bodies could not be read.
#[derive(Debug)]
pub(crate) enum BodiesError {
    Journal(ReadError),
    TooMuch { bytes: u64, most: u64 },
}

impl Batch {
    pub(crate) fn new(
        id: BatchId,
        attempt: u32,
        portions: Arc<[Portion]>,
        partitioning: Arc<Partitioning>,
        journal: Journal,
    ) -> Self {
        let mut starts = Vec::with_capacity(portions.len() + 1);
        let mut next = 0u32;
        for portion in portions.iter() {
            starts.push(next);
            next = next.saturating_add(portion.records());
        }
        starts.push(next);
        let last_read = Mutex::default();
        Self { inner: Arc::new(Inner { id, attempt, portions, partitioning, starts, journal, last_read }) }
    }

    pub(crate) fn id(&self) -> BatchId {
        self.inner.id
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// The first record's tag.
    pub(crate) fn tag(&self) -> &str {
        self.inner.portions.first().map_or("", |portion| &portion.meta.tag)
    }

    /// What all records have in common, by the output's partition keys: the first record's values. Blocks on the disk.
    pub(crate) fn partition(&self) -> Result<Vec<Option<String>>, ReadError> {
        let Some(portion) = self.inner.portions.first() else { return Ok(Vec::new()) };
        // A tag alone is told without reading.
        let chunk = if self.inner.partitioning.has_fields() { Some(self.chunk(0)?) } else { None };
        let first = chunk.as_ref().and_then(|chunk| chunk.record(0));
        let body = first.map_or(&b""[..], |record| record.body);
        Ok(self.inner.partitioning.values(&portion.meta.tag, portion.meta.kind, body))
    }

    /// How many records.
    pub(crate) fn count(&self) -> u32 {
        self.inner.starts.last().copied().unwrap_or(0)
    }

    /// Bytes of all bodies, without separators.
    pub(crate) fn size(&self) -> u64 {
        self.inner.portions.iter().map(Portion::body_bytes).sum()
    }

    pub(crate) fn first_time(&self) -> i64 {
        self.inner.portions.iter().map(Portion::first_ns).min().unwrap_or(0)
    }

    pub(crate) fn last_time(&self) -> i64 {
        self.inner.portions.iter().map(Portion::last_ns).max().unwrap_or(0)
    }

    /// For each record: 0 is text, 1 is JSON.
    pub(crate) fn kinds(&self, first: u32, count: u32) -> Vec<u8> {
        let mut kinds = Vec::new();
        for span in self.spans(first, count) {
            let portion = self.inner.portions.get(span.portion);
            let json = portion.is_some_and(|portion| portion.meta.kind == BodyKind::Json);
            kinds.resize(kinds.len() + span.count as usize, u8::from(json));
        }
        kinds
    }

    /// Tags in runs: a tag, and how many records one behind the other have it.
    pub(crate) fn tags(&self, first: u32, count: u32) -> Vec<(String, u32)> {
        let mut runs: Vec<(String, u32)> = Vec::new();
        for span in self.spans(first, count) {
            let tag = self.inner.portions.get(span.portion).map_or("", |portion| &*portion.meta.tag);
            match runs.last_mut() {
                Some((last, records)) if last == tag => *records = records.saturating_add(span.count),
                _ => runs.push((tag.to_owned(), span.count)),
            }
        }
        runs
    }

    /// Record times. Blocks on the disk.
    pub(crate) fn times(&self, first: u32, count: u32) -> Result<Vec<i64>, ReadError> {
        self.map(first, count, |record| record.time_ns)
    }

    /// Body sizes. Blocks on the disk.
    pub(crate) fn sizes(&self, first: u32, count: u32) -> Result<Vec<u32>, ReadError> {
        self.map(first, count, |record| u32::try_from(record.body.len()).unwrap_or(u32::MAX))
    }

    /// Bodies packed one behind the other. Blocks on the disk.
    pub(crate) fn bodies(&self, first: u32, count: u32) -> Result<Vec<u8>, BodiesError> {
        let mut packed = Vec::new();
        for span in self.spans(first, count) {
            let chunk = self.chunk(span.portion).map_err(BodiesError::Journal)?;
            for n in span.first..span.first.saturating_add(span.count) {
                let Some(record) = chunk.record(n) else { continue };
                let bytes = packed.len() as u64 + record.body.len() as u64;
                if bytes > MAX_READ && count > 1 {
                    return Err(BodiesError::TooMuch { bytes, most: MAX_READ });
                }
                packed.extend_from_slice(record.body);
            }
        }
        Ok(packed)
    }

    /// The chunks for an encoder, which reads each once and in order, and keeps none.
    pub(crate) fn chunks(&self) -> BatchChunks {
        BatchChunks { inner: Arc::clone(&self.inner) }
    }

    /// The portion that record `number` is in, and the numbers of all of its records.
    pub(crate) fn portion_of(&self, number: u32) -> Option<(usize, Range<u32>)> {
        let portion = self.inner.starts.partition_point(|start| *start <= number).checked_sub(1)?;
        let records = *self.inner.starts.get(portion)?..*self.inner.starts.get(portion + 1)?;
        records.contains(&number).then_some((portion, records))
    }

    /// The time of all records of a portion, where they have the same: known without reading them.
    pub(crate) fn one_time(&self, portion: usize) -> Option<i64> {
        let portion = self.inner.portions.get(portion)?;
        (portion.first_ns() == portion.last_ns()).then(|| portion.first_ns())
    }

    fn map<T>(
        &self,
        first: u32,
        count: u32,
        value: impl Fn(crate::record::RecordRef<'_>) -> T,
    ) -> Result<Vec<T>, ReadError> {
        let mut values = Vec::new();
        for span in self.spans(first, count) {
            let chunk = self.chunk(span.portion)?;
            let records = span.first..span.first.saturating_add(span.count);
            values.extend(records.filter_map(|n| chunk.record(n)).map(&value));
        }
        Ok(values)
    }

    /// Where `count` records from `first` lie. Ends early at the batch's end.
    fn spans(&self, first: u32, count: u32) -> impl Iterator<Item = Span> {
        let starts = &self.inner.starts;
        let end = first.saturating_add(count).min(self.count());
        let begin = starts.partition_point(|start| *start <= first).saturating_sub(1);
        starts.windows(2).enumerate().skip(begin).map_while(move |(portion, window)| {
            let &[start, next] = window else { return None };
            let (from, to) = (first.max(start), end.min(next));
            (from < to).then(|| Span { portion, first: from - start, count: to - from })
        })
    }

    /// Portion `n`, as a chunk by itself. The last one is kept. Blocks on the disk.
    pub(crate) fn chunk(&self, n: usize) -> Result<Chunk, ReadError> {
        let mut last = self.inner.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, chunk)) = &*last
            && *number == n
        {
            return Ok(chunk.clone());
        }
        let chunk = self.inner.read(n)?;
        *last = Some((n, chunk.clone()));
        Ok(chunk)
    }
}

impl Inner {
    fn read(&self, n: usize) -> Result<Chunk, ReadError> {
        match self.portions.get(n) {
            Some(portion) => self.journal.read_portion(portion),
            // Callers count by `portions`; an id that never is says the same as a chunk that is gone.
            None => Err(ReadError::Missing(ChunkId(u64::MAX))),
        }
    }
}

/// A batch's portions, as an encoder takes them: each a chunk by itself.
#[derive(Debug)]
pub(crate) struct BatchChunks {
    inner: Arc<Inner>,
}

impl Chunks for BatchChunks {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.inner.portions.len()
    }

    fn records(&self, n: usize) -> u32 {
        self.inner.portions.get(n).map_or(0, Portion::records)
    }

    fn chunk(&mut self, n: usize) -> Result<Chunk, ReadError> {
        self.inner.read(n)
    }
}
