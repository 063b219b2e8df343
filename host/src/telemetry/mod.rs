//! What happened, countably: metrics for Prometheus, and the log's set-up.
//!
//! [`Metrics`] is a handle that every room may hold; names, labels and help texts live here and nowhere else,
//! but for the series that plugins name themselves ([`plugin_series`]).

mod logging;
mod metrics;
pub mod plugin_series;

pub use logging::{LogError, init_logging};
pub use metrics::{CONTENT_TYPE, HttpExchange, JournalFigures, Metrics, OutputWords};
