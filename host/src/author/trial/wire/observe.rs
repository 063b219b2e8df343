//! Looks on while requests go to the services themselves, for `wharf plugin run`.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient as _, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use futures_util::future::BoxFuture;

use super::aws::whole;
use super::{Notes, asked, http};
use crate::capability::bindings::http::Error;
use crate::capability::http::{Incoming, Outgoing, Wire};

/// Before the SDK's own client.
#[derive(Debug, Clone)]
pub(crate) struct AwsObserver {
    notes: Arc<Notes>,
}

impl AwsObserver {
    pub(crate) fn new(notes: Arc<Notes>) -> Self {
        Self { notes }
    }

    pub(crate) fn before(self, client: SharedHttpClient) -> SharedHttpClient {
        http_client_fn(move |settings, components| {
            let connector = client.http_connector(settings, components);
            SharedHttpConnector::new(Observed { notes: Arc::clone(&self.notes), connector })
        })
    }
}

#[derive(Debug)]
struct Observed {
    notes: Arc<Notes>,
    connector: SharedHttpConnector,
}

impl HttpConnector for Observed {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (notes, connector) = (Arc::clone(&self.notes), self.connector.clone());
        HttpConnectorFuture::new(async move {
            let call = match request.try_clone() {
                Some(copy) => whole(copy).await.ok().map(|copy| {
                    let (head, body) = copy.into_parts();
                    notes.asked(asked::of_aws(&head, &body).said)
                }),
                None => None,
            };
            let answered = connector.call(request).await;
            if let Some(call) = call {
                notes.answered(
                    call,
                    &match &answered {
                        Ok(response) if response.status().is_success() => "ok".to_owned(),
                        Ok(response) => response.status().as_u16().to_string(),
                        Err(error) => format!("no answer: {}", root_cause(error)),
                    },
                );
            }
            answered
        })
    }
}

/// The SDK's own words say little; what was at the root says it.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Before the network.
#[derive(Debug)]
pub(crate) struct HttpObserver {
    network: Arc<dyn Wire>,
    notes: Arc<Notes>,
}

impl HttpObserver {
    pub(crate) fn new(network: Arc<dyn Wire>, notes: Arc<Notes>) -> Self {
        Self { network, notes }
    }
}

impl Wire for HttpObserver {
    fn send(&self, request: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>> {
        let call = self.notes.asked(http::said(&http::line(&request), &request));
        let notes = Arc::clone(&self.notes);
        let answer = self.network.send(request);
        Box::pin(async move {
            let answered = answer.await;
            notes.answered(
                call,
                &match &answered {
                    Ok(Incoming { status: 200..=299, .. }) => "ok".to_owned(),
                    Ok(Incoming { status, .. }) => status.to_string(),
                    Err(Error::Connection(what) | Error::Credentials(what)) => what.clone(),
                    Err(Error::Host(_)) => "refused by the host".to_owned(),
                },
            );
            answered
        })
    }
}
