//! A token bucket over lines and bytes, for the guests' log.

use std::time::Instant;

/// Lines a second that a guest may log for long.
const LINES_PER_SECOND: f64 = 100.0;
/// Lines that it may log at once after a quiet time.
const LINES_BURST: f64 = 500.0;
/// Bytes a second that it may log for long.
const BYTES_PER_SECOND: f64 = 64.0 * 1024.0;
/// Bytes at once: as many seconds' worth as lines have.
const BYTES_BURST: f64 = BYTES_PER_SECOND * (LINES_BURST / LINES_PER_SECOND);

/// How much may be logged now.
#[derive(Debug)]
pub(super) struct Bucket {
    lines: f64,
    bytes: f64,
    filled: Instant,
    suppressed: u64,
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is written; so many before it were not.
    Write {
        /// Lines that were left out since the last one that was written.
        suppressed: u64,
    },
    /// It is left out, and counted.
    Suppress,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(now: Instant) -> Self {
        Self { lines: LINES_BURST, bytes: BYTES_BURST, filled: now, suppressed: 0 }
    }

    /// Takes one line out, if it is in.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Verdict {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.lines = (self.lines + seconds * LINES_PER_SECOND).min(LINES_BURST);
        self.bytes = (self.bytes + seconds * BYTES_PER_SECOND).min(BYTES_BURST);
        #[expect(clippy::cast_precision_loss, reason = "a line has at most some KiB")]
        let bytes = bytes as f64;
        if self.lines < 1.0 || self.bytes < bytes {
            self.suppressed += 1;
            return Verdict::Suppress;
        }
        self.lines -= 1.0;
        self.bytes -= bytes;
        Verdict::Write { suppressed: std::mem::take(&mut self.suppressed) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written(bucket: &mut Bucket, now: Instant, lines: usize, bytes: usize) -> usize {
        (0..lines).filter(|_| bucket.take(now, bytes) != Verdict::Suppress).count()
    }

    #[test]
    fn a_burst_of_500_lines_passes_and_the_next_does_not() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        assert_eq!(written(&mut bucket, start, 600, 10), 500);
    }

    #[test]
    fn a_hundred_lines_pass_in_each_later_second() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        written(&mut bucket, start, 600, 10);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(1), 600, 10), 100);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(3), 600, 10), 200);
    }

    #[test]
    fn long_lines_are_bounded_by_their_bytes() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        // 320 KiB at once are 40 lines of 8 KiB; 64 KiB a second are 8 more.
        assert_eq!(written(&mut bucket, start, 100, 8192), 40);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(1), 100, 8192), 8);
    }

    #[test]
    fn the_next_line_that_passes_tells_how_many_did_not() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        written(&mut bucket, start, 507, 1);
        assert_eq!(bucket.take(start + Duration::from_secs(1), 1), Verdict::Write { suppressed: 7 });
        assert_eq!(bucket.take(start + Duration::from_secs(1), 1), Verdict::Write { suppressed: 0 });
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        written(&mut bucket, start, 500, 1);
        assert_eq!(bucket.take(start, 1), Verdict::Suppress);
    }
}
