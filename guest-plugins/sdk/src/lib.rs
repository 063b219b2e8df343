//! Write an output plugin for Wharf.
//!
//! An output plugin takes batches of records to where they belong. The host keeps the records, the credentials, the
//! sockets and the clock for retries; the plugin decides what is sent where, and says what came of it.
//!
//! Implement [`Output`] and name the type in [`export!`]:
//!
//! ```
//! use wharf_plugin::prelude::*;
//! use wharf_plugin::s3;
//!
//! /// Puts each batch into one object.
//! #[derive(Deserialize, JsonSchema)]
//! struct Config {
//!     /// The bucket's name.
//!     bucket: String,
//! }
//!
//! struct Simple(Config);
//!
//! impl Output for Simple {
//!     type Config = Config;
//!
//!     fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
//!         let plan = Plan::default().with_s3(&config.bucket, "");
//!         Ok((Self(config), plan))
//!     }
//!
//!     fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
//!         let body = batch.encode(&Encoding::json_lines()).body()?;
//!         s3::put_object(&self.0.bucket, &batch.id(), &body, &s3::Attributes::default(), true)?;
//!         Ok(Report::all_delivered())
//!     }
//! }
//!
//! wharf_plugin::export!(Simple);
//! # fn main() {}
//! ```
//!
//! A plugin crate is a `cdylib` that depends on `wharf-plugin`, and, for the two derives, on `serde` 1 (with its feature `derive`) and
//! `schemars` 1. It is built for `wasm32-unknown-unknown` and then made a component, as `wharf plugin build` does, or for
//! `wasm32-wasip2`, whose linker makes a component by itself.
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | read records | [`Batch::records`], [`Record`] |
//! | send them without reading | [`Batch::encode`], [`Encoding`], [`Body`] |
//! | refuse some of them | [`Report::reject`], [`Report::or_reject`] |
//! | say why a batch failed | [`Failure`], [`OrFailure`] |
//! | refuse a configuration | [`Faults`], [`OrFault`], [`units`] |
//! | number batches, remember things | [`sequence`], [`storage`], [`Batch::progress`] |
//! | log and count | [`mod@log`], [`metrics`] |
//! | test the logic without a host | `testing` |

mod batch;
#[doc(hidden)]
pub mod bindings;
mod encoding;
mod export;
mod failure;
mod faults;
mod output;
mod record;
mod source;

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
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod units;

pub use batch::{Batch, Body};
pub use encoding::{Encode, Encoder, Encoding, Selection};
pub use failure::{Failure, FailureKind, HostError, OrFailure};
pub use faults::{ConfigFault, Faults, OrFault, listed};
pub use output::{Context, Output, PartitionKey, Plan, Report};
pub use record::{Kind, Parts, Record, RecordError, Records};

#[doc(hidden)]
pub use export::__private;

// Those that this crate speaks; the derives want them among a plugin's own dependencies as well.
pub use {schemars, serde, serde_json};

/// What nearly every plugin needs: `use wharf_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Batch, Context, Encoding, Failure, FailureKind, Faults, OrFailure, OrFault, Output, Plan, Record, Report,
    };
    pub use crate::{debug, error, info, trace, warn};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}
