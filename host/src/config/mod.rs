//! The configuration file: its model, loading, and validation with file:line:column.
//!
//! In: a YAML file. Out: a [`Config`] in which everything is parsed, or every fault at once, each with its place, the nearest known
//! name and a remedy. Unknown keys are faults. `${VAR}` and `${VAR:-default}` read the environment, in values only.
//! A plugin's own `config` stays JSON here; its schema is checked by [`check_plugin_config`] once the component is known, and what the component
//! itself finds wrong becomes a fault with a place by [`fault_at`].
//!
//! The way of a file: [`yaml`] makes a tree of [`node`]s with places, [`reader`] reads keys of it by type and collects faults,
//! [`top`], [`sources`] and [`outputs`] say which keys there are.

mod env;
mod fault;
mod json;
mod load;
mod model;
mod node;
mod outputs;
mod reader;
mod schema;
mod sources;
mod spans;
mod top;
pub mod units;
mod yaml;

#[cfg(test)]
mod tests;

pub use fault::{Fault, Faults, Place};
pub use model::*;
pub use schema::check_plugin_config;
pub use spans::{PluginConfigSpans, fault_at, fault_at_plugin};
