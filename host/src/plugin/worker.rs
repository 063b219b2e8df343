//! A worker: a configured store, and the calls that are made in it.
//!
//! Each call consumes the worker and gives it back only where it ended well. After a trap, a timeout, a limit, a panic or an answer that
//! cannot be trusted the store is dropped: wasmtime would refuse further calls, and what the guest's memory holds is anybody's guess.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::Resource;

use super::call::{Stopped, attempt, begin};
use super::store::Data;
use super::{
    Death, DeathCause, Delivery, GUEST_ERROR, Outcome, Plan, REFUSED, StartError, WorkerContext, answer, death,
};
use crate::capability::batch::Batch;
use crate::capability::bindings::{self, output};
use crate::capability::{Phase, Usage};
use crate::config::{Limit, Limits};

/// Wall time for `describe`, and for instantiating and `configure`: they wait for nothing.
pub(super) const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Wall time for `abandon` and `close`, which may call outside but are best effort.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(60);

/// A worker: one store, ready for a call.
pub struct Worker {
    store: Store<Data>,
    component: bindings::Plugin,
    limits: Arc<Limits>,
    output: Arc<str>,
    number: u32,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("output", &self.output).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Worker {
    /// Instantiates and configures.
    pub(super) async fn start(
        mut store: Store<Data>,
        pre: &bindings::PluginPre<Data>,
        context: WorkerContext,
    ) -> Result<(Self, Plan), StartError> {
        let WorkerContext { output, worker: number, hostname, config, services } = context;
        let limits = Arc::clone(services.limits());
        let surroundings =
            output::Context { output: output.to_string(), hostname: hostname.to_string(), worker: number };
        let timeout = SETUP_TIMEOUT.min(limits.duration(Limit::DeliverTimeout));
        let meter = begin(&mut store, limits.duration(Limit::CpuPerCall), timeout);
        let configured = attempt(&meter, timeout, async {
            let component = pre.instantiate_async(&mut store).await?;
            let plan = component.wharf_output_output().call_configure(&mut store, &config, &surroundings).await?;
            Ok((component, plan))
        })
        .await;
        let died = |death| StartError::Died { output: Arc::clone(&output), death };
        let (component, plan) = configured.map_err(|stopped| died(death::death(&stopped, store.data())))?;
        let plan = match plan {
            Ok(plan) => answer::plan(plan)
                .map_err(|what| died(death::decided(DeathCause::InvalidReport, &what, store.data())))?,
            Err(faults) => return Err(StartError::Config { output, faults: answer::faults(faults) }),
        };
        store.data_mut().caller.phase = Phase::Work;
        let worker = Self { store, component, limits, output, number };
        worker.count_cpu();
        Ok((worker, plan))
    }

    /// Delivers a batch. The worker comes back unless its store is gone.
    pub async fn deliver(mut self, delivery: Delivery) -> (Outcome, Option<Self>) {
        let batch = batch(delivery);
        let records = batch.count();
        let cpu = cpu_for(&self.limits, batch.size());
        let timeout = self.limits.duration(Limit::DeliverTimeout);
        let handle = match self.hand_in(batch) {
            Ok(handle) => handle,
            Err(death) => return (Outcome::Died(death), None),
        };
        let meter = begin(&mut self.store, cpu, timeout);
        let call = self.component.wharf_output_output().call_deliver(&mut self.store, Resource::new_borrow(handle));
        let ended = attempt(&meter, timeout, call).await;
        let ended = self.end(handle, ended);
        let refused = self.store.data().caller.refused > 0;
        match ended {
            Err(death) => {
                self.count_failure(death.cause.as_str());
                (Outcome::Died(death), None)
            }
            Ok(Err(failure)) => {
                self.count_failure(if refused { REFUSED } else { GUEST_ERROR });
                (Outcome::Failed(answer::failure(failure)), Some(self))
            }
            Ok(Ok(report)) => match answer::rejections(report, records) {
                Ok(rejected) => (Outcome::Delivered { rejected }, Some(self)),
                Err(what) => {
                    self.count_failure(DeathCause::InvalidReport.as_str());
                    let death = death::decided(DeathCause::InvalidReport, &what, self.store.data());
                    (Outcome::Died(death), None)
                }
            },
        }
    }

    /// Tells the component that the host gives this batch up.
    pub async fn abandon(mut self, delivery: Delivery) -> Option<Self> {
        let handle = self.hand_in(batch(delivery)).ok()?;
        let meter = begin(&mut self.store, self.limits.duration(Limit::CpuPerCall), FAREWELL_TIMEOUT);
        let call = self.component.wharf_output_output().call_abandon(&mut self.store, Resource::new_borrow(handle));
        let ended = attempt(&meter, FAREWELL_TIMEOUT, call).await;
        match self.end(handle, ended) {
            Ok(()) => Some(self),
            Err(death) => {
                self.report("abandon", &death);
                None
            }
        }
    }

    /// Lets the component close, and drops the store.
    pub async fn close(mut self) {
        let meter = begin(&mut self.store, self.limits.duration(Limit::CpuPerCall), FAREWELL_TIMEOUT);
        let call = self.component.wharf_output_output().call_close(&mut self.store);
        let ended = attempt(&meter, FAREWELL_TIMEOUT, call).await;
        self.count_cpu();
        if let Err(stopped) = ended {
            self.report("close", &death::death(&stopped, self.store.data()));
        }
    }

    /// Gives the guest a batch for the length of a call.
    fn hand_in(&mut self, batch: Batch) -> Result<u32, Death> {
        let caller = &mut self.store.data_mut().caller;
        match caller.table.push(batch) {
            Ok(handle) => Ok(handle.rep()),
            Err(error) => Err(death::death(&Stopped::Error(error.into()), self.store.data())),
        }
    }

    /// Takes the batch back, and ends what the call left running.
    fn end<T>(&mut self, batch: u32, ended: Result<T, Stopped>) -> Result<T, Death> {
        self.count_cpu();
        let data = self.store.data();
        if let Some(watch) = data.caller.services.watch() {
            watch.used(Usage { cpu: data.meter.ended(), memory: data.limiter.memory(), calls: data.calls });
        }
        let data = self.store.data_mut();
        data.caller.uploads.abort_all();
        match ended {
            // Encoders and bodies that the guest still holds live on without the batch.
            Ok(value) => match data.caller.table.delete(Resource::<Batch>::new_own(batch)) {
                Ok(_) => Ok(value),
                Err(error) => Err(death::death(&Stopped::Error(error.into()), data)),
            },
            Err(stopped) => Err(death::death(&stopped, data)),
        }
    }

    fn count_cpu(&self) {
        let data = self.store.data();
        if let Some(work) = data.caller.services.work() {
            work.metrics.worker_cpu(&self.output, self.number, data.meter.ended().as_secs_f64());
        }
    }

    fn count_failure(&self, class: &'static str) {
        if let Some(work) = self.store.data().caller.services.work() {
            work.metrics.plugin_failed(&self.output, class);
        }
    }

    /// A death in a call that is best effort.
    fn report(&self, call: &str, death: &Death) {
        self.count_failure(death.cause.as_str());
        let (output, worker) = (&*self.output, self.number);
        tracing::warn!(
            output, worker, call, class = death.cause.as_str(), last_log = ?death.last_log,
            "the plugin died: {}", death.message
        );
    }
}

/// CPU for a `deliver`: a limit that depends on nothing but the call would be too small for a large batch, or useless for a small one.
fn cpu_for(limits: &Limits, batch_bytes: u64) -> Duration {
    let part = (batch_bytes >> 20).saturating_mul(limits.of(Limit::CpuPerMib));
    limits.duration(Limit::CpuPerCall).saturating_add(Duration::from_millis(part))
}

fn batch(delivery: Delivery) -> Batch {
    let Delivery { id, attempt, portions, partitioning, journal } = delivery;
    Batch::new(id, attempt, portions, partitioning, journal)
}
