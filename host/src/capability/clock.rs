//! `clock`: wall and monotonic time. Allowed to everyone, always: it tells nothing that the guest could not measure.

use std::sync::OnceLock;
use std::time::Instant;

use super::Caller;
use super::bindings::clock;
use crate::record::now_ns;

impl clock::Host for Caller {
    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(self.services.watch().map_or_else(now_ns, |watch| watch.now_ns()))
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        // The first call is the moment that all others count from.
        static START: OnceLock<Instant> = OnceLock::new();
        let since = START.get_or_init(Instant::now).elapsed();
        Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::GuestLog;
    use super::super::{Caller, Services};
    use super::*;

    #[test]
    fn the_monotonic_clock_never_steps_back() {
        let services = Services::detached("o".into());
        let mut caller = Caller::new(services.clone(), GuestLog::new(services, 0, "p".into()));
        let readings: Vec<u64> = (0..1000).map(|_| clock::Host::monotonic(&mut caller).unwrap()).collect();
        assert!(readings.is_sorted());
    }
}
