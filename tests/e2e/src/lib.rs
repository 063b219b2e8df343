//! The harness of the end-to-end tests: it runs the real `wharf` binary against real servers, hurts it, and checks what was
//! delivered, line by line. The demo uses it too.
//!
//! A test makes a [`Place`] (a folder with logs, a data directory and a configuration), starts [`Wharf`] in it, writes lines with a
//! [`LogWriter`], waits for a condition with a deadline, and reads what an S3 server holds as [`Delivered`],
//! what a CloudWatch Logs server holds as [`Logged`].
//!
//! What tests read from the environment:
//! `WHARF_BIN` (a binary to test instead of building one), `WHARF_CRASH_CYCLES`, `WHARF_LOGS_CRASH_CYCLES`, `WHARF_FORWARD_RECORDS`, `WHARF_OTLP_RECORDS`, `WHARF_SYSLOG_RECORDS`, `WHARF_TAIL_FILES`, `WHARF_TAIL_SECONDS`, `WHARF_SEED`, `WHARF_DEADLINE_FACTOR` (for slow machines),
//! `WHARF_SKIPPED_FILE` (where skipped tests say why), `CI` (a missing tool fails a test instead of skipping it).

#![expect(clippy::panic, reason = "a support library of tests: its panics are failed assertions")]

mod binary;
mod chance;
mod collector;
mod compiled;
mod delivered;
pub mod disk;
pub mod http;
mod logged;
mod moto;
mod place;
mod registry;
mod seaweed;
pub mod skip;
mod wait;
pub mod walkthrough;
mod wharf;
mod writer;

pub use binary::wharf_binary;
pub use chance::Chance;
pub use collector::Collector;
pub use delivered::{Delivered, DeliveredObject};
pub use logged::Logged;
pub use moto::Moto;
pub use place::{Place, free_port};
pub use registry::{OciRegistry, docker_registry};
pub use seaweed::{Seaweed, script};
pub use wait::{deadline, wait_until};
pub use wharf::{Wharf, command};
pub use wharf_task_kit::tools;
pub use writer::{LogWriter, line};
