//! Tokens, and whose the records are that come with them.

use super::*;
use crate::config::{HttpToken, Secret, SecretSource};

pub(super) const ACME: &str = "acme-token-0123456789";
pub(super) const OWN: &str = "own-token-0123456789";

pub(super) fn given(token: &str, tenant: Option<&str>) -> HttpToken {
    HttpToken { token: SecretSource::Given(Secret::new(token)), tenant: tenant.map(Arc::from) }
}

fn server(tokens: Vec<HttpToken>) -> Server {
    Server::start_with(|http| http.tokens = tokens)
}

pub(super) fn with(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

#[tokio::test]
async fn records_are_those_of_the_tenant_whose_token_a_request_carries() {
    let server = server(vec![given(ACME, Some("acme")), given(OWN, None)]);
    assert_eq!(server.post(&[&with(ACME)], "a").await.status, 200);
    assert_eq!(server.post(&[&with(OWN)], "b").await.status, 200);
    // RFC 9110, 11.1: the scheme's name is the same in any case.
    assert_eq!(server.post(&[&format!("authorization: BEARER  {ACME}")], "c").await.status, 200);
    let line = |tenant: Option<&str>, text: &str| (tenant.map(str::to_owned), vec![text.to_owned()]);
    assert_eq!(server.sink.by_tenant(), [line(Some("acme"), "a"), line(None, "b"), line(Some("acme"), "c")]);
    server.stop().await;
}

#[tokio::test]
async fn a_token_that_two_tenants_have_in_their_files_is_nobodys() {
    let dir = tempfile::tempdir().unwrap();
    let of_file = |name: &str, tenant: &str| {
        std::fs::write(dir.path().join(name), "the-same-long-token-of-both\n").unwrap();
        HttpToken { token: SecretSource::File(dir.path().join(name)), tenant: Some(tenant.into()) }
    };
    let server = server(vec![of_file("a", "acme"), of_file("b", "globex"), of_file("c", "acme")]);
    assert_eq!(server.post(&[&with("the-same-long-token-of-both")], "x").await.status, 401);
    assert!(server.sink.chunks().is_empty());
    // One that a tenant has twice is that tenant's.
    std::fs::write(dir.path().join("b"), "another-long-token-of-globex\n").unwrap();
    let server = self::server(vec![of_file("a", "acme"), of_file("c", "acme")]);
    assert_eq!(server.post(&[&with("the-same-long-token-of-both")], "x").await.status, 200);
}

/// RFC 6750, section 3 and 3.1: a request without a token is told the scheme alone, one with a wrong token `invalid_token`.
#[tokio::test]
async fn a_request_without_a_known_token_is_refused_and_told_how_to_send_one() {
    let server = server(vec![given(ACME, Some("acme"))]);
    let others = [format!("{ACME}x"), ACME[..ACME.len() - 1].to_owned(), ACME.to_uppercase()].map(|it| with(&it));
    let (needed, invalid) = ("Bearer realm=\"wharf\"", "Bearer realm=\"wharf\", error=\"invalid_token\"");
    let both = [with(ACME), with(OWN)];
    for (headers, challenge) in [
        (vec![], needed),
        (vec!["Authorization: Basic YWNtZTphY21l"], needed),
        (vec!["Authorization: Bearer "], needed),
        (vec!["Authorization: Bearer"], needed),
        // Which one counts is for nobody to guess.
        (both.iter().map(String::as_str).collect(), needed),
        (vec![&others[0]], invalid),
        (vec![&others[1]], invalid),
        (vec![&others[2]], invalid),
    ] {
        let answer = server.post(&headers, "x").await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{headers:?}");
        assert!(!answer.error().contains(ACME));
    }
    // Nor does it learn what would be taken.
    let answer = Client::connect(server.address).await.request("GET", &[], b"").await;
    assert_eq!(answer.status, 401);
    assert_eq!(server.sink.refused()["auth"], 9);
    assert!(server.sink.chunks().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_token_that_is_replaced_in_its_file_is_known_at_the_first_request_that_carries_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token = HttpToken { token: SecretSource::File(file.clone()), tenant: Some("acme".into()) };
    // A file that is not there yet keeps nobody from starting.
    let server = server(vec![token, given(OWN, None)]);
    assert_eq!(server.post(&[&with("first-0123456789abc")], "x").await.status, 401);
    for token in ["first-0123456789abc", "second-0123456789ab"] {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        // Whoever sends what is not known keeps nobody's token from being known.
        assert_eq!(server.post(&[&with("wrong-0123456789ab")], "x").await.status, 401);
        std::fs::write(&file, format!("{token}-after\n")).unwrap();
        assert_eq!(server.post(&[&with(&format!("{token}-after"))], token).await.status, 200, "at the first request");
        std::fs::write(&file, format!("{token}\n")).unwrap();
        assert_eq!(server.post(&[&with(token)], token).await.status, 200, "at the first request");
        // Of the same length, and perhaps in the same tick of the file system's clock.
        let alike = token.to_uppercase();
        std::fs::write(&file, format!("{alike}\n")).unwrap();
        assert_eq!(server.post(&[&with(&alike)], token).await.status, 200, "at the first request");
        std::fs::write(&file, format!("{token}\n")).unwrap();
        assert_eq!(server.post(&[&with(token)], token).await.status, 200, "at the first request");
    }
    assert_eq!(server.post(&[&with("first-0123456789abc")], "x").await.status, 401);
    assert_eq!(server.post(&[&with(OWN)], "x").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_tenant_at_its_limit_is_told_so_and_when_to_come_again() {
    let server = server(vec![given(ACME, Some("acme"))]);
    let at = crate::intake::AtLimit {
        tenant: "acme".into(),
        limit: crate::intake::Limit::IngestBytes,
        most: 1_000_000,
        current: 900_000,
        requested: 200_000,
        retry_after: Duration::from_millis(1_100),
    };
    server.sink.refuse_next(Refused::AtLimit(Box::new(at)));
    let answer = server.post(&[&with(ACME)], "x").await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
    let said = "tenant acme is at its limit: limits.ingest.bytes allows 1 MB at once, 900 KB of it are used, and 200 KB more were to come; \
                nothing of this request was taken, send it again";
    assert_eq!(answer.error(), said);
    assert_eq!(server.sink.refused()["tenant_ingest"], 1);
    assert_eq!(server.post(&[&with(ACME)], "x").await.status, 200);
    server.stop().await;
}
