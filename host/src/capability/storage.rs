//! `storage`: small durable state of an output.
//!
//! An output has a namespace of its own; how much it may hold, its limits and [`grant`] say. Keys have 1 to 512 bytes, values at most 1,024; a transaction
//! has at most 256 changes; what an output's rows hold (16 MiB where nothing is said), and those of a tenant, is bounded in the transaction. So is the number
//! of counters, which [`sequence`](super::sequence) makes. Every change is on the disk when the call returns.

pub(super) mod grant;

use std::sync::Arc;

use wasmtime::component::Resource;

use super::batch::Batch;
use super::bindings::storage;
use super::bindings::types::HostError;
use super::{Caller, Reached, Services, on_disk};
use crate::config::{Limit, Unit};
use crate::state::{BatchId, Change, Flushed, Most, Quota, State, StateError};

/// Longest key, bytes.
pub(super) const KEY_BYTES: usize = 512;
/// Longest value, bytes: sled stays well behaved up to 2 KiB a row.
const VALUE_BYTES: usize = 1024;
/// Most changes of a transaction.
const MAX_CHANGES: usize = 256;
/// Most rows of a list.
const MAX_LISTED: u32 = 1000;

type Rows = Vec<(String, Vec<u8>)>;

impl storage::Host for Caller {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, HostError>> {
        self.with_state(check_key(&key), move |state, output| state.get(output, &key).map_err(refused)).await
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), HostError>> {
        let checked = check_key(&key).and_then(|()| check_value(&value));
        let apply = self.apply(vec![Change::Set(key, value)]);
        self.with_state(checked, apply).await
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<(), HostError>> {
        let checked = check_key(&key);
        let apply = self.apply(vec![Change::Delete(key)]);
        self.with_state(checked, apply).await
    }

    async fn compare_and_set(
        &mut self,
        key: String,
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> wasmtime::Result<Result<bool, HostError>> {
        let checked = check_key(&key).and_then(|()| new.as_deref().map_or(Ok(()), check_value));
        let quota = self.quota();
        let granted = self.services.grants().storage_bytes;
        self.with_state(checked, move |state, output| {
            let added = new.as_ref().map_or(0, |new| key.len() + new.len());
            grant::check_added(output, granted, || state.stored_bytes(output), added as u64)?;
            let state = state.within(quota.quota());
            let set = state.compare_and_set(output, &key, expected.as_deref(), new.as_deref());
            set.map(Flushed::get).map_err(|error| quota.refused(error))
        })
        .await
    }

    async fn list(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Rows, HostError>> {
        let limit = limit.min(MAX_LISTED) as usize;
        self.with_state(check_prefix(&prefix), move |state, output| {
            state.list(output, &prefix, after.as_deref(), limit).map_err(refused)
        })
        .await
    }

    async fn transact(&mut self, changes: Vec<storage::Change>) -> wasmtime::Result<Result<(), HostError>> {
        let checked = check_changes(&changes);
        let changes = changes.into_iter().map(|change| match change {
            storage::Change::Set((key, value)) => Change::Set(key, value),
            storage::Change::Delete(key) => Change::Delete(key),
        });
        let apply = self.apply(changes.collect());
        self.with_state(checked, apply).await
    }

    async fn progress_get(
        &mut self,
        of: Resource<Batch>,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, HostError>> {
        let batch = self.batch_id(&of)?;
        self.with_state(check_key(&key), move |state, output| state.progress_get(output, batch, &key).map_err(refused))
            .await
    }

    async fn progress_set(
        &mut self,
        of: Resource<Batch>,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), HostError>> {
        let batch = self.batch_id(&of)?;
        let checked = check_key(&key).and_then(|()| check_value(&value));
        let quota = self.quota();
        self.with_state(checked, move |state, output| {
            let put = state.within(quota.quota()).progress_put(output, batch, &key, Some(&value));
            put.map(Flushed::get).map_err(|error| quota.refused(error))
        })
        .await
    }

    async fn progress_delete(&mut self, of: Resource<Batch>, key: String) -> wasmtime::Result<Result<(), HostError>> {
        let batch = self.batch_id(&of)?;
        self.with_state(check_key(&key), move |state, output| {
            state.progress_put(output, batch, &key, None).map(Flushed::get).map_err(refused)
        })
        .await
    }

    async fn progress_list(
        &mut self,
        of: Resource<Batch>,
        prefix: String,
    ) -> wasmtime::Result<Result<Rows, HostError>> {
        let batch = self.batch_id(&of)?;
        self.with_state(check_prefix(&prefix), move |state, output| {
            state.progress_list(output, batch, &prefix).map_err(refused)
        })
        .await
    }
}

impl Caller {
    /// Asks the state, on a thread that may block, where the arguments were found good and there is an output at work.
    async fn with_state<T: Send + 'static>(
        &mut self,
        checked: Result<(), HostError>,
        ask: impl FnOnce(&State, &str) -> Result<T, HostError> + Send + 'static,
    ) -> wasmtime::Result<Result<T, HostError>> {
        let state = match checked.and_then(|()| self.work()) {
            Ok(work) => work.state.clone(),
            Err(refused) => return Ok(Err(refused)),
        };
        let output = self.services.output().clone();
        on_disk(&output.clone(), move || ask(&state, &output)).await
    }

    /// Applies changes within the output's quota.
    fn apply(
        &self,
        changes: Vec<Change>,
    ) -> impl FnOnce(&State, &str) -> Result<(), HostError> + Send + use<> + 'static {
        let quota = self.quota();
        let granted = self.services.grants().storage_bytes;
        let added = changes.iter().map(|change| match change {
            Change::Set(key, value) => key.len() + value.len(),
            Change::Delete(_) => 0,
        });
        let added = added.sum::<usize>() as u64;
        move |state, output| {
            grant::check_added(output, granted, || state.stored_bytes(output), added)?;
            let applied = state.within(quota.quota()).apply(output, &changes);
            applied.map(Flushed::get).map_err(|error| quota.refused(error))
        }
    }

    /// What the output may keep.
    pub(super) fn quota(&self) -> OutputQuota {
        OutputQuota(Arc::clone(&self.services))
    }

    fn batch_id(&self, batch: &Resource<Batch>) -> wasmtime::Result<BatchId> {
        Ok(self.table.get(batch)?.id())
    }
}

/// The state's trouble as a guest sees it.
pub(super) fn refused(error: StateError) -> HostError {
    match error {
        StateError::Invalid(text) => HostError::Invalid(text),
        other => HostError::Unavailable(other.to_string()),
    }
}

/// What an output may keep, and how it is told that they may not hold more.
pub(super) struct OutputQuota(Arc<Services>);

impl OutputQuota {
    pub(super) fn quota(&self) -> Quota {
        let limits = self.0.limits();
        let output = Most { bytes: limits.of(Limit::Storage), counters: limits.of(Limit::Counters) };
        Quota { output, tenant: self.0.tenant().map_or(Most::ANY, |tenant| tenant.kept) }
    }

    pub(super) fn refused(&self, error: StateError) -> HostError {
        let (limit, current, requested) = match error {
            StateError::OverQuota { of_tenant: false, current, requested, .. } => (Limit::Storage, current, requested),
            StateError::OverQuota { of_tenant: true, current, requested, .. } => {
                (Limit::TenantStorage, current, requested)
            }
            StateError::TooManyCounters { of_tenant: false, current, .. } => (Limit::Counters, current, 1),
            StateError::TooManyCounters { of_tenant: true, current, .. } => (Limit::TenantCounters, current, 1),
            other => return refused(other),
        };
        self.0.reached(limit, current, requested).refusal()
    }
}

fn check_changes(changes: &[storage::Change]) -> Result<(), HostError> {
    if changes.len() > MAX_CHANGES {
        let changes = changes.len() as u64;
        return Err(Reached::fixed("a transaction", Unit::Count("changes"), MAX_CHANGES as u64, changes).refusal());
    }
    changes.iter().try_for_each(|change| match change {
        storage::Change::Set((key, value)) => check_key(key).and_then(|()| check_value(value)),
        storage::Change::Delete(key) => check_key(key),
    })
}

fn check_key(key: &str) -> Result<(), HostError> {
    if key.is_empty() {
        return Err(HostError::Invalid("a key must not be empty".into()));
    }
    check_prefix(key)
}

fn check_prefix(key: &str) -> Result<(), HostError> {
    if key.len() > KEY_BYTES {
        return Err(Reached::fixed("a key", Unit::Bytes, KEY_BYTES as u64, key.len() as u64).refusal());
    }
    Ok(())
}

fn check_value(value: &[u8]) -> Result<(), HostError> {
    if value.len() > VALUE_BYTES {
        return Err(Reached::fixed("a value", Unit::Bytes, VALUE_BYTES as u64, value.len() as u64).refusal());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_1_to_512_bytes_and_values_at_most_1024() {
        assert!(check_key("k").is_ok());
        assert!(check_key(&"k".repeat(512)).is_ok());
        assert!(matches!(check_key(&"k".repeat(513)), Err(HostError::Limit(_))));
        assert!(matches!(check_key(""), Err(HostError::Invalid(_))));
        assert!(check_prefix("").is_ok());
        assert!(check_value(&[0; 1024]).is_ok());
        assert!(matches!(check_value(&[0; 1025]), Err(HostError::Limit(_))));
    }

    #[test]
    fn a_transaction_has_at_most_256_changes_and_each_is_checked() {
        let change = |key: &str| storage::Change::Delete(key.into());
        assert!(check_changes(&vec![change("k"); 256]).is_ok());
        assert!(matches!(check_changes(&vec![change("k"); 257]), Err(HostError::Limit(_))));
        assert!(matches!(check_changes(&[change("k"), change("")]), Err(HostError::Invalid(_))));
    }
}
