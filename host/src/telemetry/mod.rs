//! What happened, countably: metrics for Prometheus, and the log's set-up.
//!
//! [`Metrics`] is a handle that every room may hold; names, labels and help texts live here and nowhere else.

mod logging;
mod metrics;

pub use logging::{LogError, init_logging};
pub use metrics::{CONTENT_TYPE, Metrics};
