//! A token bucket over lines and bytes, for the guests' log.

use std::time::Instant;

/// How many seconds' worth may be logged at once after a quiet time.
const BURST_SECONDS: f64 = 5.0;

/// What a guest may log in a second for long.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerSecond {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// How much may be logged now: all of it at first.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    level: Option<Level>,
    suppressed: Suppressed,
}

#[derive(Debug)]
struct Level {
    lines: f64,
    bytes: f64,
    filled: Instant,
}

/// What was left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suppressed {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is written; so many before it were not.
    Write {
        /// What was left out since the last one that was written.
        suppressed: Suppressed,
    },
    /// It is left out, and counted.
    Suppress,
}

impl Bucket {
    /// Takes one line out, if it is in.
    pub(super) fn take(&mut self, now: Instant, bytes: usize, most: PerSecond) -> Verdict {
        let (lines, all_bytes) = (most.lines as f64, most.bytes as f64);
        let full = (lines * BURST_SECONDS, all_bytes * BURST_SECONDS);
        let level = self.level.get_or_insert(Level { lines: full.0, bytes: full.1, filled: now });
        let seconds = now.saturating_duration_since(level.filled).as_secs_f64();
        level.filled = level.filled.max(now);
        level.lines = (level.lines + seconds * lines).min(full.0);
        level.bytes = (level.bytes + seconds * all_bytes).min(full.1);
        if level.lines < 1.0 || level.bytes < bytes as f64 {
            self.suppressed.lines += 1;
            self.suppressed.bytes += bytes as u64;
            return Verdict::Suppress;
        }
        level.lines -= 1.0;
        level.bytes -= bytes as f64;
        Verdict::Write { suppressed: std::mem::take(&mut self.suppressed) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const USUAL: PerSecond = PerSecond { lines: 100, bytes: 64 << 10 };

    fn written(bucket: &mut Bucket, now: Instant, lines: usize, bytes: usize) -> usize {
        (0..lines).filter(|_| bucket.take(now, bytes, USUAL) != Verdict::Suppress).count()
    }

    #[test]
    fn a_burst_of_500_lines_passes_and_the_next_does_not() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        assert_eq!(written(&mut bucket, start, 600, 10), 500);
    }

    #[test]
    fn a_hundred_lines_pass_in_each_later_second() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        written(&mut bucket, start, 600, 10);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(1), 600, 10), 100);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(3), 600, 10), 200);
    }

    #[test]
    fn long_lines_are_bounded_by_their_bytes() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        // 320 KiB at once are 40 lines of 8 KiB; 64 KiB a second are 8 more.
        assert_eq!(written(&mut bucket, start, 100, 8192), 40);
        assert_eq!(written(&mut bucket, start + Duration::from_secs(1), 100, 8192), 8);
    }

    #[test]
    fn the_next_line_that_passes_tells_how_many_did_not() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        written(&mut bucket, start, 507, 1);
        assert_eq!(
            bucket.take(start + Duration::from_secs(1), 1, USUAL),
            Verdict::Write { suppressed: Suppressed { lines: 7, bytes: 7 } }
        );
        assert_eq!(
            bucket.take(start + Duration::from_secs(1), 1, USUAL),
            Verdict::Write { suppressed: Suppressed::default() }
        );
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        written(&mut bucket, start, 500, 1);
        assert_eq!(bucket.take(start, 1, USUAL), Verdict::Suppress);
    }
}
