//! A batch's calls of PutLogEvents: each as full as CloudWatch Logs takes it. Limits of
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>.
//!
//! Which events make a call is a function of the batch, of the recipe and of where the last accepted call ended, and of nothing else.

use std::collections::VecDeque;
use std::ops::Range;

use wharf_plugin::Failure;
use wharf_plugin::cloudwatch_logs::Piece;

use crate::events::Sorted;
use crate::oversized::{self, MAX_MESSAGE};
use crate::settings::{EVENT_OVERHEAD, Recipe};
use crate::world::Events;

/// Bytes of a call: all messages in UTF-8, and 26 for each event.
pub const MAX_CALL: u32 = 1_048_576;
/// Events of a call.
pub const MAX_EVENTS: usize = 10_000;
/// Milliseconds between the first and the last event of a call.
const MAX_SPAN: i64 = 24 * 60 * 60 * 1000;

/// How much of a batch is behind us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// So many places of the order.
    pub records: u32,
    /// And so many pieces of the next one's event.
    pub pieces: u32,
}

/// One event of a call: a record's, or a piece of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its place in the batch's order.
    pub place: u32,
    /// The event.
    event: u32,
    /// Bytes of its message.
    size: u32,
    /// Where it is only a piece: which, and whether it is the last.
    piece: Option<Box<(u32, bool, Piece)>>,
}

impl Unit {
    /// Where the batch stands when this one is done.
    fn end(&self) -> Position {
        match self.piece.as_deref() {
            Some((number, false, _)) => Position { records: self.place, pieces: number + 1 },
            _ => Position { records: self.place + 1, pieces: 0 },
        }
    }
}

/// The events of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call(Vec<Unit>);

/// What a call sends, by numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// As in [`Put`](wharf_plugin::cloudwatch_logs::Put).
    pub order: Vec<u32>,
    /// As in [`Put`](wharf_plugin::cloudwatch_logs::Put).
    pub pieces: Vec<Piece>,
    /// As CloudWatch Logs counts them.
    pub bytes: u64,
}

impl Call {
    /// How many events.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Some of the call's events, as they are sent. `count` is how many events the batch has.
    pub fn contents(&self, range: &Range<usize>, count: u32) -> Contents {
        let mut contents = Contents::default();
        for unit in self.0.get(range.clone()).unwrap_or_default() {
            contents.bytes += u64::from(unit.size) + u64::from(EVENT_OVERHEAD);
            match unit.piece.as_deref() {
                None => contents.order.push(unit.event),
                Some((_, _, piece)) => {
                    let number = u32::try_from(contents.pieces.len()).unwrap_or(u32::MAX);
                    contents.order.push(count.saturating_add(number));
                    contents.pieces.push(piece.clone());
                }
            }
        }
        contents
    }

    /// Places in the batch's order of some of the call's events.
    pub fn places(&self, range: Range<usize>) -> Option<Range<u32>> {
        let units = self.0.get(range)?;
        Some(units.first()?.place..units.last()?.place + 1)
    }

    /// Where the batch stands when the events before this one are done.
    pub fn end(&self, before: usize) -> Option<Position> {
        self.0.get(before.checked_sub(1)?).map(Unit::end)
    }
}

/// Makes the calls one by one, so that they need not all lie in memory.
#[derive(Debug)]
pub struct Calls<'a, E> {
    events: &'a E,
    sorted: &'a mut Sorted,
    recipe: &'a Recipe,
    at: Position,
    /// What comes next: the rest of a large event, or the one event that did not fit any more.
    waiting: VecDeque<Unit>,
}

impl<'a, E: Events> Calls<'a, E> {
    /// Calls with what is not yet done.
    pub fn new(events: &'a E, sorted: &'a mut Sorted, recipe: &'a Recipe, done: Position) -> Self {
        Self { events, sorted, recipe, at: done, waiting: VecDeque::new() }
    }

    /// The next call; none where everything is done.
    ///
    /// # Errors
    /// Where the host cannot give sizes, or a message that has to be cut.
    pub fn next(&mut self) -> Result<Option<Call>, Failure> {
        let mut units = Vec::new();
        let mut bytes = 0;
        let mut first = None;
        while let Some(unit) = self.take()? {
            let time = self.sorted.time(unit.event);
            let size = unit.size + EVENT_OVERHEAD;
            let fits =
                bytes + size <= MAX_CALL && units.len() < MAX_EVENTS && time - *first.get_or_insert(time) <= MAX_SPAN;
            if !fits && !units.is_empty() {
                self.waiting.push_front(unit);
                break;
            }
            bytes += size;
            units.push(unit);
        }
        Ok((!units.is_empty()).then_some(Call(units)))
    }

    /// Whether there is another call. When there is none, the sizes of all events are known.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn more(&mut self) -> Result<bool, Failure> {
        let Some(next) = self.take()? else { return Ok(false) };
        self.waiting.push_front(next);
        Ok(true)
    }

    fn take(&mut self) -> Result<Option<Unit>, Failure> {
        loop {
            if let Some(unit) = self.waiting.pop_front() {
                return Ok(Some(unit));
            }
            let Position { records: place, pieces: done } = self.at;
            if place >= self.sorted.count() {
                // What an earlier attempt sent may not have been gone through. Before the last call is sent all is known that can fail.
                self.sorted.reach_all(self.events)?;
                return Ok(None);
            }
            self.at = Position { records: place + 1, pieces: 0 };
            let event = self.sorted.at(place);
            self.sorted.reach(self.events, event)?;
            if !self.sorted.sendable(event, self.recipe) {
                continue;
            }
            let size = self.sorted.size(event);
            if size <= MAX_MESSAGE {
                return Ok(Some(Unit { place, event, size, piece: None }));
            }
            let pieces = oversized::parts(self.events, event, size, self.recipe.oversized)?;
            let last = pieces.len().saturating_sub(1);
            for (number, piece) in pieces.into_iter().enumerate().skip(done as usize) {
                let marks = piece.before.len() + piece.after.len();
                let size = piece.length + u32::try_from(marks).unwrap_or(0);
                let piece = (u32::try_from(number).unwrap_or(u32::MAX), number == last, piece);
                self.waiting.push_back(Unit { place, event, size, piece: Some(Box::new(piece)) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Event, FakeEvents};
    use crate::settings::Oversized;
    use wharf_plugin::Report;

    const DAY: i64 = 86_400_000;

    fn recipe(oversized: Oversized) -> Recipe {
        Recipe { log_key: Some("log".into()), oversized }
    }
    /// How many events each call has, and its bytes.
    fn calls_from(events: &FakeEvents, recipe: &Recipe, done: Position) -> Vec<(usize, u64)> {
        let mut sorted = Sorted::load(events).unwrap();
        let mut calls = Calls::new(events, &mut sorted, recipe, done);
        let mut shapes = Vec::new();
        while let Some(call) = calls.next().unwrap() {
            shapes.push((call.len(), call.contents(&(0..call.len()), events.count()).bytes));
        }
        assert!(!calls.more().unwrap());
        shapes
    }
    fn calls(sizes: &[usize]) -> Vec<(usize, u64)> {
        let events = sizes.iter().map(|size| Event::new(1, &"x".repeat(*size))).collect();
        calls_from(&FakeEvents::new(events), &recipe(Oversized::Split), Position::default())
    }

    #[test]
    fn a_call_holds_exactly_what_aws_takes() {
        // 1,048,576 = (524,262 + 26) × 2
        assert_eq!(calls(&[524_262, 524_262]), [(2, 1_048_576)]);
        assert_eq!(calls(&[524_262, 524_263]), [(1, 524_288), (1, 524_289)]);
        assert_eq!(calls(&[1_048_550]), [(1, 1_048_576)]);
        assert_eq!(calls(&[1_048_550, 1]), [(1, 1_048_576), (1, 27)]);
        assert_eq!(calls(&[]), []);
    }

    #[test]
    fn an_event_one_byte_over_is_two_parts() {
        // "[part 1/2] " is 11 bytes: 1,048,539 bytes of the message, and 12 in the second.
        assert_eq!(calls(&[1_048_551]), [(1, 1_048_576), (1, 12 + 11 + 26)]);
    }

    #[test]
    fn a_call_holds_ten_thousand_events() {
        assert_eq!(calls(&[1; 10_000]), [(10_000, 270_000)]);
        assert_eq!(calls(&[1; 10_001]), [(10_000, 270_000), (1, 27)]);
    }

    #[test]
    fn a_call_spans_a_day_and_not_a_millisecond_more() {
        let shape = |times: &[i64]| {
            let events = FakeEvents::new(times.iter().map(|time| Event::new(*time, "x")).collect());
            calls_from(&events, &recipe(Oversized::Split), Position::default())
                .iter()
                .map(|(events, _)| *events)
                .collect::<Vec<_>>()
        };
        assert_eq!(shape(&[7, 7 + DAY]), [2]);
        assert_eq!(shape(&[7, 8 + DAY]), [1, 1]);
        assert_eq!(shape(&[8 + DAY, 7, DAY]), [2, 1]);
        assert_eq!(shape(&[0, DAY, DAY + 1, 2 * DAY + 1, 2 * DAY + 2]), [2, 2, 1]);
    }

    #[test]
    fn what_cannot_be_sent_is_in_no_call() {
        let mut events = vec![Event::new(-1, "x"), Event::new(1, ""), Event::without_message(2), Event::new(3, "x")];
        events.push(Event::new(4, &"x".repeat(1_048_551)));
        let events = FakeEvents::new(events);
        assert_eq!(calls_from(&events, &recipe(Oversized::DeadLetter), Position::default()), [(1, 27)]);
        let mut sorted = Sorted::load(&events).unwrap();
        let done = Position { records: 5, pieces: 0 };
        assert!(!Calls::new(&events, &mut sorted, &recipe(Oversized::DeadLetter), done).more().unwrap());
        let aside = |oversized| {
            let mut report = Report::all_delivered();
            sorted.put_aside(&recipe(oversized), &mut report);
            report
        };
        assert_eq!(
            aside(Oversized::DeadLetter).rejected(),
            [
                (0, "the time is before 1970, and CloudWatch Logs takes none of such a time"),
                (1, "the message is empty, and CloudWatch Logs takes none of no length"),
                (2, "the record has no key `log`"),
                (4, "the message has 1048551 bytes, and CloudWatch Logs takes 1048550"),
            ]
        );
        assert_eq!(aside(Oversized::Truncate).rejections(), 3);
    }

    #[test]
    fn calls_go_on_from_where_the_last_one_ended_also_within_an_event() {
        let events =
            FakeEvents::new(vec![Event::new(1, "a"), Event::new(2, &"b".repeat(3_000_000)), Event::new(3, "c")]);
        let recipe = recipe(Oversized::Split);
        let whole = calls_from(&events, &recipe, Position::default());
        let mut sorted = Sorted::load(&events).unwrap();
        let mut all = Calls::new(&events, &mut sorted, &recipe, Position::default());
        let mut ends = Vec::new();
        while let Some(call) = all.next().unwrap() {
            ends.push(call.end(call.len()).unwrap());
        }
        assert_eq!(ends[1], Position { records: 1, pieces: 1 }, "a call ends within the large event");
        for (done, end) in ends.iter().enumerate() {
            assert_eq!(calls_from(&events, &recipe, *end), whole[done + 1..], "{end:?}");
        }
    }
}
