//! Every request that came in, also those that were refused: a client that earns an `InvalidParameterException` should have known better.

use std::sync::{Mutex, PoisonError};

use super::rules;
use crate::{Fault, Operation};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What was asked for.
    pub operation: Operation,
    /// Log group that it names; empty where it names none, or cannot be read.
    pub group: String,
    /// Log stream that it names.
    pub stream: String,
    /// Events in it.
    pub events: usize,
    /// Their bytes as AWS counts them.
    pub bytes: usize,
    /// The status of the answer; none while there is none, and for ever where the connection broke.
    pub status: Option<u16>,
    /// The error's code, where the answer was an error.
    pub code: Option<String>,
    /// What the error says.
    pub message: Option<String>,
    /// The fault that struck it.
    pub fault: Option<Fault>,
}

/// Sums over all accepted calls of PutLogEvents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Calls.
    pub calls: u64,
    /// Events, also those that were rejected within an accepted call.
    pub events: u64,
    /// Bytes as AWS counts them: messages, and 26 for each event.
    pub bytes: u64,
    filled: f64,
}

impl Totals {
    /// How full the calls were on average, from 0 to 1: in bytes or in events, whichever is nearer to its limit.
    #[must_use]
    pub fn fill(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.filled / self.calls as f64 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: Mutex<Vec<Request>>,
    totals: Mutex<Totals>,
}

impl Requests {
    /// Takes note of a request, and gives its number.
    pub(crate) fn begin(&self, request: Request) -> usize {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(request);
        all.len() - 1
    }
    pub(crate) fn end(&self, number: usize, status: u16, error: Option<(String, String)>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = all.get_mut(number) {
            request.status = Some(status);
            (request.code, request.message) = error.unzip();
        }
    }
    pub(crate) fn all(&self) -> Vec<Request> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Counts an accepted call.
    pub(crate) fn count(&self, events: usize, bytes: usize) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.calls += 1;
        totals.events += events as u64;
        totals.bytes += bytes as u64;
        let of_bytes = bytes as f64 / rules::MAX_CALL_BYTES as f64;
        totals.filled += of_bytes.max(events as f64 / rules::MAX_CALL_EVENTS as f64);
    }
    pub(crate) fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
