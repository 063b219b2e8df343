//! `http`: HTTP and HTTPS destinations.
//!
//! Nothing is granted yet, so every request is refused: what a plugin may reach over HTTP comes with the grants for it.

use wasmtime::component::Resource;

use super::Caller;
use super::bindings::http::{self, Error, Request, Response};
use super::bindings::types::HostError;
use super::body::Body;
use super::escape::one_line;

/// Longest part of a URL that a message shows, bytes.
const SHOWN_URL_BYTES: usize = 200;

impl http::Host for Caller {
    async fn send(&mut self, request: Request, _: Option<Resource<Body>>) -> wasmtime::Result<Result<Response, Error>> {
        let refused = self.work().err().unwrap_or_else(|| {
            HostError::Denied(format!(
                "no HTTP destination is granted, so not {}",
                one_line(&request.url, SHOWN_URL_BYTES)
            ))
        });
        Ok(Err(Error::Host(refused)))
    }
}
