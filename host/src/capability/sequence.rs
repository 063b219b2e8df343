//! `sequence`: counters that never repeat and never go back (`$INDEX`).
//!
//! An output has a namespace of its own; which counters it may have in there, [`grant`] says. A name has at most 512 bytes. The guest sees a number only
//! once the state has it on the disk: only the state's `Flushed` yields one.

mod grant;

use wasmtime::component::Resource;

use super::batch::Batch;
use super::bindings::sequence;
use super::bindings::types::HostError;
use super::storage::KEY_BYTES;
use super::{Caller, Reached, on_disk};
use crate::config::Unit;
use crate::state::{BatchId, Flushed, State, StateError};

impl sequence::Host for Caller {
    async fn assign(
        &mut self,
        name: String,
        to: Resource<Batch>,
        start: u64,
    ) -> wasmtime::Result<Result<u64, HostError>> {
        let quota = self.quota().quota();
        self.number("assign", name, to, move |state, output, name, batch| {
            state.within(quota).assign(output, name, batch, start)
        })
        .await
    }

    async fn reassign(
        &mut self,
        name: String,
        to: Resource<Batch>,
        taken: u64,
    ) -> wasmtime::Result<Result<u64, HostError>> {
        self.number("reassign", name, to, move |state, output, name, batch| state.reassign(output, name, batch, taken))
            .await
    }
}

impl Caller {
    async fn number(
        &mut self,
        function: &'static str,
        name: String,
        batch: Resource<Batch>,
        ask: impl FnOnce(&State, &str, &str, BatchId) -> Result<Flushed<u64>, StateError> + Send + 'static,
    ) -> wasmtime::Result<Result<u64, HostError>> {
        let batch = self.table.get(&batch)?.id();
        if name.len() > KEY_BYTES {
            let reached = Reached::fixed("a counter's name", Unit::Bytes, KEY_BYTES as u64, name.len() as u64);
            return Ok(Err(reached.refusal()));
        }
        if let Err(refused) = grant::check_name(self.services.output(), &self.services.grants().sequences, &name) {
            return Ok(Err(refused));
        }
        let state = match self.work() {
            Ok(work) => work.state.clone(),
            Err(refused) => return Ok(Err(refused)),
        };
        let output = self.services.output().clone();
        let counter = name.clone();
        let number = on_disk(&output.clone(), move || ask(&state, &output, &name, batch)).await?;
        let number = number.map(Flushed::get).map_err(|error| self.quota().refused(error));
        if let (Some(watch), Ok(number)) = (self.services.watch(), &number) {
            watch.numbered(function, &counter, *number);
        }
        Ok(number)
    }
}
