//! How fast something may come: so much a second, and so much time's worth of it at once.

use std::time::Duration;

use crate::config::IngestLimits;

/// What a tenant may still send at this moment, in bytes and records.
#[derive(Debug)]
pub(super) struct Rate {
    limits: IngestLimits,
    /// When it was last looked at.
    at: Duration,
    bytes: f64,
    records: f64,
}

/// There is not as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Short {
    /// Whether bytes are short, and not records.
    pub(super) of_bytes: bool,
    /// What may come at once.
    pub(super) most: u64,
    /// What of that is used.
    pub(super) current: u64,
    /// When there is as much.
    pub(super) after: Duration,
}

impl Rate {
    pub(super) fn new(limits: IngestLimits, now: Duration) -> Self {
        let burst = limits.burst;
        Self {
            limits,
            at: now,
            bytes: most(limits.bytes_per_second, burst),
            records: most(limits.records_per_second, burst),
        }
    }

    /// Other limits from now on. What was used of one that stays a limit stays used.
    pub(super) fn change(&mut self, limits: IngestLimits, now: Duration) {
        self.refill(now);
        let fresh = Self::new(limits, now);
        let left = |level: f64, was: Option<u64>, full: f64| if was.is_some() { level.min(full) } else { full };
        *self = Self {
            bytes: left(self.bytes, self.limits.bytes_per_second, fresh.bytes),
            records: left(self.records, self.limits.records_per_second, fresh.records),
            ..fresh
        };
    }

    /// Takes so many bytes and records, or none. What is more than may come at once is taken when nothing of that is used, and then owed.
    pub(super) fn take(&mut self, bytes: u64, records: u64, now: Duration) -> Result<(), Short> {
        self.refill(now);
        let burst = self.limits.burst;
        for (of_bytes, rate, level, wanted) in [
            (true, self.limits.bytes_per_second, self.bytes, bytes),
            (false, self.limits.records_per_second, self.records, records),
        ] {
            let Some(rate) = rate else { continue };
            let most = most(Some(rate), burst);
            let missing = (wanted as f64).min(most) - level;
            if missing > 0.0 {
                return Err(Short {
                    of_bytes,
                    most: most as u64,
                    current: (most - level) as u64,
                    // Never a moment too soon, by less than a millisecond too late.
                    after: Duration::from_millis((missing / rate as f64 * 1000.0).ceil() as u64),
                });
            }
        }
        self.bytes -= bytes as f64;
        self.records -= records as f64;
        Ok(())
    }

    /// What was taken was not used.
    pub(super) fn give_back(&mut self, bytes: u64, records: u64) {
        self.bytes += bytes as f64;
        self.records += records as f64;
        self.at_most();
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.bytes += passed * self.limits.bytes_per_second.unwrap_or(0) as f64;
        self.records += passed * self.limits.records_per_second.unwrap_or(0) as f64;
        self.at_most();
    }

    fn at_most(&mut self) {
        self.bytes = self.bytes.min(most(self.limits.bytes_per_second, self.limits.burst));
        self.records = self.records.min(most(self.limits.records_per_second, self.limits.burst));
    }
}

fn most(rate: Option<u64>, burst: Duration) -> f64 {
    rate.unwrap_or(0) as f64 * burst.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn limits(bytes: Option<u64>, records: Option<u64>, burst: u64) -> IngestLimits {
        IngestLimits { bytes_per_second: bytes, records_per_second: records, burst: at(burst) }
    }

    /// 100 bytes a second, 3 seconds' worth at once.
    #[test]
    fn a_burst_comes_at_once_and_then_it_is_the_rate() {
        let mut rate = Rate::new(limits(Some(100), None, 3), at(0));
        assert_eq!(rate.take(200, 1, at(0)), Ok(()));
        assert_eq!(rate.take(100, 1, at(0)), Ok(()));
        let short = Short { of_bytes: true, most: 300, current: 300, after: at(1) };
        assert_eq!(rate.take(100, 1, at(0)), Err(short));
        assert_eq!(rate.take(100, 1, at(1)), Ok(()));
        assert_eq!(rate.take(1, 1, at(1)), Err(Short { after: Duration::from_millis(10), ..short }));
        // However long nothing comes, no more than the burst is saved up.
        assert_eq!(rate.take(300, 1, at(1000)), Ok(()));
        assert_eq!(rate.take(100, 1, at(1000)), Err(short));
    }

    #[test]
    fn what_is_larger_than_the_burst_comes_alone_and_is_paid_for_afterwards() {
        let mut rate = Rate::new(limits(Some(100), None, 1), at(0));
        assert_eq!(rate.take(1000, 1, at(0)), Ok(()));
        // 900 are owed, and 100 have to be there.
        assert_eq!(rate.take(1000, 1, at(0)).unwrap_err().after, at(10));
        assert!(rate.take(1000, 1, at(9)).is_err());
        assert_eq!(rate.take(1000, 1, at(10)), Ok(()));
    }

    #[test]
    fn whichever_is_short_is_named_and_nothing_is_taken_of_the_other() {
        let mut rate = Rate::new(limits(Some(100), Some(10), 1), at(0));
        assert_eq!(rate.take(10, 10, at(0)), Ok(()));
        let short = rate.take(10, 5, at(0)).unwrap_err();
        assert_eq!(
            (short.of_bytes, short.most, short.current, short.after),
            (false, 10, 10, Duration::from_millis(500))
        );
        assert_eq!(rate.take(90, 0, at(0)), Ok(()));
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut rate = Rate::new(limits(Some(100), None, 1), at(0));
        rate.take(100, 1, at(0)).unwrap();
        rate.give_back(100, 1);
        assert_eq!(rate.take(100, 1, at(0)), Ok(()));
        rate.give_back(100, 1);
        rate.give_back(100, 1);
        assert_eq!(rate.take(100, 1, at(0)), Ok(()));
        assert!(rate.take(100, 1, at(0)).is_err());
    }

    #[test]
    fn changed_limits_leave_what_was_used_used_and_a_new_one_begins_unused() {
        let mut rate = Rate::new(limits(Some(100), None, 1), at(0));
        rate.take(100, 1000, at(0)).unwrap();
        rate.change(limits(Some(1000), Some(1), 1), at(0));
        assert!(rate.take(500, 0, at(0)).unwrap_err().of_bytes);
        assert_eq!(rate.take(0, 1, at(0)), Ok(()));
        rate.change(limits(None, None, 1), at(0));
        assert_eq!(rate.take(1 << 40, 1 << 40, at(0)), Ok(()));
    }
}
