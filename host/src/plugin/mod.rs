//! Plugins: loading components, and workers that run them.
//!
//! One wasmtime engine for the process; a component is compiled once (and cached by digest), linked once, and each worker has its
//! own store. A worker that trapped, ran out of time or memory, or whose call was dropped cannot be called again: calling
//! consumes the worker and gives it back only on success.
//!
//! In: a component and its configuration, then batches. Out: a plan, then for each batch how it ended, checked: what a component
//! returns is as much hostile input as what it calls.

pub mod anatomy;
mod answer;
pub mod binary;
pub mod builtin;
mod cache;
mod cached_code;
mod call;
mod compatible;
mod death;
mod engine;
mod error;
mod limits;
mod load;
mod meter;
mod model;
mod read;
mod signed;
mod stdio;
mod store;
pub mod wit;
mod worker;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use compatible::MAX_BYTES;
pub use error::{LoadError, StartError};
pub use load::{InUse, Plugin, PluginHost};
pub use model::{
    ConfigFault, Death, DeathCause, Delivery, Descriptor, Failure, FailureKind, GUEST_ERROR, HostOptions, Outcome, Pin,
    Plan, PluginSource, REFUSED, Requirements, WorkerContext, failure_classes,
};
pub use read::names_in;
pub(crate) use signed::signature_beside;
pub use worker::Worker;
