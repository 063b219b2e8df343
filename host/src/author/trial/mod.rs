//! Tests for outputs: `wharf plugin test`, `wharf plugin run`, and dead letters as tests.
//!
//! In: a component and `tests/*.yaml`, each with a configuration, records, what the services answer, and what is expected. Out: for each
//! test whether it happened so, and a difference that a person can read.
//!
//! Everything is the real host: loading, workers, batches in a journal, state, grants, the sorting of errors, the decision what comes
//! after a failure. Only the wire is scripted, in this process, and waits are noted instead of waited for. Clock, host name and batch ids stand
//! still, so that a golden file is the same everywhere.
//!
//! The way of a test: [`case`] reads it, [`drive`] runs it over a [`wire`], the [`transcript`] tells what happened, [`compare`] holds it
//! against what was expected.

mod batches;
mod case;
mod compare;
mod drive;
mod export;
mod once;
mod project;
mod suite;
mod transcript;
mod why;
mod wire;
mod yaml;

#[cfg(test)]
mod tests;

pub use compare::Difference;
pub use export::{Export, ExportError, ExportedTests, export};
pub use once::{Grant, Once, OnceError, Ran, is_json, once};
pub use project::{Project, ProjectError};
pub use suite::{BatchUsage, Options, Outcome, Suite, SuiteError, TestResult, Unlike};
