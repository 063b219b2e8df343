//! The S3 server around the backend: signatures, faults, the log of requests.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use hyper::http::{StatusCode, header};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, s3_error};

use crate::backend::Backend;
use crate::checksum::{hex, md5};
use crate::connection::Ending;
use crate::exchange::{Answer, carry_out};
use crate::operation::Target;
use crate::port::{Port, Services};
use crate::requests::Requests;
use crate::signature::sign_again;
use crate::store::{Attributes, Condition, Store};
use crate::{Faults, Object, Request, Upload};

/// The one access key that is known.
pub const ACCESS_KEY: &str = "test";
/// Its secret.
pub const SECRET_KEY: &str = "testsecret";
/// The account that owns every bucket, for `expected_bucket_owner`.
pub const ACCOUNT_ID: &str = "123456789012";

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen.
    pub address: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Whether a header signature of any access key counts as one of [`ACCESS_KEY`]'s.
    pub any_credentials: bool,
    /// Buckets that are there from the beginning (3 to 63 characters).
    pub buckets: Vec<String>,
    /// Objects are written as plain files below this directory too: `<directory>/<bucket>/<key>`.
    pub directory: Option<PathBuf>,
    /// Bodies are dropped, and only their length is checked: for benchmarks.
    pub discard: bool,
    /// The one region that signatures may name; none is any.
    pub region: Option<String>,
    /// Whether a write without a condition to a key that exists is refused. It is counted either way.
    pub refuse_overwrites: bool,
    /// The smallest part that is not the last; S3's is 5 MiB.
    pub min_part_bytes: u64,
    /// Seed for faults by chance.
    pub seed: u64,
    /// Threads that serve.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            any_credentials: false,
            buckets: vec!["logs".to_owned()],
            directory: None,
            discard: false,
            region: None,
            refuse_overwrites: true,
            min_part_bytes: 5 << 20,
            seed: 1,
            threads: 1,
        }
    }
}

/// The S3 behind a port.
pub(crate) struct S3Endpoint {
    pub(crate) store: Arc<Store>,
    faults: Faults,
    pub(crate) requests: Requests,
    service: S3Service,
    any_credentials: bool,
}

impl S3Endpoint {
    pub(crate) fn new(options: &Options) -> Self {
        let store = Arc::new(Store::new(&options.buckets, options.directory.clone(), options.refuse_overwrites));
        let mut builder = S3ServiceBuilder::new(Backend {
            store: Arc::clone(&store),
            discard: options.discard,
            region: options.region.clone(),
            min_part_bytes: options.min_part_bytes,
        });
        builder.set_auth(OneKey);
        builder.set_access(Owner);
        Self {
            store,
            faults: Faults::new(options.seed),
            requests: Requests::default(),
            service: builder.build(),
            any_credentials: options.any_credentials,
        }
    }
    pub(crate) async fn answer(&self, request: hyper::Request<Body>, ending: &Ending) -> Answer {
        let target = Target::of(request.method(), request.uri().path(), request.uri().query().unwrap_or_default());
        let fault = self.faults.strike(target.operation, &target.key);
        let only_if_absent = request.headers().contains_key(header::IF_NONE_MATCH);
        let number = self.requests.begin(&target, only_if_absent, fault.clone());
        let (mut head, body) = request.into_parts();
        if self.any_credentials {
            sign_again(&mut head);
        }
        let perform = |body| self.perform(hyper::Request::from_parts(head, body));
        let response = carry_out(fault, body, ending, perform, refusal).await?;
        let code = (response.status().as_u16() >= 400).then(|| error_code(response.body())).flatten();
        self.requests.end(number, response.status().as_u16(), code);
        Ok(response)
    }
    /// What the service answers. It has read the whole request by then: an answer before that may reach the client as a broken
    /// connection, by chance. Where that is wanted there is [`crate::Fault::EarlyError`].
    async fn perform(&self, mut request: hyper::Request<Body>) -> Answer {
        request.body_mut().store_all_limited(usize::MAX).await?;
        self.service.call(request).await.map_err(Into::into)
    }
}

/// An S3 server. Dropping it stops it.
pub struct S3 {
    endpoint: Arc<S3Endpoint>,
    port: Arc<Port>,
}

impl S3 {
    /// Starts a server.
    ///
    /// # Errors
    /// Where the port is taken, or no thread can be had.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let endpoint = Arc::new(S3Endpoint::new(&options));
        let services = Services { s3: Some(Arc::clone(&endpoint)), logs: None };
        let port = Port::open((options.address, options.port).into(), options.threads, services)?;
        Ok(Self::on(endpoint, Arc::new(port)))
    }
    pub(crate) fn on(endpoint: Arc<S3Endpoint>, port: Arc<Port>) -> Self {
        Self { endpoint, port }
    }
    /// Starts again after [`S3::stop`], on the same port and with everything that was stored.
    ///
    /// # Errors
    /// See [`S3::start`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.port.restart()
    }
    /// Stops: the port is closed and every connection breaks. What is stored stays.
    pub fn stop(&mut self) {
        self.port.stop();
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.port.endpoint()
    }
    /// The faults in force.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.endpoint.faults
    }
    /// All objects, by bucket and key.
    #[must_use]
    pub fn objects(&self) -> Vec<Arc<Object>> {
        self.endpoint.store.lock().buckets.values().flat_map(|objects| objects.values().cloned()).collect()
    }
    /// An object.
    #[must_use]
    pub fn object(&self, bucket: &str, key: &str) -> Option<Arc<Object>> {
        self.endpoint.store.lock().object(bucket, key).ok()
    }
    /// Puts an object where somebody else could have put it, whatever is there.
    pub fn place(&self, bucket: &str, key: &str, body: impl Into<Bytes>) {
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
            attributes: Attributes::default(),
        };
        let mut held = self.endpoint.store.lock();
        held.buckets.entry(bucket.to_owned()).or_default().remove(key);
        let _ = self.endpoint.store.put(&mut held, object, &Condition::None);
    }
    /// Unfinished multipart uploads, by key.
    #[must_use]
    pub fn uploads(&self) -> Vec<Upload> {
        let mut uploads: Vec<Upload> = self.endpoint.store.lock().uploads.values().cloned().collect();
        uploads.sort_by(|a, b| (&a.key, &a.id).cmp(&(&b.key, &b.id)));
        uploads
    }
    /// Keys that somebody tried to overwrite, as often as it was tried.
    #[must_use]
    pub fn overwrites(&self) -> Vec<String> {
        self.endpoint.store.lock().overwrites.clone()
    }
    /// Every request so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.endpoint.requests.all()
    }
}

fn refusal(code: &str) -> Answer {
    let parsed = S3ErrorCode::from_str(code)?;
    let known = parsed.status_code().is_some();
    let mut error = S3Error::with_message(parsed, format!("{code}, as a fault demands"));
    if !known {
        error.set_status_code(StatusCode::BAD_REQUEST);
    }
    error.to_http_response().map_err(Into::into)
}

fn error_code(body: &Body) -> Option<String> {
    let bytes = body.bytes()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0.to_owned())
}

struct OneKey;

#[async_trait::async_trait]
impl S3Auth for OneKey {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == ACCESS_KEY {
            return Ok(SecretKey::from(SECRET_KEY));
        }
        Err(s3_error!(InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records."))
    }
}

struct Owner;

#[async_trait::async_trait]
impl S3Access for Owner {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let stranger = cx.headers().get("x-amz-expected-bucket-owner").is_some_and(|owner| owner != ACCOUNT_ID);
        if cx.credentials().is_none() || stranger {
            return Err(s3_error!(AccessDenied, "Access Denied"));
        }
        Ok(())
    }
}
