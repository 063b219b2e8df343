//! The plugins' own rows: an output's key-value rows, and a batch's progress.

use std::collections::BTreeMap;

use super::change::Inner;
use super::handle::Handle;
use super::handle::Trouble;
use super::rows::{self, Table};
use super::{BatchId, Change, Flushed, Quota, StateError};

impl Inner {
    pub(super) fn get(&self, output: &str, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        rows::check(key, None)?;
        let key = rows::key(output, key.as_bytes())?;
        self.read(|handle| Ok(handle.get(Table::Kv, &key)?.map(|value| value.to_vec())))
    }

    pub(super) fn apply(
        &self,
        quota: Option<Quota>,
        output: &str,
        changes: &[Change],
    ) -> Result<Flushed<()>, StateError> {
        // The last change of a key is the one that counts.
        let mut rows = BTreeMap::new();
        for change in changes {
            let (key, value) = match change {
                Change::Set(key, value) => (key, Some(value.clone())),
                Change::Delete(key) => (key, None),
            };
            rows::check(key, value.as_deref())?;
            rows.insert(rows::key(output, key.as_bytes())?, value);
        }
        self.change_within(quota, |_, _| {
            Ok((rows.into_iter().map(|(key, value)| (Table::Kv, key, value)).collect(), ()))
        })
    }

    pub(super) fn compare_and_set(
        &self,
        quota: Option<Quota>,
        output: &str,
        key: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Flushed<bool>, StateError> {
        rows::check(key, new)?;
        let row = rows::key(output, key.as_bytes())?;
        self.change_within(quota, |_, handle| {
            if handle.get(Table::Kv, &row)?.as_deref() != expected {
                return Ok((Vec::new(), false));
            }
            Ok((vec![(Table::Kv, row, new.map(<[u8]>::to_vec))], true))
        })
    }

    pub(super) fn list(
        &self,
        output: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        rows::check(prefix, None)?;
        let beginning = rows::key(output, prefix.as_bytes())?;
        let from = match after {
            Some(after) => {
                rows::check(after, None)?;
                // The first key behind `after` is `after` with a NUL.
                let mut from = rows::key(output, after.as_bytes())?;
                from.push(0);
                from
            }
            None => Vec::new(),
        };
        self.read(|handle| list(handle, Table::Kv, &beginning, &from, output.len() + 1, limit))
    }

    pub(super) fn progress_get(&self, output: &str, batch: BatchId, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        rows::check(key, None)?;
        let key = rows::batch_key(output, batch, key)?;
        self.read(|handle| Ok(handle.get(Table::Progress, &key)?.map(|value| value.to_vec())))
    }

    pub(super) fn progress_put(
        &self,
        quota: Option<Quota>,
        output: &str,
        batch: BatchId,
        key: &str,
        value: Option<&[u8]>,
    ) -> Result<Flushed<()>, StateError> {
        rows::check(key, value)?;
        let row = rows::batch_key(output, batch, key)?;
        self.change_within(quota, |_, _| {
            self.require_open(output, batch)?;
            Ok((vec![(Table::Progress, row, value.map(<[u8]>::to_vec))], ()))
        })
    }

    pub(super) fn progress_list(
        &self,
        output: &str,
        batch: BatchId,
        prefix: &str,
    ) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        rows::check(prefix, None)?;
        let beginning = rows::batch_key(output, batch, prefix)?;
        let owner = output.len() + 1 + batch.0.len() + 1;
        self.read(|handle| list(handle, Table::Progress, &beginning, &[], owner, usize::MAX))
    }
}

/// Rows that begin with `beginning`, from `from` on; of the keys, what is behind the first `owner` bytes.
fn list(
    handle: &Handle,
    table: Table,
    beginning: &[u8],
    from: &[u8],
    owner: usize,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
    let mut found = Vec::new();
    for row in handle.scan(table, beginning, from)?.take(limit) {
        let (key, value) = row?;
        let rest = key.get(owner..).unwrap_or_default();
        found.push((rows::text(table, &key, rest)?, value.to_vec()));
    }
    Ok(found)
}
