//! What the host knows of batches beyond the one at hand.

use crate::bindings::wharf::output::records as wit;

/// Whether the host still holds this batch, and so may ask for its delivery again. For sweeping up what batches
/// that are gone left behind.
#[must_use]
pub fn is_open(batch_id: &str) -> bool {
    wit::is_open(batch_id)
}
