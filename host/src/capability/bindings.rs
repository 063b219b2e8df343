//! The WIT package `wharf:output` as Rust: a trait for each interface that the host offers, and typed calls of what a component
//! exports. Made from `wit/` when this crate is compiled.
//!
//! Functions that may wait are async; the guest sees them block. All are trappable: an `Err` ends the guest, so ordinary
//! refusals travel inside the WIT result instead.

wasmtime::component::bindgen!({
    world: "plugin",
    path: "../wit",
    imports: {
        "wharf:output/log": trappable,
        "wharf:output/metrics": trappable,
        "wharf:output/clock": trappable,
        default: async | trappable,
    },
    exports: { default: async },
    with: {
        "wharf:output/records.batch": crate::capability::batch::Batch,
        "wharf:output/records.encoder": crate::capability::records::OpenEncoder,
        "wharf:output/records.body": crate::capability::body::Body,
        "wharf:output/s3.pending-part": crate::capability::s3::PendingPart,
        "wharf:output/cloudwatch-logs.events": crate::capability::cloudwatch_logs::Events,
    },
});

pub(crate) use self::exports::wharf::output::output;
pub(crate) use self::wharf::output::{
    clock, cloudwatch_logs, http, log, metrics, records, s3, sequence, storage, types,
};

/// The WIT package's version, as components name it in their imports.
pub(crate) const WIT_VERSION: &str = "0.1.0";
