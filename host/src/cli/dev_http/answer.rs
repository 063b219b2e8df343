//! What is answered, as the command line says it.

use std::str::FromStr;

use axum::http::{HeaderName, HeaderValue, StatusCode};

/// One answer: `STATUS[;HEADER=VALUE]…[;body=TEXT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: String,
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (head, body) = match text.split_once(";body=") {
            Some((head, body)) => (head, body.to_owned()),
            None => (text, String::new()),
        };
        let mut parts = head.split(';');
        let status = parts.next().unwrap_or_default().trim();
        let status = status
            .parse()
            .ok()
            .filter(|status| (200..=599).contains(status))
            .and_then(|status| StatusCode::from_u16(status).ok())
            .ok_or_else(|| format!("an answer begins with its status, 200 to 599, not {status:?}"))?;
        let header = |part: &str| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is neither HEADER=VALUE nor body=TEXT"))?;
            let name = name.trim().parse().map_err(|_| format!("{name:?} is no name of a header (RFC 9110, 5.1)"))?;
            let value =
                value.trim().parse().map_err(|_| format!("{value:?} is no value of a header (RFC 9110, 5.5)"))?;
            Ok::<_, String>((name, value))
        };
        Ok(Self { status, headers: parts.map(header).collect::<Result<_, _>>()?, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_headers_and_a_body_are_understood() {
        let answer: Answer = "429;retry-after=2; x-a = b=c;body={\"a\":\";\"}".parse().unwrap();
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        let headers: Vec<(&str, &str)> =
            answer.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("retry-after", "2"), ("x-a", "b=c")]);
        assert_eq!(answer.body, "{\"a\":\";\"}");
        assert_eq!("503".parse::<Answer>().unwrap().body, "");
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for (text, told) in [
            ("", "begins with its status"),
            ("ok", "begins with its status"),
            ("100", "200 to 599"),
            ("200;x", "neither HEADER=VALUE nor body=TEXT"),
            ("200;a b=c", "no name of a header"),
            ("200;a=b\u{1}c", "no value of a header"),
        ] {
            let error = text.parse::<Answer>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
