//! Wharf: an output host. It takes records in, keeps them durably, and delivers them through
//! WebAssembly components. `docs/architecture.md` has the picture; each module below is one room.
//!
//! Arrows point one way: `source → intake → journal → queue → output → plugin → capability`;
//! `record`, `state` and `telemetry` are used by all and use none of them.

pub mod admin;
mod allocator;
pub mod author;
mod buffers;
pub mod capability;
mod causes;
pub mod cli;
pub mod config;
pub mod convert;
pub mod dead_letter;
pub mod fair;
#[cfg(test)]
mod fuzz;
pub mod intake;
pub mod journal;
pub mod output;
pub mod plugin;
pub mod queue;
pub mod record;
pub mod registry;
mod regular_file;
pub mod run;
pub mod source;
pub mod state;
pub mod telemetry;
pub mod tls;
pub mod trust;
