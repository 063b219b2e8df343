//! One batch, one log stream: its calls one after the other.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use wharf_plugin::cloudwatch_logs::{Accepted, Put};
use wharf_plugin::{Failure, FailureKind, Report, warn};

use crate::calls::{Call, Calls, Contents, Position};
use crate::events::Sorted;
use crate::naming::Place;
use crate::place::{Places, Stopped};
use crate::progress::{Progress, Refused, Why, short};
use crate::settings::Settings;
use crate::world::{Events, World};

/// After so long a delivery ends between two calls, and the next attempt goes on from there: the host bounds each delivery (`deliver_timeout`,
/// 15 minutes where nothing else is said), and slow answers must not pass for a plugin that hangs.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Calls that may be refused for what is in them within one delivery; the next one goes on behind what was accepted.
const MAX_REFUSALS: u32 = 200;
/// Events that may be refused alone without one accepted in between: then it is not the events.
const MAX_DOUBTS: usize = 12;

/// A worker: what lives as long as its store. No other worker can reach it.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    places: Places,
}

impl Worker {
    /// Knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { places: Places::new(&settings), settings }
    }

    /// Delivers a batch, or what of it is not yet delivered.
    ///
    /// # Errors
    /// Where some of it is not accepted.
    pub fn deliver<W: World>(&mut self, world: &W) -> Result<Report, Failure> {
        let place = self.settings.names.place(world.partition(), world.tag());
        let sent = self.send_all(world, &place);
        if sent.is_ok() {
            self.places.look_after(world, &place.group);
        }
        self.places.tell(world);
        sent
    }

    fn send_all<W: World>(&mut self, world: &W, place: &Place) -> Result<Report, Failure> {
        let until = world.now() + PATIENCE;
        let progress = Progress::read(world, &self.settings.recipe)?;
        let recipe = progress.recipe.clone();
        let events = world.prepare(recipe.log_key.as_deref())?;
        let mut sorted = Sorted::load(&events)?;
        let mut calls = Calls::new(&events, &mut sorted, &recipe, progress.at);
        let proven = progress.at != Position::default();
        let mut sending = Sending { progress, until, doubts: Vec::new(), proven, refusals: 0 };
        while let Some(call) = calls.next()? {
            let last = !calls.more()?;
            self.send(world, place, &events, &call, last, &mut sending)?;
        }
        if let Some((_, said)) = sending.doubts.first().filter(|_| !sending.proven) {
            return Err(not_the_events(place, said));
        }
        sending.settle_doubts(world);
        let large = sorted.large();
        if large > 0 {
            world.count_all("oversized_records", large, &[("action", recipe.oversized.name())]);
        }
        Ok(report(&sorted, &sending.progress))
    }

    /// Sends one call. Where CloudWatch Logs does not take what is in it, it is sent in halves, until what is refused is alone.
    fn send<W: World>(
        &mut self,
        world: &W,
        place: &Place,
        events: &W::Events,
        call: &Call,
        last: bool,
        sending: &mut Sending,
    ) -> Result<(), Failure> {
        let mut ranges: Vec<_> = std::iter::once(0..call.len()).collect();
        while let Some(range) = ranges.pop() {
            let contents = call.contents(&range, events.count());
            let bytes = contents.bytes;
            let put = self.put(place, contents);
            match self.places.put(world, place, events, &put) {
                Ok(accepted) => {
                    world.count("put_calls", 1);
                    world.count("put_events", range.len() as u64);
                    world.count("put_bytes", bytes);
                    sending.accepted(world, call, &range, &accepted);
                    // After the last call the batch settles, and its rows with it.
                    if !(last && ranges.is_empty()) {
                        sending.progress.write(world)?;
                    }
                }
                Err(Stopped::Contents(error)) => {
                    world.count_all("put_refusals", 1, &[]);
                    let said = short(&error.to_string());
                    sending.refusals += 1;
                    if range.len() > 1 {
                        let middle = range.start + range.len() / 2;
                        ranges.extend([middle..range.end, range.start..middle]);
                    } else {
                        sending.doubts.push((call.places(range).unwrap_or_default(), said.clone()));
                    }
                    if sending.doubts.len() > MAX_DOUBTS {
                        return Err(not_the_events(place, &said));
                    }
                    if sending.refusals >= MAX_REFUSALS {
                        return Err(Failure::transient(format!(
                            "{place}: {MAX_REFUSALS} calls of one attempt were refused for some of their events; the next goes on behind what was accepted: {said}"
                        )));
                    }
                }
                Err(Stopped::Failed(failure)) => return Err(failure),
            }
            if !(last && ranges.is_empty()) && world.now() >= sending.until {
                let minutes = PATIENCE.as_secs() / 60;
                return Err(Failure::transient(format!(
                    "{place}: CloudWatch Logs is slow: after {minutes} minutes the rest of the batch is left to the next attempt"
                )));
            }
        }
        Ok(())
    }

    fn put(&self, place: &Place, contents: Contents) -> Put {
        Put {
            log_group: place.group.clone(),
            log_stream: place.stream.clone(),
            order: contents.order,
            pieces: contents.pieces,
            log_format: self.settings.log_format.clone(),
            entity: self.settings.entity.clone(),
        }
    }
}

/// A batch on its way.
#[derive(Debug)]
struct Sending {
    progress: Progress,
    /// When this attempt ends.
    until: Duration,
    /// Refused alone since an event was last accepted, and what was said. It may be that everything is refused.
    doubts: Vec<(Range<u32>, String)>,
    /// Whether any event of the batch was accepted: with the same names, format and entity.
    proven: bool,
    refusals: u32,
}

impl Sending {
    /// A call, or a part of one, was accepted: all before it is done as well.
    fn accepted<W: World>(&mut self, world: &W, call: &Call, range: &Range<usize>, accepted: &Accepted) {
        if let Some(said) = &accepted.rejected_entity {
            world.count_all("entity_rejections", 1, &[]);
            warn!("CloudWatch Logs took the events, and refused their entity: {}", said);
        }
        self.proven = true;
        self.settle_doubts(world);
        for (within, why) in refused_ranges(accepted, range.len()) {
            let within = range.start + within.start..range.start + within.end;
            if let Some(places) = call.places(within) {
                self.refuse(world, places, why);
            }
        }
        if let Some(done) = call.end(range.end) {
            self.progress.advance(done);
        }
    }

    /// Others are accepted, so it was these events.
    fn settle_doubts<W: World>(&mut self, world: &W) {
        for (places, said) in std::mem::take(&mut self.doubts) {
            self.refuse(world, places, Why::Refused(said));
        }
    }

    fn refuse<W: World>(&mut self, world: &W, places: Range<u32>, why: Why) {
        let events = u64::from(places.end - places.start);
        world.count_all("refused_events", events, &[("reason", why.name())]);
        warn!("CloudWatch Logs does not take {} events, which become dead letters: {}", events, why.reason());
        self.progress.refuse(Refused { from: places.start, to: places.end, why });
    }
}

/// Which events of an accepted call were not taken, by their places in it: those that are too old are its first, those that are too new
/// its last ones (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_RejectedLogEventsInfo.html>).
fn refused_ranges(accepted: &Accepted, count: usize) -> Vec<(Range<usize>, Why)> {
    let within = |place: Option<u32>, without: usize| place.map_or(without, |place| (place as usize).min(count));
    let too_old = within(accepted.too_old_end, 0);
    let expired = within(accepted.expired_end, 0).max(too_old);
    let too_new = within(accepted.too_new_start, count).max(expired);
    [(0..too_old, Why::TooOld), (too_old..expired, Why::Expired), (too_new..count, Why::TooNew)]
        .into_iter()
        .filter(|(range, _)| !range.is_empty())
        .collect()
}

/// What cannot be sent and what was refused, each record once, however many pieces it came in.
fn report(sorted: &Sorted, progress: &Progress) -> Report {
    let recipe = &progress.recipe;
    let mut report = Report::all_delivered();
    sorted.put_aside(recipe, &mut report);
    let mut told = BTreeSet::new();
    for Refused { from, to, why } in progress.refused() {
        // Places between two events of a call may be of events that were in none.
        let events = (*from..sorted.count().min(*to)).map(|place| sorted.at(place));
        for record in events.filter(|event| sorted.sendable(*event, recipe)) {
            if told.insert(record) {
                report.reject(record, why.reason());
            }
        }
    }
    report
}

/// Where every event is refused it may be what is sent with all of them, and a person has to look.
fn not_the_events(place: &Place, said: &str) -> Failure {
    Failure::new(
        FailureKind::Misconfigured,
        format!(
            "{place}: CloudWatch Logs refuses events one by one and accepts none beside them, so that it may not be the events themselves \
             (look at `log_format`, `entity`, and the log group's KMS key): {said}"
        ),
    )
}

#[cfg(test)]
mod tests;
