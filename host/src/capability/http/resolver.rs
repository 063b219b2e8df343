//! Names become addresses here, and only those that may be connected to come out: what is checked is what is connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use super::addresses::Addresses;

/// Looks names up.
pub(crate) trait Lookup: fmt::Debug + Send + Sync {
    /// The addresses of a host.
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Look-ups of the process at the same time. Each takes one of the threads that may block, of which there are 512 for all that Wharf does, and keeps
/// it until the name server answers, also when nobody waits any more.
const LOOK_UPS: usize = 64;

/// As this machine does: `/etc/hosts`, DNS, and what else is set up.
#[derive(Debug)]
pub(crate) struct OfTheSystem {
    places: Arc<Semaphore>,
}

impl Default for OfTheSystem {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(LOOK_UPS)) }
    }
}

impl Lookup for OfTheSystem {
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let places = Arc::clone(&self.places);
        Box::pin(async move {
            let place = places.acquire_owned().await.map_err(io::Error::other)?;
            let look_up = tokio::task::spawn_blocking(move || {
                let found = (host.as_str(), 0).to_socket_addrs();
                drop(place);
                found
            });
            Ok(look_up.await.map_err(io::Error::other)??.map(|address| address.ip()).collect())
        })
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
