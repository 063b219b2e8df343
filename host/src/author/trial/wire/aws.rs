//! Behind the SDK's clients: requests that are really made and signed, and answers as the services write them.

use std::sync::Arc;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use wharf_local_aws::InProcess;

use super::asked::{self, Asked};
use super::{Notes, Scripts};
use crate::author::trial::case::{Answer, Says};

/// The wire to AWS. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AwsWire {
    services: InProcess,
    notes: Arc<Notes>,
    scripts: Arc<Scripts>,
}

impl AwsWire {
    pub(crate) fn new(services: InProcess, notes: Arc<Notes>, scripts: Arc<Scripts>) -> Self {
        Self { services, notes, scripts }
    }

    pub(crate) fn into_client(self) -> SharedHttpClient {
        http_client_fn(move |_, _| SharedHttpConnector::new(self.clone()))
    }

    async fn carry(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = whole(request).await.map_err(ConnectorError::user)?;
        let (head, body) = request.into_parts();
        let asked = asked::of_aws(&head, &body);
        let answer = self.scripts.aws(asked.capability, &asked.function);
        let call = self.notes.asked(asked.said.clone());
        let request = Request::from_parts(head, body);
        let answered = self.answer(&asked, answer, request).await;
        match &answered {
            Ok(response) => self.notes.answered(call, &in_short(response)),
            Err((word, _)) => self.notes.answered(call, word),
        }
        let response = answered.map_err(|(_, error)| error)?.map(SdkBody::from);
        response.try_into().map_err(|cause: aws_smithy_runtime_api::http::HttpError| ConnectorError::user(cause.into()))
    }

    async fn answer(
        &self,
        asked: &Asked,
        answer: Answer,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, (&'static str, ConnectorError)> {
        let reset = || ConnectorError::io("connection reset by peer".into());
        match answer {
            Answer::Ok => self.perform(request).await.map_err(|error| ("reset", error)),
            Answer::Lost => {
                self.perform(request).await.map_err(|error| ("reset", error))?;
                Err(("lost", reset()))
            }
            Answer::Reset => Err(("reset", reset())),
            Answer::Timeout => Err(("timeout", ConnectorError::timeout("the request took too long".into()))),
            Answer::Hang => std::future::pending().await,
            Answer::NoCredentials => {
                let cause = CredentialsError::not_loaded("no providers in chain provided credentials");
                Err(("no-credentials", ConnectorError::other(cause.into(), None)))
            }
            Answer::Says(says) => {
                tokio::time::sleep(says.after).await;
                Ok(written(asked.capability, says))
            }
        }
    }

    /// What a service that works makes of it.
    async fn perform(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ConnectorError> {
        self.services.answer(request).await.map_err(|cause| ConnectorError::io(cause.into()))
    }
}

impl HttpConnector for AwsWire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().carry(request))
    }
}

/// The request with all of its body, as a client sends it: its host in a header, and only the path in its first line.
pub(super) async fn whole(request: HttpRequest) -> Result<Request<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut head, body) = request.try_into_http1x()?.into_parts();
    if let Some(host) = head.uri.authority() {
        let host = http::HeaderValue::from_str(host.as_str())?;
        head.headers.entry(http::header::HOST).or_insert(host);
    }
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.as_str().parse()?;
    }
    let body = match body.bytes() {
        Some(bytes) => Bytes::copy_from_slice(bytes),
        None => ByteStream::new(body).collect().await?.into_bytes(),
    };
    Ok(Request::from_parts(head, body))
}

/// An answer as the service writes it.
fn written(capability: &str, says: Says) -> Response<Bytes> {
    let status = StatusCode::from_u16(says.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let refuses = status.as_u16() >= 300;
    let code = says.code.clone().unwrap_or_else(|| usual_code(capability, says.status).to_owned());
    let message = says.message.clone().unwrap_or_else(|| format!("{code}, as the test has it"));
    let (kind, usual) = match (capability, refuses) {
        ("s3", true) => ("application/xml", xml(&code, &message)),
        ("s3", false) => ("application/xml", String::new()),
        (_, true) => ("application/x-amz-json-1.1", json!({ "__type": code, "message": message }).to_string()),
        (_, false) => ("application/x-amz-json-1.1", "{}".to_owned()),
    };
    let body = Bytes::from(says.body.unwrap_or(usual));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let given = says.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in [("content-type", kind)].into_iter().chain(given) {
        if let (Ok(name), Ok(value)) =
            (http::HeaderName::from_bytes(name.as_bytes()), http::HeaderValue::from_str(value))
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn xml(code: &str, message: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message><RequestId>TEST</RequestId></Error>",
        escaped(code),
        escaped(message)
    )
}

/// The service's usual word for a status.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>,
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/CommonErrors.html>
fn usual_code(capability: &str, status: u16) -> &'static str {
    match (capability, status) {
        ("s3", 403) => "AccessDenied",
        ("s3", 404) => "NoSuchKey",
        ("s3", 409) => "ConditionalRequestConflict",
        ("s3", 412) => "PreconditionFailed",
        ("s3", 503) => "SlowDown",
        ("s3", 400) => "InvalidRequest",
        ("s3", _) => "InternalError",
        (_, 400) => "InvalidParameterException",
        (_, 403) => "AccessDeniedException",
        (_, 503) => "ServiceUnavailableException",
        _ => "InternalFailure",
    }
}

/// `ok`, or the status and the service's word.
fn in_short(response: &Response<Bytes>) -> String {
    let status = response.status().as_u16();
    if status < 300 {
        return "ok".into();
    }
    match code_of(response.body()) {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    }
}

fn code_of(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    if let Ok(object) = serde_json::from_str::<Map<String, Value>>(text) {
        let name = object.get("__type")?.as_str()?;
        return Some(name.rsplit('#').next().unwrap_or(name).to_owned());
    }
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0.to_owned())
}
