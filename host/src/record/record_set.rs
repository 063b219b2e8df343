//! Numbers of some of a chunk's records, ascending, in few bytes.
//!
//! Records are kept as runs of neighbours. Of each run: how many records were left out before it, doubled, plus 1 where the run is
//! longer than one record; then, of those, its length less 2. Both are written seven bits a byte, the lowest first, each byte but the
//! last with its high bit set. So one of every few records costs a byte, and a long run two or three, however long it is.

use std::ops::Range;

/// Some records of a chunk, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    count: u32,
    bytes: Box<[u8]>,
}

impl RecordSet {
    /// A set of these numbers, which must ascend; none where there are none.
    pub fn of(numbers: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut builder = RecordSetBuilder::default();
        numbers.into_iter().for_each(|number| builder.push(number));
        builder.finish()
    }
    /// How many records.
    pub fn count(&self) -> u32 {
        self.count
    }
    /// Neighbouring records, together as many as there are.
    pub fn runs(&self) -> impl Iterator<Item = Range<u32>> {
        Runs { rest: &self.bytes, end: 0 }
    }
    /// Every number.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.runs().flatten()
    }
    /// The set as bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Reads a set of records of a chunk that has so many. None where it names others, or none, or is not written as [`RecordSet`]s are.
    pub(super) fn decode(bytes: &[u8], records: u32) -> Option<Self> {
        let mut runs = Runs { rest: bytes, end: 0 };
        let mut count: u32 = 0;
        while !runs.rest.is_empty() {
            let first = count == 0;
            let before = runs.end;
            let run = runs.next()?;
            // Runs that touch would be one.
            if run.end > records || (run.start == before && !first) {
                return None;
            }
            // Runs neither overlap nor end behind `records`.
            count += run.end - run.start;
        }
        (count > 0).then(|| Self { count, bytes: bytes.into() })
    }
}

/// Collects ascending record numbers.
#[derive(Debug, Default)]
pub(super) struct RecordSetBuilder {
    count: u32,
    /// Runs that have ended.
    bytes: Vec<u8>,
    /// Where the last of these ended.
    end: u32,
    run: Range<u32>,
}

impl RecordSetBuilder {
    /// Adds a number above all before.
    pub(super) fn push(&mut self, number: u32) {
        if number != self.run.end || self.run.is_empty() {
            self.end_run();
            self.run = number..number;
        }
        self.run.end = number.saturating_add(1);
        self.count += 1;
    }
    pub(super) fn finish(mut self) -> Option<RecordSet> {
        self.end_run();
        (self.count > 0).then(|| RecordSet { count: self.count, bytes: self.bytes.into() })
    }

    fn end_run(&mut self) {
        let length = u64::from(self.run.end - self.run.start);
        if length == 0 {
            return;
        }
        let gap = u64::from(self.run.start.saturating_sub(self.end));
        self.end = self.run.end;
        put(&mut self.bytes, gap * 2 + u64::from(length > 1));
        if let Some(more) = length.checked_sub(2) {
            put(&mut self.bytes, more);
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Runs as they are written; ends where the bytes make no sense.
struct Runs<'a> {
    rest: &'a [u8],
    end: u32,
}

impl Runs<'_> {
    /// A number of at most 35 bits, written in as few bytes as it takes.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..5 {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return (*byte != 0 || place == 0).then_some(number);
            }
        }
        None
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let token = self.number()?;
        let length = if token & 1 == 1 { self.number()? + 2 } else { 1 };
        let start = u64::from(self.end) + token / 2;
        self.end = u32::try_from(start + length).ok()?;
        Some(u32::try_from(start).ok()?..self.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(numbers: &[u32]) -> Vec<u8> {
        RecordSet::of(numbers.iter().copied()).unwrap().as_bytes().to_vec()
    }

    /// By hand from the description above.
    #[test]
    fn the_bytes_are_those_that_are_described() {
        assert_eq!(bytes(&[0]), [0]);
        assert_eq!(bytes(&[3]), [6]);
        assert_eq!(bytes(&[0, 1]), [1, 0]);
        assert_eq!(bytes(&[2, 3, 4, 9]), [5, 1, 8]);
        assert_eq!(bytes(&[63]), [126]);
        assert_eq!(bytes(&[64]), [0x80, 1]);
        let run: Vec<u32> = (1..=1000).collect();
        // 998 is 7 × 128 + 102.
        assert_eq!(bytes(&run), [3, 0x80 | 102, 7]);
    }

    #[test]
    fn one_record_of_every_few_takes_a_byte() {
        assert_eq!(bytes(&(0..10_000).step_by(50).collect::<Vec<_>>()).len(), 200);
    }

    #[test]
    fn what_is_no_set_of_the_chunks_records_is_refused() {
        let refused = |bytes: &[u8]| assert_eq!(RecordSet::decode(bytes, 10), None, "{bytes:?}");
        assert_eq!(RecordSet::decode(&[18], 10), RecordSet::of([9]));
        assert_eq!(RecordSet::decode(&[1, 8], 10), RecordSet::of(0..10));
        refused(&[]);
        refused(&[20]);
        refused(&[1, 9]);
        // Two runs that touch.
        refused(&[0, 0]);
        // Cut off: a run's length is missing, or a number's end.
        refused(&[1]);
        refused(&[0x80]);
        // More bytes than the number takes, and more than any takes.
        refused(&[0x80, 0]);
        refused(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        refused(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    }

    #[test]
    fn the_last_possible_record_is_reached() {
        let set = RecordSet::of([0, u32::MAX - 1]).unwrap();
        assert_eq!(RecordSet::decode(set.as_bytes(), u32::MAX), Some(set.clone()));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, u32::MAX - 1]);
    }

    proptest! {
        #[test]
        fn a_set_has_the_numbers_that_it_was_made_of(
            numbers in prop::collection::btree_set(prop_oneof![0_u32..40, 0_u32..100_000], 1..60),
        ) {
            let set = RecordSet::of(numbers.iter().copied()).unwrap();
            prop_assert_eq!(set.count() as usize, numbers.len());
            prop_assert_eq!(set.runs().map(|run| run.len()).sum::<usize>(), numbers.len());
            prop_assert_eq!(RecordSet::decode(set.as_bytes(), 100_000), Some(set.clone()));
            let highest = numbers.last().copied().unwrap();
            prop_assert_eq!(RecordSet::decode(set.as_bytes(), highest), None);
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), numbers.into_iter().collect::<Vec<_>>());
        }

        /// Each set is written in one way, so what is read is what would be written.
        #[test]
        fn any_bytes_are_refused_or_are_a_set(bytes in prop::collection::vec(any::<u8>(), 0..12), records in 0_u32..5_000) {
            if let Some(set) = RecordSet::decode(&bytes, records) {
                prop_assert!(set.iter().all(|number| number < records));
                prop_assert_eq!(set.iter().count(), set.count() as usize);
                let again = RecordSet::of(set.iter()).unwrap();
                prop_assert_eq!(again.as_bytes(), &bytes[..]);
            }
        }
    }
}
