//! How the requests of one output leave: so many at a time, each within its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::grant::origin;
use super::wire::{Incoming, Outgoing, Wire};
use crate::capability::bindings::http::Error;
use crate::capability::bindings::types::HostError;
use crate::config::HttpConfig;

/// What is left of a call for the component to say what came of it, at most.
const LAST_WORD: Duration = Duration::from_secs(1);

/// A wire, and what bounds its use. Clones share the places.
#[derive(Debug, Clone)]
pub(crate) struct WayOut {
    wire: Arc<dyn Wire>,
    /// Waiting requests get them in the order in which they came.
    places: Arc<Semaphore>,
    most: usize,
    request_timeout: Duration,
}

impl WayOut {
    /// By `wire`, with the limits of the settings.
    pub(crate) fn new(wire: Arc<dyn Wire>, settings: &HttpConfig) -> Self {
        Self {
            wire,
            places: Arc::new(Semaphore::new(settings.max_concurrent)),
            most: settings.max_concurrent,
            request_timeout: settings.request_timeout,
        }
    }

    /// How long an exchange may take: as the guest wants it, as the operator allows it, and so that the guest's call can still end well.
    pub(super) fn timeout(&self, wanted: Option<Duration>, deadline: Option<Instant>) -> Duration {
        let limit = wanted.unwrap_or(self.request_timeout).min(self.request_timeout);
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(left) => limit.min(left.saturating_sub(LAST_WORD.min(left / 10))),
            None => limit,
        }
    }

    /// One attempt.
    pub(super) async fn send(&self, request: Outgoing) -> Result<Incoming, Error> {
        let (limit, to) = (request.timeout, origin(&request.url));
        let ends = tokio::time::Instant::now() + limit;
        let place = match tokio::time::timeout_at(ends, self.places.acquire()).await {
            Ok(place) => place.ok(),
            Err(_) => {
                return Err(Error::Host(HostError::Limit(format!(
                    "{} requests of this output are under way, which is the limit (http.max_concurrent), and none ended within {limit:?}",
                    self.most
                ))));
            }
        };
        let answer = tokio::time::timeout_at(ends, self.wire.send(request)).await;
        drop(place);
        answer.unwrap_or_else(|_| Err(Error::Connection(format!("{to}: there was no whole answer within {limit:?}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::http::tests::Never;

    #[test]
    fn a_guest_may_wait_less_than_the_host_allows_and_never_more() {
        let settings = HttpConfig { request_timeout: Duration::from_secs(60), ..HttpConfig::default() };
        let way = WayOut::new(Arc::new(Never), &settings);
        let seconds = |wanted: Option<u64>| way.timeout(wanted.map(Duration::from_secs), None).as_secs();
        assert_eq!([seconds(None), seconds(Some(5)), seconds(Some(600))], [60, 5, 60]);
    }

    #[test]
    fn an_exchange_ends_before_the_call_does() {
        let way = WayOut::new(Arc::new(Never), &HttpConfig::default());
        let now = Instant::now();
        let within = |left: Duration| way.timeout(None, now.checked_add(left));
        assert!(within(Duration::from_secs(20)) <= Duration::from_secs(19));
        assert!(within(Duration::from_secs(1)) <= Duration::from_millis(900));
        assert_eq!(within(Duration::ZERO), Duration::ZERO);
        assert_eq!(within(Duration::from_secs(3600)), HttpConfig::default().request_timeout);
    }

    fn request(timeout: Duration) -> Outgoing {
        Outgoing {
            method: ::http::Method::GET,
            url: "https://a.example/x?key=hush".parse().unwrap(),
            headers: ::http::HeaderMap::new(),
            credential: None,
            body: None,
            timeout,
            max_response_bytes: 0,
            addresses: super::super::Addresses::default(),
        }
    }

    #[tokio::test]
    async fn a_request_waits_for_a_place_and_says_so_when_there_is_none() {
        let way = WayOut::new(Arc::new(Never), &HttpConfig { max_concurrent: 1, ..HttpConfig::default() });
        let refused = tokio::select! {
            biased;
            // It takes the place, and keeps it.
            answer = way.send(request(Duration::from_secs(3600))) => panic!("{answer:?}"),
            answer = way.send(request(Duration::from_millis(5))) => answer,
        };
        let Err(Error::Host(HostError::Limit(text))) = refused else { panic!("{refused:?}") };
        assert_eq!(
            text,
            "1 requests of this output are under way, which is the limit (http.max_concurrent), and none ended within 5ms"
        );
        // The place came back with the request that was given up.
        let Err(Error::Connection(text)) = way.send(request(Duration::from_millis(5))).await else { panic!() };
        assert_eq!(text, "https://a.example: there was no whole answer within 5ms");
    }
}
