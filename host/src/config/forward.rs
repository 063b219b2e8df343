//! Reads a `forward` source, and the TLS of what listens.

use std::path::PathBuf;
use std::time::Duration;

use super::model::{ForwardConfig, ForwardSecurity, ForwardTag, ForwardUser, TlsConfig};
use super::node::{Entry, Node, Value};
use super::reader::{Elsewhere, Section};
use super::secret::Secret;
use super::tokens::{self, Named};
use super::top::{MOMENT, YEAR};

/// Where an event's metadata is put when nothing is said.
const METADATA_KEY: &str = "metadata";

pub(crate) const ELSEWHERE: Elsewhere = &[
    ("name", "the source's name is its key under \"sources\"; what it does is \"type\""),
    ("port", "did you mean \"listen\"?"),
    ("bind", "did you mean \"listen\"?"),
    ("address", "did you mean \"listen\"?"),
    ("add_tag_prefix", "did you mean \"tag_prefix\"?"),
    ("buffer_max_size", "did you mean \"max_message_size\"?"),
    ("chunk_size_limit", "did you mean \"max_message_size\"?"),
    ("buffer_chunk_size", "buffers grow as they must, to \"max_message_size\""),
    ("security", "write \"shared_key\" and \"users\" without it"),
    ("security.users", "did you mean \"users\"?"),
    ("empty_shared_key", "write \"users\" without a \"shared_key\""),
    ("transport", "write tls: { cert_file, key_file }"),
    ("tls_cert_file", "did you mean \"tls\"? Write tls: { cert_file, key_file }"),
];

/// `tag` is the source's, where it is written; `tenant` is the one whose the source is. `tenants` gets those that it names.
pub(crate) fn forward(
    section: &mut Section<'_>,
    tag: Option<&str>,
    tenant: Option<&str>,
    tenants: &mut Vec<Named>,
) -> Option<ForwardConfig> {
    let unix_path = unix_path(section);
    if !section.has("unix_path") {
        section.missing("listen", "write for example listen: 127.0.0.1:24224, or unix_path: /run/wharf/forward.sock");
    }
    let listen = section.address("listen");
    let unix_perm = unix_perm(section);
    let prefix = section.text_like(
        "tag_prefix",
        "a text without blanks",
        |t| !t.contains(char::is_whitespace),
        "tags have no blanks",
    );
    if tag.is_some() && section.is_written("tag_prefix") {
        let help = "\"tag\" stands in place of the tags that are sent: leave one of them out";
        section.fault("tag_prefix", "there is a \"tag\" as well", Some(help.into()));
    }
    let tag = match tag {
        Some(_) => ForwardTag::OfSource,
        None => ForwardTag::Sent { prefix: prefix.unwrap_or_default() },
    };
    let is_on_tcp = section.has("listen");
    for key in ["tls", "udp_heartbeat"] {
        if !is_on_tcp && section.is_written(key) {
            section.fault(key, "there is no \"listen\" that it could be for", None);
        }
    }
    let tls = section.section("tls").map(tls);
    let security = security(section, tenant, tenants);
    let metadata_key = metadata_key(section);
    let waits = MOMENT..=Duration::from_secs(3600);
    let config = ForwardConfig {
        listen,
        unix_path,
        unix_perm,
        tag,
        tls: tls.flatten(),
        security,
        udp_heartbeat: section.boolean("udp_heartbeat").unwrap_or(false),
        metadata_key,
        max_message_bytes: section.size("max_message_size", 1024..=1 << 30).unwrap_or(64 << 20),
        handshake_timeout: section.duration("handshake_timeout", waits).unwrap_or(Duration::from_secs(10)),
        idle_timeout: section.duration("idle_timeout", MOMENT..=YEAR),
        max_connections: usize::try_from(section.count("max_connections", 1..=1_000_000).unwrap_or(1024))
            .unwrap_or(usize::MAX),
    };
    (config.listen.is_some() || config.unix_path.is_some()).then_some(config)
}

/// Longest path of a Unix socket, bytes: `sun_path` of unix(7) has 108, of which the last is a NUL.
const LONGEST_UNIX_PATH: usize = 107;

/// `unix_path`
pub(crate) fn unix_path(section: &mut Section<'_>) -> Option<PathBuf> {
    let path = section.text("unix_path")?;
    if path.len() > LONGEST_UNIX_PATH {
        let message =
            format!("has {} bytes, and the path of a Unix socket has at most {LONGEST_UNIX_PATH}", path.len());
        section.fault("unix_path", message, Some("put it in a folder with a short name, such as /run/wharf".into()));
        return None;
    }
    Some(path.into())
}

fn unix_perm(section: &mut Section<'_>) -> Option<u32> {
    let help = "write it in octal and quotes, for example unix_perm: \"0660\"";
    let octal = |text: &str| text.len() <= 4 && u32::from_str_radix(text, 8).is_ok();
    let text = section.text_like("unix_perm", "permissions such as \"0660\"", octal, help)?;
    if !section.has("unix_path") {
        section.fault("unix_perm", "there is no \"unix_path\" that it could be for", None);
    }
    u32::from_str_radix(&text, 8).ok()
}

/// An empty text is none.
fn metadata_key(section: &mut Section<'_>) -> Option<String> {
    match section.texts("metadata_key").as_deref() {
        None => Some(METADATA_KEY.to_owned()),
        Some([]) => None,
        Some([key]) => Some(key.clone()),
        Some(_) => {
            section.fault("metadata_key", "is more than one key", None);
            None
        }
    }
}

fn security(section: &mut Section<'_>, tenant: Option<&str>, tenants: &mut Vec<Named>) -> Option<ForwardSecurity> {
    let shared_key = section.secret("shared_key").map(Secret::new);
    let users = users(section, tenant, tenants);
    let self_hostname = section.text("self_hostname");
    if shared_key.is_none() && users.is_empty() {
        if self_hostname.is_some() && !section.is_written("shared_key") && !section.is_written("users") {
            section.fault("self_hostname", "there is no \"shared_key\" that it could be for", None);
        }
        return None;
    }
    Some(ForwardSecurity {
        shared_key: shared_key.unwrap_or_default(),
        users,
        self_hostname: self_hostname.unwrap_or_else(hostname),
    })
}

/// The system's name of this machine.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "wharf".to_owned() } else { name.trim().to_owned() }
}

fn users(section: &mut Section<'_>, tenant: Option<&str>, tenants: &mut Vec<Named>) -> Vec<ForwardUser> {
    let path = section.path_of("users");
    let Some(Entry { value: node, .. }) = section.entry("users") else { return Vec::new() };
    let items: &[_] = match &node.value {
        Value::List(list) => list,
        Value::Map(_) => std::slice::from_ref(node),
        _ => {
            // What is there may be a password.
            section.sink().add(node.at, &path, "expected a list of { username, password }");
            &[]
        }
    };
    items
        .iter()
        .enumerate()
        .filter_map(|(n, item)| user(section, format!("{path}[{n}]"), item, tenant, tenants))
        .collect()
}

fn user(
    section: &Section<'_>,
    path: String,
    item: &Node,
    tenant: Option<&str>,
    tenants: &mut Vec<Named>,
) -> Option<ForwardUser> {
    if !matches!(item.value, Value::Map(_)) {
        section.sink().add(item.at, &path, "expected { username, password }");
        return None;
    }
    let mut user = Section::of(section.sink(), path, item.at, item)?;
    user.missing("username", "write { username, password }");
    user.missing("password", "write { username, password }");
    let username = user.text("username");
    let password = user.secret("password").map(Secret::new);
    let tenant = tokens::tenant(&mut user, tenant, tenants);
    user.finish(&[("name", "did you mean \"username\"?"), ("user", "did you mean \"username\"?")]);
    Some(ForwardUser { username: username?, password: password?, tenant })
}

pub(crate) fn tls(mut section: Section<'_>) -> Option<TlsConfig> {
    section.missing("cert_file", "name the PEM file of the server's certificate");
    section.missing("key_file", "name the PEM file of its private key");
    let cert_file = section.file("cert_file");
    let key_file = section.file("key_file");
    let client_ca_file = section.file("client_ca_file");
    if let (Some(cert), Some(key)) = (&cert_file, &key_file)
        && let Err(faults) = crate::tls::server(cert, key, client_ca_file.as_deref())
    {
        for fault in faults {
            let key = fault.file.key();
            section.fault(key, format!("{} {}", section.found(key), fault.why), fault.help.map(str::to_owned));
        }
    }
    section.finish(&[
        ("crt_file", "did you mean \"cert_file\"?"),
        ("ca_file", "did you mean \"client_ca_file\"?"),
        ("ca_path", "did you mean \"client_ca_file\"?"),
        ("private_key_path", "did you mean \"key_file\"?"),
        ("cert_path", "did you mean \"cert_file\"?"),
    ]);
    Some(TlsConfig { cert_file: cert_file?, key_file: key_file?, client_ca_file })
}
