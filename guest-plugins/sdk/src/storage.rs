//! Small durable state of this output, seen by all of its workers and by nobody else. Every change is on disk when
//! the call returns. Keys are at most 512 bytes, values at most 1,024 bytes.

use crate::bindings::wharf::output::storage as wit;
use crate::{Batch, HostError};

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Set(String, Vec<u8>),
    /// Deletes a key.
    Delete(String),
}

/// The value of a key.
///
/// # Errors
/// See [`HostError`]; so in all functions here.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, HostError> {
    Ok(wit::get(key)?)
}

/// Sets a key.
///
/// # Errors
/// See [`HostError`].
pub fn set(key: &str, value: &[u8]) -> Result<(), HostError> {
    Ok(wit::set(key, value)?)
}

/// Deletes a key; one that is not there is no error.
///
/// # Errors
/// See [`HostError`].
pub fn delete(key: &str) -> Result<(), HostError> {
    Ok(wit::delete(key)?)
}

/// Sets `key` to `new` if its value now is `expected` (none: absent). Gives whether it did.
///
/// # Errors
/// See [`HostError`].
pub fn compare_and_set(key: &str, expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, HostError> {
    Ok(wit::compare_and_set(key, expected, new)?)
}

/// Keys with a prefix and their values, ascending, at most `limit` (1,000 at most), behind `after`.
///
/// # Errors
/// See [`HostError`].
pub fn list(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<(String, Vec<u8>)>, HostError> {
    Ok(wit::list(prefix, after, limit)?)
}

/// All changes or none (at most 256), in one durable step.
///
/// # Errors
/// See [`HostError`].
pub fn transact(changes: &[Change]) -> Result<(), HostError> {
    let changes: Vec<_> = changes
        .iter()
        .map(|change| match change {
            Change::Set(key, value) => wit::Change::Set((key.clone(), value.clone())),
            Change::Delete(key) => wit::Change::Delete(key.clone()),
        })
        .collect();
    Ok(wit::transact(&changes)?)
}

/// Progress of one batch: rows that go away in the very step that settles the batch.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a>(pub(crate) &'a Batch<'a>);

impl Progress<'_> {
    /// The value of a key.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn get(self, key: &str) -> Result<Option<Vec<u8>>, HostError> {
        Ok(wit::progress_get(self.0.wit(), key)?)
    }
    /// Sets a key.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn set(self, key: &str, value: &[u8]) -> Result<(), HostError> {
        Ok(wit::progress_set(self.0.wit(), key, value)?)
    }
    /// Deletes a key; one that is not there is no error.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn delete(self, key: &str) -> Result<(), HostError> {
        Ok(wit::progress_delete(self.0.wit(), key)?)
    }
    /// All keys with a prefix and their values, ascending.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn list(self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        Ok(wit::progress_list(self.0.wit(), prefix)?)
    }
}
