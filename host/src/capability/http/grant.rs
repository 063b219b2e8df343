//! What an output may touch over HTTP: destinations, and credentials that the host adds for it.
//!
//! Destinations are compared by [`HttpDestination`](crate::config::HttpDestination), after parsing. A credential needs two consents: the output's grant names it, and the credential's own
//! `to` names the destination, so that a plugin cannot have it sent to a server of its choice.

use url::{Host, Url};

use super::addresses::Addresses;
use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::config::{GrantedCredential, HttpDestination, output_section};

/// Longest part of a URL that a message shows, bytes.
const SHOWN_BYTES: usize = 256;

/// Whether a request may go to this URL. Gives the addresses that it may go to, which is settled here where the host is an address itself.
pub(crate) fn check_destination(output: &str, grants: &[HttpDestination], url: &Url) -> Result<Addresses, HostError> {
    let covering: Vec<&HttpDestination> = grants.iter().filter(|grant| grant.covers(url)).collect();
    if covering.is_empty() {
        return Err(HostError::Denied(format!(
            "{} is not granted to output {output}, which may send requests to {} ({}.grants.http)",
            origin(url),
            listed(grants),
            output_section(output)
        )));
    }
    let addresses = Addresses::public_and(covering.iter().flat_map(|grant| grant.extra_addresses()));
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    };
    match literal.map(|address| addresses.check(address)) {
        Some(Err(kind)) => {
            Err(HostError::Denied(format!("{} is {kind}, and not granted to output {output}", origin(url))))
        }
        _ => Ok(addresses),
    }
}

/// Whether a request for this URL may carry the credential of this name.
pub(crate) fn check_credential<'a>(
    output: &str,
    grants: &'a [GrantedCredential],
    name: &str,
    url: &Url,
) -> Result<&'a GrantedCredential, HostError> {
    let Some(granted) = grants.iter().find(|grant| *grant.name == *name) else {
        let names: Vec<&str> = grants.iter().map(|grant| &*grant.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(HostError::Denied(format!(
            "credential {:?} is not granted to output {output}, which may use {names} ({}.grants.credentials)",
            one_line(name, 64),
            output_section(output)
        )));
    };
    if granted.to.iter().any(|to| to.covers(url)) {
        return Ok(granted);
    }
    Err(HostError::Denied(format!(
        "credential {name} is not for {}: it may be sent to {} (credentials.{name}.to)",
        origin(url),
        listed(&granted.to)
    )))
}

/// Scheme, host and port: a path or a query may have secrets in it.
pub(crate) fn origin(url: &Url) -> String {
    one_line(&url.origin().ascii_serialization(), SHOWN_BYTES)
}

fn listed(destinations: &[HttpDestination]) -> String {
    let all: Vec<String> = destinations.iter().map(ToString::to_string).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destinations(list: &[&str]) -> Vec<HttpDestination> {
        list.iter().map(|text| HttpDestination::parse(text).unwrap()).collect()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_request_goes_only_where_a_grant_lets_it() {
        let granted =
            destinations(&["https://api.example.com", "https://*.logs.example.com:8443", "http://127.0.0.1:9"]);
        for (wanted, allowed) in [
            ("https://api.example.com/v1", true),
            ("http://api.example.com/v1", false),
            ("https://eu.logs.example.com:8443/", true),
            ("https://eu.logs.example.com/", false),
            ("http://127.0.0.1:9/", true),
            ("http://127.0.0.1:10/", false),
            ("http://169.254.169.254/latest/meta-data/", false),
        ] {
            assert_eq!(check_destination("o", &granted, &url(wanted)).is_ok(), allowed, "{wanted}");
        }
    }

    #[test]
    fn a_refusal_names_what_was_wanted_without_path_and_query_and_the_key() {
        let Err(HostError::Denied(text)) = check_destination("live", &[], &url("https://x.example:8443/p?key=hush"))
        else {
            panic!("not denied")
        };
        assert_eq!(
            text,
            "https://x.example:8443 is not granted to output live, which may send requests to nothing (outputs.live.grants.http)"
        );
        let granted = destinations(&["https://a.example", "http://*.b.example"]);
        let Err(HostError::Denied(text)) = check_destination("live", &granted, &url("https://x.example")) else {
            panic!()
        };
        assert!(text.contains("send requests to https://a.example, http://*.b.example ("), "{text}");
    }

    #[test]
    fn addresses_of_all_grants_that_cover_a_url_count_and_those_of_others_do_not() {
        let with =
            |text: &str, net: &str| HttpDestination::parse(text).unwrap().with_addresses(vec![net.parse().unwrap()]);
        let granted = [
            with("https://*.example.com", "10.0.0.0/8"),
            with("https://a.example.com", "192.168.0.0/16"),
            with("https://other.example", "127.0.0.0/8"),
        ];
        let addresses = check_destination("o", &granted, &url("https://a.example.com")).unwrap();
        for (address, allowed) in [("10.0.0.1", true), ("192.168.0.1", true), ("127.0.0.1", false), ("8.8.8.8", true)] {
            assert_eq!(addresses.check(address.parse().unwrap()).is_ok(), allowed, "{address}");
        }
    }

    #[test]
    fn a_credential_needs_a_grant_of_its_name_and_goes_only_to_its_own_destinations() {
        let granted = [GrantedCredential {
            name: "ingest".into(),
            to: destinations(&["https://api.example.com"]),
            headers: vec!["authorization".into()],
        }];
        let (api, other) = (url("https://api.example.com/v1"), url("https://other.example/"));
        assert!(check_credential("o", &granted, "ingest", &api).is_ok());
        let Err(HostError::Denied(text)) = check_credential("o", &granted, "ingest", &other) else { panic!() };
        assert_eq!(
            text,
            "credential ingest is not for https://other.example: it may be sent to https://api.example.com (credentials.ingest.to)"
        );
        let Err(HostError::Denied(text)) = check_credential("o", &granted, "root", &api) else { panic!() };
        assert_eq!(
            text,
            "credential \"root\" is not granted to output o, which may use ingest (outputs.o.grants.credentials)"
        );
    }
}
