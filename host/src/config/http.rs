//! Reads `http`, `credentials`, and what outputs are granted of HTTP.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use super::fault::nearest;
use super::http_destination::HttpDestination;
use super::model::{Credential, CredentialKind, GrantedCredential, HttpConfig};
use super::node::{Entry, Meaning, Node, Scalar, Value};
use super::reader::Section;
use super::secret::{Secret, SecretSource};
use super::top::{MOMENT, YEAR};

/// Bytes of a secret's text. Servers take headers of 8 KiB.
const LONGEST_SECRET: usize = 8 << 10;

/// How the host sends requests.
pub(crate) fn read(mut section: Section<'_>) -> HttpConfig {
    let default = HttpConfig::default();
    let config = HttpConfig {
        proxy: proxy(&mut section),
        ca_file: section.text("ca_file").map(PathBuf::from),
        connect_timeout: section.duration("connect_timeout", MOMENT..=YEAR).unwrap_or(default.connect_timeout),
        request_timeout: section.duration("request_timeout", MOMENT..=YEAR).unwrap_or(default.request_timeout),
        max_concurrent: section
            .count("max_concurrent", 1..=1024)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(default.max_concurrent),
    };
    section.finish(&[
        ("timeout", "did you mean \"request_timeout\"?"),
        ("ca_cert", "did you mean \"ca_file\"?"),
        ("listen", "records by HTTP are a source: sources.NAME: { type: http, listen: … }"),
        ("no_proxy", "every request goes by the proxy"),
        ("insecure", "a server's certificate is always checked: name its authority with \"ca_file\""),
        ("verify", "a server's certificate is always checked: name its authority with \"ca_file\""),
    ]);
    config
}

/// The URL may have a password in it, so it is not shown.
fn proxy(section: &mut Section<'_>) -> Option<Secret> {
    let text = section.secret("proxy")?;
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none_or(|url| {
        url.path() != "/" || url.query().is_some() || url.fragment().is_some() || url.port() == Some(0)
    }) {
        let help =
            "write it as in http://proxy.example.com:3128, with user:password@ before the host where it wants them";
        section.fault("proxy", "expected the URL of an HTTP proxy", Some(help.into()));
        return None;
    }
    Some(Secret::new(text))
}

/// What is written under `credentials`.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// Those that could be read.
    pub whole: Vec<Credential>,
    /// Names of the others, whose faults are reported.
    pub faulty: Vec<String>,
    /// There may be more: the block itself, or what it is merged with, could not be read.
    pub is_open: bool,
}

impl Credentials {
    fn names(&self) -> Vec<&str> {
        let whole = self.whole.iter().map(|credential| &*credential.name);
        whole.chain(self.faulty.iter().map(String::as_str)).collect()
    }
}

/// Every credential that is written.
pub(crate) fn credentials(top: &mut Section<'_>) -> Credentials {
    let mut all = Credentials::default();
    let Some(section) = top.section("credentials") else {
        all.is_open = top.is_open() || top.is_written("credentials");
        return all;
    };
    all.is_open = section.is_open();
    for entry in section.entries() {
        super::sources::name(&section, &entry.key, entry.key_at, "credential");
        let path = section.path_of(&entry.key);
        if let Value::Scalar(_) = &entry.value.value
            && !entry.value.is_empty()
        {
            // It may be the secret itself.
            let help = "write { type: bearer, token_file: PATH, to: [https://api.example.com] }";
            section.sink().add_with_help(entry.value.at, &path, "expected a map of keys", help);
            all.faulty.push(entry.key.clone());
        } else if let Some(one) = Section::of(section.sink(), path, entry.key_at, &entry.value) {
            match credential(one, &entry.key) {
                Some(credential) => all.whole.push(credential),
                None => all.faulty.push(entry.key.clone()),
            }
        } else {
            all.faulty.push(entry.key.clone());
        }
    }
    all
}

#[derive(Clone, Copy)]
enum Type {
    Bearer,
    Basic,
    Header,
    SigV4,
}

fn credential(mut section: Section<'_>, name: &str) -> Option<Credential> {
    section.missing("type", "write type: bearer, basic, header or sigv4");
    section.missing("to", "name where it may be sent: to: [https://api.example.com]");
    let types = [("bearer", Type::Bearer), ("basic", Type::Basic), ("header", Type::Header), ("sigv4", Type::SigV4)];
    let wanted = section.one_of("type", &types);
    let to = destinations(&mut section, "to");
    let Some(wanted) = wanted else {
        // Which other keys there may be, nobody knows.
        section.report_missing();
        return None;
    };
    let kind = match wanted {
        Type::Bearer => secret(&mut section, "token", "token_file").map(|token| CredentialKind::Bearer { token }),
        Type::Basic => {
            section.missing("user", "name the user");
            let user = user(&mut section);
            let password = secret(&mut section, "password", "password_file");
            user.zip(password).map(|(user, password)| CredentialKind::Basic { user, password })
        }
        Type::Header => {
            section.missing("name", "name the header, for example name: x-api-key");
            let help =
                "write it as in x-api-key; host, content-length, connection, proxy-… and the like are Wharf's own";
            let header = section.text_like("name", "the name of a header", is_free_header, help);
            let value = secret(&mut section, "value", "value_file");
            header.zip(value).map(|(header, value)| CredentialKind::Header { name: header.to_ascii_lowercase(), value })
        }
        Type::SigV4 => {
            section.missing("service", "name the service as its signatures have it, for example service: es");
            let word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            let service = section.text_like(
                "service",
                "the name of a service",
                word,
                "write it as AWS does, for example aps, es or execute-api",
            );
            let region = section.text_like("region", "a region", word, "write it as AWS does, for example us-east-1");
            service.map(|service| CredentialKind::SigV4 { service, region })
        }
    };
    section.finish(&[
        ("username", "did you mean \"user\"?"),
        ("header", "did you mean \"name\"?"),
        ("key", "did you mean \"value\"?"),
        ("file", "write token_file, password_file or value_file"),
        ("access_key_id", "requests are signed with the output's AWS credentials: see \"aws\""),
        ("secret_access_key", "requests are signed with the output's AWS credentials: see \"aws\""),
        ("destinations", "did you mean \"to\"?"),
        ("hosts", "did you mean \"to\"?"),
    ]);
    Some(Credential { name: name.into(), to: to?, kind: kind? })
}

/// A user's name. What is none may be one with its password, and is not shown.
fn user(section: &mut Section<'_>) -> Option<String> {
    let user = section.text("user")?;
    if user.contains(':') {
        section.fault(
            "user",
            "has a colon, and no user name has (RFC 7617)",
            Some("write the password with \"password\"".into()),
        );
        return None;
    }
    Some(user)
}

fn is_free_header(name: &str) -> bool {
    http::HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !crate::capability::http::is_of_the_host(&name))
}

/// A secret under `key`, or in the file that `file_key` names: one of both.
pub(crate) fn secret(section: &mut Section<'_>, key: &'static str, file_key: &'static str) -> Option<SecretSource> {
    let given = section.secret(key);
    let file = section.file(file_key);
    match (section.is_written(key), section.is_written(file_key)) {
        (true, true) => {
            section.fault(file_key, format!("is there beside {key:?}, and only one of both can be"), None);
            return None;
        }
        (false, false) => section.missing(key, &format!("write {key}: ${{VARIABLE}}, or {file_key}: a path")),
        _ => {}
    }
    if given.as_ref().is_some_and(|text| text.len() > LONGEST_SECRET) {
        section.fault(key, format!("is longer than {LONGEST_SECRET} bytes, which no server takes"), None);
        return None;
    }
    given.map(|text| SecretSource::Given(Secret::new(text))).or(file.map(SecretSource::File))
}

/// A list of destinations, not empty; one alone may stand for a list of one.
fn destinations(section: &mut Section<'_>, key: &'static str) -> Option<Vec<HttpDestination>> {
    let path = section.path_of(key);
    let Entry { value: node, .. } = section.entry(key)?;
    let items: &[Node] = match &node.value {
        Value::List(list) => list,
        Value::Scalar(_) => std::slice::from_ref(node),
        Value::Faulty => return None,
        Value::Map(_) => {
            section.sink().add(node.at, &path, format!("expected a list of destinations, found {}", node.found()));
            return None;
        }
    };
    if items.is_empty() {
        section.sink().add_with_help(
            node.at,
            &path,
            "is empty",
            "name where it may be sent, for example https://api.example.com",
        );
        return None;
    }
    // All of them before the first that is none ends it: each fault is told.
    let one = |(n, item)| destination(section, &format!("{path}[{n}]"), item);
    let all: Vec<Option<HttpDestination>> = items.iter().enumerate().map(one).collect();
    all.into_iter().collect()
}

/// One destination, a text.
fn destination(section: &Section<'_>, path: &str, item: &Node) -> Option<HttpDestination> {
    let reason = match &item.value {
        Value::Scalar(Scalar { text, .. }) if !item.is_empty() => match HttpDestination::parse(text) {
            Ok(destination) => return Some(destination),
            Err(reason) => reason,
        },
        Value::Faulty => return None,
        _ => "write it as in https://api.example.com".into(),
    };
    // What was written may have a password in it.
    section.sink().add_with_help(item.at, path, "expected a destination", reason);
    None
}

/// What an output may send requests to: texts, or maps with addresses.
pub(crate) fn granted(section: &mut Section<'_>) -> Vec<HttpDestination> {
    let path = section.path_of("http");
    let Some(Entry { value: node, .. }) = section.entry("http") else { return vec![] };
    let items: &[Node] = match &node.value {
        Value::List(list) => list,
        _ => std::slice::from_ref(node),
    };
    let one = |(n, item): (usize, &Node)| {
        let path = format!("{path}[{n}]");
        match &item.value {
            Value::Map(_) => with_addresses(section, path, item),
            _ => destination(section, &path, item),
        }
    };
    items.iter().enumerate().filter_map(one).collect()
}

fn with_addresses(section: &Section<'_>, path: String, item: &Node) -> Option<HttpDestination> {
    let mut grant = Section::of(section.sink(), path.clone(), item.at, item)?;
    grant.missing("to", "name where requests may go, for example to: https://logs.internal");
    let to = grant.entry("to").and_then(|to| destination(section, &format!("{path}.to"), &to.value));
    let addresses = addresses(&mut grant);
    grant.finish(&[
        ("host", "did you mean \"to\"?"),
        ("url", "did you mean \"to\"?"),
        ("address", "did you mean \"addresses\"?"),
    ]);
    Some(to?.with_addresses(addresses?))
}

/// Blocks of addresses, each a text; none where one of them is none.
fn addresses(grant: &mut Section<'_>) -> Option<Vec<IpNet>> {
    let path = grant.path_of("addresses");
    let Some(Entry { value: node, .. }) = grant.entry("addresses") else { return Some(vec![]) };
    let items: &[Node] = match &node.value {
        Value::List(list) => list,
        Value::Scalar(scalar) if scalar.meaning == Meaning::Null => &[],
        _ => std::slice::from_ref(node),
    };
    let one = |(n, item): (usize, &Node)| {
        let found = match &item.value {
            Value::Scalar(scalar) => net(&scalar.text),
            Value::Faulty => return None,
            _ => None,
        };
        if found.is_none() {
            let message = format!("expected an address or a block of addresses, found {}", item.found());
            let help = "write it as in 10.0.0.0/8, fd00::/8 or 192.168.1.5";
            grant.sink().add_with_help(item.at, &format!("{path}[{n}]"), message, help);
        }
        found
    };
    let all: Vec<Option<IpNet>> = items.iter().enumerate().map(one).collect();
    all.into_iter().collect()
}

fn net(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
}

/// Where a credential is to be defined, for an output of this tenant.
pub(crate) fn where_defined(tenant: Option<&str>) -> String {
    match tenant {
        None => "define it under \"credentials\" at the top level".to_owned(),
        Some(tenant) => format!("define it under tenants.{tenant}.credentials: the operator's are none of a tenant's"),
    }
}

/// The credentials that an output may name: a list of names, or one alone.
pub(crate) fn granted_credentials(section: &mut Section<'_>, known: &Credentials) -> Vec<GrantedCredential> {
    // Reports what is no text; what is one is looked at all the same.
    let _ = section.texts("credentials");
    let Some(Entry { value: node, .. }) = section.entry("credentials") else { return vec![] };
    let nodes: &[Node] = match &node.value {
        Value::List(list) => list,
        _ => std::slice::from_ref(node),
    };
    let path = section.path_of("credentials");
    let one = |(n, node): (usize, &Node)| {
        let Value::Scalar(Scalar { text: name, meaning, from_environment, .. }) = &node.value else { return None };
        if name.trim().is_empty() || !(*meaning == Meaning::Text || *from_environment) {
            return None;
        }
        let found = known.whole.iter().find(|credential| *credential.name == **name);
        // One that is written but faulty has been told of.
        if found.is_none() && !known.faulty.contains(name) && !known.is_open {
            let message = match &node.value {
                Value::Scalar(scalar) if !scalar.hidden.is_empty() => {
                    format!("there is no credential of the name that {} holds", scalar.hidden.named())
                }
                _ => {
                    let all = known.names();
                    let guess = nearest(name, &all).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
                    format!("there is no credential {name:?}{guess}")
                }
            };
            let tenant = section.path().strip_prefix("tenants.").and_then(|path| path.split('.').next());
            let help = where_defined(tenant);
            section.sink().add_with_help(node.at, &format!("{path}[{n}]"), message, help);
        }
        found.map(Credential::granted)
    };
    nodes.iter().enumerate().filter_map(one).collect()
}

impl Credential {
    /// What an output that may use it knows of it.
    #[must_use]
    pub fn granted(&self) -> GrantedCredential {
        let headers = match &self.kind {
            CredentialKind::Bearer { .. } | CredentialKind::Basic { .. } => vec!["authorization".to_owned()],
            CredentialKind::Header { name, .. } => vec![name.clone()],
            CredentialKind::SigV4 { .. } => {
                ["authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"]
                    .map(str::to_owned)
                    .to_vec()
            }
        };
        GrantedCredential { name: self.name.clone(), to: self.to.clone(), headers }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            proxy: None,
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            max_concurrent: 16,
        }
    }
}
