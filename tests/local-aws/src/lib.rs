//! AWS on this machine: for `wharf dev-aws`, tests, the demo and benchmarks. All of it is in memory.
//!
//! [`S3`] is a strict S3: signatures, checksums, conditional writes and the rules of multipart uploads are enforced as AWS documents
//! them. [`Logs`] is a CloudWatch Logs of the same kind. [`Aws`] is both behind one port. Every request is on record, and faults come on
//! demand ([`Faults`], the same for both). They run in threads of their own, so that tests which know nothing of async can use them.
//! [`Sink`] is the opposite: an endpoint that reads as fast as it can and checks nothing, so that a benchmark measures its client.

mod aws;
mod backend;
mod checksum;
mod connection;
mod exchange;
mod fault;
mod in_process;
pub mod logs;
mod multipart;
mod operation;
mod port;
mod requests;
mod server;
mod signature;
mod sink;
mod status;
mod store;

pub use aws::Aws;
pub use checksum::{Algorithm, Checksum};
pub use fault::{Fault, Faults, Hits, Reject, Rule, SpecError, Vanish};
pub use in_process::InProcess;
pub use logs::Logs;
pub use operation::{Operation, Target};
pub use requests::Request;
pub use server::{ACCESS_KEY, ACCOUNT_ID, Options, S3, SECRET_KEY};
pub use sink::Sink;
pub use store::{Attributes, Object, Part, Upload};
