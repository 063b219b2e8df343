//! The way to S3: one HTTP client for the process, one SDK client for each distinct setting, credentials looked up when the first call
//! needs them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::sts::AssumeRoleProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{
    RequestChecksumCalculation, ResponseChecksumValidation, StalledStreamProtectionConfig, retry::RetryConfig,
    timeout::TimeoutConfig,
};
use aws_smithy_http_client::tls;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::sync::OnceCell;

use crate::config::{AwsConfig, PayloadSigning};

/// Time for a connection where the configuration says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one whole request where the configuration says nothing: a part of 64 MiB over a thin line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// What servers that speak S3 are told where nobody names a region.
const REGION_OF_OTHERS: &str = "us-east-1";

/// A way to S3 with given settings. Outputs with the same settings share one, and with it credentials and connections.
#[derive(Debug)]
pub(crate) struct Connection {
    settings: AwsConfig,
    client: OnceCell<Client>,
}

impl Connection {
    /// The connection for these settings: the one that is in use, or a new one.
    pub(crate) fn for_settings(settings: &AwsConfig) -> Arc<Self> {
        static IN_USE: Mutex<Vec<Weak<Connection>>> = Mutex::new(Vec::new());
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|connection| connection.strong_count() > 0);
        if let Some(found) = in_use.iter().filter_map(Weak::upgrade).find(|found| found.settings == *settings) {
            return found;
        }
        let new = Arc::new(Self { settings: settings.clone(), client: OnceCell::new() });
        in_use.push(Arc::downgrade(&new));
        new
    }

    /// The SDK's client. The first call reads the environment and the shared configuration files.
    pub(crate) async fn client(&self) -> &Client {
        self.client.get_or_init(|| client(&self.settings)).await
    }

    /// Whether the payload is part of the signature. Its SHA-256 is two thirds of what an upload costs, so over TLS, where the
    /// payload cannot be changed on the way, the checksum header alone guards it.
    pub(crate) fn signs_payloads(&self) -> bool {
        match self.settings.payload_signing {
            PayloadSigning::Always => true,
            PayloadSigning::Never => false,
            PayloadSigning::Auto => self.settings.endpoint.as_deref().is_some_and(|url| !is_https(url)),
        }
    }
}

/// Finds what no call could work with.
pub(crate) fn check_settings(settings: &AwsConfig) -> Result<(), String> {
    for (name, url) in [("endpoint", &settings.endpoint), ("sts_endpoint", &settings.sts_endpoint)] {
        let Some(url) = url else { continue };
        let host = ["http://", "https://"].iter().find_map(|scheme| strip_prefix_any_case(url, scheme));
        let host = host.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(""));
        if host.is_none_or(|host| host.is_empty() || host.contains(['@', ' '])) {
            return Err(format!(
                "aws.{name} {url:?} is not a URL: write http:// or https://, a host, and perhaps a port, like http://127.0.0.1:9000"
            ));
        }
    }
    if settings.role_arn.is_none() && (settings.external_id.is_some() || settings.session_name.is_some()) {
        return Err(
            "aws.external_id and aws.session_name belong to a role: write aws.role_arn, or leave them out".into()
        );
    }
    Ok(())
}

fn strip_prefix_any_case<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let head = url.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| url.get(scheme.len()..)).flatten()
}

fn is_https(url: &str) -> bool {
    strip_prefix_any_case(url, "https://").is_some()
}

async fn client(settings: &AwsConfig) -> Client {
    let shared = shared_config(settings).await;
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .operation_attempt_timeout(settings.request_timeout.unwrap_or(REQUEST_TIMEOUT))
        .build();
    // A request's own time limit covers an upload that stalls; the SDK's throughput guard would cut off a slow but living one.
    let stalls = StalledStreamProtectionConfig::enabled().upload_enabled(false).build();
    let mut config = aws_sdk_s3::config::Builder::from(&shared)
        // Each call is one attempt: when to try again is the scheduler's decision alone.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(stalls)
        // Checksums are our own headers; a server that knows none of the SDK's newer defaults still works.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
        .force_path_style(settings.path_style.unwrap_or(settings.endpoint.is_some()));
    if let Some(url) = &settings.endpoint {
        config = config.endpoint_url(url);
    }
    if let Some(credentials) = assumed_role(settings, &shared).await {
        config = config.credentials_provider(credentials);
    }
    Client::from_conf(config.build())
}

/// The usual chain: environment, shared files, web identity, SSO, container and instance metadata.
async fn shared_config(settings: &AwsConfig) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http_client());
    if let Some(profile) = &settings.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    } else if settings.endpoint.is_some() {
        // Instance metadata is left out: with an endpoint this may be no AWS at all, and the look-up would wait for nothing.
        let mut from_profile = ProfileFileRegionProvider::builder();
        if let Some(profile) = &settings.profile {
            from_profile = from_profile.profile_name(profile);
        }
        loader = loader.region(
            RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
                .or_else(from_profile.build())
                .or_else(REGION_OF_OTHERS),
        );
    }
    loader.load().await
}

async fn assumed_role(settings: &AwsConfig, shared: &SdkConfig) -> Option<SharedCredentialsProvider> {
    let role = settings.role_arn.as_ref()?;
    let mut sts = shared.to_builder();
    sts.set_endpoint_url(settings.sts_endpoint.clone());
    let mut provider = AssumeRoleProvider::builder(role)
        .configure(&sts.build())
        .session_name(settings.session_name.as_deref().unwrap_or("wharf"));
    if let Some(id) = &settings.external_id {
        provider = provider.external_id(id);
    }
    let provider = match shared.credentials_provider() {
        Some(credentials) => provider.build_from_provider(credentials).await,
        None => provider.build().await,
    };
    Some(SharedCredentialsProvider::new(provider))
}

/// One for the process: connections are pooled over all outputs, and trusted certificates are read once.
fn http_client() -> SharedHttpClient {
    static CLIENT: OnceLock<SharedHttpClient> = OnceLock::new();
    let build = || {
        let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        aws_smithy_http_client::Builder::new().tls_provider(ring).build_https()
    };
    CLIENT.get_or_init(build).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_endpoint(url: &str) -> AwsConfig {
        AwsConfig { endpoint: Some(url.into()), ..AwsConfig::default() }
    }

    #[test]
    fn an_endpoint_is_a_url_with_a_host() {
        for (url, good) in [
            ("http://127.0.0.1:9000", true),
            ("https://s3.example.com/", true),
            ("HTTP://minio", true),
            ("http://[::1]:9000", true),
            ("127.0.0.1:9000", false),
            ("ftp://host", false),
            ("http://", false),
            ("http:///bucket", false),
            ("https://key:secret@host", false),
            ("", false),
        ] {
            assert_eq!(check_settings(&with_endpoint(url)).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn an_external_id_without_a_role_is_a_mistake() {
        let mut settings = AwsConfig { external_id: Some("x".into()), ..AwsConfig::default() };
        assert!(check_settings(&settings).is_err());
        settings.role_arn = Some("arn:aws:iam::123456789012:role/r".into());
        assert!(check_settings(&settings).is_ok());
    }

    #[test]
    fn payloads_are_signed_without_tls_and_not_with_it() {
        let signs = |url: Option<&str>, payload_signing| {
            let settings = AwsConfig { endpoint: url.map(Into::into), payload_signing, ..AwsConfig::default() };
            Connection::for_settings(&settings).signs_payloads()
        };
        assert!(!signs(None, PayloadSigning::Auto));
        assert!(!signs(Some("https://h"), PayloadSigning::Auto));
        assert!(signs(Some("http://h"), PayloadSigning::Auto));
        assert!(signs(Some("https://h"), PayloadSigning::Always));
        assert!(!signs(Some("http://h"), PayloadSigning::Never));
    }

    #[test]
    fn outputs_with_the_same_settings_share_one_connection() {
        let a = Connection::for_settings(&with_endpoint("http://one-connection"));
        let b = Connection::for_settings(&with_endpoint("http://one-connection"));
        let c = Connection::for_settings(&with_endpoint("http://another-connection"));
        assert!(Arc::ptr_eq(&a, &b));
        assert!(!Arc::ptr_eq(&a, &c));
    }
}
