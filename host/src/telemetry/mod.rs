//! What happened, countably: metrics for Prometheus, and the log's set-up.
//!
//! [`Metrics`] is a handle that every room may hold; names, labels and help texts live here and nowhere else.

mod metrics;

pub use metrics::Metrics;
