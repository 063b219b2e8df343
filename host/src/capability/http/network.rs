//! Sends requests over the network.
//!
//! Connections are pooled for the process, for each distinct set of settings. Allowed addresses are such a setting: a connection that one output may open
//! to an address must never serve another one that may not.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method, header};
use futures_util::future::BoxFuture;
use reqwest::{Certificate, Client, ClientBuilder, Proxy, redirect, retry};

use super::addresses::Addresses;
use super::credentials::Credentials;
use super::echo;
use super::grant::origin;
use super::resolver::{AddressRefused, Lookup, OfTheSystem, Vetted};
use super::wire::{Incoming, Outgoing, Wire};
use crate::capability::bindings::http::Error;
use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::causes::{causes, chain};
use crate::config::{HttpConfig, Secret};

/// Less than servers usually wait before they close a connection on which nothing comes: a request on one that is being closed is lost.
const IDLE: Duration = Duration::from_secs(30);
/// Most headers of an answer, and bytes of names and values that the guest gets.
const ANSWER_HEADERS: usize = 256;
const ANSWER_HEADER_BYTES: usize = 64 << 10;
/// Longest text of an error, bytes.
const TEXT_BYTES: usize = 1024;

/// The network, as one output may use it.
#[derive(Debug)]
pub(crate) struct Network {
    settings: HttpConfig,
    credentials: Arc<Credentials>,
    lookup: Arc<dyn Lookup>,
    /// Those that this output has used; they live as long as it.
    clients: Mutex<Vec<Arc<Pooled>>>,
}

/// A client and what it was made for.
#[derive(Debug)]
struct Pooled {
    settings: HttpConfig,
    addresses: Addresses,
    lookup: Arc<dyn Lookup>,
    client: Client,
}

impl Network {
    /// The network with these settings and credentials.
    pub(crate) fn new(settings: HttpConfig, credentials: Credentials) -> Arc<Self> {
        static SYSTEM: OnceLock<Arc<OfTheSystem>> = OnceLock::new();
        let lookup = Arc::clone(SYSTEM.get_or_init(Arc::default));
        Self::looking_up_with(settings, credentials, lookup)
    }

    /// The same, with names resolved otherwise.
    pub(crate) fn looking_up_with(
        settings: HttpConfig,
        credentials: Credentials,
        lookup: Arc<dyn Lookup>,
    ) -> Arc<Self> {
        Arc::new(Self { settings, credentials: Arc::new(credentials), lookup, clients: Mutex::default() })
    }

    /// The client for these addresses: the one that is in use, or a new one.
    fn client(&self, addresses: &Addresses) -> Result<Client, String> {
        static IN_USE: Mutex<Vec<Weak<Pooled>>> = Mutex::new(Vec::new());
        let mut own = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pooled) = own.iter().find(|pooled| pooled.addresses == *addresses) {
            return Ok(pooled.client.clone());
        }
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|pooled| pooled.strong_count() > 0);
        let fits = |pooled: &Arc<Pooled>| {
            pooled.settings == self.settings
                && pooled.addresses == *addresses
                && Arc::ptr_eq(&pooled.lookup, &self.lookup)
        };
        let pooled = match in_use.iter().filter_map(Weak::upgrade).find(fits) {
            Some(found) => found,
            None => {
                let new = Arc::new(Pooled {
                    settings: self.settings.clone(),
                    addresses: addresses.clone(),
                    lookup: Arc::clone(&self.lookup),
                    client: client(&self.settings, addresses, &self.lookup)?,
                });
                in_use.push(Arc::downgrade(&new));
                new
            }
        };
        let client = pooled.client.clone();
        own.push(pooled);
        Ok(client)
    }
}

impl Wire for Network {
    fn send(&self, request: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>> {
        let client = self.client(&request.addresses);
        let credentials = Arc::clone(&self.credentials);
        Box::pin(async move {
            let client = client.map_err(|cause| Error::Host(HostError::Unavailable(cause)))?;
            let (request, secrets) = credentials.add_to(request).await?;
            let mut answer = exchange(&client, request).await?;
            echo::cover(&mut answer, &secrets);
            Ok(answer)
        })
    }
}

/// Finds what no request could be sent with, before the first one.
pub(crate) fn check_settings(settings: &HttpConfig) -> Result<(), String> {
    if let Some(path) = &settings.ca_file {
        authorities(path)?;
    }
    settings.proxy.as_ref().map(proxy).transpose().map(drop)
}

/// A client that does what it is told, once.
fn client(settings: &HttpConfig, addresses: &Addresses, lookup: &Arc<dyn Lookup>) -> Result<Client, String> {
    builder(settings, addresses, lookup)?.build().or_else(|cause| {
        // A machine without any authority's certificate can still speak HTTP; over TLS no server will be trusted.
        tracing::warn!(
            cause = chain(&cause),
            "no certificates of authorities: no server is trusted over TLS; install the system's (on Debian: ca-certificates), or set http.ca_file"
        );
        let built = builder(settings, addresses, lookup)?.tls_certs_only([]).build();
        built.map_err(|cause| format!("HTTP cannot be set up: {}", chain(&cause)))
    })
}

fn builder(settings: &HttpConfig, addresses: &Addresses, lookup: &Arc<dyn Lookup>) -> Result<ClientBuilder, String> {
    // The one that everything else in this process uses; where it is there already, it stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let by_proxy = settings.proxy.is_some();
    let resolver = Vetted { lookup: Arc::clone(lookup), addresses: (!by_proxy).then(|| addresses.clone()) };
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .dns_resolver(Arc::new(resolver))
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .http1_max_headers(ANSWER_HEADERS)
        .http2_max_header_list_size(u32::try_from(ANSWER_HEADER_BYTES).unwrap_or(u32::MAX));
    if let Some(url) = &settings.proxy {
        builder = builder.proxy(proxy(url)?);
    }
    if let Some(path) = &settings.ca_file {
        builder = builder.tls_certs_merge(authorities(path)?);
    }
    Ok(builder)
}

fn proxy(url: &Secret) -> Result<Proxy, String> {
    // The error could show its password.
    Proxy::all(url.expose()).map_err(|_| "http.proxy cannot be used as it is".to_owned())
}

/// Bytes of a bundle of authorities' certificates. The system's own have 200 KiB.
const MOST_PEM_BYTES: u64 = 16 << 20;

fn authorities(path: &Path) -> Result<Vec<Certificate>, String> {
    let told = |cause: &dyn std::fmt::Display| format!("http.ca_file {}: {cause}", path.display());
    let pem = crate::regular_file::read(path, MOST_PEM_BYTES).map_err(|cause| told(&cause))?;
    let all = Certificate::from_pem_bundle(&pem).map_err(|cause| told(&chain(&cause)))?;
    if all.is_empty() { Err(told(&"it has no certificate in PEM form")) } else { Ok(all) }
}

async fn exchange(client: &Client, outgoing: Outgoing) -> Result<Incoming, Error> {
    let to = origin(&outgoing.url);
    let most = outgoing.max_response_bytes;
    let is_empty = outgoing.body.as_ref().is_none_or(bytes::Bytes::is_empty);
    let mut request = reqwest::Request::new(outgoing.method, outgoing.url);
    *request.headers_mut() = with_defaults(outgoing.headers);
    if is_empty && matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        // Who expects a body is told that it is empty (RFC 9110, section 8.6): some servers ask for it with 411.
        request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    *request.body_mut() = outgoing.body.map(Into::into);
    let mut response = client.execute(request).await.map_err(|error| sort(&to, error))?;
    let mut incoming =
        Incoming { status: response.status().as_u16(), headers: bounded(response.headers()), ..Incoming::default() };
    while let Some(piece) = response.chunk().await.map_err(|error| sort(&to, error))? {
        let room = most - incoming.body.len();
        incoming.body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            incoming.truncated = true;
            break;
        }
    }
    Ok(incoming)
}

/// What every request says, where the guest says nothing else. No content coding is asked for, so that the body is what the guest gets.
fn with_defaults(mut headers: HeaderMap) -> HeaderMap {
    const DEFAULTS: [(header::HeaderName, &str); 3] = [
        (header::ACCEPT, "*/*"),
        (header::ACCEPT_ENCODING, "identity"),
        (header::USER_AGENT, concat!("wharf/", env!("CARGO_PKG_VERSION"))),
    ];
    for (name, value) in DEFAULTS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers
}

/// Headers as the guest gets them; those that are past the limit are left out.
fn bounded(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut room = ANSWER_HEADER_BYTES;
    let mut all = vec![];
    for (name, value) in headers.iter().take(ANSWER_HEADERS) {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match room.checked_sub(name.as_str().len() + value.len()) {
            Some(rest) => room = rest,
            None => break,
        }
        all.push((name.as_str().to_owned(), value));
    }
    all
}

/// Why there is no answer.
fn sort(to: &str, error: reqwest::Error) -> Error {
    // The URL may have secrets in its path or query.
    let error = error.without_url();
    if let Some(refused) = causes(&error).find_map(|cause| cause.downcast_ref::<AddressRefused>()) {
        let AddressRefused { host, address, kind } = refused;
        return Error::Host(HostError::Denied(format!(
            "{host} has the address {address}, which is {kind}: if it may be reached, grant it with {{ to: \"{to}\", addresses: [\"{address}\"] }}"
        )));
    }
    Error::Connection(format!("{to}: {}", one_line(&chain(&error), TEXT_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::aws::Connection;
    use crate::config::AwsConfig;

    #[test]
    fn outputs_share_connections_where_settings_and_addresses_are_the_same_and_nowhere_else() {
        let network = |settings: &HttpConfig| {
            let aws = Connection::for_settings(&AwsConfig::default());
            Network::new(settings.clone(), Credentials::new(vec![], aws))
        };
        let used = |network: &Network, addresses: &Addresses| {
            network.client(addresses).unwrap();
            let own = network.clients.lock().unwrap();
            Arc::clone(own.iter().find(|pooled| pooled.addresses == *addresses).unwrap())
        };
        let settings = HttpConfig { connect_timeout: Duration::from_millis(1234), ..HttpConfig::default() };
        let (public, private) = (Addresses::default(), Addresses::public_and(["10.0.0.0/8".parse().unwrap()]));
        let (one, two) = (network(&settings), network(&settings));
        let first = used(&one, &public);
        assert!(Arc::ptr_eq(&first, &used(&two, &public)));
        assert!(Arc::ptr_eq(&first, &used(&one, &public)));
        assert!(!Arc::ptr_eq(&first, &used(&two, &private)));
        let other = network(&HttpConfig { connect_timeout: Duration::from_millis(4321), ..settings });
        assert!(!Arc::ptr_eq(&first, &used(&other, &public)));
    }
}
