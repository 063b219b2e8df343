//! What a configuration file says, parsed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::fault::Place;
use super::http_destination::HttpDestination;
use super::limits::Limits;
use super::secret::{Secret, SecretSource};
use super::spans::PluginConfigSpans;
use crate::plugin::{Pin, PluginSource, Requirements};
use crate::queue::WhenFull;
use crate::registry::Pull;
use crate::trust::TrustedKeys;

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryConfig {
    /// A file with credentials, as `docker login` writes it.
    pub credentials_file: Option<PathBuf>,
    /// Registries (`host`, `host:port`) that are asked without TLS; none: those on this machine.
    pub plain_http: Option<Vec<String>>,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceConfig {
    /// Its name: `app`, or `acme/app` where it is a tenant's.
    pub name: Arc<str>,
    /// The tenant whose records it takes in; none: the operator's, or that of the tenant which claims their tag.
    pub tenant: Option<Arc<str>>,
    /// Its records' tag. Default: its name.
    pub tag: Arc<str>,
    /// What it does.
    pub kind: SourceKind,
    /// How its lines are parsed; none: they stay text.
    pub parse: Option<Arc<ParseConfig>>,
}

impl SourceConfig {
    /// The tenants whose records it takes in, as far as the source says; none: whose the tag is. There is at least one.
    #[must_use]
    pub fn senders(&self) -> Vec<Option<&str>> {
        if self.tenant.is_some() {
            return vec![self.tenant.as_deref()];
        }
        let mut senders: Vec<Option<&str>> = match &self.kind {
            SourceKind::Http(http) => http.tokens.iter().map(|token| token.tenant.as_deref()).collect(),
            SourceKind::Forward(forward) => {
                let users = forward.security.iter().flat_map(|security| &security.users);
                users.map(|user| user.tenant.as_deref()).collect()
            }
            SourceKind::Tail(_)
            | SourceKind::Stdin
            | SourceKind::Otlp(_)
            | SourceKind::Syslog(_)
            | SourceKind::Generate(_) => vec![],
        };
        senders.sort_unstable();
        senders.dedup();
        if senders.is_empty() { vec![None] } else { senders }
    }
}

/// What a source does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// Follows files.
    Tail(TailConfig),
    /// Standard input, until its end.
    Stdin,
    /// Takes records by HTTP POST.
    Http(HttpSourceConfig),
    /// Takes records from Fluentd, Fluent Bit and their libraries.
    Forward(Box<ForwardConfig>),
    /// Takes log records by OTLP.
    Otlp(Box<OtlpConfig>),
    /// Takes messages of syslog.
    Syslog(Box<SyslogConfig>),
    /// Makes records up, for trials.
    Generate(GenerateConfig),
}

impl SourceKind {
    /// The addresses that it takes connections on, each with its key.
    #[must_use]
    pub fn listens(&self) -> Vec<(&'static str, SocketAddr)> {
        let some = |key, address: Option<SocketAddr>| address.map(|address| (key, address));
        match self {
            Self::Http(http) => vec![("listen", http.listen)],
            Self::Forward(forward) => some("listen", forward.listen).into_iter().collect(),
            Self::Otlp(otlp) => {
                [some("grpc.listen", otlp.grpc), some("http.listen", otlp.http)].into_iter().flatten().collect()
            }
            Self::Syslog(syslog) => some("tcp.listen", syslog.tcp).into_iter().collect(),
            Self::Tail(_) | Self::Stdin | Self::Generate(_) => vec![],
        }
    }

    /// Whether its records may have other tags than the source's.
    #[must_use]
    pub fn has_tags_of_its_own(&self) -> bool {
        match self {
            Self::Forward(forward) => matches!(forward.tag, ForwardTag::Sent { .. }),
            Self::Otlp(otlp) => otlp.tag_from.is_some(),
            Self::Tail(_) | Self::Stdin | Self::Http(_) | Self::Syslog(_) | Self::Generate(_) => false,
        }
    }
}

/// Following files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailConfig {
    /// Globs.
    pub paths: Vec<String>,
    /// Globs that are left out.
    pub exclude: Vec<String>,
    /// Where to begin in a file that is seen for the first time at start. Files that appear later are read whole.
    pub read_from_beginning: bool,
    /// How often globs are looked at anew when nothing else wakes. Default 5 s.
    pub refresh_interval: Duration,
    /// Longest line. Default 1 MiB.
    pub max_line_bytes: u64,
    /// What becomes of a longer one. It is counted, whatever it is.
    pub long_lines: LongLines,
    /// Which lines are joined to one record; none: each is one.
    pub multiline: Option<Arc<Multiline>>,
    /// A file that nobody has written to for so long when it is first seen is left alone until somebody does.
    pub ignore_older: Option<Duration>,
    /// How the files are written; none: as UTF-8, or as whatever it is.
    pub encoding: Option<&'static encoding_rs::Encoding>,
    /// The key under which each record says its file's path. Then records are objects, with the line under `log`.
    pub path_key: Option<String>,
    /// Whether each record says which pod and container wrote it, by the file's name. Then records are objects.
    pub kubernetes: bool,
    /// How long a renamed file is still followed after its last growth. Default 5 s.
    pub rotate_wait: Duration,
}

impl TailConfig {
    /// Following these files, with every default.
    #[must_use]
    pub fn of(paths: Vec<String>) -> Self {
        Self {
            paths,
            exclude: vec![],
            read_from_beginning: true,
            refresh_interval: Duration::from_secs(5),
            max_line_bytes: 1 << 20,
            long_lines: LongLines::default(),
            multiline: None,
            ignore_older: None,
            encoding: None,
            path_key: None,
            kubernetes: false,
            rotate_wait: Duration::from_secs(5),
        }
    }
}

/// Which lines belong to one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multiline {
    /// What a container's runtime wraps around each line; the lines that it cut into parts are joined.
    pub frame: Option<Frame>,
    /// Which lines belong together.
    pub rule: Option<JoinRule>,
    /// A record that would become larger is given out as it is, bytes. Default 1 MiB.
    pub max_bytes: usize,
    /// A record to which nothing was added for so long is given out. Default 1 s.
    pub timeout: Duration,
}

/// What a container's runtime wraps around a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Docker's `json-file`: an object a line.
    Docker,
    /// Time, stream, tags and line, as containerd and CRI-O write.
    Cri,
}

/// Which lines belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinRule {
    /// Exceptions of Java and its like.
    Java,
    /// Python's tracebacks.
    Python,
    /// Panics of Go.
    Go,
    /// What patterns say.
    Patterns(LinePatterns),
}

/// Patterns of lines. At least one is there.
#[derive(Debug, Clone)]
pub struct LinePatterns {
    /// A line that begins a record.
    pub start: Option<regex::bytes::Regex>,
    /// A line that belongs to the record before it; none: every line that does not begin one.
    pub goes_on: Option<regex::bytes::Regex>,
    /// A line that ends its record.
    pub end: Option<regex::bytes::Regex>,
}

impl PartialEq for LinePatterns {
    fn eq(&self, other: &Self) -> bool {
        let texts = |it: &Self| [&it.start, &it.goes_on, &it.end].map(|one| one.as_ref().map(ToString::to_string));
        texts(self) == texts(other)
    }
}

impl Eq for LinePatterns {}

/// What becomes of a line that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LongLines {
    /// Its beginning is the record, and its rest is left out.
    #[default]
    Truncate,
    /// It becomes several records.
    Split,
    /// All of it is left out.
    Skip,
}

/// Records by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSourceConfig {
    /// Address.
    pub listen: SocketAddr,
    /// Largest body, after decompression. Default 16 MiB.
    pub max_body_bytes: u64,
    /// How long a request's head may take, from its first byte. Default 10 s.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request. Default 75 s.
    pub idle_timeout: Duration,
    /// Connections at the same time. Default 1024.
    pub max_connections: usize,
    /// Tokens, one of which a request has to carry; none is any request.
    pub tokens: Vec<HttpToken>,
}

/// What a request may carry to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpToken {
    /// The token.
    pub token: SecretSource,
    /// Whose records its requests have; none: the operator's, or that of the tenant which claims their tag.
    pub tenant: Option<Arc<str>>,
}

/// Records by the Fluentd forward protocol. It listens on an address, a Unix socket, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardConfig {
    /// Address.
    pub listen: Option<SocketAddr>,
    /// Path of a Unix socket.
    pub unix_path: Option<PathBuf>,
    /// Permissions of the Unix socket; none is as the process's mask has it.
    pub unix_perm: Option<u32>,
    /// Which tag records have.
    pub tag: ForwardTag,
    /// TLS on the address.
    pub tls: Option<TlsConfig>,
    /// Who may send; none is everybody.
    pub security: Option<ForwardSecurity>,
    /// Whether heartbeats by UDP are answered, on the same port.
    pub udp_heartbeat: bool,
    /// The key of records under which their event's metadata is kept; none leaves metadata out. Default `metadata`.
    pub metadata_key: Option<String>,
    /// Largest message, also after decompression. Default 64 MiB.
    pub max_message_bytes: u64,
    /// How long TLS and authentication may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long a connection may stay open without a message. Default: for ever.
    pub idle_timeout: Option<Duration>,
    /// Connections at the same time. Default 1024.
    pub max_connections: usize,
}

/// Which tag records have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardTag {
    /// The one that was sent, with this before it.
    Sent {
        /// May be empty.
        prefix: String,
    },
    /// The source's.
    OfSource,
}

/// Who may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardSecurity {
    /// What both sides know. Empty where only users are asked for.
    pub shared_key: Secret,
    /// Users; none is all that know the key.
    pub users: Vec<ForwardUser>,
    /// The name that senders are told. Default: the system's.
    pub self_hostname: String,
}

/// Somebody who may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardUser {
    /// Name.
    pub username: String,
    /// Password.
    pub password: Secret,
    /// Whose records it sends; none: the operator's, or that of the tenant which claims their tag.
    pub tenant: Option<Arc<str>>,
}

/// Log records by OTLP. It listens for gRPC, HTTP, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpConfig {
    /// Address for gRPC.
    pub grpc: Option<SocketAddr>,
    /// Address for HTTP.
    pub http: Option<SocketAddr>,
    /// TLS on both.
    pub tls: Option<TlsConfig>,
    /// How a record looks.
    pub format: OtlpFormat,
    /// The attribute of resources whose value is the tag of their records. Default: none, the source's tag.
    pub tag_from: Option<String>,
    /// Largest request, after decompression. Default 16 MiB.
    pub max_body_bytes: u64,
    /// How long TLS, and the beginning of a connection by gRPC, may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long a connection by HTTP may stay open without a request, or a request's head take. Default 75 s.
    pub idle_timeout: Duration,
    /// Connections at the same time, of both together. Default 1024.
    pub max_connections: usize,
}

/// How a log record of OTLP looks as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpFormat {
    /// Plain JSON: attributes are an object, values are themselves.
    Json,
    /// OTLP/JSON: `ResourceLogs` with this one record.
    OtlpJson,
}

/// Messages of syslog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyslogConfig {
    /// Address for TCP, or for TLS.
    pub tcp: Option<SocketAddr>,
    /// Address for UDP.
    pub udp: Option<SocketAddr>,
    /// Path of a Unix datagram socket.
    pub unix_path: Option<PathBuf>,
    /// TLS on TCP.
    pub tls: Option<TlsConfig>,
    /// Longest message; a longer one is cut there. Default 64 KiB.
    pub max_message_bytes: u64,
    /// Where times are that do not say it. Default UTC.
    pub time_zone: TimeZone,
    /// How long TLS may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long a connection may stay open without a message. Default: for ever.
    pub idle_timeout: Option<Duration>,
    /// Connections at the same time. Default 1024.
    pub max_connections: usize,
}

/// How lines become objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseConfig {
    /// What a line is.
    pub format: ParseFormat,
    /// The key whose value is the record's time; none: the time of reading.
    pub time_key: Option<String>,
    /// How that is written.
    pub time_format: TimeFormat,
    /// Where times are that do not say it. Default UTC.
    pub time_zone: TimeZone,
    /// Whether the key stays in the record. Default no.
    pub keep_time_key: bool,
}

/// What a line is.
#[derive(Debug, Clone)]
pub enum ParseFormat {
    /// An object of JSON.
    Json,
    /// What a regular expression with named groups finds.
    Regex(regex::bytes::Regex),
    /// `key=value key="a value"`
    Logfmt,
    /// The log format of Kubernetes' container runtimes.
    Cri,
}

impl PartialEq for ParseFormat {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Regex(one), Self::Regex(another)) => one.as_str() == another.as_str(),
            (one, another) => std::mem::discriminant(one) == std::mem::discriminant(another),
        }
    }
}

impl Eq for ParseFormat {}

/// How a time is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// A text of RFC 3339, or a number of seconds.
    Auto,
    /// A number of units of so many nanoseconds.
    Epoch(i64),
    /// As strptime has it.
    Pattern(String),
}

/// PEM files of a server by TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate, and those between it and its authority.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
    /// Authorities, one of which has to have signed a client's certificate; none asks clients for no certificate.
    pub client_ca_file: Option<PathBuf>,
}

/// Records for trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateConfig {
    /// Records a second; none is as fast as it goes.
    pub rate: Option<u64>,
    /// How many in all; none is for ever.
    pub count: Option<u64>,
    /// Body size in bytes. Default 200.
    pub record_bytes: u64,
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
    match name.split_once('/') {
        None => format!("outputs.{name}"),
        Some((tenant, name)) => format!("tenants.{tenant}.outputs.{name}"),
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
