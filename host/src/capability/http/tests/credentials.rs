//! What the host adds, and where it does not get out.

use axum::response::IntoResponse as _;

use super::*;
use crate::capability::aws::testing::{Seen, serve};
use crate::config::{CredentialKind, Secret, SecretSource};

fn credential(name: &str, to: &str, kind: CredentialKind) -> Credential {
    Credential { name: name.into(), to: vec![HttpDestination::parse(to).unwrap()], kind }
}

fn given(text: &str) -> SecretSource {
    SecretSource::Given(Secret::new(text))
}

fn naming(credential: &str, url: &str) -> Request {
    Request { credential: Some(credential.into()), ..request("POST", url) }
}

/// What a server saw of one request that names the credential `c`.
async fn seen(kind: impl Fn() -> CredentialKind) -> Seen {
    let (url, seen) = serve(|_| "".into_response()).await;
    let mut output = Setup { credentials: vec![credential("c", &url, kind())], ..Setup::granted(&[&url]) }.start();
    assert_eq!(output.send(naming("c", &url)).await.unwrap().status, 200);
    seen.lock().unwrap().remove(0)
}

/// The second one is the example of RFC 7617, section 2.
#[tokio::test]
async fn each_type_of_credential_is_the_header_that_its_rfc_says() {
    let bearer = seen(|| CredentialKind::Bearer { token: given("mF_9.B5f-4.1JqM") }).await;
    assert_eq!(bearer.header("authorization"), Some("Bearer mF_9.B5f-4.1JqM"));
    let basic = seen(|| CredentialKind::Basic { user: "Aladdin".into(), password: given("open sesame") }).await;
    assert_eq!(basic.header("authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    let header = seen(|| CredentialKind::Header { name: "dd-api-key".into(), value: given("k 1") }).await;
    assert_eq!(header.header("dd-api-key"), Some("k 1"));
    let region = Some("eu-west-1".to_owned());
    let signed = seen(|| CredentialKind::SigV4 { service: "aps".into(), region: region.clone() }).await;
    let authorization = signed.header("authorization").unwrap();
    let beginning = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/";
    assert!(
        authorization.starts_with(beginning) && authorization.contains("/eu-west-1/aps/aws4_request, "),
        "{authorization}"
    );
    assert!(signed.header("x-amz-date").is_some());
}

#[tokio::test]
async fn a_credential_goes_nowhere_but_where_it_is_for_and_only_where_it_is_named() {
    let (own, own_seen) = serve(|_| "".into_response()).await;
    let (other, other_seen) = serve(|_| "".into_response()).await;
    let bearer = CredentialKind::Bearer { token: given("hush") };
    let mut output =
        Setup { credentials: vec![credential("c", &own, bearer)], ..Setup::granted(&[&own, &other]) }.start();
    let text = denied(output.send(naming("c", &other)).await);
    assert_eq!(text, format!("credential c is not for {other}: it may be sent to {own} (credentials.c.to)"));
    assert!(denied(output.send(naming("d", &own)).await).contains("credential \"d\" is not granted"));
    assert!(output.send(request("POST", &own)).await.is_ok());
    assert_eq!(own_seen.lock().unwrap().remove(0).header("authorization"), None);
    assert!(other_seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_header_that_the_credential_sets_cannot_be_given_too() {
    let (url, seen) = serve(|_| "".into_response()).await;
    let header = CredentialKind::Header { name: "x-key".into(), value: given("hush") };
    let mut output = Setup { credentials: vec![credential("c", &url, header)], ..Setup::granted(&[&url]) }.start();
    let asked = Request { headers: vec![("X-Key".into(), "own".into())], ..naming("c", &url) };
    let Err(Error::Host(HostError::Invalid(text))) = output.send(asked).await else { panic!("not refused") };
    assert!(text.contains("x-key"), "{text}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_secret_in_a_file_is_the_one_that_is_in_it_now() {
    let (url, seen) = serve(|_| "".into_response()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let bearer = CredentialKind::Bearer { token: SecretSource::File(path.clone()) };
    let mut output = Setup { credentials: vec![credential("c", &url, bearer)], ..Setup::granted(&[&url]) }.start();
    for token in ["first", "second"] {
        std::fs::write(&path, format!("{token}\n")).unwrap();
        output.send(naming("c", &url)).await.unwrap();
        let expected = format!("Bearer {token}");
        assert_eq!(seen.lock().unwrap().remove(0).header("authorization"), Some(&*expected));
    }
    for (content, cause) in [
        (&b""[..], "it is empty"),
        (b"two\nlines", "it has more than one line"),
        (b"\xff", "it is no UTF-8 text"),
        (&[b'x'; 9000], "it has more than 8192 bytes"),
    ] {
        std::fs::write(&path, content).unwrap();
        let Err(Error::Credentials(text)) = output.send(naming("c", &url)).await else { panic!("it was sent") };
        assert!(text.starts_with("credential c cannot be used: reading ") && text.contains(cause), "{text}");
    }
    std::fs::remove_file(&path).unwrap();
    let Err(Error::Credentials(text)) = output.send(naming("c", &url)).await else { panic!("it was sent") };
    assert!(text.contains("No such file"), "{text}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn no_secret_is_in_an_error_or_in_debug_output() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}");
    let kinds = [
        CredentialKind::Bearer { token: given("hush-1") },
        CredentialKind::Basic { user: "u".into(), password: given("hush-2") },
        CredentialKind::Header { name: "x-key".into(), value: given("hush-3") },
        CredentialKind::Bearer { token: given("hush\n-4") },
    ];
    for kind in kinds {
        let one = credential("c", &url, kind);
        assert!(!format!("{one:?}").contains("hush"));
        let aws = Connection::for_settings(&AwsConfig::default());
        let network = Network::new(HttpConfig::default(), Credentials::new(vec![one.clone()], aws));
        assert!(!format!("{network:?}").contains("hush"));
        let mut output = Setup { credentials: vec![one], ..Setup::granted(&[&url]) }.start();
        let error = output.send(naming("c", &url)).await.unwrap_err();
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_sends_a_secret_back_does_not_give_it_to_the_guest() {
    let (url, _) = serve(|seen| {
        let authorization = seen.header("authorization").unwrap_or_default().to_owned();
        ([("x-echo", authorization.clone())], format!("you sent {authorization}")).into_response()
    })
    .await;
    for (kind, body) in [
        (CredentialKind::Bearer { token: given("hush-hush") }, "you sent Bearer *********"),
        (
            CredentialKind::Basic { user: "Aladdin".into(), password: given("open sesame") },
            "you sent Basic ****************************",
        ),
        (
            CredentialKind::Header { name: "authorization".into(), value: given("Splunk hush-hush") },
            "you sent ****************",
        ),
    ] {
        let mut output = Setup { credentials: vec![credential("c", &url, kind)], ..Setup::granted(&[&url]) }.start();
        let answer = output.send(naming("c", &url)).await.unwrap();
        assert_eq!(String::from_utf8(answer.body).unwrap(), body);
        assert!(answer.headers.contains(&("x-echo".into(), body.replace("you sent ", ""))), "{:?}", answer.headers);
    }
}
