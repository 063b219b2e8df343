//! Reads the `tokens` of a source that listens, and what they name of tenants.

use super::fault::{Place, nearest};
use super::http;
use super::model::{HttpToken, TenantConfig};
use super::node::{Entry, Meaning, Node, Value};
use super::reader::Section;
use super::secret::SecretSource;

/// Shorter ones can be guessed.
const SHORTEST: usize = 16;

/// A tenant that a source names, and where.
#[derive(Debug)]
pub(crate) struct Named {
    tenant: String,
    at: Place,
    path: String,
    is_hidden: bool,
}

/// The tokens that a request may carry; none is any request. `of` is the tenant whose the source is.
pub(crate) fn read(section: &mut Section<'_>, of: Option<&str>, named: &mut Vec<Named>) -> Vec<HttpToken> {
    let path = section.path_of("tokens");
    let Some(Entry { value: node, .. }) = section.entry("tokens") else { return Vec::new() };
    let items: &[_] = match &node.value {
        Value::List(list) => list,
        Value::Map(_) => std::slice::from_ref(node),
        Value::Faulty => &[],
        Value::Scalar(scalar) if scalar.meaning == Meaning::Null => return Vec::new(),
        _ => {
            // What is there may be a token.
            section.sink().add(
                node.at,
                &path,
                "expected a list of { token }, { token_file } or either with a { tenant }",
            );
            return Vec::new();
        }
    };
    if items.is_empty() && !matches!(node.value, Value::Faulty) {
        let help = "leave \"tokens\" out to take requests from anybody";
        section.sink().add_with_help(node.at, &path, "is empty, so nobody could send anything", help);
    }
    let mut tokens: Vec<HttpToken> = vec![];
    let mut places = vec![];
    for (n, item) in items.iter().enumerate() {
        let path = format!("{path}[{n}]");
        let Some(token) = one(section, path.clone(), item, of, named) else { continue };
        let same = tokens.iter().position(|known| known.token == token.token);
        if let Some(first) = same.and_then(|known| places.get(known)) {
            section.sink().add(item.at, &path, format!("is the same token as the one of tokens[{first}]"));
        }
        tokens.push(token);
        places.push(n);
    }
    tokens
}

fn one(
    section: &Section<'_>,
    path: String,
    item: &Node,
    of: Option<&str>,
    named: &mut Vec<Named>,
) -> Option<HttpToken> {
    if !matches!(item.value, Value::Map(_)) {
        section.sink().add(item.at, &path, "expected { token: … } or { token_file: … }");
        return None;
    }
    let mut item = Section::of(section.sink(), path, item.at, item)?;
    let token = http::secret(&mut item, "token", "token_file");
    let is_good = match &token {
        Some(SecretSource::Given(secret)) => what_is_wrong_with(secret.expose()).is_none_or(|what| {
            item.fault("token", what, Some("make one with `openssl rand -hex 32`".into()));
            false
        }),
        _ => true,
    };
    let tenant = tenant(&mut item, of, named);
    item.finish(&[
        ("value", "did you mean \"token\"?"),
        ("file", "did you mean \"token_file\"?"),
        ("bearer", "did you mean \"token\"?"),
        ("name", "did you mean \"tenant\"?"),
    ]);
    token.filter(|_| is_good).map(|token| HttpToken { token, tenant })
}

/// The tenant whose the records are. `of` is the one whose the source is.
pub(crate) fn tenant(
    section: &mut Section<'_>,
    of: Option<&str>,
    named: &mut Vec<Named>,
) -> Option<std::sync::Arc<str>> {
    let tenant = section.text("tenant")?;
    if let Some(of) = of {
        let message = format!("the source is {of}'s, and so is whatever it takes in");
        section.fault("tenant", message, Some("leave \"tenant\" out".into()));
        return None;
    }
    let (at, path) = (section.place_of("tenant"), section.path_of("tenant"));
    named.push(Named { tenant: tenant.clone(), at, path, is_hidden: section.is_hidden("tenant") });
    Some(tenant.into())
}

/// Why a text can be no token (RFC 6750, section 2.1, and what is not guessed).
pub(crate) fn what_is_wrong_with(token: &str) -> Option<&'static str> {
    if token.len() < SHORTEST {
        return Some("is shorter than 16 characters, and so can be guessed");
    }
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
    (!token.bytes().all(fine))
        .then_some("has a character that no bearer token has: letters, digits and -._~+/= are fine")
}

/// Every tenant that is named has to be there. `is_open`: there may be more than can be seen.
pub(crate) fn check(top: &Section<'_>, named: &[Named], tenants: &[TenantConfig], is_open: bool) {
    let names: Vec<&str> = tenants.iter().map(|tenant| &*tenant.name).collect();
    for Named { tenant, at, path, is_hidden } in named {
        if is_open || names.contains(&tenant.as_str()) {
            continue;
        }
        let message = if *is_hidden {
            "there is no tenant of the name that the environment holds".to_owned()
        } else {
            let guess = nearest(tenant, &names).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            format!("there is no tenant {tenant:?}{guess}")
        };
        top.sink().add_with_help(*at, path, message, "define it under \"tenants\", or in tenants_dir");
    }
}
