//! Every request that came in, for assertions.

use std::sync::{Mutex, PoisonError};

use crate::operation::Target;
use crate::{Fault, Operation};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What was asked for.
    pub operation: Operation,
    /// Bucket.
    pub bucket: String,
    /// Key, without percent-encoding.
    pub key: String,
    /// Whether it came with `If-None-Match`.
    pub only_if_absent: bool,
    /// The status of the answer; none while there is none, and for ever where the connection broke.
    pub status: Option<u16>,
    /// S3's error code, where the answer was an error.
    pub code: Option<String>,
    /// The fault that struck it.
    pub fault: Option<Fault>,
}

#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: Mutex<Vec<Request>>,
}

impl Requests {
    /// Takes note of a request, and gives its number.
    pub(crate) fn begin(&self, target: &Target, only_if_absent: bool, fault: Option<Fault>) -> usize {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Request {
            operation: target.operation,
            bucket: target.bucket.clone(),
            key: target.key.clone(),
            only_if_absent,
            status: None,
            code: None,
            fault,
        });
        all.len() - 1
    }
    pub(crate) fn end(&self, number: usize, status: u16, code: Option<String>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = all.get_mut(number) {
            request.status = Some(status);
            request.code = code;
        }
    }
    pub(crate) fn all(&self) -> Vec<Request> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
