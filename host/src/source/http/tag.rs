//! Which tag a request's records have: the source's, or what the path or a header says.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::answer::Denied;
use crate::config::HttpTag;

/// As in the configuration.
const LONGEST: usize = 255;

/// The tag of a request. `own` is the source's.
pub(super) fn tag(from: &HttpTag, own: &Arc<str>, request: &Parts) -> Result<Arc<str>, Denied> {
    let (sent, prefix, name) = match from {
        HttpTag::OfSource => return Ok(own.clone()),
        HttpTag::Path { prefix } => (of_path(request.uri.path())?, prefix, "path"),
        HttpTag::Header { name, prefix } => (of_header(request, name)?, prefix, name.as_str()),
    };
    if sent.is_empty() {
        return Ok(own.clone());
    }
    let tag = format!("{prefix}{sent}");
    match what_is_wrong_with(&tag) {
        None => Ok(tag.into()),
        Some(what) => Err(Denied::Tag { from: named(name), what }),
    }
}

fn named(from: &str) -> String {
    if from == "path" { from.to_owned() } else { format!("header {from}") }
}

/// `/app/web` is `app.web`: patterns of tags have dots.
fn of_path(path: &str) -> Result<Cow<'_, str>, Denied> {
    let decoded = percent_decode_str(path).decode_utf8();
    let decoded = decoded.map_err(|_| Denied::Tag { from: named("path"), what: "is not UTF-8" })?;
    let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
    Ok(parts.join(".").into())
}

fn of_header<'a>(request: &'a Parts, name: &str) -> Result<Cow<'a, str>, Denied> {
    let mut values = request.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok("".into()) };
    let wrong = |what| Denied::Tag { from: named(name), what };
    if values.next().is_some() {
        return Err(wrong("is there more than once"));
    }
    let value = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong("is not UTF-8"))?;
    Ok(value.trim().into())
}

fn what_is_wrong_with(tag: &str) -> Option<&'static str> {
    match tag {
        _ if tag.len() > LONGEST => Some("is longer than that"),
        _ if tag.contains(char::is_whitespace) => Some("has a blank"),
        _ if tag.contains(char::is_control) => Some("has a control character"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn of(from: &HttpTag, path: &str, headers: &[(&str, &[u8])]) -> Result<String, String> {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        tag(from, &"own".into(), &parts).map(|tag| tag.to_string()).map_err(|denied| denied.to_string())
    }

    fn path(prefix: &str) -> HttpTag {
        HttpTag::Path { prefix: prefix.into() }
    }

    #[test]
    fn the_path_says_the_tag() {
        for (sent, expected) in [
            ("/app.web", "app.web"),
            ("/app/web", "app.web"),
            ("//app//web/?a=b", "app.web"),
            ("/caf%C3%A9", "caf\u{e9}"),
            ("/", "own"),
            ("/?x=1", "own"),
        ] {
            assert_eq!(of(&path(""), sent, &[]).as_deref(), Ok(expected), "{sent}");
        }
        assert_eq!(of(&path("edge."), "/app", &[]).as_deref(), Ok("edge.app"));
        assert_eq!(of(&path("edge."), "/", &[]).as_deref(), Ok("own"));
        assert_eq!(of(&HttpTag::OfSource, "/app", &[]).as_deref(), Ok("own"));
    }

    #[test]
    fn a_header_says_the_tag() {
        let from = HttpTag::Header { name: "x-tag".into(), prefix: "edge.".into() };
        assert_eq!(of(&from, "/app", &[("X-Tag", b" app.web ")]).as_deref(), Ok("edge.app.web"));
        assert_eq!(of(&from, "/app", &[]).as_deref(), Ok("own"));
        assert_eq!(of(&from, "/app", &[("X-Tag", b"")]).as_deref(), Ok("own"));
        let twice = of(&from, "/", &[("X-Tag", b"a"), ("X-Tag", b"a")]).unwrap_err();
        assert!(twice.contains("the tag that the header x-tag says is there more than once"), "{twice}");
    }

    #[test]
    fn what_can_be_no_tag_is_refused_and_not_made_to_fit() {
        let header = HttpTag::Header { name: "x-tag".into(), prefix: String::new() };
        let long = format!("/{}", "x".repeat(256));
        for (refused, says) in [
            (of(&path(""), "/a%20b", &[]), "the path says has a blank"),
            (of(&path(""), "/a%00b", &[]), "has a control character"),
            (of(&path(""), "/a%0ab", &[]), "has a blank"),
            (of(&path(""), "/%ff", &[]), "is not UTF-8"),
            (of(&path(""), &long, &[]), "is longer than that"),
            (of(&path("p."), &long[..255], &[]), "is longer than that"),
            (of(&header, "/", &[("x-tag", b"a b")]), "the header x-tag says has a blank"),
            (of(&header, "/", &[("x-tag", b"\xff")]), "is not UTF-8"),
        ] {
            let error = refused.unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(of(&path(""), &long[..256], &[]).unwrap().len(), 255);
    }
}
