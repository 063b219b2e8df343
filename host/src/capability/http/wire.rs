//! The door between what checks a request and what sends it. Behind it is the network, or a script that answers without one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Method};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use url::Url;

use super::addresses::Addresses;
use crate::capability::bindings::http::Error;

/// Sends requests.
pub(crate) trait Wire: fmt::Debug + Send + Sync {
    /// One attempt. The future is run as a task of its own, and dropped where nobody waits for it any more.
    fn send(&self, request: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>>;
}

/// A request that may go out: granted, and well-formed. What the host adds on the way (`host`, `content-length`, the credential) is not in it.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// Neither `CONNECT` nor `TRACE`.
    pub(crate) method: Method,
    /// `http` or `https`, with a host, without user and fragment.
    pub(crate) url: Url,
    /// What the guest gave.
    pub(crate) headers: HeaderMap,
    /// The credential to be added, by its name. It is granted, and may go to this URL.
    pub(crate) credential: Option<Arc<str>>,
    /// The body; none is not the same as an empty one.
    pub(crate) body: Option<Bytes>,
    /// For the whole exchange.
    pub(crate) timeout: Duration,
    /// Of the answer's body no more is read.
    pub(crate) max_response_bytes: usize,
    /// Addresses that may be connected to.
    pub(crate) addresses: Addresses,
}

/// What came back, bounded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Incoming {
    /// Status.
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// At most as long as was asked for.
    pub(crate) body: Vec<u8>,
    /// There was more.
    pub(crate) truncated: bool,
}
