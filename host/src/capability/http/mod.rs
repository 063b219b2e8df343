//! `http`: HTTP and HTTPS destinations.
//!
//! The way of a request: `request` checks its form, `grant` whether the output may go there with that credential, then it leaves the guest and goes
//! through the door [`Wire`]. Behind that, `network` adds the credential, resolves the name, connects to an address that `addresses` lets
//! pass, and reads a bounded answer. Each call is one attempt: nothing is retried, no redirect is followed.
//!
//! Requests run as tasks of their own, so that TLS is not counted as the guest's CPU time.

mod addresses;
mod answer;
mod credentials;
mod echo;
pub(crate) mod grant;
mod network;
mod request;
mod resolver;
mod sigv4;
#[cfg(test)]
mod tests;
mod way_out;
mod wire;

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::Resource;

use super::bindings::http::{self, Error, Request, Response};
use super::bindings::types::HostError;
use super::body::Body;
use super::{AbortOnDrop, Caller};
use crate::fair;
use crate::telemetry::HttpExchange;

#[cfg(test)]
pub(crate) use self::addresses::Addresses;
pub(crate) use self::credentials::Credentials;
pub(crate) use self::network::{Network, check_settings};
pub(crate) use self::request::is_of_the_host;
#[cfg(test)]
pub(crate) use self::resolver::Lookup;
pub(crate) use self::way_out::WayOut;
pub(crate) use self::wire::{Incoming, Outgoing, Wire};

impl http::Host for Caller {
    async fn send(
        &mut self,
        request: Request,
        content: Option<Resource<Body>>,
    ) -> wasmtime::Result<Result<Response, Error>> {
        let body = match content {
            Some(body) => Some(self.table.get(&body)?.bytes.clone()),
            None => None,
        };
        let checked = self.outgoing(&request, body);
        self.note_refused("http", &checked);
        let (way, outgoing) = match checked {
            Ok(ready) => ready,
            Err(refused) => {
                self.count(&answer::refused());
                return Ok(Err(Error::Host(refused)));
            }
        };
        let (sent, to) = (outgoing.body.as_ref().map_or(0, bytes::Bytes::len), grant::origin(&outgoing.url));
        let began = Instant::now();
        let answer =
            AbortOnDrop(tokio::spawn(fair::current().paced(async move { way.send(outgoing).await }))).ended().await?;
        if let Err(Error::Host(refused @ HostError::Denied(_))) = &answer {
            self.note_refused("http", &Err::<(), _>(refused.clone()));
        }
        let counted = answer::exchange(&answer, sent, began.elapsed());
        tracing::debug!(output = %self.services.output(), to, result = counted.result, took = ?counted.took, "an HTTP request");
        self.count(&counted);
        let now = self.wall_clock();
        Ok(answer.map(|incoming| answer::response(incoming, now)))
    }
}

impl Caller {
    /// The request as it may go out, and the way out.
    fn outgoing(&self, request: &Request, body: Option<bytes::Bytes>) -> Result<(WayOut, Outgoing), HostError> {
        let work = self.work()?;
        let checked = request::check(request)?;
        let grants = self.services.grants();
        let output = self.services.output();
        let addresses = grant::check_destination(output, &grants.http, &checked.url)?;
        let credential = match &request.credential {
            None => None,
            Some(name) => {
                let granted = grant::check_credential(output, &grants.credentials, name, &checked.url)?;
                request::check_free(&checked.headers, name, &granted.headers)?;
                Some(Arc::clone(&granted.name))
            }
        };
        let outgoing = Outgoing {
            method: checked.method,
            url: checked.url,
            headers: checked.headers,
            credential,
            body,
            timeout: work.http.timeout(checked.timeout, self.deadline),
            max_response_bytes: checked.max_response_bytes,
            addresses,
        };
        Ok((work.http.clone(), outgoing))
    }

    /// The time that a date in an answer is held against: that of whoever looks on, else this machine's.
    fn wall_clock(&self) -> jiff::Timestamp {
        let watched = self.services.watch().map(|watch| jiff::Timestamp::from_nanosecond(watch.now_ns().into()));
        watched.and_then(Result::ok).unwrap_or_else(jiff::Timestamp::now)
    }

    fn count(&self, exchange: &HttpExchange) {
        if let Some(work) = self.services.work() {
            work.metrics.http(self.services.output(), exchange);
        }
    }
}
