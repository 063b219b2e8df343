//! Log groups and log streams: one that is missing is made, and then the same call is sent again.
//!
//! A stream that this worker does not know is either there already (Wharf was restarted, another worker made it) or new. Sending first costs
//! one call where it is there and three where it is new; making it first costs two either way. So what the last unknown stream turned out to
//! be decides about the next one.

mod group;
mod retention;

use wharf_plugin::cloudwatch_logs::{Accepted, Error, Put};
use wharf_plugin::{Failure, FailureKind, info};

use crate::naming::Place;
use crate::settings::{NewGroup, Settings};
use crate::streams::Streams;
use crate::world::World;

use retention::Retention;

/// How often within one call a missing stream is made. That it is missing after that means that it does not show yet.
const MAX_MAKES: usize = 1;

/// Why a call was not accepted.
#[derive(Debug)]
pub enum Stopped {
    /// CloudWatch Logs does not take what is in it.
    Contents(Error),
    /// Anything else.
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// This worker's way to log streams.
#[derive(Debug)]
pub struct Places {
    new_group: NewGroup,
    streams: Streams,
    unknown_are_new: bool,
    retention: Retention,
}

impl Places {
    /// None are known.
    pub fn new(settings: &Settings) -> Self {
        Self {
            new_group: settings.group.clone(),
            streams: Streams::new(settings.cache_ttl, settings.cache_size),
            unknown_are_new: false,
            retention: Retention::new(settings.group.retention_days),
        }
    }

    /// Sends one call, to a stream that is made if it is missing.
    ///
    /// # Errors
    /// Where it was not accepted.
    pub fn put<W: World>(
        &mut self,
        world: &W,
        place: &Place,
        events: &W::Events,
        put: &Put,
    ) -> Result<Accepted, Stopped> {
        let known = self.streams.knows(place, world.now());
        if !known && self.unknown_are_new {
            // Where that does not go, the next attempt sends first: the stream may be there.
            self.unknown_are_new = false;
            self.unknown_are_new = self.make_stream(world, place)?;
        }
        let mut makes = 0;
        loop {
            let error = match world.put(events, put) {
                Ok(accepted) => {
                    self.streams.used(place, world.now());
                    return Ok(accepted);
                }
                Err(error) => error,
            };
            match error.code() {
                // Answered by older servers alone; says what it says.
                "DataAlreadyAcceptedException" => {
                    self.streams.used(place, world.now());
                    return Ok(Accepted::default());
                }
                NOT_FOUND => {
                    self.streams.forget(place);
                    if makes == MAX_MAKES {
                        let text = format!("{place} was made and does not show yet: {error}");
                        return Err(Failure::transient(text).into());
                    }
                    makes += 1;
                    if known {
                        world.count_all("streams_vanished", 1, &[]);
                        info!("a log stream or its group was deleted while in use: it is made again", place = place);
                    }
                    let new = self.make_stream(world, place)?;
                    self.unknown_are_new = new && !known;
                }
                _ if is_about_contents(&error) => return Err(Stopped::Contents(error)),
                _ => {
                    return Err(failed(
                        error,
                        &format!("sending {} events to {place}", put.order.len()),
                        "PutLogEvents",
                    )
                    .into());
                }
            }
        }
    }

    /// Makes the stream, and its group where that is missing too. That somebody else made it first is success; gives whether it was new.
    fn make_stream<W: World>(&mut self, world: &W, place: &Place) -> Result<bool, Failure> {
        let mut made_group = false;
        loop {
            let Err(error) = world.create_stream(&place.group, &place.stream) else {
                world.count("streams_created", 1);
                return Ok(true);
            };
            match error.code() {
                ALREADY_EXISTS => {
                    world.count_all("streams_already_there", 1, &[]);
                    return Ok(false);
                }
                NOT_FOUND if made_group => {
                    let group = &place.group;
                    return Err(Failure::transient(format!(
                        "log group {group} was made and does not show yet: {error}"
                    )));
                }
                NOT_FOUND => {
                    self.make_group(world, &place.group)?;
                    made_group = true;
                }
                _ => return Err(failed(error, &format!("making the log stream {place}"), "CreateLogStream")),
            }
        }
    }

    fn make_group<W: World>(&mut self, world: &W, group: &str) -> Result<(), Failure> {
        if !self.new_group.create {
            return Err(Failure::misconfigured(format!(
                "log group {group} does not exist: make it, or set `auto_create_group: true` and allow logs:CreateLogGroup"
            )));
        }
        self.retention.is_owed(world, group);
        group::make(world, group, &self.new_group)?;
        self.retention.set(world, group);
        Ok(())
    }

    /// Does what was put off, now that logs are through.
    pub fn look_after<W: World>(&mut self, world: &W, group: &str) {
        self.retention.look_after(world, group);
    }

    /// Tells what this worker remembers.
    pub fn tell<W: World>(&mut self, world: &W) {
        let counts = self.streams.take_counts();
        for (name, count) in [
            ("stream_cache_hits", counts.hits),
            ("stream_cache_misses", counts.misses),
            ("stream_cache_evictions", counts.evictions),
            ("stream_cache_expirations", counts.expirations),
        ] {
            if count > 0 {
                world.count(name, count);
            }
        }
        world.gauge("stream_cache_entries", self.streams.len());
        world.gauge("stream_cache_bytes", self.streams.bytes());
    }
}

const NOT_FOUND: &str = "ResourceNotFoundException";
const ALREADY_EXISTS: &str = "ResourceAlreadyExistsException";

/// Names are clean and limits are kept, so that these speak of an event, or of what is sent with all of them.
fn is_about_contents(error: &Error) -> bool {
    error.status() == Some(413)
        || matches!(
            error.code(),
            "InvalidParameterException"
                | "InvalidParameterValue"
                | "SerializationException"
                | "ValidationError"
                | "ValidationException"
                | "RequestEntityTooLargeException"
        )
}

/// A call that failed, with what to allow where it was not allowed.
fn failed(error: Error, doing: &str, action: &str) -> Failure {
    let denied = error.code().starts_with("AccessDenied");
    let mut failure = Failure::from(error).doing(doing);
    if denied && failure.kind == FailureKind::Auth {
        failure.message.push_str(&format!(": the role or user needs logs:{action}"));
    }
    failure
}
