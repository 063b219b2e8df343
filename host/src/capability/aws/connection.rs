//! The way to AWS: one HTTP client for the process, one set of SDK clients for each distinct setting, credentials looked up when the
//! first call needs them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::sts::AssumeRoleProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation, StalledStreamProtectionConfig};
use aws_smithy_http_client::tls;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use tokio::sync::OnceCell;

use crate::config::{AwsConfig, PayloadSigning};

/// Time for a connection where the configuration says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one whole request where the configuration says nothing: a part of 64 MiB over a thin line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// What servers that speak like AWS are told where nobody names a region.
const REGION_OF_OTHERS: &str = "us-east-1";

/// A way to AWS with given settings. Outputs with the same settings share one, and with it credentials and connections.
#[derive(Debug)]
pub(crate) struct Connection {
    settings: AwsConfig,
    shared: OnceCell<SdkConfig>,
    s3: OnceCell<aws_sdk_s3::Client>,
    logs: OnceCell<aws_sdk_cloudwatchlogs::Client>,
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
        let new = Self::over(settings.clone(), OnceCell::new());
        in_use.push(Arc::downgrade(&new));
        new
    }

    /// A connection with given credentials, so that a test depends on no environment.
    #[cfg(test)]
    pub(crate) fn with_credentials(
        settings: AwsConfig,
        credentials: impl aws_credential_types::provider::ProvideCredentials + 'static,
    ) -> Arc<Self> {
        Self::over_wire(settings, credentials, http_client())
    }

    /// A connection of its own for these settings, whose requests pass by `observer` on their way out.
    pub(crate) async fn observed(
        settings: &AwsConfig,
        observer: impl FnOnce(SharedHttpClient) -> SharedHttpClient,
    ) -> Arc<Self> {
        let usual = Self::over(settings.clone(), OnceCell::new());
        let shared = usual.shared().await.to_builder().http_client(observer(http_client())).build();
        Self::over(settings.clone(), OnceCell::new_with(Some(shared)))
    }

    /// A connection with given credentials whose requests go to `wire` instead of the network.
    pub(crate) fn over_wire(
        settings: AwsConfig,
        credentials: impl aws_credential_types::provider::ProvideCredentials + 'static,
        wire: SharedHttpClient,
    ) -> Arc<Self> {
        let shared = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(wire)
            .region(Region::new(REGION_OF_OTHERS))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let shared = one_attempt(&shared, &settings);
        Self::over(settings, OnceCell::new_with(Some(shared)))
    }

    fn over(settings: AwsConfig, shared: OnceCell<SdkConfig>) -> Arc<Self> {
        Arc::new(Self { settings, shared, s3: OnceCell::new(), logs: OnceCell::new() })
    }

    /// The client for S3. The first call of any service reads the environment and the shared configuration files.
    pub(crate) async fn s3(&self) -> &aws_sdk_s3::Client {
        let made = async || {
            let mut config = aws_sdk_s3::config::Builder::from(self.shared().await)
                // Checksums are our own headers; a server that knows none of the SDK's newer defaults still works.
                .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
                .force_path_style(self.settings.path_style.unwrap_or(self.settings.endpoint.is_some()));
            if let Some(url) = &self.settings.endpoint {
                config = config.endpoint_url(url);
            }
            aws_sdk_s3::Client::from_conf(config.build())
        };
        self.s3.get_or_init(made).await
    }

    /// The client for CloudWatch Logs.
    pub(crate) async fn logs(&self) -> &aws_sdk_cloudwatchlogs::Client {
        let made = async || {
            let mut config = aws_sdk_cloudwatchlogs::config::Builder::from(self.shared().await);
            if let Some(url) = &self.settings.endpoint {
                config = config.endpoint_url(url);
            }
            aws_sdk_cloudwatchlogs::Client::from_conf(config.build())
        };
        self.logs.get_or_init(made).await
    }

    /// The credentials and the region, for requests that are not the SDK's own.
    ///
    /// # Errors
    /// Where no credentials can be had.
    pub(crate) async fn credentials(&self) -> Result<(Credentials, Option<String>), String> {
        let shared = self.shared().await;
        let provider = shared.credentials_provider().ok_or("there are no AWS credentials")?;
        let credentials =
            provider.provide_credentials().await.map_err(|cause| DisplayErrorContext(cause).to_string())?;
        Ok((credentials, shared.region().map(|region| region.as_ref().to_owned())))
    }

    /// What the services' clients have in common: credentials above all, which are looked up once for all of them.
    async fn shared(&self) -> &SdkConfig {
        let made = async || {
            let shared = shared_config(&self.settings).await;
            let shared = match assumed_role(&self.settings, &shared).await {
                Some(credentials) => shared.to_builder().credentials_provider(credentials).build(),
                None => shared,
            };
            one_attempt(&shared, &self.settings)
        };
        self.shared.get_or_init(made).await
    }

    /// Whether the payload is part of the signature, where a service (S3) leaves the choice. Its SHA-256 is two thirds of what an
    /// upload costs, so over TLS, where the payload cannot be changed on the way, the checksum header alone guards it.
    pub(crate) fn signs_payloads(&self) -> bool {
        match self.settings.payload_signing {
            PayloadSigning::Always => true,
            PayloadSigning::Never => false,
            PayloadSigning::Auto => self.settings.endpoint.as_deref().is_some_and(|url| !is_https(url)),
        }
    }
}

fn is_https(url: &str) -> bool {
    url.get(..8).is_some_and(|head| head.eq_ignore_ascii_case("https://"))
}

/// What every request here has in common.
fn one_attempt(shared: &SdkConfig, settings: &AwsConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .operation_attempt_timeout(settings.request_timeout.unwrap_or(REQUEST_TIMEOUT))
        .build();
    // A request's own time limit covers an upload that stalls; the SDK's throughput guard would cut off a slow but living one.
    let stalls = StalledStreamProtectionConfig::enabled().upload_enabled(false).build();
    shared
        .to_builder()
        // Each call is one attempt: when to try again is the scheduler's decision alone.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(stalls)
        .build()
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

    /// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>
    #[tokio::test]
    async fn a_role_is_assumed_at_the_given_sts_with_its_external_id() {
        use aws_credential_types::Credentials;
        use aws_credential_types::provider::ProvideCredentials as _;

        let answer = "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
                      <AccessKeyId>AKIDROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
                      <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
        let asked = Arc::new(Mutex::new(String::new()));
        let app = axum::Router::new().fallback({
            let asked = Arc::clone(&asked);
            async move |form: String| {
                *asked.lock().unwrap() = form;
                answer
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = AwsConfig {
            role_arn: Some("arn:aws:iam::123456789012:role/r".into()),
            external_id: Some("ext-1".into()),
            sts_endpoint: Some(format!("http://{}", listener.local_addr().unwrap())),
            ..AwsConfig::default()
        };
        tokio::spawn(async move { axum::serve(listener, app).await });

        let own = Credentials::new("AKIDOWN", "s", None, None, "test");
        let shared = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http_client())
            .region(Region::new("us-east-1"))
            .credentials_provider(own)
            .load()
            .await;
        let provider = assumed_role(&settings, &shared).await.unwrap();
        assert_eq!(provider.provide_credentials().await.unwrap().access_key_id(), "AKIDROLE");
        let asked = asked.lock().unwrap().clone();
        for field in
            ["RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr", "ExternalId=ext-1", "RoleSessionName=wharf"]
        {
            assert!(asked.contains(field), "{field} is not in {asked}");
        }
    }
}
