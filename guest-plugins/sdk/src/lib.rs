//! Write an output plugin for Wharf.
//!
//! An output plugin takes batches of records to where they belong. The host keeps the records, the credentials, the
//! sockets and the clock for retries; the plugin decides what is sent where, and says what came of it.
//!
//! Implement [`Output`] and name the type in [`export!`]:
//!
//! ```
//! use wharf_plugin::{Batch, ConfigFault, Context, Encoding, Failure, Output, Plan, Report, s3, schema};
//!
//! /// Puts each batch into one object.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Config {
//!     /// The bucket's name.
//!     bucket: String,
//! }
//!
//! struct Simple(Config);
//!
//! impl Output for Simple {
//!     const NAME: &'static str = "simple";
//!     type Config = Config;
//!
//!     fn schema() -> serde_json::Value {
//!         schema::of::<Config>()
//!     }
//!
//!     fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Vec<ConfigFault>> {
//!         let plan = Plan { s3: vec![s3::Scope::new(&config.bucket, "")], ..Plan::default() };
//!         Ok((Self(config), plan))
//!     }
//!
//!     fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
//!         let mut encoder = batch.encode(&Encoding::json_lines())?;
//!         if let Some(body) = encoder.next(64 << 20)? {
//!             s3::put_object(&self.0.bucket, &batch.id(), &body, &s3::Attributes::default(), true)?;
//!         }
//!         Ok(Report::all_delivered())
//!     }
//! }
//!
//! wharf_plugin::export!(Simple);
//! # fn main() {}
//! ```
//!
//! A plugin crate is a `cdylib`, built for `wasm32-unknown-unknown` (then made a component, as `cargo xtask` does) or
//! for `wasm32-wasip2`.

mod batch;
#[doc(hidden)]
pub mod bindings;
mod export;
mod failure;
mod faults;
mod output;

pub mod clock;
pub mod cloudwatch_logs;
pub mod http;
pub mod log;
pub mod metrics;
pub mod records;
pub mod s3;
pub mod schema;
pub mod sequence;
pub mod service;
pub mod storage;
pub mod units;

pub use batch::{Batch, Body, Encoder, Encoding, Kind, Record, Records, Selection};
pub use failure::{Failure, FailureKind, HostError};
pub use faults::{Faults, listed};
pub use output::{ConfigFault, Context, Output, PartitionKey, Plan, Report};

#[doc(hidden)]
pub use export::__private;
