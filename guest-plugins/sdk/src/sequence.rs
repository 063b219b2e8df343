//! Counters that never repeat and never go back, whatever stops the host (`$INDEX`).

use crate::bindings::wharf::output::sequence as wit;
use crate::{Batch, HostError};

/// The number of this batch in the counter `name`: the same one for ever, on disk before this returns.
/// A counter's first number is `start`.
///
/// # Errors
/// See [`HostError`].
pub fn assign(name: &str, batch: &Batch, start: u64) -> Result<u64, HostError> {
    Ok(wit::assign(name, batch.wit(), start)?)
}

/// Binds the batch to the counter's next free number, when `taken` proved taken by somebody outside. A repeated
/// call with the same `taken` gives the same answer.
///
/// # Errors
/// See [`HostError`].
pub fn reassign(name: &str, batch: &Batch, taken: u64) -> Result<u64, HostError> {
    Ok(wit::reassign(name, batch.wit(), taken)?)
}
