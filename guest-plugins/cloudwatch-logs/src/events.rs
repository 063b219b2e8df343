//! A batch's events: in the order of their times, and without those that cannot be sent.

use wharf_plugin::cloudwatch_logs::NO_MESSAGE;
use wharf_plugin::{Failure, Rejection};

use crate::oversized::MAX_MESSAGE;
use crate::settings::{Oversized, Recipe};
use crate::world::Events;

/// Events whose times or sizes are taken out of the host at once: some 128 KiB.
const WINDOW: u32 = 16_384;

/// Events, sorted.
#[derive(Debug)]
pub struct Sorted {
    times: Vec<i64>,
    sizes: Vec<u32>,
    /// The event at each place; none where they come in order as it is, as they nearly always do.
    order: Option<Vec<u32>>,
}

impl Sorted {
    /// Takes times and sizes out of the host. Events of equal times keep their order.
    ///
    /// # Errors
    /// Where the host cannot give them.
    pub fn load<E: Events>(events: &E) -> Result<Self, Failure> {
        let count = events.count();
        let (mut times, mut sizes) = (Vec::with_capacity(count as usize), Vec::with_capacity(count as usize));
        while let Some(first) = u32::try_from(times.len()).ok().filter(|first| *first < count) {
            times.extend(events.times(first, WINDOW));
            sizes.extend(events.sizes(first, WINDOW)?);
            if times.len() <= first as usize || times.len() != sizes.len() {
                return Err(Failure::transient("the host gave fewer times or sizes than the batch has records"));
            }
        }
        let order = (!times.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..count).collect();
            order.sort_by_key(|event| times.get(*event as usize).copied());
            order
        });
        Ok(Self { times, sizes, order })
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
    /// Bytes of an event's message.
    pub fn size(&self, event: u32) -> u32 {
        self.sizes.get(event as usize).copied().unwrap_or(NO_MESSAGE)
    }

    /// Whether an event can be sent, in whatever pieces.
    pub fn sendable(&self, event: u32, recipe: &Recipe) -> bool {
        let size = self.size(event);
        self.time(event) >= 0
            && (1..NO_MESSAGE).contains(&size)
            && (size <= MAX_MESSAGE || recipe.oversized != Oversized::DeadLetter)
    }

    /// How many are larger than CloudWatch Logs takes, and in order otherwise.
    pub fn large(&self) -> u64 {
        let large = |event: &u32| self.time(*event) >= 0 && (MAX_MESSAGE + 1..NO_MESSAGE).contains(&self.size(*event));
        (0..self.count()).filter(large).count() as u64
    }

    /// Those that cannot be sent, and why.
    pub fn aside(&self, recipe: &Recipe) -> Vec<Rejection> {
        let unsendable = (0..self.count()).filter(|event| !self.sendable(*event, recipe));
        unsendable.map(|record| Rejection { record, reason: self.why_aside(record, recipe) }).collect()
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
}
