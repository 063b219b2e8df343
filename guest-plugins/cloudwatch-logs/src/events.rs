//! A batch's events: in the order of their times, and without those that cannot be sent.

use std::ops::RangeInclusive;

use wharf_plugin::cloudwatch_logs::NO_MESSAGE;
use wharf_plugin::{Failure, Report};

use crate::oversized::MAX_MESSAGE;
use crate::settings::{Oversized, Recipe};
use crate::world::Events;

/// Events whose times are taken out of the host at once: 128 KiB.
const TIMES: u32 = 16_384;
/// Events whose sizes are taken at once, and bytes of messages that these should have. To know a message's size the host reads it, and keeps
/// the last few MiB that it read: sizes are taken no further ahead than that, so that sending finds the messages still there.
const SIZES: RangeInclusive<u32> = 64..=16_384;
const AHEAD: u64 = 512 << 10;

/// Events, sorted.
#[derive(Debug)]
pub struct Sorted {
    times: Vec<i64>,
    /// Those that were asked for so far.
    sizes: Vec<u32>,
    /// Bytes of these messages.
    bytes: u64,
    /// Whether all of what is known can be sent, each whole: nearly always, and then nobody has to look for what cannot.
    plain: bool,
    /// The event at each place; none where they come in order as it is, as they nearly always do.
    order: Option<Vec<u32>>,
}

impl Sorted {
    /// Takes times out of the host. Events of equal times keep their order.
    ///
    /// # Errors
    /// Where the host gives too few.
    pub fn load<E: Events>(events: &E) -> Result<Self, Failure> {
        let count = events.count();
        let mut times = Vec::with_capacity(count as usize);
        while let Some(first) = u32::try_from(times.len()).ok().filter(|first| *first < count) {
            times.extend(events.times(first, TIMES));
            if times.len() <= first as usize {
                return Err(too_few("times"));
            }
        }
        let order = (!times.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..count).collect();
            order.sort_by_key(|event| times.get(*event as usize).copied());
            order
        });
        let plain = times.iter().all(|time| *time >= 0);
        Ok(Self { sizes: Vec::with_capacity(times.len()), times, bytes: 0, plain, order })
    }

    /// Takes sizes out of the host until that of `event` is known.
    ///
    /// # Errors
    /// Where the host cannot give them.
    pub fn reach<E: Events>(&mut self, events: &E, event: u32) -> Result<(), Failure> {
        while self.sizes.len() <= event as usize {
            let first = u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
            let sizes = events.sizes(first, self.window())?;
            if sizes.is_empty() {
                return Err(too_few("sizes"));
            }
            self.bytes += sizes.iter().filter(|size| **size != NO_MESSAGE).map(|size| u64::from(*size)).sum::<u64>();
            self.plain &= sizes.iter().all(|size| (1..=MAX_MESSAGE).contains(size));
            self.sizes.extend(sizes);
        }
        Ok(())
    }

    /// Takes all sizes out of the host.
    ///
    /// # Errors
    /// As [`reach`](Self::reach).
    pub fn reach_all<E: Events>(&mut self, events: &E) -> Result<(), Failure> {
        self.count().checked_sub(1).map_or(Ok(()), |last| self.reach(events, last))
    }

    /// How many sizes to take next, by those that are known.
    fn window(&self) -> u32 {
        let known = self.sizes.len() as u64;
        let usual = if known == 0 { 0 } else { AHEAD * known / self.bytes.max(1) };
        u32::try_from(usual).unwrap_or(u32::MAX).clamp(*SIZES.start(), *SIZES.end())
    }

    /// How many, those included that cannot be sent.
    pub fn count(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }
    /// The event at a place of the order.
    pub fn at(&self, place: u32) -> u32 {
        self.order.as_ref().map_or(place, |order| order.get(place as usize).copied().unwrap_or(place))
    }
    /// An event's time, milliseconds since 1970 UTC.
    pub fn time(&self, event: u32) -> i64 {
        self.times.get(event as usize).copied().unwrap_or_default()
    }
    /// Bytes of an event's message, once [`reach`](Self::reach) has been there.
    pub fn size(&self, event: u32) -> u32 {
        self.sizes.get(event as usize).copied().unwrap_or(NO_MESSAGE)
    }

    /// Whether an event, whose size is known by then, can be sent, in whatever pieces.
    pub fn sendable(&self, event: u32, recipe: &Recipe) -> bool {
        if self.plain {
            return true;
        }
        let size = self.size(event);
        self.time(event) >= 0
            && (1..NO_MESSAGE).contains(&size)
            && (size <= MAX_MESSAGE || recipe.oversized != Oversized::DeadLetter)
    }

    /// How many of all, whose sizes are known by then, are larger than CloudWatch Logs takes, and in order otherwise.
    pub fn large(&self) -> u64 {
        if self.plain {
            return 0;
        }
        let large = |event: &u32| self.time(*event) >= 0 && (MAX_MESSAGE + 1..NO_MESSAGE).contains(&self.size(*event));
        (0..self.count()).filter(large).count() as u64
    }

    /// Rejects those of all, whose sizes are known by then, that cannot be sent.
    pub fn put_aside(&self, recipe: &Recipe, report: &mut Report) {
        if self.plain {
            return;
        }
        for event in (0..self.count()).filter(|event| !self.sendable(*event, recipe)) {
            report.reject(event, self.why_aside(event, recipe));
        }
    }

    fn why_aside(&self, event: u32, recipe: &Recipe) -> String {
        match (self.size(event), &recipe.log_key) {
            (NO_MESSAGE, Some(key)) => format!("the record has no key `{key}`"),
            (NO_MESSAGE, None) => "the record is no JSON object".into(),
            (0, _) => "the message is empty, and CloudWatch Logs takes none of no length".into(),
            _ if self.time(event) < 0 => {
                "the time is before 1970, and CloudWatch Logs takes none of such a time".into()
            }
            (size, _) => format!("the message has {size} bytes, and CloudWatch Logs takes {MAX_MESSAGE}"),
        }
    }
}

fn too_few(what: &str) -> Failure {
    Failure::transient(format!("the host gave fewer {what} than the batch has records"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Event, FakeEvents};

    fn load(times: &[i64]) -> Sorted {
        Sorted::load(&FakeEvents::new(times.iter().map(|time| Event::new(*time, "x")).collect())).unwrap()
    }
    fn order(sorted: &Sorted) -> Vec<u32> {
        (0..sorted.count()).map(|place| sorted.at(place)).collect()
    }

    #[test]
    fn events_are_in_the_order_of_their_times_and_equal_ones_keep_theirs() {
        assert_eq!(order(&load(&[5, 3, 5, 3, 1])), [4, 1, 3, 0, 2]);
        let sorted = load(&[1, 1, 2]);
        assert!(sorted.order.is_none(), "nothing is moved that need not be");
        assert_eq!(order(&sorted), [0, 1, 2]);
        assert_eq!(order(&load(&[])), [0; 0]);
    }

    #[test]
    fn more_events_than_one_window_are_all_there() {
        let times: Vec<i64> = (0..40_000).rev().collect();
        let sorted = load(&times);
        assert_eq!(sorted.count(), 40_000);
        assert_eq!((sorted.at(0), sorted.at(39_999)), (39_999, 0));
    }

    #[test]
    fn sizes_are_taken_as_far_as_they_are_wanted_and_little_further() {
        let events = |bytes: usize| FakeEvents::new((0..40_000).map(|_| Event::new(1, &"x".repeat(bytes))).collect());
        for (bytes, most) in [(1, 16_384), (256, 2_048), (1_000, 524)] {
            let events = events(bytes);
            let mut sorted = Sorted::load(&events).unwrap();
            assert_eq!(sorted.sizes.len(), 0);
            for event in [0, 1, 10_000, 10_001] {
                sorted.reach(&events, event).unwrap();
                assert!((event..=event + most).contains(&(sorted.sizes.len() as u32 - 1)), "{bytes} bytes: {event}");
            }
            sorted.reach_all(&events).unwrap();
            assert_eq!(sorted.sizes, vec![bytes as u32; 40_000]);
        }
        let none = FakeEvents::new(Vec::new());
        Sorted::load(&none).unwrap().reach_all(&none).unwrap();
    }
}
