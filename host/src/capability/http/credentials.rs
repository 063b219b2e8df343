//! Named credentials: what the host adds to a request once the guest has let go of it.
//!
//! No secret is in an error, a log line or a debug output, nor in an answer that the guest gets. One that comes from a file is read for each request, so that a rotated one is used at once.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use ::http::{HeaderName, HeaderValue, header};

use super::sigv4::{self, Scope};
use super::wire::Outgoing;
use crate::capability::aws::Connection;
use crate::capability::bindings::http::Error;
use crate::config::{Credential, CredentialKind, Secret, SecretSource};

/// Longest secret in a file, bytes. Servers take headers of 8 KiB.
const FILE_BYTES: u64 = 8 << 10;

/// Every credential that an output may use, with its secrets.
#[derive(Debug)]
pub(crate) struct Credentials {
    all: Vec<Credential>,
    aws: Arc<Connection>,
}

impl Credentials {
    /// Requests are signed with what `aws` has.
    pub(crate) fn new(all: Vec<Credential>, aws: Arc<Connection>) -> Self {
        Self { all, aws }
    }

    /// Adds the credential that the request names. Gives what of it must not come back.
    ///
    /// # Errors
    /// Where it cannot be had, with its name and the cause.
    pub(super) async fn add_to(&self, request: Outgoing) -> Result<(Outgoing, Vec<Secret>), Error> {
        let Some(name) = request.credential.clone() else { return Ok((request, vec![])) };
        let Some(credential) = self.all.iter().find(|credential| credential.name == name) else {
            return Err(Error::Credentials(format!("there is no credential {name}")));
        };
        let added = match &credential.kind {
            // A signature is good for this one request, and no secret.
            CredentialKind::SigV4 { service, region } => {
                self.signed(request, service, region.as_deref()).await.map(|request| (request, vec![]))
            }
            kind => with_header(request, kind).await,
        };
        added.map_err(|cause| Error::Credentials(format!("credential {name} cannot be used: {cause}")))
    }

    async fn signed(&self, request: Outgoing, service: &str, region: Option<&str>) -> Result<Outgoing, String> {
        let (credentials, own_region) = self.aws.credentials().await?;
        let no_region = "no AWS region is known: set the credential's region, aws.region, or AWS_REGION";
        let region = region.map(str::to_owned).or(own_region).ok_or(no_region)?;
        let scope = Scope { service: service.to_owned(), region };
        // A large body takes a while to hash.
        on_a_thread_that_may_block(move || sigv4::sign(request, credentials, &scope, SystemTime::now())).await
    }
}

async fn with_header(mut request: Outgoing, kind: &CredentialKind) -> Result<(Outgoing, Vec<Secret>), String> {
    let (name, value, secrets) = match kind {
        CredentialKind::Bearer { token } => {
            let token = text(token).await?;
            (header::AUTHORIZATION, format!("Bearer {token}"), vec![token])
        }
        CredentialKind::Basic { user, password } => {
            let password = text(password).await?;
            let pair = aws_smithy_types::base64::encode(format!("{user}:{password}"));
            (header::AUTHORIZATION, format!("Basic {pair}"), vec![pair, password])
        }
        CredentialKind::Header { name, value } => {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "its header's name is none")?;
            let value = text(value).await?;
            // `Splunk TOKEN`: the token alone is as secret.
            let last = value.rsplit(' ').next().unwrap_or_default().to_owned();
            (name, value.clone(), vec![value, last])
        }
        CredentialKind::SigV4 { .. } => return Ok((request, vec![])),
    };
    // The error would show the value.
    let mut value =
        HeaderValue::from_bytes(value.as_bytes()).map_err(|_| "it has a character in it that no header can have")?;
    value.set_sensitive(true);
    request.headers.insert(name, value);
    Ok((request, secrets.into_iter().map(Secret::new).collect()))
}

async fn text(source: &SecretSource) -> Result<String, String> {
    match source {
        SecretSource::Given(secret) => Ok(secret.expose().to_owned()),
        SecretSource::File(path) => {
            let path = path.clone();
            on_a_thread_that_may_block(move || from_file(&path)).await
        }
    }
}

/// Without the line break that editors put at the end.
fn from_file(path: &Path) -> Result<String, String> {
    let told = |cause: &dyn std::fmt::Display| format!("reading {}: {cause}", path.display());
    let bytes = crate::regular_file::read(path, FILE_BYTES).map_err(|cause| told(&cause))?;
    let text = String::from_utf8(bytes).map_err(|_| told(&"it is no UTF-8 text"))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(told(&"it is empty"));
    }
    if text.contains(char::is_control) {
        return Err(told(&"it has more than one line, or another control character in it"));
    }
    Ok(text.to_owned())
}

async fn on_a_thread_that_may_block<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the host is shutting down".to_owned())?
}
