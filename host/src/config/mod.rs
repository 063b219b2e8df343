//! The configuration file: its model, loading, and validation with file:line:column.
//!
//! In: a YAML file. Out: a [`Config`] in which everything is parsed, or every fault at once, each with its place, the nearest known
//! name and a remedy. Unknown keys are faults. `${VAR}` and `${VAR:-default}` read the environment, in values only.
//! A plugin's own `config` stays JSON here; its schema is checked by [`check_plugin_config`] once the component is known. The
//! [`PluginConfigCheck`] that comes of it says what the component itself can still be asked, and gives its answers their places.
//! A file with faults is a [`Draft`]: its outputs are checked as far as they could be read.
//!
//! The way of a file: [`yaml`] makes a tree of [`node`]s with places, [`reader`] reads keys of it by type and collects faults,
//! [`top`], [`sources`], [`outputs`], [`tenants`], [`limits`], [`aws`] and [`http`] say which keys there are. [`confines`] says what the file of one
//! tenant may read.

mod aws;
mod confines;
mod env;
mod fault;
mod forward;
mod from_environment;
mod hidden;
mod http;
mod http_destination;
mod http_source;
mod json;
mod limits;
mod load;
mod model;
mod node;
mod otlp;
mod outputs;
mod own_grants;
mod parse;
mod reader;
mod rest;
mod schema;
mod secret;
mod sources;
mod spans;
mod syslog;
mod tail;
mod tenant_limits;
mod tenants;
mod tokens;
mod top;
mod trust;
pub mod units;
mod yaml;

#[cfg(test)]
mod tests;

pub use fault::{Fault, Faults, Place};
pub(crate) use fault::{Sink, nearest};
pub(crate) use http::{credentials as read_credentials, where_defined as where_credentials_are_defined};
pub use http_destination::HttpDestination;
pub(crate) use json::value as json_value;
pub use limits::{About, Level, Limit, Limits, Scope, Unit, shown as shown_limit};
pub(crate) use load::text_of;
pub use load::{Draft, LettersPlace};
pub use model::*;
pub(crate) use node::{Entry, Meaning, Node, Scalar, Value as NodeValue};
pub(crate) use outputs::{batch as read_batch, grants as read_grants, plugin_config, retry as read_retry};
pub(crate) use reader::Section;
pub use rest::PluginConfigCheck;
pub use schema::{check_plugin_config, expected_words};
pub use secret::{Secret, SecretSource};
pub use spans::{PluginConfigSpans, fault_at_pin, fault_at_plugin};
pub(crate) use tokens::what_is_wrong_with as what_is_wrong_with_token;
#[cfg(test)]
pub(crate) use top::LEAST_MEMORY;
pub(crate) use yaml::read as read_yaml;
