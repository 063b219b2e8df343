//! The records of a chunk, one after the other.

/// One record of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Nanoseconds since 1970 UTC.
    pub time_ns: i64,
    /// The body, without its separator.
    pub body: &'a [u8],
}

/// Some records of a chunk.
pub(super) struct Records<'a> {
    /// The time of all, where `times` is empty.
    pub(super) time_ns: i64,
    pub(super) times: &'a [[u8; 8]],
    pub(super) ends: &'a [[u8; 4]],
    /// Where the next body begins.
    pub(super) start: usize,
    pub(super) bodies: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordRef<'a>;

    fn next(&mut self) -> Option<RecordRef<'a>> {
        let (end, ends) = self.ends.split_first()?;
        self.ends = ends;
        let end = u32::from_le_bytes(*end) as usize;
        let body = self.bodies.get(self.start..end)?;
        self.start = end + 1;
        if let Some((time, times)) = self.times.split_first() {
            self.times = times;
            self.time_ns = i64::from_le_bytes(*time);
        }
        Some(RecordRef { time_ns: self.time_ns, body })
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ends.len(), Some(self.ends.len()))
    }
}

impl ExactSizeIterator for Records<'_> {}
