//! What time it is, for the rules about the age of events: so that no test needs events that are really two weeks old.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock in milliseconds since 1970 UTC. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    set: Arc<Mutex<Set>>,
}

#[derive(Debug, Default)]
struct Set {
    stands_at: Option<i64>,
    ahead: i64,
}

impl Clock {
    /// A clock that stands, until it is moved.
    #[must_use]
    pub fn at(millis: i64) -> Self {
        Self { set: Arc::new(Mutex::new(Set { stands_at: Some(millis), ahead: 0 })) }
    }
    /// Moves it ahead; one that goes goes on from there.
    pub fn advance(&self, by: Duration) {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).ahead += millis(by);
    }
    /// The time.
    #[must_use]
    pub fn now(&self) -> i64 {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let base =
            set.stands_at.unwrap_or_else(|| millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()));
        base + set.ahead
    }
}

/// A duration as the API has it.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
