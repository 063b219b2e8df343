//! Both services without a port: requests are handed over in this process, and answered as they would be over the wire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use bytes::Bytes;
use hyper::http::{Request, Response};
use s3s::Body;

use crate::checksum::{hex, md5};
use crate::connection::Ending;
use crate::logs::{self, LogsEndpoint};
use crate::server::S3Endpoint;
use crate::store::{Attributes, Condition};
use crate::{Object, Options};

/// S3 and CloudWatch Logs in this process. Ports and threads of the options mean nothing here.
#[derive(Clone)]
pub struct InProcess {
    s3: Arc<S3Endpoint>,
    logs: Arc<LogsEndpoint>,
}

impl InProcess {
    /// Both services, with the buckets and log groups of their options.
    ///
    /// # Errors
    /// Where a log group's name is not a valid one.
    pub fn new(s3: &Options, logs: logs::Options) -> anyhow::Result<Self> {
        Ok(Self { s3: Arc::new(S3Endpoint::new(s3)), logs: Arc::new(LogsEndpoint::new(logs)?) })
    }
    /// Answers one request. Its URI is absolute, or it has a `Host`.
    ///
    /// # Errors
    /// Where a client would see the connection break.
    pub async fn answer(&self, request: Request<Bytes>) -> anyhow::Result<Response<Bytes>> {
        let request = request.map(Body::from);
        let ending = Ending::default();
        let answered = match request.headers().contains_key("x-amz-target") {
            true => self.logs.answer(request, &ending).await,
            false => self.s3.answer(request, &ending).await,
        };
        let (head, mut body) = answered.map_err(|error| anyhow::anyhow!("{error}"))?.into_parts();
        let read = body.store_all_limited(usize::MAX).await;
        let bytes = read.map_err(|error| anyhow::anyhow!("{error}")).context("an answer could not be read")?;
        Ok(Response::from_parts(head, bytes))
    }
    /// Puts an object where somebody else could have put it. The bucket is made where there is none.
    pub fn place(&self, bucket: &str, key: &str, body: impl Into<Bytes>, metadata: BTreeMap<String, String>) {
        let body = body.into();
        let object = Object {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            size: body.len() as u64,
            etag: hex(&md5(&body)),
            body,
            stored: SystemTime::now(),
            parts: 0,
            checksum: None,
            attributes: Attributes { metadata, ..Attributes::default() },
        };
        let mut held = self.s3.store.lock();
        held.buckets.entry(bucket.to_owned()).or_default().remove(key);
        let _ = self.s3.store.put(&mut held, object, &Condition::None);
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
