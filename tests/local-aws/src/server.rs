//! The server around the backend: sockets, signatures, faults, the log of requests.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use hyper::body::Incoming;
use hyper::http::{Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, s3_error};

use crate::backend::Backend;
use crate::checksum::{hex, md5};
use crate::connection::{Connection, Ending};
use crate::operation::Target;
use crate::requests::Requests;
use crate::store::{Attributes, Condition, Store};
use crate::{Fault, Faults, Object, Request, Upload};

/// The one access key that is known.
pub const ACCESS_KEY: &str = "test";
/// Its secret.
pub const SECRET_KEY: &str = "testsecret";
/// The account that owns every bucket, for `expected_bucket_owner`.
pub const ACCOUNT_ID: &str = "123456789012";

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
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
            port: 0,
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

struct Shared {
    store: Arc<Store>,
    faults: Faults,
    requests: Requests,
    service: S3Service,
}

/// An S3 server. Dropping it stops it.
pub struct S3 {
    shared: Arc<Shared>,
    port: u16,
    threads: usize,
    runtime: Option<tokio::runtime::Runtime>,
}

impl S3 {
    /// Starts a server.
    ///
    /// # Errors
    /// Where the port is taken, or no thread can be had.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let store = Arc::new(Store::new(&options.buckets, options.directory, options.refuse_overwrites));
        let mut builder = S3ServiceBuilder::new(Backend {
            store: Arc::clone(&store),
            discard: options.discard,
            region: options.region,
            min_part_bytes: options.min_part_bytes,
        });
        builder.set_auth(OneKey);
        builder.set_access(Owner);
        let shared = Shared {
            store,
            faults: Faults::new(options.seed),
            requests: Requests::default(),
            service: builder.build(),
        };
        let mut server =
            Self { shared: Arc::new(shared), port: options.port, threads: options.threads.max(1), runtime: None };
        server.restart()?;
        Ok(server)
    }
    /// Starts again after [`S3::stop`], on the same port and with everything that was stored.
    ///
    /// # Errors
    /// See [`S3::start`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.stop();
        let listener = listen(self.port)
            .with_context(|| format!("the local S3 server could not listen on 127.0.0.1:{}", self.port))?;
        listener.set_nonblocking(true)?;
        self.port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("local-s3")
            .enable_all()
            .build()?;
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                accept(listener, shared).await;
            }
        });
        self.runtime = Some(runtime);
        Ok(())
    }
    /// Stops: the port is closed and every connection breaks. What is stored stays.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime must not be ended from a thread that may itself be part of another one.
            let ended = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join();
            debug_assert!(ended.is_ok(), "ending the server's threads panicked");
        }
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
    /// The faults in force.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }
    /// All objects, by bucket and key.
    #[must_use]
    pub fn objects(&self) -> Vec<Arc<Object>> {
        self.shared.store.lock().buckets.values().flat_map(|objects| objects.values().cloned()).collect()
    }
    /// An object.
    #[must_use]
    pub fn object(&self, bucket: &str, key: &str) -> Option<Arc<Object>> {
        self.shared.store.lock().object(bucket, key).ok()
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
        let mut held = self.shared.store.lock();
        held.buckets.entry(bucket.to_owned()).or_default().remove(key);
        let _ = self.shared.store.put(&mut held, object, &Condition::None);
    }
    /// Unfinished multipart uploads, by key.
    #[must_use]
    pub fn uploads(&self) -> Vec<Upload> {
        let mut uploads: Vec<Upload> = self.shared.store.lock().uploads.values().cloned().collect();
        uploads.sort_by(|a, b| (&a.key, &a.id).cmp(&(&b.key, &b.id)));
        uploads
    }
    /// Keys that somebody tried to overwrite, as often as it was tried.
    #[must_use]
    pub fn overwrites(&self) -> Vec<String> {
        self.shared.store.lock().overwrites.clone()
    }
    /// Every request so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.all()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.stop();
    }
}

/// While the port was free, the kernel may have lent it to somebody's outgoing connection: those end.
fn listen(port: u16) -> std::io::Result<TcpListener> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && port != 0 && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            bound => return bound,
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors: others will be closed.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (connection, ending) = Connection::new(socket);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| answer(Arc::clone(&shared), ending.clone(), request));
            // A connection that ends badly is the client's business, or a fault that was asked for.
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

/// Ends the connection without an answer.
fn hang_up() -> s3s::StdError {
    "the connection ends here, as a fault demands".into()
}

async fn answer(
    shared: Arc<Shared>,
    ending: Ending,
    request: hyper::Request<Incoming>,
) -> Result<Response<Body>, s3s::StdError> {
    let target = Target::of(request.method(), request.uri().path(), request.uri().query().unwrap_or_default());
    let fault = shared.faults.strike(target.operation, &target.key);
    let only_if_absent = request.headers().contains_key(header::IF_NONE_MATCH);
    let number = shared.requests.begin(&target, only_if_absent, fault.clone());
    let mut request = request.map(Body::from);

    let response = match fault {
        None => perform(&shared, request).await?,
        Some(Fault::Error(code)) => {
            request.body_mut().store_all_limited(usize::MAX).await?;
            refusal(code)?
        }
        Some(Fault::EarlyError(code)) => {
            let mut response = refusal(code)?;
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            response
        }
        Some(Fault::LoseReply) => {
            perform(&shared, request).await?;
            return Err(hang_up());
        }
        Some(Fault::Reset { after }) => {
            let mut taken = 0;
            while taken < after {
                match request.body_mut().next().await {
                    Some(Ok(piece)) => taken += piece.len(),
                    _ => break,
                }
            }
            ending.reset();
            return Err(hang_up());
        }
        Some(Fault::Stall(time)) => {
            tokio::time::sleep(time).await;
            perform(&shared, request).await?
        }
        Some(Fault::StallReply(time)) => {
            let response = perform(&shared, request).await?;
            tokio::time::sleep(time).await;
            response
        }
        Some(Fault::ErrorInside200 { code, performed }) => {
            if performed {
                perform(&shared, request).await?;
            } else {
                request.body_mut().store_all_limited(usize::MAX).await?;
            }
            let mut response = refusal(code)?;
            *response.status_mut() = StatusCode::OK;
            response
        }
    };
    let code = (response.status().as_u16() >= 400).then(|| error_code(response.body())).flatten();
    shared.requests.end(number, response.status().as_u16(), code);
    Ok(response)
}

/// What the service answers. It has read the whole request by then: an answer before that may reach the client as a broken
/// connection, by chance. Where that is wanted there is [`Fault::EarlyError`].
async fn perform(shared: &Shared, mut request: hyper::Request<Body>) -> Result<Response<Body>, s3s::StdError> {
    request.body_mut().store_all_limited(usize::MAX).await?;
    shared.service.call(request).await.map_err(Into::into)
}

fn refusal(code: &str) -> Result<Response<Body>, s3s::StdError> {
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
