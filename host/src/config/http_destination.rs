//! Destinations of HTTP requests, as operators grant them: `https://*.example.com:8443`.
//!
//! Scheme, host and port, nothing else: a path is no boundary that holds. Both sides are compared after parsing (the URL Standard's parser,
//! so `HTTPS://EXAMPLE.com:443` is `https://example.com`, and `http://0x7f.1` is `http://127.0.0.1`), never as texts. A `*` is the leftmost label of a
//! name and stands for exactly one label, as in certificates (RFC 9525, section 6.3).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// Where requests may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpDestination {
    https: bool,
    host: HostPattern,
    port: u16,
    /// Addresses that the name may have, beside public ones.
    addresses: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Exactly(Host),
    /// One label before this.
    OneLabelBefore(String),
}

impl HttpDestination {
    /// Reads `https://*.example.com:8443`.
    ///
    /// # Errors
    /// What is wrong, in words that do not show the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write scheme, host and perhaps port: https://api.example.com or http://*.example.com:8080";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("it has no scheme; {form}"))?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(format!("its scheme is neither http nor https; {form}")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            return Err("it has a user or password: those belong into \"credentials\"".into());
        }
        if rest.contains(|c: char| matches!(c, '/' | '?' | '#' | '\\') || c.is_whitespace() || c.is_control()) {
            return Err(format!("it has more than a host and a port, and a path is never compared; {form}"));
        }
        let (wildcard, name) = match rest.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, rest),
        };
        if name.contains('*') {
            return Err("a * can only be the whole leftmost label of a name, as in https://*.example.com".into());
        }
        let url = Url::parse(&format!("{scheme}://{name}")).map_err(|cause| format!("{cause}; {form}"))?;
        let host = url.host().ok_or_else(|| format!("it has no host; {form}"))?.to_owned();
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or("its port is none")?;
        if let Host::Domain(name) = &host
            && !is_a_name(name)
        {
            return Err("its host is no name that a machine can have: labels of 1 to 63 characters with dots between, 253 in all".into());
        }
        let host = match (wildcard, host) {
            (false, host) => HostPattern::Exactly(host),
            (true, Host::Domain(name)) => HostPattern::OneLabelBefore(name),
            (true, _) => return Err("a * cannot stand before an address".into()),
        };
        Ok(Self { https, host, port, addresses: vec![] })
    }

    /// With addresses that are no public ones, and are allowed here all the same.
    #[must_use]
    pub fn with_addresses(self, addresses: Vec<IpNet>) -> Self {
        Self { addresses, ..self }
    }

    /// Whether a request for this URL goes here.
    #[must_use]
    pub fn covers(&self, url: &Url) -> bool {
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return false,
        };
        let Some(host) = url.host() else { return false };
        https == self.https && url.port_or_known_default() == Some(self.port) && self.host.covers(&host)
    }

    /// Whether everything that `wanted` covers is covered here too. Addresses are not looked at.
    #[must_use]
    pub fn covers_all_of(&self, wanted: &Self) -> bool {
        let host = match &wanted.host {
            HostPattern::Exactly(host) => self.host.covers(&borrowed(host)),
            HostPattern::OneLabelBefore(_) => self.host == wanted.host,
        };
        host && self.https == wanted.https && self.port == wanted.port
    }

    /// Addresses that are allowed beside public ones: those of the grant, the granted host where it is an address itself, and this machine's
    /// where it is `localhost`.
    #[must_use]
    pub fn extra_addresses(&self) -> Vec<IpNet> {
        let mut all = self.addresses.clone();
        match &self.host {
            HostPattern::Exactly(Host::Ipv4(address)) => all.push(IpNet::from(IpAddr::V4(*address))),
            HostPattern::Exactly(Host::Ipv6(address)) => all.push(IpNet::from(IpAddr::V6(*address))),
            HostPattern::Exactly(Host::Domain(name)) if name == "localhost" => {
                all.extend(Ipv4Net::new(Ipv4Addr::LOCALHOST, 8).map(|net| IpNet::V4(net.trunc())));
                all.extend(Ipv6Net::new(Ipv6Addr::LOCALHOST, 128).map(IpNet::V6));
            }
            HostPattern::Exactly(Host::Domain(_)) | HostPattern::OneLabelBefore(_) => {}
        }
        all
    }
}

impl HostPattern {
    fn covers(&self, host: &Host<&str>) -> bool {
        match (self, host) {
            (Self::Exactly(Host::Domain(name)), Host::Domain(wanted)) => name == wanted,
            (Self::Exactly(Host::Ipv4(address)), Host::Ipv4(wanted)) => address == wanted,
            (Self::Exactly(Host::Ipv6(address)), Host::Ipv6(wanted)) => address == wanted,
            (Self::OneLabelBefore(name), Host::Domain(wanted)) => {
                wanted.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == name)
            }
            _ => false,
        }
    }
}

/// Whether the domain name system can hold it (RFC 1035, section 2.3.4). A dot at the end stands for the root.
fn is_a_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn borrowed(host: &Host) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

impl fmt::Display for HttpDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.https { "https://" } else { "http://" })?;
        match &self.host {
            HostPattern::Exactly(host) => host.fmt(f)?,
            HostPattern::OneLabelBefore(name) => write!(f, "*.{name}")?,
        }
        let own = if self.https { 443 } else { 80 };
        if self.port == own { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> HttpDestination {
        HttpDestination::parse(text).unwrap()
    }

    #[test]
    fn a_destination_covers_its_scheme_host_and_port_and_nothing_else() {
        for (granted, url, covered) in [
            ("https://api.example.com", "https://api.example.com/any/path?q=1", true),
            ("https://api.example.com", "https://API.Example.COM:443/", true),
            ("https://api.example.com", "http://api.example.com/", false),
            ("https://api.example.com", "http://api.example.com:443/", false),
            ("https://api.example.com", "https://api.example.com:8443/", false),
            ("https://api.example.com:8443", "https://api.example.com:8443/", true),
            ("https://api.example.com:8443", "https://api.example.com/", false),
            ("http://api.example.com", "http://api.example.com:80/", true),
            ("https://api.example.com", "https://api.example.com.evil.test/", false),
            ("https://api.example.com", "https://evil.test/api.example.com", false),
            ("https://api.example.com", "https://api.example.com./", false),
            ("https://api.example.com", "https://example.com/", false),
            ("https://example.com", "https://api.example.com/", false),
            ("https://bücher.example", "https://xn--bcher-kva.example/", true),
            ("https://*.example.com", "https://a.example.com/", true),
            ("https://*.example.com", "https://example.com/", false),
            ("https://*.example.com", "https://a.b.example.com/", false),
            ("https://*.example.com", "https://.example.com/", false),
            ("https://*.example.com", "https://aexample.com/", false),
            ("https://*.0.0.1", "https://127.0.0.1/", false),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/", true),
            ("http://127.0.0.1:9000", "http://0x7f000001:9000/", true),
            ("http://127.0.0.1:9000", "http://127.1:9000/", true),
            ("http://127.0.0.1:9000", "http://localhost:9000/", false),
            ("http://127.0.0.1:9000", "http://[::ffff:7f00:1]:9000/", false),
            ("http://[::1]:9000", "http://[0:0:0:0:0:0:0:1]:9000/", true),
            ("http://localhost", "http://127.0.0.1/", false),
            ("ws://api.example.com", "ws://api.example.com/", false),
        ] {
            let covers = HttpDestination::parse(granted).is_ok_and(|granted| granted.covers(&Url::parse(url).unwrap()));
            assert_eq!(covers, covered, "{granted} {url}");
        }
    }

    #[test]
    fn what_is_no_destination_is_refused_without_being_shown() {
        for text in [
            "",
            "api.example.com",
            "https:/api.example.com",
            "https://",
            "https://:8443",
            "ftp://a.example",
            "https://*",
            "https://a.*.example.com",
            "https://a*.example.com",
            "https://*.*.example.com",
            "https://*.127.0.0.1",
            "https://*.[::1]",
            "https://a.example/path",
            "https://a.example?q",
            "https://a.example#f",
            "https://secret@a.example",
            "https://u:secret@a.example",
            "https://a.example:0",
            "https://a.example:70000",
            "https://a.example:x",
            "https://a b",
            "https://a\t.example",
            "https://a.example\\b",
            "https://secret/secret",
        ] {
            let refused = HttpDestination::parse(text).unwrap_err();
            assert!(!refused.contains("secret"), "{text}: {refused}");
        }
    }

    #[test]
    fn it_is_shown_as_it_would_be_written() {
        for (text, shown) in [
            ("HTTPS://Api.Example.com:443/", "https://api.example.com"),
            ("http://*.example.com:8080", "http://*.example.com:8080"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(at(text).to_string(), shown);
        }
    }

    #[test]
    fn what_a_plugin_wants_must_be_covered_whole() {
        for (granted, wanted, covered) in [
            ("https://*.example.com", "https://a.example.com", true),
            ("https://*.example.com", "https://*.example.com", true),
            ("https://a.example.com", "https://*.example.com", false),
            ("https://*.example.com", "https://*.b.example.com", false),
            ("https://*.example.com", "http://a.example.com", false),
            ("https://*.example.com", "https://a.example.com:8443", false),
            ("http://[::1]:9", "http://[::1]:9", true),
        ] {
            assert_eq!(at(granted).covers_all_of(&at(wanted)), covered, "{granted} {wanted}");
        }
    }

    #[test]
    fn a_granted_address_is_allowed_itself_and_localhost_is_this_machine() {
        let extra =
            |text: &str| -> Vec<String> { at(text).extra_addresses().iter().map(ToString::to_string).collect() };
        assert_eq!(extra("http://10.1.2.3"), ["10.1.2.3/32"]);
        assert_eq!(extra("http://[fd00::1]"), ["fd00::1/128"]);
        assert_eq!(extra("http://localhost:9000"), ["127.0.0.0/8", "::1/128"]);
        assert_eq!(extra("https://api.example.com"), [""; 0]);
        let granted = at("https://a.internal").with_addresses(vec!["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(granted.extra_addresses(), ["10.0.0.0/8".parse::<IpNet>().unwrap()]);
    }
}
