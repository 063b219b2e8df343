//! A strict CloudWatch Logs in memory.
//!
//! What AWS refuses is refused here ([`rules`] has every limit with the page that it is from), what AWS takes only in part is taken in
//! part, and where AWS does not say, [`Undocumented`] has a switch. A test looks at what arrived through [`Logs`] directly, or reads it back
//! with any client. Requests come in at [`LogsEndpoint`]; one file has one family of operations.

mod check;
mod clock;
mod endpoint;
mod entity;
mod failure;
mod filter;
mod groups;
mod input;
mod put;
mod rate;
mod read;
mod requests;
pub mod rules;
mod server;
mod store;
mod streams;
mod tags;
#[cfg(test)]
mod tests;

pub use clock::Clock;
pub(crate) use endpoint::LogsEndpoint;
pub use put::Undocumented;
pub use requests::{Request, Totals};
pub use server::{Logs, Options, Signatures};
pub use store::{Call, Event, GroupView, StreamView};
