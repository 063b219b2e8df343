//! The configuration file: its model, loading, and validation with file:line:column.
//!
//! In: a YAML file. Out: a [`Config`] in which everything is parsed, or every fault at once, each with its place, the nearest known
//! name and a remedy. Unknown keys are faults. `${VAR}` and `${VAR:-default}` read the environment, in values only.
//! A plugin's own `config` stays JSON here; its schema is checked by [`check_plugin_config`](schema) once the component is known.

mod model;

pub use model::*;
