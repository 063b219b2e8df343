//! Parts of a chunk: some of its records, as a chunk of their own.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Chunk, ChunkMeta};
use crate::record::layout;
use crate::record::portion::Part;
use crate::record::record_set::RecordSet;

/// A part is read by itself where it is less than one of so many parts of its chunk.
const WORTH_READING_WHOLE: u64 = 4;

/// What lies between two records, and is as short as this, is read with them: cheaper than another call.
const READ_THROUGH: usize = 4096;

impl Chunk {
    /// These records as a chunk of their own, without routes and positions. They are copied.
    #[must_use]
    pub fn only(&self, part: &Part) -> Self {
        let columns = self.columns_of(&part.records);
        self.made_of(part, columns, self.bodies_of(&part.records))
    }
    /// What is to be known of these records.
    pub fn part(&self, records: RecordSet) -> Part {
        let (body_bytes, first_ns, last_ns) = self.measure(&records);
        let crc = layout::crc32c(&[&self.columns_of(&records), &self.bodies_of(&records)]);
        Part { records, body_bytes, first_ns, last_ns, crc }
    }
    /// Reads a part of an encoded chunk without most of the rest. `meta` is the chunk's, known from before; `read` gives so many bytes
    /// from an offset in the encoded chunk. None where that is not what the part's checksum is of, or is not worth it.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn read_part<E>(
        meta: &Arc<ChunkMeta>,
        part: &Part,
        read: impl Fn(u64, usize) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Self>, E> {
        if part.body_bytes.saturating_mul(WORTH_READING_WHOLE) > meta.body_bytes {
            return Ok(None);
        }
        let Some((one_time, header)) = layout::read_start(&read(0, layout::START_BYTES)?) else { return Ok(None) };
        let columns_bytes = layout::times_bytes(one_time, meta.records) as usize + meta.records as usize * 4;
        if header != layout::header_bytes(meta) {
            return Ok(None);
        }
        let columns = read(header as u64, columns_bytes)?.into();
        let chunk = Self { meta: meta.clone(), one_time, columns, bodies: Bytes::new(), content_crc: 0 };
        let bodies_at = (header + columns_bytes) as u64;
        let most = meta.body_bytes + u64::from(meta.records);
        let mut bodies = Vec::with_capacity(part.body_bytes as usize + part.records.count() as usize);
        let mut spans = part.records.runs().map(|run| chunk.span(run.start, run.end - run.start)).peekable();
        while let Some(first) = spans.next() {
            // Neighbours come with one read, and what lies between them is left out then.
            let mut together = vec![first.clone()];
            let mut end = first.end;
            while let Some(next) = spans.next_if(|next| next.start >= end && next.start - end <= READ_THROUGH) {
                end = next.end;
                together.push(next);
            }
            let Some(length) = end.checked_sub(first.start).filter(|_| end as u64 <= most) else { return Ok(None) };
            let bytes = read(bodies_at + first.start as u64, length)?;
            for span in together {
                // These come from columns that may be damaged.
                let span = span.start.saturating_sub(first.start)..span.end.saturating_sub(first.start);
                bodies.extend_from_slice(bytes.get(span).unwrap_or_default());
            }
        }
        let columns = chunk.columns_of(&part.records);
        let is_it = layout::crc32c(&[&columns, &bodies]) == part.crc;
        Ok(is_it.then(|| chunk.made_of(part, columns, bodies)))
    }
    /// The chunk that a part of this one is by itself.
    fn made_of(&self, part: &Part, columns: Vec<u8>, bodies: Vec<u8>) -> Self {
        let meta = ChunkMeta {
            kind: self.meta.kind,
            tag: self.meta.tag.clone(),
            routes: Vec::new(),
            positions: Vec::new(),
            arrival_ns: self.meta.arrival_ns,
            first_ns: part.first_ns,
            last_ns: part.last_ns,
            records: part.records.count(),
            body_bytes: part.body_bytes,
        };
        Self {
            meta: Arc::new(meta),
            one_time: self.one_time,
            content_crc: part.crc,
            columns: columns.into(),
            bodies: bodies.into(),
        }
    }
    /// The columns that a chunk of these records alone has.
    fn columns_of(&self, records: &RecordSet) -> Vec<u8> {
        let (times, ends) = self.split_columns();
        let (times, ends): (&[[u8; 8]], &[[u8; 4]]) = (times.as_chunks().0, ends.as_chunks().0);
        let mut columns = Vec::with_capacity(records.count() as usize * 12 + 8);
        if self.one_time {
            columns.extend_from_slice(times.as_flattened());
        } else {
            let of_run = |run: Range<u32>| times.get(as_indexes(&run)).unwrap_or_default().as_flattened();
            records.runs().for_each(|run| columns.extend_from_slice(of_run(run)));
        }
        let mut bodies: u32 = 0;
        for run in records.runs() {
            let span = self.span(run.start, run.end - run.start);
            // Bodies are shorter than 4 GiB. What is not yet known to be good may be anything, and a checksum is held against it.
            let (from, to) = (span.start as u32, bodies);
            let moved = |end: &[u8; 4]| u32::from_le_bytes(*end).wrapping_sub(from).wrapping_add(to).to_le_bytes();
            let ends = ends.get(as_indexes(&run)).unwrap_or_default();
            columns.extend(ends.iter().flat_map(moved));
            bodies = bodies.wrapping_add((span.end as u32).wrapping_sub(from));
        }
        columns
    }
    /// The bodies that a chunk of these records alone has.
    fn bodies_of(&self, records: &RecordSet) -> Vec<u8> {
        let mut bodies = Vec::new();
        for run in records.runs() {
            let span = self.span(run.start, run.end - run.start);
            bodies.extend_from_slice(self.bodies.get(span).unwrap_or_default());
        }
        bodies
    }
    /// Bytes of these records' bodies, their earliest and their latest time.
    pub(super) fn measure(&self, records: &RecordSet) -> (u64, i64, i64) {
        let times: &[[u8; 8]] = self.split_columns().0.as_chunks().0;
        let (mut body_bytes, mut first_ns, mut last_ns) = (0, i64::MAX, i64::MIN);
        for run in records.runs() {
            let separators = run.len() as u64;
            body_bytes += (self.span(run.start, run.end - run.start).len() as u64).saturating_sub(separators);
            let of_run = if self.one_time { times } else { times.get(as_indexes(&run)).unwrap_or_default() };
            for time in of_run.iter().map(|time| i64::from_le_bytes(*time)) {
                (first_ns, last_ns) = (first_ns.min(time), last_ns.max(time));
            }
        }
        (body_bytes, first_ns, last_ns)
    }
}

fn as_indexes(run: &Range<u32>) -> Range<usize> {
    run.start as usize..run.end as usize
}
