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
mod causes;
mod clock;
pub(crate) mod cloudwatch_logs;
mod encoding;
mod escape;
pub(crate) mod http;
pub(crate) mod log;
mod metrics;
pub(crate) mod records;
pub(crate) mod s3;
mod sequence;
mod services;
mod storage;
mod watch;

pub(crate) use aws::check_environment;
pub(crate) use caller::{Caller, HostTrouble, LimitReached, Phase};
pub(crate) use causes::chain;
pub use cloudwatch_logs::PutBody;
pub(crate) use escape::{cut, one_line};
pub(crate) use records::OWN_BODY_BYTES;
pub use services::Services;
pub(crate) use watch::{Usage, Watch};

/// Runs `work`, which blocks on the disk or computes for long, on a thread that may, so that the runtime goes on.
///
/// # Errors
/// Where the runtime is shutting down. A panic in `work` goes on in the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> wasmtime::Result<T> {
    AbortOnDrop(tokio::task::spawn_blocking(work)).ended().await
}

/// A task that ends when nobody waits for it any more.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    /// Waits for its end.
    ///
    /// # Errors
    /// Where the runtime is shutting down. A panic of the task goes on in the caller.
    async fn ended(mut self) -> wasmtime::Result<T> {
        match (&mut self.0).await {
            Ok(value) => Ok(value),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(HostTrouble("the host is shutting down".into()).into()),
            },
        }
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
