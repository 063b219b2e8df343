//! Names become addresses here, and only those that may be connected to come out: what is checked is what is connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::addresses::Addresses;

/// Looks names up.
pub(crate) trait Lookup: fmt::Debug + Send + Sync {
    /// The addresses of a host.
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// As this machine does: `/etc/hosts`, DNS, and what else is set up.
#[derive(Debug)]
pub(crate) struct OfTheSystem;

impl Lookup for OfTheSystem {
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// A name whose addresses are all ones that may not be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{host} has the address {address}, which is {kind}")]
pub(super) struct AddressRefused {
    pub(super) host: String,
    pub(super) address: IpAddr,
    pub(super) kind: &'static str,
}

/// Gives out only addresses that are allowed.
#[derive(Debug)]
pub(super) struct Vetted {
    pub(super) lookup: Arc<dyn Lookup>,
    /// None lets every address pass: the proxy's own.
    pub(super) addresses: Option<Addresses>,
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let found = self.lookup.look_up(host.clone());
        let addresses = self.addresses.clone();
        Box::pin(async move {
            let found = found.await?;
            let (mut allowed, mut refused) = (vec![], None);
            for address in found {
                match addresses.as_ref().map_or(Ok(()), |addresses| addresses.check(address)) {
                    Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                    Err(kind) => refused = Some(AddressRefused { host: host.clone(), address, kind }),
                }
            }
            match refused {
                Some(refused) if allowed.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
