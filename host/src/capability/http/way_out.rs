//! How the requests of one output leave: so many at a time, each within its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::grant::origin;
use super::wire::{Incoming, Outgoing, Wire};
use crate::capability::Reached;
use crate::capability::bindings::http::Error;
use crate::capability::bindings::types::HostError;
use crate::capability::share::{HttpShare, TenantShare};
use crate::config::{HttpConfig, Limit};
use crate::telemetry::Metrics;

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
    /// What bounds it beside that: the output's own, and its tenant's.
    own: Option<Arc<HttpShare>>,
    tenant: Option<Arc<TenantShare>>,
    counted: Option<(Metrics, Arc<str>)>,
}

impl WayOut {
    /// By `wire`, with the limits of the settings.
    pub(crate) fn new(wire: Arc<dyn Wire>, settings: &HttpConfig) -> Self {
        Self {
            wire,
            places: Arc::new(Semaphore::new(settings.max_concurrent)),
            most: settings.max_concurrent,
            request_timeout: settings.request_timeout,
            own: None,
            tenant: None,
            counted: None,
        }
    }

    /// The same, within what the output and its tenant may have. Limits that are reached are counted.
    pub(crate) fn within(
        self,
        own: Arc<HttpShare>,
        tenant: Option<Arc<TenantShare>>,
        metrics: Metrics,
        output: Arc<str>,
    ) -> Self {
        Self { own: Some(own), tenant, counted: Some((metrics, output)), ..self }
    }

    fn shares(&self) -> impl Iterator<Item = &HttpShare> {
        self.own.as_deref().into_iter().chain(self.tenant.iter().map(|tenant| &tenant.http))
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
        self.in_turn(request.body.as_ref().map_or(0, |body| body.len() as u64), limit).await?;
        let place = match tokio::time::timeout_at(ends, self.places.acquire()).await {
            Ok(place) => place.ok(),
            Err(_) => {
                return Err(Error::Host(HostError::Limit(format!(
                    "{} requests of this output are under way, which is the limit (http.max_concurrent), and none ended within {limit:?}",
                    self.most
                ))));
            }
        };
        let mut places = vec![];
        for share in self.shares() {
            match tokio::time::timeout_at(ends, share.places.acquire()).await {
                Ok(place) => places.push(place.ok()),
                Err(_) => return Err(self.refused(share.no_place(), limit)),
            }
        }
        let answer = tokio::time::timeout_at(ends, self.wire.send(request)).await;
        drop((places, place));
        if let Ok(Ok(answer)) = &answer {
            let now = Instant::now();
            self.shares().for_each(|share| share.received.take(now, answer.body.len() as u64));
        }
        answer.unwrap_or_else(|_| Err(Error::Connection(format!("{to}: there was no whole answer within {limit:?}"))))
    }

    /// Waits until a request of so many bytes may go. It takes what it needs before it waits, so that requests go in the order in which they came.
    async fn in_turn(&self, bytes: u64, limit: Duration) -> Result<(), Error> {
        let now = Instant::now();
        let mut longest = Duration::ZERO;
        for share in self.shares() {
            // What came in before is owed.
            for (rate, wanted) in [(&share.requests, 1), (&share.sent, bytes), (&share.received, 0)] {
                let wait = rate.wait(now, wanted);
                if wait > limit {
                    return Err(self.refused(rate.reached(wanted), limit));
                }
                longest = longest.max(wait);
            }
        }
        for share in self.shares() {
            share.requests.take(now, 1);
            share.sent.take(now, bytes);
        }
        if longest > Duration::ZERO {
            tokio::time::sleep(longest).await;
        }
        Ok(())
    }

    fn refused(&self, (limit, reached): (Limit, Reached), waited: Duration) -> Error {
        if let Some((metrics, output)) = &self.counted {
            metrics.limit_reached(output, limit.key());
        }
        Error::Host(reached.refusal_with(&format!("there was no room within {waited:?}")))
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

    /// A way out whose output and tenant may make so many requests a second, and have so many under way.
    fn narrow(own: (u64, u64), tenant: (u64, u64)) -> WayOut {
        use crate::config::{Level, Limits};
        let limits = Limits::default()
            .with(Limit::HttpRequests, own.0, Level::Output)
            .with(Limit::HttpConnections, own.1, Level::Output)
            .with(Limit::TenantHttpRequests, tenant.0, Level::Tenant)
            .with(Limit::TenantHttpConnections, tenant.1, Level::Tenant);
        let output: Arc<str> = "way-out-test/live".into();
        let (own, tenant) = (HttpShare::of_output(&limits, &output), TenantShare::of(&limits, &output));
        WayOut::new(Arc::new(Never), &HttpConfig::default()).within(Arc::new(own), tenant, Metrics::new(), output)
    }

    fn text(answer: Result<Incoming, Error>) -> String {
        match answer {
            Err(Error::Host(HostError::Limit(text)) | Error::Connection(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn requests_that_are_too_many_a_second_wait_and_are_refused_where_their_time_is_too_short() {
        let moment = Duration::from_millis(5);
        let way = narrow((1, 9), (1000, 9));
        assert_eq!(text(way.send(request(moment)).await), "https://a.example: there was no whole answer within 5ms");
        // Taken ahead of time: the next hour's.
        way.own.as_ref().unwrap().requests.take(Instant::now(), 3600);
        let refused = text(way.send(request(moment)).await);
        let key = "tenants.way-out-test.outputs.live.limits.http_requests";
        let expected = format!("{key} is 1 requests a second, and 1 were wanted: there was no room within 5ms");
        assert_eq!(refused, expected);
        let (metrics, _) = way.counted.as_ref().unwrap();
        let counted =
            "wharf_output_limits_reached_total{output=\"live\",tenant=\"way-out-test\",limit=\"http_requests\"} 1";
        assert!(metrics.render().contains(counted));
    }

    #[tokio::test]
    async fn outputs_of_a_tenant_have_so_many_requests_under_way_together() {
        let (way, other) = (narrow((1000, 9), (999, 1)), narrow((1000, 9), (999, 1)));
        let refused = tokio::select! {
            biased;
            answer = way.send(request(Duration::from_secs(3600))) => panic!("{answer:?}"),
            answer = other.send(request(Duration::from_millis(5))) => answer,
        };
        let key = "tenants.way-out-test.plugin_limits.tenant_http_connections";
        assert_eq!(
            text(refused),
            format!(
                "{key} is 1 requests at a time, 1 are in use, and 1 more were wanted: there was no room within 5ms"
            )
        );
    }
}
