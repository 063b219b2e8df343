//! Joining lines to records: stack traces, and lines that a container's runtime cut into parts.
//!
//! A record that is open is held in memory, and the file's position stays before it: a restart reads it again. Records leave in the
//! order of their beginnings, and only together with all that is before their last line, so that the position is one number:
//! everything before it was handed in, and nothing behind it.

mod frame;
mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use self::frame::{Framed, framed};
use self::rules::{Belongs, Place, belongs};
use crate::config::Multiline;

/// What takes records.
pub(crate) type Out<'a> = &'a mut dyn FnMut(&[u8]);

/// Joins the lines of one file.
#[derive(Debug)]
pub(crate) struct Joiner {
    how: Arc<Multiline>,
    held: VecDeque<Held>,
    /// Bytes of all bodies that are held.
    bytes: usize,
}

/// A record that is held.
#[derive(Debug)]
struct Held {
    stream: Vec<u8>,
    body: Vec<u8>,
    /// What comes behind the body when it is whole.
    behind: Vec<u8>,
    /// Whether its last line goes on.
    partial: bool,
    place: Place,
    /// Where its first and its last line begin in the file.
    first: u64,
    last: u64,
    touched: Instant,
}

impl Held {
    fn is_open(&self) -> bool {
        self.partial || self.place != Place::Ended
    }
}

impl Joiner {
    pub(crate) fn new(how: Arc<Multiline>) -> Self {
        Self { how, held: VecDeque::new(), bytes: 0 }
    }

    /// Where the first record begins that is held: the file's position stays there.
    pub(crate) fn holds_from(&self) -> Option<u64> {
        self.held.front().map(|held| held.first)
    }

    /// Takes the line that begins at byte `at` of the file, and gives out what is whole. Whether a record became too large, and was
    /// given out as it was.
    pub(crate) fn take(&mut self, at: u64, line: &[u8], now: Instant, out: Out<'_>) -> bool {
        let how = Arc::clone(&self.how);
        let line = framed(how.frame, line);
        // The record of this stream that may go on: the last one.
        let before = self.held.iter_mut().rev().find(|held| held.stream == *line.stream && held.is_open());
        let of_rule = |place| match &how.rule {
            Some(rule) => belongs(rule, place, &line.line),
            None => Belongs::New(Place::Ended),
        };
        match before {
            Some(held) if held.partial => self.bytes += held.append(at, b"", &line, now),
            Some(held) => match of_rule(Some(held.place)) {
                Belongs::Before(place) => {
                    held.place = place;
                    self.bytes += held.append(at, line.between, &line, now);
                }
                Belongs::New(place) => {
                    held.place = Place::Ended;
                    self.begin(at, &line, place, now, out);
                }
            },
            None => {
                let (Belongs::Before(place) | Belongs::New(place)) = of_rule(None);
                self.begin(at, &line, place, now, out);
            }
        }
        let too_large = self.bytes > how.max_bytes;
        if too_large {
            self.give_out_all(out);
        } else {
            self.give_out_whole(out);
        }
        too_large
    }

    /// Ends what was not added to since `since`. Whether anything is given out.
    pub(crate) fn end_older(&mut self, since: Instant, out: Out<'_>) {
        for held in self.held.iter_mut().filter(|held| held.touched <= since) {
            held.partial = false;
            held.place = Place::Ended;
        }
        self.give_out_whole(out);
    }

    /// Ends everything.
    pub(crate) fn give_out_all(&mut self, out: Out<'_>) {
        self.give_out(self.held.len(), out);
    }

    fn begin(&mut self, at: u64, line: &Framed<'_>, place: Place, now: Instant, out: Out<'_>) {
        if self.held.is_empty() && !line.partial && place == Place::Ended {
            match &line.before {
                Cow::Borrowed(before) if line.behind.is_empty() && before.is_empty() => out(line.raw),
                before => out(&[before, line.raw, line.behind].concat()),
            }
            return;
        }
        let body = [&line.before, line.raw].concat();
        self.bytes += body.len();
        self.held.push_back(Held {
            stream: line.stream.to_vec(),
            body,
            behind: line.behind.to_vec(),
            partial: line.partial,
            place,
            first: at,
            last: at,
            touched: now,
        });
    }

    /// Gives out as many records as can be, so that what is left begins behind all of their lines.
    fn give_out_whole(&mut self, out: Out<'_>) {
        let (mut whole, mut last) = (0, 0);
        for (n, held) in self.held.iter().enumerate() {
            if held.first > last || n == 0 {
                whole = n;
            }
            if held.is_open() {
                self.give_out(whole, out);
                return;
            }
            last = held.last.max(last);
        }
        self.give_out(self.held.len(), out);
    }

    fn give_out(&mut self, count: usize, out: Out<'_>) {
        for mut held in self.held.drain(..count) {
            self.bytes -= held.body.len();
            held.body.extend_from_slice(&held.behind);
            out(&held.body);
        }
    }
}

impl Held {
    /// How many bytes it grew by.
    fn append(&mut self, at: u64, between: &[u8], line: &Framed<'_>, now: Instant) -> usize {
        self.body.extend_from_slice(between);
        self.body.extend_from_slice(line.raw);
        self.partial = line.partial;
        self.last = at;
        self.touched = now;
        between.len() + line.raw.len()
    }
}
