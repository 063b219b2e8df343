//! What all AWS services have in common: settings, credentials, the way to an endpoint, and what comes back instead of success.
//!
//! A room beside the interfaces, not one of them: `s3` and `cloudwatch_logs` call through it. It decides nothing about a call but that it is one
//! attempt, which runs as a task of its own, so that hashing and TLS are not counted as the guest's CPU time.

mod connection;
mod environment;
mod errors;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use super::bindings::types::CallError;
use super::{AbortOnDrop, Caller};

pub(crate) use self::connection::Connection;
pub(crate) use self::environment::{check_environment, may_name_an_endpoint};
pub(super) use self::errors::{sort, status};

/// What a call of a service gives; an outer `Err` ends the guest.
pub(super) type Answer<T> = wasmtime::Result<Result<T, CallError>>;

impl Caller {
    /// Runs a request as a task of its own, which ends with this call.
    pub(super) async fn ask<T, F>(&mut self, request: impl FnOnce(Arc<Connection>) -> F + Send + 'static) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        let connection = match self.work() {
            Ok(work) => Arc::clone(&work.aws),
            Err(refused) => return Ok(Err(CallError::Host(refused))),
        };
        // What signs and sends computes too.
        AbortOnDrop(tokio::spawn(crate::fair::current().paced(request(connection)))).ended().await
    }
}
