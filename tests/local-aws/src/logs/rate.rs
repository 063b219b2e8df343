//! Requests a second, by token buckets: each holds what one second allows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::rules;
use crate::Operation;

#[derive(Debug)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<Operation, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Rates {
    /// What AWS allows where it says how much.
    pub(crate) fn documented() -> Self {
        let rates = Self { buckets: Mutex::default() };
        for (operation, per_second) in [
            (Operation::PutLogEvents, rules::PUT_LOG_EVENTS_PER_SECOND),
            (Operation::CreateLogStream, rules::CREATE_LOG_STREAM_PER_SECOND),
            (Operation::DescribeLogStreams, rules::DESCRIBE_LOG_STREAMS_PER_SECOND),
        ] {
            rates.set(operation, Some(f64::from(per_second)));
        }
        rates
    }
    pub(crate) fn set(&self, operation: Operation, per_second: Option<f64>) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        match per_second {
            Some(per_second) => {
                buckets.insert(operation, Bucket { per_second, left: per_second.max(1.0), at: Instant::now() });
            }
            None => {
                buckets.remove(&operation);
            }
        }
    }
    /// Whether one more is within the rate.
    pub(crate) fn allow(&self, operation: Operation) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = buckets.get_mut(&operation) else {
            return true;
        };
        let now = Instant::now();
        let gained = now.duration_since(bucket.at).as_secs_f64() * bucket.per_second;
        bucket.left = (bucket.left + gained).min(bucket.per_second.max(1.0));
        bucket.at = now;
        let allowed = bucket.left >= 1.0;
        if allowed {
            bucket.left -= 1.0;
        }
        allowed
    }
}
