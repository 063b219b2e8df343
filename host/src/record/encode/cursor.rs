//! Where in a batch the encoder is: the selection as runs of record numbers, and the chunk that a number lies in.

use super::Selection;

/// Walks the selected records.
#[derive(Debug)]
pub(super) struct Cursor {
    runs: Runs,
    /// Next selected number, and how many follow one another from it.
    next: u64,
    left: u64,
    /// The chunk that was found last, and the number of its first record.
    chunk: usize,
    base: u64,
}

#[derive(Debug)]
enum Runs {
    /// No more than what the cursor has in hand.
    None,
    /// Numbers, and how many of them are used up. Those from `total` on do not exist.
    Indexes { numbers: Vec<u32>, used: usize, total: u64 },
}

/// Selected records that lie side by side in one chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: usize,
    /// Counted in the chunk.
    pub(super) first: u32,
    pub(super) count: u32,
    /// The first record's number in the batch.
    pub(super) number: u64,
}

impl Cursor {
    /// At the first selected of `total` records.
    pub(super) fn new(selection: Selection, total: u64) -> Self {
        let (runs, next, left) = match selection {
            Selection::All => (Runs::None, 0, total),
            Selection::Range(first, count) => {
                (Runs::None, u64::from(first), total.saturating_sub(u64::from(first)).min(u64::from(count)))
            }
            Selection::Indexes(numbers) => (Runs::Indexes { numbers, used: 0, total }, 0, 0),
        };
        Self { runs, next, left, chunk: 0, base: 0 }
    }
    /// The next selected records, in one of `chunks` chunks with so many `records` each. None at the end.
    pub(super) fn locate(&mut self, chunks: usize, records: impl Fn(usize) -> u32) -> Option<Place> {
        if self.left == 0 {
            self.next_run()?;
        }
        if self.next < self.base {
            // Numbers that do not ascend, against the rule: still no reason to give other records than asked for.
            (self.chunk, self.base) = (0, 0);
        }
        while self.chunk < chunks {
            let here = u64::from(records(self.chunk));
            let first = self.next - self.base;
            if first < here {
                // Both are parts of a chunk's record count, which is a u32.
                let (first, count) = (first as u32, self.left.min(here - first) as u32);
                return Some(Place { chunk: self.chunk, first, count, number: self.next });
            }
            self.base += here;
            self.chunk += 1;
        }
        None
    }
    /// So many records are done.
    pub(super) fn advance(&mut self, count: u32) {
        self.next += u64::from(count);
        self.left = self.left.saturating_sub(u64::from(count));
    }

    fn next_run(&mut self) -> Option<()> {
        let Runs::Indexes { numbers, used, total } = &mut self.runs else { return None };
        let rest = numbers.get(*used..)?;
        let skipped = rest.iter().position(|number| u64::from(*number) < *total)?;
        let rest = rest.get(skipped..)?;
        let first = *rest.first()?;
        let together = rest.iter().zip(first..=u32::MAX).take_while(|(number, expected)| *number == expected);
        let count = together.take_while(|(number, _)| u64::from(**number) < *total).count();
        *used += skipped + count;
        (self.next, self.left) = (u64::from(first), count as u64);
        Some(())
    }
}
