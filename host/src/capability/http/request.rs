//! What a guest asks for, checked: the method, the URL, the headers, and how large they may be.
//!
//! What decides where a request goes and where it ends belongs to the host: the target, the framing, the connection, and what a credential
//! sets. A guest that could give those could reach another host, or hide a second request in the first (RFC 9112, section 11.2).

use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use crate::capability::Reached;
use crate::capability::bindings::http::Request;
use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::config::Unit;

/// Longest method, bytes. The longest registered one, `UPDATEREDIRECTREF`, has 17.
const METHOD_BYTES: usize = 32;
/// Longest URL, bytes: what RFC 9110, section 4.1 asks servers to take.
pub(super) const URL_BYTES: usize = 8000;
/// Most headers of a request: common servers take 100.
pub(super) const HEADERS: usize = 64;
/// Bytes of all names and values: common servers take 8 KiB to 16 KiB with what the host adds.
pub(super) const HEADER_BYTES: usize = 16 << 10;
/// Of an answer's body, where the guest says nothing, and at most.
const RESPONSE_BYTES: u32 = 64 << 10;
const MAX_RESPONSE_BYTES: u32 = 1 << 20;

/// Headers that are the host's: where a request goes, where it ends, and those of one connection (RFC 9110, section 7.6.1). `expect` would
/// make the exchange wait for an answer before the answer.
const OF_THE_HOST: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "expect",
    "alt-used",
];

/// A request that is well-formed.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// None is as long as the host allows.
    pub(super) timeout: Option<Duration>,
    pub(super) max_response_bytes: usize,
}

/// Finds what needs no grant to be wrong.
pub(super) fn check(request: &Request) -> Result<Checked, HostError> {
    let wanted = request.max_response_bytes.unwrap_or(RESPONSE_BYTES).min(MAX_RESPONSE_BYTES);
    Ok(Checked {
        method: method(&request.method)?,
        url: url(&request.url)?,
        headers: headers(&request.headers)?,
        timeout: request.timeout_ms.map(|ms| Duration::from_millis(u64::from(ms))),
        max_response_bytes: usize::try_from(wanted).unwrap_or(usize::MAX),
    })
}

/// A token (RFC 9110, section 5.6.2) in upper case, as registered methods are: `post` would be another method than `POST`, and no server knows it.
fn method(text: &str) -> Result<Method, HostError> {
    let invalid = |why: &str| HostError::Invalid(format!("method {:?} {why}", one_line(text, METHOD_BYTES)));
    if text.len() > METHOD_BYTES || text.bytes().any(|b| b.is_ascii_lowercase()) {
        return Err(invalid("is none: write it in upper case, as in POST"));
    }
    match Method::from_bytes(text.as_bytes()) {
        // A tunnel, and an echo of what the host has added.
        Ok(Method::CONNECT | Method::TRACE) => Err(invalid("is not allowed")),
        Ok(method) => Ok(method),
        Err(_) => Err(invalid("is no token of RFC 9110")),
    }
}

/// The text is not shown where it may have a password in it.
fn url(text: &str) -> Result<Url, HostError> {
    let invalid = |why: String| HostError::Invalid(format!("the URL {why}"));
    if text.len() > URL_BYTES {
        return Err(invalid(format!("has {} bytes, and at most {URL_BYTES} are allowed", text.len())));
    }
    // The parser drops or turns some of these, so that what is read is not what is written.
    if let Some(c) = text.chars().find(|c| c.is_control() || c.is_whitespace() || *c == '\\') {
        return Err(invalid(format!(
            "has the character U+{:04X} in it, which has to be percent-encoded",
            u32::from(c)
        )));
    }
    let url = Url::parse(text).map_err(|cause| {
        invalid(format!("cannot be read: {cause}; it has to be absolute, as in https://api.example.com/v1"))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(format!(
            "has the scheme {:?}, and only http and https are known",
            one_line(url.scheme(), 16)
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("has a user or password in it: name a credential that the operator has configured".into()));
    }
    if url.fragment().is_some() {
        return Err(invalid("has a fragment (#…), which is never sent".into()));
    }
    // The parser writes some characters as three bytes.
    if url.as_str().len() > 3 * URL_BYTES {
        return Err(invalid("is too long when it is percent-encoded".into()));
    }
    Ok(url)
}

fn headers(list: &[(String, String)]) -> Result<HeaderMap, HostError> {
    if list.len() > HEADERS {
        let all = list.len() as u64;
        return Err(Reached::fixed("a request", Unit::Count("headers"), HEADERS as u64, all).refusal());
    }
    let bytes: usize = list.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > HEADER_BYTES {
        let reached = Reached::fixed("a request's headers together", Unit::Bytes, HEADER_BYTES as u64, bytes as u64);
        return Err(reached.refusal());
    }
    let mut headers = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let shown = one_line(name, 64);
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| HostError::Invalid(format!("header {shown:?} has a name that is no token of RFC 9110")))?;
        if is_of_the_host(&parsed) {
            return Err(HostError::Invalid(format!("header {shown:?} is the host's to set: leave it out")));
        }
        headers.append(parsed, field_value(&shown, value)?);
    }
    Ok(headers)
}

/// A value as RFC 9110, section 5.5 has it: no CR, LF and NUL above all, which would begin another header. The value itself may be secret.
fn field_value(name: &str, value: &str) -> Result<HeaderValue, HostError> {
    if let Some(c) = value.chars().find(|c| c.is_control() && *c != '\t') {
        return Err(HostError::Invalid(format!(
            "header {name:?} has the character U+{:04X} in its value, which no header can have",
            u32::from(c)
        )));
    }
    // Blanks around a value are no part of it, and are not sent.
    HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes())
        .map_err(|_| HostError::Invalid(format!("header {name:?} has a value that no header can have")))
}

/// Whether the host alone sets this header.
pub(crate) fn is_of_the_host(name: &HeaderName) -> bool {
    OF_THE_HOST.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// Refuses headers that the credential will set.
pub(super) fn check_free(headers: &HeaderMap, credential: &str, sets: &[String]) -> Result<(), HostError> {
    match sets.iter().find(|name| headers.contains_key(name.as_str())) {
        Some(name) => {
            Err(HostError::Invalid(format!("header {name:?} is set by the credential {credential}: leave it out")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<impl std::fmt::Debug, HostError>) -> String {
        match result {
            Err(HostError::Invalid(text) | HostError::Limit(text)) => text,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn one(name: &str, value: &str) -> Result<HeaderMap, HostError> {
        headers(&[(name.into(), value.into())])
    }

    #[test]
    fn a_method_is_a_token_in_upper_case_and_no_tunnel() {
        for good in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "M-SEARCH", "UPDATEREDIRECTREF"] {
            assert!(method(good).is_ok(), "{good}");
        }
        for bad in
            ["", "post", "Get", "CONNECT", "TRACE", "GET ", "GET /\r\nX: y", "G\0T", "PÖST", "GET/1", &"X".repeat(33)]
        {
            assert!(method(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_url_is_absolute_http_without_user_and_fragment() {
        for good in ["https://a.example", "http://a.example:8080/x?y=%20&z=ü", "HTTPS://A.example/", "http://[::1]:9/"]
        {
            assert!(url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/path",
            "a.example/path",
            "//a.example",
            "ftp://a.example",
            "file:///etc/passwd",
            "data:,x",
            "javascript:alert(1)",
            "https://",
            "https://user@a.example",
            "https://user:hush@a.example",
            "https://:hush@a.example",
            "https://a.example/#f",
            "https://a.example/#",
            "https://a.example/a b",
            " https://a.example",
            "https://a.example\r\nHost: b",
            "https://a.ex\tample",
            "https:\\\\a.example",
            "https://a.example\\@b.example",
            "https://a.example:99999",
            "https://a.example/\0",
            "http://1.2.3.4.5",
            &format!("https://a.example/{}", "x".repeat(URL_BYTES)),
        ] {
            let text = refused(url(bad));
            assert!(!text.contains("hush"), "{bad}: {text}");
        }
    }

    #[test]
    fn headers_that_are_the_hosts_are_refused_by_name_in_any_case() {
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Proxy-Authorization",
            "Proxy-Connection",
            "proxy-anything",
            "Expect",
            "HTTP2-Settings",
        ] {
            let text = refused(one(name, "x"));
            assert!(text.contains(name), "{text}");
        }
        for name in ["Content-Type", "Authorization", "X-Proxy-Id", "Accept-Encoding", "Date", "User-Agent"] {
            assert!(one(name, "x").is_ok(), "{name}");
        }
    }

    /// <https://www.rfc-editor.org/rfc/rfc9110#section-5.5>
    #[test]
    fn nothing_in_a_header_can_begin_another_one() {
        for (name, value) in [
            ("X-A", "1\r\nHost: evil.example"),
            ("X-A", "1\nX-B: 2"),
            ("X-A", "1\rX-B: 2"),
            ("X-A", "\0"),
            ("X-A", "\u{7f}"),
            ("X-A\r\nHost: evil.example\r\nX-B", "1"),
            ("X A", "1"),
            ("X-A:", "1"),
            ("", "1"),
            (":authority", "evil.example"),
            ("X-Ä", "1"),
        ] {
            assert!(matches!(one(name, value), Err(HostError::Invalid(_))), "{name:?}: {value:?}");
        }
        let text = refused(one("X-Key", "hush\r\n"));
        assert!(text.contains("X-Key") && text.contains("U+000D") && !text.contains("hush"), "{text}");
    }

    #[test]
    fn values_keep_their_bytes_but_the_blanks_around_them() {
        for (given, kept) in [("a b\tc", "a b\tc"), ("  x ", "x"), ("", ""), ("Grüße", "Grüße"), ("a,\"b\"", "a,\"b\"")]
        {
            assert_eq!(one("X-A", given).unwrap().get("x-a").unwrap().as_bytes(), kept.as_bytes(), "{given}");
        }
        let twice = headers(&[("X-A".into(), "1".into()), ("x-a".into(), "2".into())]).unwrap();
        assert_eq!(twice.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn headers_are_few_and_small() {
        let list = |count: usize, bytes: usize| -> Vec<(String, String)> {
            (0..count).map(|n| (format!("x-{n:02}"), "v".repeat(bytes))).collect()
        };
        assert!(headers(&list(HEADERS, 1)).is_ok());
        assert!(matches!(headers(&list(HEADERS + 1, 1)), Err(HostError::Limit(_))));
        assert!(headers(&list(1, HEADER_BYTES - 4)).is_ok());
        assert!(matches!(headers(&list(1, HEADER_BYTES - 3)), Err(HostError::Limit(_))));
    }

    #[test]
    fn what_a_credential_sets_may_not_be_given_as_well() {
        let given = one("Authorization", "Bearer own").unwrap();
        let text = refused(check_free(&given, "ingest", &["authorization".into()]));
        assert_eq!(text, "header \"authorization\" is set by the credential ingest: leave it out");
        assert!(check_free(&given, "ingest", &["dd-api-key".into()]).is_ok());
    }

    #[test]
    fn an_answer_has_64_kib_where_nothing_is_said_and_1_mib_at_most() {
        let bytes = |wanted| {
            let request = Request {
                method: "GET".into(),
                url: "https://a.example".into(),
                headers: vec![],
                credential: None,
                timeout_ms: None,
                max_response_bytes: wanted,
            };
            check(&request).unwrap().max_response_bytes
        };
        assert_eq!([bytes(None), bytes(Some(0)), bytes(Some(100)), bytes(Some(u32::MAX))], [65_536, 0, 100, 1_048_576]);
    }
}
