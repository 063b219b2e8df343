//! A line for each tenant: what one of them waits for holds up no other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::line::{Line, Log};

/// Gives a tenant's way into the journal.
pub(super) type Logs = Box<dyn Fn(Option<&str>) -> Arc<dyn Log> + Send + Sync>;

pub(super) struct Lines {
    logs: Logs,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    by_tenant: HashMap<Option<Box<str>>, Arc<Line>>,
    stopped: bool,
}

impl Lines {
    pub(super) fn new(logs: Logs) -> Self {
        Self { logs, books: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of this tenant, or the operator's: the same one each time.
    pub(super) fn of(&self, tenant: Option<&str>) -> Arc<Line> {
        let books = &mut *self.lock();
        let line = books.by_tenant.entry(tenant.map(Into::into)).or_insert_with(|| Line::new((self.logs)(tenant)));
        if books.stopped {
            line.stop();
        }
        Arc::clone(line)
    }

    /// None takes anything any more.
    pub(super) fn stop(&self) {
        let mut books = self.lock();
        books.stopped = true;
        books.by_tenant.values().for_each(|line| line.stop());
    }
}
