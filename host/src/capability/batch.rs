//! A batch as the guest's handle sees it: portions of chunks one behind the other, records counted through.
//!
//! What the chunks' metadata tells is told without reading them. Everything else reads one chunk at a time from the journal, takes the
//! batch's portion of it, and keeps the last few: a guest goes through a batch in order, but asks for sizes, bodies and times of the same
//! records one after the other, and these may lie in two chunks, or in many small ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::{Journal, ReadError};
use crate::record::encode::Chunks;
use crate::record::{BodyKind, Chunk, ChunkId, Partitioning, Portion};
use crate::state::BatchId;

/// Most bytes of one `read`: windows of 64 to 256 KiB are what is fast.
const MAX_READ: u64 = 1 << 20;
/// Bytes of chunks that are kept, as they are stored, and how many; but always two.
const KEPT_BYTES: u64 = 1 << 20;
const KEPT_CHUNKS: usize = 1024;
/// Most records that are listed at once without going to a thread that may take long.
const FEW: u32 = 16 * 1024;

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
    kept: Mutex<Kept>,
}

/// The portions that were read last, as chunks by themselves, by their number.
#[derive(Debug, Default)]
struct Kept {
    chunks: BTreeMap<usize, Chunk>,
    bytes: u64,
}

/// Some neighbouring records of one portion, counted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    portion: usize,
    first: u32,
    count: u32,
}

/// Some neighbouring records as they are stored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Of each body, bytes.
    pub(crate) sizes: Vec<u32>,
    /// The bodies, each with a line feed behind it.
    pub(crate) lines: Vec<u8>,
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
        let kept = Mutex::default();
        Self { inner: Arc::new(Inner { id, attempt, portions, partitioning, starts, journal, kept }) }
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
            // Each with its separator.
            let more = chunk.span(span.first, span.count).len().saturating_sub(span.count as usize);
            let bytes = (packed.len() + more) as u64;
            if bytes > MAX_READ && count > 1 {
                return Err(BodiesError::TooMuch { bytes, most: MAX_READ });
            }
            packed.reserve(more);
            for record in chunk.range(span.first, span.count) {
                packed.extend_from_slice(record.body);
            }
        }
        Ok(packed)
    }

    /// The records from `first` on that fit into `max_bytes`, at least one. Blocks on the disk.
    pub(crate) fn lines(&self, first: u32, max_bytes: u32) -> Result<Lines, ReadError> {
        let mut window = Lines::default();
        for span in self.spans(first, u32::MAX) {
            let chunk = self.chunk(span.portion)?;
            if !window.take(&chunk, span, max_bytes) {
                break;
            }
        }
        Ok(window)
    }

    /// The same of chunks that were read just now. None where they do not fill half of it, and there are more to read.
    pub(crate) fn lines_at_hand(&self, first: u32, max_bytes: u32) -> Option<Lines> {
        let mut window = Lines::default();
        let kept = self.kept();
        for span in self.spans(first, u32::MAX) {
            let Some(chunk) = kept.chunks.get(&span.portion) else {
                let enough = window.lines.len() >= max_bytes.min(MAX_READ as u32) as usize / 2;
                return (enough && !window.sizes.is_empty()).then_some(window);
            };
            if !window.take(chunk, span, max_bytes) {
                break;
            }
        }
        Some(window)
    }

    /// Whether these records are few and were read just now: what is asked of them is told at once, without the disk.
    pub(crate) fn at_hand(&self, first: u32, count: u32) -> bool {
        let kept = self.kept();
        count <= FEW && self.spans(first, count).all(|span| kept.chunks.contains_key(&span.portion))
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
            values.extend(chunk.range(span.first, span.count).map(&value));
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

    /// Portion `n`, as a chunk by itself. The last few are kept. Blocks on the disk.
    pub(crate) fn chunk(&self, n: usize) -> Result<Chunk, ReadError> {
        let mut kept = self.kept();
        if let Some(chunk) = kept.chunks.get(&n) {
            return Ok(chunk.clone());
        }
        let chunk = self.inner.read(n)?;
        kept.keep(n, chunk.clone());
        Ok(chunk)
    }

    /// The same for who keeps chunks itself.
    pub(crate) fn read_chunk(&self, n: usize) -> Result<Chunk, ReadError> {
        self.inner.read(n)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Takes what fits of some records of this chunk; whether all of them did.
    fn take(&mut self, chunk: &Chunk, span: Span, max_bytes: u32) -> bool {
        let most = u64::from(max_bytes).min(MAX_READ) as usize;
        let left = most.saturating_sub(self.lines.len());
        let mut count = chunk.fitting(span.first, span.count, left);
        let mut bytes = chunk.span(span.first, count);
        if bytes.len() > left && !self.sizes.is_empty() {
            // Only the very first record may be larger than the window.
            (count, bytes) = (0, 0..0);
        }
        self.sizes.extend(chunk.sizes(span.first, count));
        self.lines.extend_from_slice(chunk.bodies().get(bytes).unwrap_or_default());
        count == span.count
    }
}

impl Kept {
    /// Keeps one more, in the place of those that are furthest behind; of those ahead, where there is nothing behind.
    fn keep(&mut self, n: usize, chunk: Chunk) {
        self.bytes += chunk.encoded_len();
        self.chunks.insert(n, chunk);
        while self.chunks.len() > 2 && (self.bytes > KEPT_BYTES || self.chunks.len() > KEPT_CHUNKS) {
            let behind = self.chunks.first_key_value().is_some_and(|(first, _)| *first != n);
            let dropped = if behind { self.chunks.pop_first() } else { self.chunks.pop_last() };
            self.bytes -= dropped.map_or(0, |(_, chunk)| chunk.encoded_len());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Options;
    use crate::record::ChunkBuilder;

    /// A batch of chunks with so many records each of so many bytes, and the journal that they can be taken out of.
    struct Stored {
        _dir: tempfile::TempDir,
        batch: Batch,
        ids: Vec<ChunkId>,
    }

    impl Stored {
        async fn new(chunks: &[(u32, usize)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let limits = Options { segment_bytes: 4 << 20, max_bytes: None, reserve_bytes: 0 };
            let (journal, _) = Journal::open(&dir.path().join("j"), &dir.path().join("q"), limits).unwrap();
            journal.start(Box::new(|_| {}));
            let mut portions = Vec::new();
            for (number, (records, bytes)) in chunks.iter().enumerate() {
                let mut builder = ChunkBuilder::new(BodyKind::Text, format!("tag {}", number / 2).into());
                for time in 0..*records {
                    assert!(builder.push(i64::from(time), &vec![b'a' + number as u8 % 26; *bytes]));
                }
                let chunk = builder.finish().unwrap();
                let meta = Arc::clone(chunk.meta());
                portions.push(Portion::whole(journal.append(chunk).await.unwrap().unwrap(), meta));
            }
            let ids = portions.iter().map(|portion| portion.id).collect();
            let together = Arc::new(Partitioning::new(&[]));
            Self { _dir: dir, batch: Batch::new(BatchId([1; 16]), 1, portions.into(), together, journal), ids }
        }

        fn take_out(&self) {
            self.batch.inner.journal.release(&self.ids);
        }
    }

    #[tokio::test]
    async fn sizes_bodies_and_times_of_the_same_records_read_their_chunks_once() {
        let stored = Stored::new(&[(1, 2); 100]).await;
        assert!(!stored.batch.at_hand(10, 80));
        assert_eq!(stored.batch.sizes(10, 80).unwrap(), [2; 80]);
        stored.take_out();
        assert!(stored.batch.at_hand(10, 80));
        assert_eq!(stored.batch.bodies(25, 2).unwrap(), b"zzaa");
        assert_eq!(stored.batch.times(10, 80).unwrap(), [0; 80]);
        assert!(!stored.batch.at_hand(9, 2) && !stored.batch.at_hand(89, 2));
        assert!(stored.batch.sizes(9, 1).is_err(), "never read, and gone");
    }

    #[tokio::test]
    async fn of_large_chunks_two_are_kept_those_ahead() {
        let stored = Stored::new(&[(2, 400_000), (2, 400_000), (2, 400_000)]).await;
        stored.batch.sizes(0, 6).unwrap();
        stored.take_out();
        assert!(stored.batch.at_hand(2, 4));
        assert!(stored.batch.bodies(0, 1).is_err(), "the first made room");
        assert_eq!(stored.batch.bodies(3, 2).unwrap().len(), 800_000);
    }

    #[tokio::test]
    async fn a_batch_that_is_gone_through_again_keeps_what_is_read_now() {
        let stored = Stored::new(&[(1, 600_000), (1, 600_000), (1, 600_000)]).await;
        for first in [0, 1, 2, 0] {
            stored.batch.bodies(first, 1).unwrap();
        }
        stored.take_out();
        assert_eq!(stored.batch.bodies(0, 1).unwrap().len(), 600_000);
    }

    #[tokio::test]
    async fn a_read_of_more_than_a_mebibyte_is_refused_unless_it_is_one_record() {
        let stored = Stored::new(&[(1, 2_000_000), (3, 500_000)]).await;
        assert_eq!(stored.batch.bodies(0, 1).unwrap().len(), 2_000_000);
        assert_eq!(stored.batch.bodies(1, 2).unwrap().len(), 1_000_000);
        for (first, count) in [(0, 2), (1, 3)] {
            assert!(matches!(stored.batch.bodies(first, count), Err(BodiesError::TooMuch { .. })), "{first} {count}");
        }
    }

    #[tokio::test]
    async fn a_window_holds_what_fits_with_its_line_feeds_across_chunks_and_never_less_than_one_record() {
        let stored = Stored::new(&[(3, 2), (2, 5), (1, 100), (1, 0)]).await;
        let window = |first, max_bytes| {
            let Lines { sizes, lines } = stored.batch.lines(first, max_bytes).unwrap();
            (sizes, String::from_utf8(lines).unwrap())
        };
        assert_eq!(window(0, 9), (vec![2, 2, 2], "aa\naa\naa\n".into()));
        assert_eq!(window(1, 12), (vec![2, 2, 5], "aa\naa\nbbbbb\n".into()));
        assert_eq!(window(1, 11), (vec![2, 2], "aa\naa\n".into()));
        assert_eq!(window(3, 0), (vec![5], "bbbbb\n".into()));
        assert_eq!(window(5, 7).0, [100], "larger than the window, and first");
        assert_eq!(window(4, 106).0, [5], "larger than what is left");
        assert_eq!(window(4, 107).0, [5, 100]);
        assert_eq!(window(6, 64), (vec![0], "\n".into()));
        assert_eq!(window(7, 64), (vec![], String::new()));
        assert_eq!(window(u32::MAX, u32::MAX), (vec![], String::new()));
    }

    #[tokio::test]
    async fn a_window_never_has_more_than_a_mebibyte_but_of_one_record() {
        let stored = Stored::new(&[(1, 2_000_000), (3, 500_000)]).await;
        assert_eq!(stored.batch.lines(0, u32::MAX).unwrap().sizes, [2_000_000]);
        assert_eq!(stored.batch.lines(1, u32::MAX).unwrap().sizes, [500_000; 2]);
    }

    #[tokio::test]
    async fn a_window_of_what_was_read_just_now_ends_where_that_ends_unless_it_would_be_small() {
        let stored = Stored::new(&[(4, 9), (4, 9), (4, 9)]).await;
        let at_hand = |first, max_bytes| stored.batch.lines_at_hand(first, max_bytes).map(|it| it.sizes.len());
        assert_eq!(at_hand(0, 40), None);
        stored.batch.sizes(0, 8).unwrap();
        assert_eq!(at_hand(0, 40), Some(4));
        assert_eq!(at_hand(0, 160), Some(8), "half of it");
        assert_eq!(at_hand(0, 162), None);
        assert_eq!(at_hand(2, 60), Some(6));
        assert_eq!(at_hand(8, 1), None);
        stored.batch.sizes(8, 4).unwrap();
        assert_eq!(at_hand(4, 1000), Some(8), "there is no more");
    }

    #[tokio::test]
    async fn tags_come_in_runs_across_chunks() {
        let stored = Stored::new(&[(2, 1), (3, 1), (1, 1)]).await;
        let runs = |runs: &[(&str, u32)]| runs.iter().map(|(tag, n)| ((*tag).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(stored.batch.tags(0, 10), runs(&[("tag 0", 5), ("tag 1", 1)]));
        assert_eq!(stored.batch.tags(1, 3), runs(&[("tag 0", 3)]));
        assert_eq!(stored.batch.tags(6, 3), runs(&[]));
    }
}
