//! Reads whose components are trusted, and how registries are reached.

use std::path::Path;
use std::time::Duration;

use super::model::RegistryConfig;
use super::node::{Entry, Node, Scalar, Value};
use super::reader::Section;
use super::top::YEAR;
use crate::trust::{PublicKey, TrustedKey, TrustedKeys};

/// What a key in PEM begins with.
const PEM: &str = "-----BEGIN";
/// Largest file of a key, bytes.
const MOST_BYTES: u64 = 64 << 10;

/// The keys under `trusted_keys`: PEM, or files of it. A relative path begins at `folder`. None where there is no list, or a faulty one.
pub(crate) fn trusted_keys(section: &mut Section<'_>, folder: &Path) -> Option<TrustedKeys> {
    let path = section.path_of("trusted_keys");
    let Entry { value: node, .. } = section.entry("trusted_keys")?;
    let items: &[Node] = match &node.value {
        Value::List(list) => list,
        Value::Scalar(_) if !node.is_empty() => std::slice::from_ref(node),
        Value::Faulty => return None,
        _ => {
            section.sink().add(node.at, &path, format!("expected a list of public keys, found {}", node.found()));
            return None;
        }
    };
    if items.is_empty() {
        let help = "name at least one key, or leave trusted_keys out: a tenant has the common ones then, and where there are none, no signature is asked for";
        section.sink().add_with_help(node.at, &path, "is empty", help);
        return None;
    }
    let read: Vec<Option<TrustedKey>> =
        items.iter().enumerate().map(|(n, item)| trusted_key(section, &format!("{path}[{n}]"), item, folder)).collect();
    Some(TrustedKeys::new(read.into_iter().collect::<Option<_>>()?))
}

fn trusted_key(section: &Section<'_>, path: &str, item: &Node, folder: &Path) -> Option<TrustedKey> {
    let fault = |message: String, help: &str| section.sink().add_with_help(item.at, path, message, help);
    let help = "name a file with a public key in PEM (`wharf plugin keygen`, `openssl pkey -pubout` and `cosign public-key` write one), or write the PEM itself";
    let text = match &item.value {
        Value::Scalar(Scalar { text, .. }) if !item.is_empty() => text,
        Value::Faulty => return None,
        _ => {
            fault(format!("expected a public key, found {}", item.found()), help);
            return None;
        }
    };
    // A file may be named by the environment, and its name is not shown then.
    let (pem, file) = if text.trim_start().starts_with(PEM) {
        (text.clone(), None)
    } else {
        if let Err((what, help)) = section.sink().path(text) {
            section.sink().push(item.at, path, what, help);
            return None;
        }
        let file = folder.join(text);
        let shown = if item.is_hidden() { item.found() } else { file.display().to_string() };
        match read(&file) {
            Ok(pem) => (pem, Some(shown)),
            Err(cause) => {
                fault(format!("the key file {shown} cannot be read: {cause}"), help);
                return None;
            }
        }
    };
    match PublicKey::from_pem(&pem) {
        Ok(key) => Some(TrustedKey { key, file: file.map(Into::into) }),
        Err(what) => {
            let whose = file.map_or_else(|| "what is written here".to_owned(), |file| format!("the key file {file}"));
            fault(format!("{whose} is no public key: {what}"), help);
            None
        }
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    let bytes = crate::regular_file::read(file, MOST_BYTES)?;
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is no text"))
}

/// `plugins.registry`.
pub(crate) fn registry(mut section: Section<'_>, folder: &Path) -> RegistryConfig {
    let default = RegistryConfig::default();
    let config = RegistryConfig {
        credentials_file: section.text("credentials_file").map(|file| folder.join(file)),
        plain_http: section.words("plain_http"),
        keep_unused: section.duration("keep_unused", Duration::ZERO..=10 * YEAR).unwrap_or(default.keep_unused),
        keep_unused_bytes: section.size("keep_unused_size", 0..=1 << 50).unwrap_or(default.keep_unused_bytes),
    };
    section.finish(&[
        (
            "insecure",
            "did you mean \"plain_http\"? A certificate is always checked: name its authority with http.ca_file",
        ),
        ("keep", "did you mean \"keep_unused\"?"),
        ("auth_file", "did you mean \"credentials_file\"?"),
        ("username", "write a file as `docker login` does, and name it with \"credentials_file\""),
        ("password", "write a file as `docker login` does, and name it with \"credentials_file\""),
        ("proxy", "it belongs under \"http\", at the top level"),
        ("ca_file", "it belongs under \"http\", at the top level"),
    ]);
    config
}
