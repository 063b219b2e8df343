//! A port of this machine, the threads that serve it, and which service a request is for.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hyper::body::Incoming;
use hyper::http::StatusCode;
use hyper_util::rt::TokioIo;
use s3s::Body;

use crate::connection::{Connection, Ending};
use crate::exchange::Answer;
use crate::logs::LogsEndpoint;
use crate::server::S3Endpoint;
use crate::status;

/// What answers behind a port.
#[derive(Clone, Default)]
pub(crate) struct Services {
    pub(crate) s3: Option<Arc<S3Endpoint>>,
    pub(crate) logs: Option<Arc<LogsEndpoint>>,
}

/// A port in use. It closes when the last that holds it is dropped.
pub(crate) struct Port {
    services: Services,
    threads: usize,
    running: Mutex<Running>,
}

struct Running {
    address: SocketAddr,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Port {
    /// Opens a port; 0 takes a free one.
    pub(crate) fn open(address: SocketAddr, threads: usize, services: Services) -> anyhow::Result<Self> {
        let running = Mutex::new(Running { address, runtime: None });
        let port = Self { services, threads: threads.max(1), running };
        port.restart()?;
        Ok(port)
    }
    /// Opens it again after [`Port::stop`], the same one.
    pub(crate) fn restart(&self) -> anyhow::Result<()> {
        self.stop();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listen(running.address).with_context(|| {
            format!(
                "the local AWS server could not listen on {}: stop what listens there, or take another port",
                running.address
            )
        })?;
        listener.set_nonblocking(true)?;
        running.address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("local-aws")
            .enable_all()
            .build()?;
        let services = self.services.clone();
        runtime.spawn(async move {
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                accept(listener, services).await;
            }
        });
        running.runtime = Some(runtime);
        Ok(())
    }
    /// Closes it, and breaks every connection.
    pub(crate) fn stop(&self) {
        let runtime = self.running.lock().unwrap_or_else(PoisonError::into_inner).runtime.take();
        if let Some(runtime) = runtime {
            // A runtime must not be ended from a thread that may itself be part of another one.
            let ended = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join();
            debug_assert!(ended.is_ok(), "ending the server's threads panicked");
        }
    }
    /// `http://ADDRESS:PORT`
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.running.lock().unwrap_or_else(PoisonError::into_inner).address)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop();
    }
}

/// While the port was free, the kernel may have lent it to somebody's outgoing connection: those end.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && address.port() != 0 && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            bound => return bound,
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, services: Services) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors: others will be closed.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (connection, ending) = Connection::new(socket);
        let services = services.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| answer(services.clone(), ending.clone(), request));
            // A connection that ends badly is the client's business, or a fault that was asked for.
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

/// A client that has one address for all of AWS tells by its headers which service it means.
async fn answer(services: Services, ending: Ending, request: hyper::Request<Incoming>) -> Answer {
    let request = request.map(Body::from);
    if request.uri().path() == status::PATH {
        return status::answer(&services, &request);
    }
    let names_operation = request.headers().contains_key("x-amz-target");
    match (&services.s3, &services.logs) {
        (_, Some(logs)) if names_operation => logs.answer(request, &ending).await,
        (Some(s3), _) => s3.answer(request, &ending).await,
        (None, Some(logs)) => logs.answer(request, &ending).await,
        (None, None) => {
            let mut response = hyper::Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_FOUND;
            Ok(response)
        }
    }
}
