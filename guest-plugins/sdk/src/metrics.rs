//! Numbers for the host's `/metrics`. Outside of a host (in tests) they go nowhere.

use crate::bindings::wharf::output::metrics as wit;

fn owned(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Adds to a counter.
pub fn add(name: &str, value: u64, labels: &[(&str, &str)]) {
    if cfg!(target_family = "wasm") {
        wit::counter_add(name, value, &owned(labels));
    }
}

/// Sets a gauge.
pub fn set(name: &str, value: f64, labels: &[(&str, &str)]) {
    if cfg!(target_family = "wasm") {
        wit::gauge_set(name, value, &owned(labels));
    }
}

/// Counts a value in a histogram: seconds, bytes, or whatever the name says.
pub fn observe(name: &str, value: f64, labels: &[(&str, &str)]) {
    if cfg!(target_family = "wasm") {
        wit::histogram_observe(name, value, &owned(labels));
    }
}
