//! S3 and CloudWatch Logs behind one port, for clients that have one address for all of AWS.

use std::sync::Arc;

use crate::logs::{self, Logs, LogsEndpoint};
use crate::port::{Port, Services};
use crate::server::S3Endpoint;
use crate::{Options, S3};

/// Both services. Dropping it stops them.
pub struct Aws {
    s3: S3,
    logs: Logs,
    port: Arc<Port>,
}

impl Aws {
    /// Starts both. Address, port and threads are those of `s3`.
    ///
    /// # Errors
    /// Where the port is taken, a log group's name is not a valid one, or no thread can be had.
    pub fn start(s3: Options, logs: logs::Options) -> anyhow::Result<Self> {
        let s3_endpoint = Arc::new(S3Endpoint::new(&s3));
        let logs_endpoint = Arc::new(LogsEndpoint::new(logs)?);
        let services = Services { s3: Some(Arc::clone(&s3_endpoint)), logs: Some(Arc::clone(&logs_endpoint)) };
        let port = Arc::new(Port::open((s3.address, s3.port).into(), s3.threads, services)?);
        Ok(Self { s3: S3::on(s3_endpoint, Arc::clone(&port)), logs: Logs::on(logs_endpoint, Arc::clone(&port)), port })
    }
    /// `http://127.0.0.1:PORT`, for both.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.port.endpoint()
    }
    /// What S3 holds, and its faults. Its `stop` and `restart` are not reachable here: they would be both services'.
    #[must_use]
    pub fn s3(&self) -> &S3 {
        &self.s3
    }
    /// What CloudWatch Logs holds, and its faults.
    #[must_use]
    pub fn logs(&self) -> &Logs {
        &self.logs
    }
    /// Stops both: the port is closed and every connection breaks. What is stored stays.
    pub fn stop(&self) {
        self.port.stop();
    }
    /// Starts both again after [`Aws::stop`], on the same port.
    ///
    /// # Errors
    /// See [`Aws::start`].
    pub fn restart(&self) -> anyhow::Result<()> {
        self.port.restart()
    }
}
