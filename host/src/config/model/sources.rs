//! Sources, parsed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::config::secret::{Secret, SecretSource};

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
    Http(Box<HttpSourceConfig>),
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
            Self::Http(http) => http.tag != HttpTag::OfSource,
            Self::Tail(_) | Self::Stdin | Self::Syslog(_) | Self::Generate(_) => false,
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
    /// What becomes of files that are compressed (gzip, zstd).
    pub compressed: CompressedFiles,
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
            compressed: CompressedFiles::default(),
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

/// What becomes of compressed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressedFiles {
    /// What they unpack to is read, unless it was before they were compressed.
    #[default]
    Read,
    /// They are left out.
    Skip,
}

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
    /// TLS on it.
    pub tls: Option<TlsConfig>,
    /// Which tag a request's records have.
    pub tag: HttpTag,
    /// The path at which a `GET` is told whether requests are taken; none is nowhere. Default `/health`.
    pub health_path: Option<String>,
    /// Largest body, after decompression. Default 16 MiB.
    pub max_body_bytes: u64,
    /// How long TLS may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long a request's head may take, from its first byte. Default 10 s.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request. Default 75 s.
    pub idle_timeout: Duration,
    /// Connections at the same time. Default 1024.
    pub max_connections: usize,
    /// Tokens, one of which a request has to carry; none is any request.
    pub tokens: Vec<HttpToken>,
}

impl HttpSourceConfig {
    /// Listening there, with every default.
    #[must_use]
    pub fn of(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: None,
            tag: HttpTag::OfSource,
            health_path: Some("/health".to_owned()),
            max_body_bytes: 16 << 20,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            max_connections: 1024,
            tokens: vec![],
        }
    }
}

/// Which tag a request's records have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpTag {
    /// The source's.
    OfSource,
    /// What the path says, with this before it; the source's, where it says nothing.
    Path {
        /// May be empty.
        prefix: String,
    },
    /// What this header says, with this before it; the source's, where it is not there.
    Header {
        /// Its name, in small letters.
        name: String,
        /// May be empty.
        prefix: String,
    },
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
