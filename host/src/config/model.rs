//! What a configuration file says, parsed.

mod sources;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::fault::Place;
use super::http_destination::HttpDestination;
use super::limits::Limits;
use super::secret::{Secret, SecretSource};
use super::spans::PluginConfigSpans;
use crate::plugin::{Pin, PluginSource, Requirements};
use crate::queue::WhenFull;
use crate::registry::Pull;
use crate::trust::TrustedKeys;
pub use sources::*;

/// A whole configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything durable lives.
    pub data_dir: PathBuf,
    /// How long a stop may take to deliver what is open. Default 30 s.
    pub grace: Duration,
    /// Whether it is loaded anew when its file, or a file that it names, changes. Default no.
    pub watch: bool,
    /// AWS defaults for all outputs.
    pub aws: AwsConfig,
    /// The journal.
    pub journal: JournalConfig,
    /// Logs of Wharf itself.
    pub log: LogConfig,
    /// The admin server; none is off.
    pub admin: Option<AdminConfig>,
    /// Limits of plugins.
    pub plugins: PluginsConfig,
    /// How HTTP requests of outputs are sent.
    pub http: HttpConfig,
    /// What the host adds to requests that name it, in the file's order.
    pub credentials: Vec<Credential>,
    /// Tenants in the file's order, then those of `tenants_dir` by name.
    pub tenants: Vec<TenantConfig>,
    /// The directory of tenants' files, if there is one.
    pub tenants_dir: Option<PathBuf>,
    /// Sources in the file's order, the operator's own before those of tenants.
    pub sources: Vec<SourceConfig>,
    /// Outputs in the file's order, the operator's own before those of tenants.
    pub outputs: Vec<OutputConfig>,
}

impl Config {
    /// The tenant of this name.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Option<&TenantConfig> {
        self.tenants.iter().find(|tenant| *tenant.name == *name)
    }

    /// What must be true of an output's component before anything in it is looked at. A tenant's list of keys replaces the common one, and is
    /// always asked for; the common one is asked for of the operator's own outputs unless `plugins.require_signature` says no.
    #[must_use]
    pub fn requirements_of<'a>(&'a self, output: &'a OutputConfig) -> Requirements<'a> {
        let common = self.plugins.trusted_keys.as_ref();
        let keys = match &output.tenant {
            None => common.filter(|_| self.plugins.require_signature),
            Some(name) => self.tenant(name).and_then(|tenant| tenant.trusted_keys.as_ref()).or(common),
        };
        Requirements { pin: output.pin.as_ref(), keys, signature: output.signature.as_deref(), pull: output.pull }
    }

    /// The credentials that an output may be granted: its tenant's, or the operator's own.
    #[must_use]
    pub fn credentials_of(&self, output: &OutputConfig) -> &[Credential] {
        match &output.tenant {
            None => &self.credentials,
            Some(name) => self.tenant(name).map_or(&[], |tenant| &tenant.credentials),
        }
    }
}

/// Somebody for whom Wharf delivers, apart from all others. A tenant's sources and outputs have names that begin with its own and a `/`:
/// `acme/archive`. Records of a tenant never reach an output that is not the tenant's, and the operator's own never one of a tenant's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantConfig {
    /// Its name.
    pub name: Arc<str>,
    /// Its part of what tenants share (CPU, journal bandwidth, connections), as against the others'. Default 1.
    pub share: u32,
    /// Globs of tags. Records that the operator's own sources take in with such a tag are the tenant's.
    pub tags: Vec<String>,
    /// Where those are written.
    pub tags_at: Place,
    /// What it may have and take in.
    pub limits: TenantLimits,
    /// Who its outputs are to AWS, with the operator's defaults already merged in. No output of it is somebody else.
    pub aws: AwsConfig,
    /// Whether that is a role or profile of its own, and not whoever the host is.
    pub own_identity: bool,
    /// What its outputs may be granted of credentials. Never the operator's.
    pub credentials: Vec<Credential>,
    /// Keys of which one must have signed each of its components; none: the common ones.
    pub trusted_keys: Option<TrustedKeys>,
    /// The file that it is written in.
    pub file: Arc<str>,
}

/// What a tenant may have, and take in. None is without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantLimits {
    /// Bytes on disk of all that waits for its outputs together, as their queues count it.
    pub journal_bytes: Option<u64>,
    /// How fast records come in.
    pub ingest: IngestLimits,
    /// How many outputs.
    pub outputs: Option<u64>,
    /// How many sources of its own.
    pub sources: Option<u64>,
    /// How many workers, of all outputs.
    pub workers: Option<u64>,
}

/// How fast a tenant's records may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestLimits {
    /// Bytes of bodies a second.
    pub bytes_per_second: Option<u64>,
    /// Records a second.
    pub records_per_second: Option<u64>,
    /// What may come at once, after a while without any: so much time's worth. Default 10 s.
    pub burst: Duration,
}

/// What stands before the `/` in a name of a source or output: its tenant.
#[must_use]
pub fn tenant_in(name: &str) -> Option<&str> {
    name.split_once('/').map(|(tenant, _)| tenant)
}

/// How to reach AWS, or what speaks like it. An output's own `aws` overrides single values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsConfig {
    /// Region; none: the usual chain (`AWS_REGION`, profile, …).
    pub region: Option<String>,
    /// Endpoint of an S3-compatible server.
    pub endpoint: Option<String>,
    /// Profile of the shared configuration files.
    pub profile: Option<String>,
    /// Role to assume.
    pub role_arn: Option<String>,
    /// External id for the role.
    pub external_id: Option<String>,
    /// Session name for the role; default `wharf`.
    pub session_name: Option<String>,
    /// Endpoint of STS.
    pub sts_endpoint: Option<String>,
    /// Path-style addresses (`endpoint/bucket/key`); default: true where `endpoint` is set.
    pub path_style: Option<bool>,
    /// SHA-256 over payloads in the signature: `auto` (default: only without TLS), `always`, `never`.
    pub payload_signing: PayloadSigning,
    /// Time for a connection; default 5 s.
    pub connect_timeout: Option<Duration>,
    /// Time for one whole request; default 5 min.
    pub request_timeout: Option<Duration>,
}

/// When payloads are part of the signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PayloadSigning {
    /// Only where the connection has no TLS.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never; a checksum guards the payload.
    Never,
}

/// The journal's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    /// Size of a segment file. Default 32 MiB.
    pub segment_bytes: u64,
    /// Most bytes on disk in total; none is without limit.
    pub max_bytes: Option<u64>,
    /// Free disk that is left alone. Default 64 MiB.
    pub reserve_bytes: u64,
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self { segment_bytes: 32 << 20, max_bytes: None, reserve_bytes: 64 << 20 }
    }
}

/// Wharf's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `error` … `trace`, or a filter as `tracing` knows it. Default `info`.
    pub level: String,
    /// JSON lines instead of text.
    pub json: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".into(), json: false }
    }
}

/// The admin server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    /// Address.
    pub listen: SocketAddr,
    /// Whether `POST /reload` is there, for whoever asks from this machine. Default yes.
    pub reload: bool,
    /// Whether `POST /quarantine/end` is there, likewise. Default yes.
    pub end_quarantine: bool,
}

/// Where plugins are, and what they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Folders in which a name that is no built-in's is looked for, as `<name>.wasm`.
    pub dirs: Vec<PathBuf>,
    /// Keys of which one must have signed each component that is not built in; none: no signature is asked for.
    pub trusted_keys: Option<TrustedKeys>,
    /// Whether the operator's own components must be signed as well. Default true; it says something where there are keys.
    pub require_signature: bool,
    /// How registries are reached.
    pub registry: RegistryConfig,
    /// What each may take, where its output or its tenant says nothing else.
    pub limits: Limits,
}

impl Default for PluginsConfig {
    fn default() -> Self {
        Self {
            dirs: vec![],
            trusted_keys: None,
            require_signature: true,
            registry: RegistryConfig::default(),
            limits: Limits::default(),
        }
    }
}

/// How registries are reached, beside what `http` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryConfig {
    /// A file with credentials, as `docker login` writes it.
    pub credentials_file: Option<PathBuf>,
    /// Registries (`host`, `host:port`) that are asked without TLS; none: those on this machine.
    pub plain_http: Option<Vec<String>>,
    /// How long a component that no output uses any more is kept. Default 30 days.
    pub keep_unused: Duration,
    /// And how many bytes of them. Default 1 GiB.
    pub keep_unused_bytes: u64,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            credentials_file: None,
            plain_http: None,
            keep_unused: Duration::from_secs(30 * 24 * 3600),
            keep_unused_bytes: 1 << 30,
        }
    }
}

/// An output.
#[derive(Debug, Clone)]
pub struct OutputConfig {
    /// Its name, `archive`, or `acme/archive` where it is a tenant's: also the name of its durable state.
    pub name: Arc<str>,
    /// The tenant whose records it takes; none: the operator's own.
    pub tenant: Option<Arc<str>>,
    /// The component as it is written: a name or a path.
    pub plugin: String,
    /// Where that is.
    pub plugin_source: PluginSource,
    /// The digest that it must have.
    pub pin: Option<Pin>,
    /// Where its signature is; none: beside it, or in its registry.
    pub signature: Option<PathBuf>,
    /// When its registry is asked.
    pub pull: Pull,
    /// Glob over tags: `*` is any characters, `?` is one. Several are separated by blanks.
    pub matches: Vec<String>,
    /// Workers. Default 1.
    pub workers: u32,
    /// When batches close; none: the plugin's plan, else 100 MB, 1,000,000 records (none), 10 min.
    pub batch: BatchConfig,
    /// The output's share of the disk.
    pub queue: QueueConfig,
    /// Retries.
    pub retry: RetryConfig,
    /// What becomes of its batches while its plugin is quarantined.
    pub on_quarantine: OnQuarantine,
    /// What its plugin may take.
    pub limits: Limits,
    /// AWS, with the defaults already merged in.
    pub aws: AwsConfig,
    /// What a plugin that is not built in may touch.
    pub grants: GrantsConfig,
    /// The plugin's own configuration, checked by it. Always an object.
    pub config: serde_json::Value,
    /// Where `plugin` and every part of `config` is written.
    pub config_spans: PluginConfigSpans,
}

impl OutputConfig {
    /// Where it stands in the configuration: `outputs.archive`, `tenants.acme.outputs.archive`.
    #[must_use]
    pub fn section(&self) -> String {
        output_section(&self.name)
    }

    /// Where the component is.
    #[must_use]
    pub fn plugin_source(&self) -> PluginSource {
        self.plugin_source.clone()
    }
}

/// Where an output of this name stands in the configuration.
#[must_use]
pub fn output_section(name: &str) -> String {
    section_of("outputs", name)
}

/// Where what has this name stands in the configuration: under `key`, its own or its tenant's.
pub(crate) fn section_of(key: &str, name: &str) -> String {
    match name.split_once('/') {
        None => format!("{key}.{name}"),
        Some((tenant, name)) => format!("tenants.{tenant}.{key}.{name}"),
    }
}

/// When batches close.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchConfig {
    /// Bytes.
    pub max_bytes: Option<u64>,
    /// Records.
    pub max_records: Option<u64>,
    /// Age of the oldest record.
    pub max_age: Option<Duration>,
}

/// An output's share of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueConfig {
    /// Bytes; none is without limit.
    pub max_bytes: Option<u64>,
    /// What happens past it. Default block.
    pub when_full: WhenFull,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self { max_bytes: None, when_full: WhenFull::Block }
    }
}

/// What becomes of an output's batches while its plugin is quarantined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnQuarantine {
    /// They are kept, and one is tried now and then.
    #[default]
    Hold,
    /// All but the one that is tried become dead letters.
    DeadLetter,
}

/// Retries of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryConfig {
    /// How long a batch is tried before it becomes dead letters, from its closing. Default 24 h.
    pub max_age: Duration,
    /// First wait. Default 1 s, doubled each time, with jitter.
    pub initial: Duration,
    /// Longest wait. Default 1 min.
    pub max: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(24 * 3600), initial: Duration::from_secs(1), max: Duration::from_secs(60) }
    }
}

/// What a plugin may touch. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantsConfig {
    /// Buckets and key prefixes.
    pub s3: Vec<S3Grant>,
    /// Log groups.
    pub cloudwatch_logs: Vec<LogGroupGrant>,
    /// Destinations of HTTP requests.
    pub http: Vec<HttpDestination>,
    /// Credentials that HTTP requests may name.
    pub credentials: Vec<GrantedCredential>,
    /// Bytes that its rows in the host's storage may hold; none is the default, 16 MiB.
    pub storage_bytes: Option<u64>,
    /// Counters that it may have.
    pub sequences: SequenceGrant,
    /// Interfaces whose grant is written, be it empty: somebody thought of them.
    pub considered: Vec<&'static str>,
}

/// Counters (`sequence`) that a plugin may have. They are its output's own, so all are granted where nothing is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SequenceGrant {
    /// Any.
    #[default]
    All,
    /// These; an empty list is none.
    Named(Vec<Arc<str>>),
}

impl GrantsConfig {
    /// Those of `wanted` that are not granted: each needs a grant of its bucket with the same or a shorter prefix.
    #[must_use]
    pub fn missing<'a>(&self, wanted: &'a [S3Grant]) -> Vec<&'a S3Grant> {
        let granted =
            |w: &S3Grant| self.s3.iter().any(|g| g.bucket == w.bucket && w.key_prefix.starts_with(&g.key_prefix));
        wanted.iter().filter(|w| !granted(w)).collect()
    }

    /// Those of `wanted` that are not granted, names of log groups or their beginnings with a `*` behind.
    #[must_use]
    pub fn missing_log_groups<'a>(&self, wanted: &'a [String]) -> Vec<&'a str> {
        let granted = |name: &&str| self.cloudwatch_logs.iter().any(|grant| grant.covers(name));
        wanted.iter().map(String::as_str).filter(|name| !granted(name)).collect()
    }

    /// Those of `wanted` that are not granted, destinations of HTTP requests as a plugin writes them; also what is no destination.
    #[must_use]
    pub fn missing_http<'a>(&self, wanted: &'a [String]) -> Vec<&'a str> {
        let granted = |text: &&str| {
            HttpDestination::parse(text).is_ok_and(|wanted| self.http.iter().any(|grant| grant.covers_all_of(&wanted)))
        };
        wanted.iter().map(String::as_str).filter(|text| !granted(text)).collect()
    }

    /// Those of `wanted` that are not granted, names of credentials.
    #[must_use]
    pub fn missing_credentials<'a>(&self, wanted: &'a [String]) -> Vec<&'a str> {
        let granted = |name: &&str| self.credentials.iter().any(|grant| *grant.name == **name);
        wanted.iter().map(String::as_str).filter(|name| !granted(name)).collect()
    }
}

/// How the host sends HTTP requests of outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// URL of the proxy that every request goes by; none is straight to the destination.
    pub proxy: Option<Secret>,
    /// Certificates (PEM) of authorities that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Time for a connection, TLS included. Default 10 s.
    pub connect_timeout: Duration,
    /// Time for one whole exchange. Default 1 min.
    pub request_timeout: Duration,
    /// Requests of one output at the same time. Default 16.
    pub max_concurrent: usize,
}

/// What the host adds to requests that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name.
    pub name: Arc<str>,
    /// Where it may be sent. Never empty.
    pub to: Vec<HttpDestination>,
    /// What it is.
    pub kind: CredentialKind,
}

/// What a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialKind {
    /// `Authorization: Bearer …` (RFC 6750).
    Bearer {
        /// The token.
        token: SecretSource,
    },
    /// `Authorization: Basic …` (RFC 7617).
    Basic {
        /// Without colon.
        user: String,
        /// The password.
        password: SecretSource,
    },
    /// A header of its own.
    Header {
        /// In lower case.
        name: String,
        /// Its value.
        value: SecretSource,
    },
    /// AWS Signature Version 4, with the output's AWS credentials.
    SigV4 {
        /// As the service's signatures name it.
        service: String,
        /// None is the output's own.
        region: Option<String>,
    },
}

/// A credential that an output may name. What is secret of it is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedCredential {
    /// Its name.
    pub name: Arc<str>,
    /// Where it may be sent.
    pub to: Vec<HttpDestination>,
    /// Headers that it sets, in lower case.
    pub headers: Vec<String>,
}

/// A bucket, and the beginning that keys must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Grant {
    /// Bucket.
    pub bucket: String,
    /// Key prefix; empty is all keys.
    pub key_prefix: String,
}

/// A log group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGroupGrant {
    /// Its name; with a `*` at the end, all names that begin so.
    pub log_group: String,
}

impl LogGroupGrant {
    /// Whether it covers this name, or all names that this beginning with a `*` behind it stands for.
    #[must_use]
    pub fn covers(&self, wanted: &str) -> bool {
        match self.log_group.strip_suffix('*') {
            Some(beginning) => wanted.strip_suffix('*').unwrap_or(wanted).starts_with(beginning),
            None => self.log_group == wanted && !wanted.ends_with('*'),
        }
    }
}
