//! AWS on loopback, for tests, the demo and benchmarks.
//!
//! [`S3`] is a strict S3 in memory: signatures, checksums, conditional writes and the rules of multipart uploads are
//! enforced as AWS documents them, every request is on record, and faults come on demand ([`Faults`]). It runs in a thread
//! of its own, so that tests which know nothing of async can use it.
//! [`Sink`] is the opposite: an endpoint that reads as fast as it can and checks nothing, so that a benchmark measures its client.

mod backend;
mod checksum;
mod connection;
mod fault;
mod multipart;
mod operation;
mod requests;
mod server;
mod sink;
mod store;

pub use checksum::{Algorithm, Checksum};
pub use fault::{Fault, Faults, Hits, Rule};
pub use operation::Operation;
pub use requests::Request;
pub use server::{ACCESS_KEY, ACCOUNT_ID, Options, S3, SECRET_KEY};
pub use sink::Sink;
pub use store::{Attributes, Object, Part, Upload};
