//! One store: a guest's memory, and all that the host keeps beside it.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{Deterministic, HostWallClock, WasiCtx, WasiCtxView, WasiView};

use super::limits::{Limiter, call_bytes};
use super::meter::Meter;
use super::stdio::GuestOutput;
use crate::capability::bindings::log::Level;
use crate::capability::share::Budget;
use crate::capability::{Caller, Services};
use crate::config::Limit;
use crate::fair::Tenant;
use crate::record::now_ns;

/// Random bytes that a guest may ask for at once: seeds, not streams.
const RANDOM_BYTES: u64 = 4096;

/// What random numbers are made of where a test looks on.
const CHANCE: &[u8] = b"The same on every machine";

/// The clock of whoever looks on.
struct WatchedClock(Arc<Services>);

impl HostWallClock for WatchedClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        let now_ns = self.0.watch().map_or_else(now_ns, |watch| watch.now_ns());
        Duration::from_nanos(u64::try_from(now_ns).unwrap_or(0))
    }
}

/// What a store carries.
pub(super) struct Data {
    pub(super) caller: Caller,
    wasi: WasiCtx,
    pub(super) limiter: Limiter,
    pub(super) meter: Meter,
    /// CPU that the running call may take.
    pub(super) cpu_budget: Duration,
    /// The call was ended because it took more.
    pub(super) over_budget: bool,
    /// Functions of the host that the running call has called.
    pub(super) calls: u64,
}

impl Data {
    /// `memory` is what all stores have together, `most_memory` what one can have here at all.
    pub(super) fn new(caller: Caller, memory: &Budget, most_memory: u64) -> Self {
        Self {
            meter: Meter::new(Tenant::of(caller.services.output())),
            wasi: inert_wasi(&caller),
            limiter: Limiter::new(Arc::clone(&caller.services), memory, most_memory),
            caller,
            cpu_budget: Duration::ZERO,
            over_budget: false,
            calls: 0,
        }
    }
}

impl WasiView for Data {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.caller.table }
    }
}

/// An empty store with every limit set.
pub(super) fn new(engine: &Engine, data: Data) -> Store<Data> {
    let limits = Arc::clone(data.caller.services.limits());
    let mut store = Store::new(engine, data);
    store.limiter(|data| &mut data.limiter);
    store.set_max_component_handles(limits.size(Limit::Handles));
    store.set_hostcall_fuel(call_bytes(&limits));
    store.epoch_deadline_callback(|mut store| {
        let data = store.data_mut();
        if data.meter.running() <= data.cpu_budget {
            // The guest lets others run at every tick, so that a busy one never blocks them.
            return Ok(UpdateDeadline::Yield(1));
        }
        data.over_budget = true;
        Ok(UpdateDeadline::Interrupt)
    });
    store
}

/// WASI 0.2 because language tool chains import it, with nothing behind it: no files, no environment, no arguments, no sockets, an
/// ended standard input. What is printed goes to the plugin's log.
fn inert_wasi(caller: &Caller) -> WasiCtx {
    let mut wasi = WasiCtx::builder();
    if caller.services.watch().is_some() {
        // A test's clock and chance are the same each time.
        wasi.wall_clock(WatchedClock(Arc::clone(&caller.services)))
            .secure_random(Deterministic::new(CHANCE.to_vec()))
            .insecure_random(Deterministic::new(CHANCE.to_vec()))
            .insecure_random_seed(0);
    }
    wasi.stdout(GuestOutput::new(caller.log.clone(), Level::Info))
        .stderr(GuestOutput::new(caller.log.clone(), Level::Warn))
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}
