//! The host side of each WIT interface, one file or folder an interface.
//!
//! What a guest asks is checked here against what its output was granted. Ordinary refusals are WIT results; a Rust `Err` ends the guest.
//!
//! [`Services`] is what the host does for one output, shared by its workers; a [`Caller`] is what it knows of one store: its
//! handles, its log, and which call it is in.

pub(crate) mod aws;
pub(crate) mod batch;
pub(crate) mod bindings;
pub(crate) mod body;
mod bucket;
mod caller;
mod clock;
pub(crate) mod cloudwatch_logs;
mod encoding;
mod escape;
pub(crate) mod http;
mod limit;
pub(crate) mod log;
mod metrics;
pub(crate) mod records;
pub(crate) mod s3;
mod sequence;
mod services;
pub(crate) mod share;
mod storage;
mod watch;

use crate::fair;

pub(crate) use aws::{check_environment, may_name_an_endpoint};
pub(crate) use caller::{Caller, HostTrouble, LimitReached, Phase};
pub use cloudwatch_logs::PutBody;
pub(crate) use escape::{cut, one_line};
pub use limit::Reached;
pub(crate) use records::OWN_BODY_BYTES;
pub use services::Services;
pub(crate) use watch::{Usage, Watch};

/// Runs `work`, which reads chunks or computes for long, on a thread that may: in a turn of the guest's tenant.
///
/// # Errors
/// Where the runtime is shutting down. A panic in `work` goes on in the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> wasmtime::Result<T> {
    fair::job(work).await.map_err(|error| HostTrouble(error.to_string()).into())
}

/// Runs `work`, which waits for the state's disk and computes next to nothing, so that the runtime goes on: so many at a time of each tenant.
///
/// # Errors
/// Where the runtime is shutting down. A panic in `work` goes on in the caller.
pub(crate) async fn on_disk<T: Send + 'static>(
    output: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> wasmtime::Result<T> {
    ended(fair::Tenant::of(output).on_disk(work).await)
}

/// A task that ends when nobody waits for it any more.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    /// Waits for its end.
    ///
    /// # Errors
    /// Where the runtime is shutting down. A panic of the task goes on in the caller.
    async fn ended(mut self) -> wasmtime::Result<T> {
        ended((&mut self.0).await)
    }
}

fn ended<T>(ended: Result<T, tokio::task::JoinError>) -> wasmtime::Result<T> {
    match ended {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(HostTrouble("the host is shutting down".into()).into()),
        },
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
