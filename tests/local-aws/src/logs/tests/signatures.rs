//! Who is let in.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::*;
use crate::logs::Signatures;

fn code_with(change: impl FnOnce(&mut Client)) -> String {
    let (_logs, mut client) = server();
    change(&mut client);
    client.code("PutLogEvents", &put_of(&at(&[NOW])))
}

#[test]
fn only_a_request_that_was_signed_with_the_right_secret_is_let_in() {
    assert_eq!(code_with(|_| {}), "ok");
    assert_eq!(code_with(|client| client.secret_key = "wrong".into()), "InvalidSignatureException");
    assert_eq!(code_with(|client| client.access_key = "nobody".into()), "UnrecognizedClientException");
    assert_eq!(code_with(|client| client.region = "eu-central-1".into()), "InvalidSignatureException");
    assert_eq!(code_with(|client| client.service = "s3".into()), "InvalidSignatureException");
    let other = put_of(&at(&[NOW + 1])).to_string();
    assert_eq!(code_with(|client| client.forged_body = Some(other)), "InvalidSignatureException");
}

#[test]
fn a_signature_is_good_for_five_minutes() {
    let ago = |minutes: u64| Some(SystemTime::now() - Duration::from_secs(minutes * 60));
    assert_eq!(code_with(|client| client.time = ago(4)), "ok");
    assert_eq!(code_with(|client| client.time = ago(6)), "InvalidSignatureException");
}

#[test]
fn all_headers_that_were_signed_count() {
    let headers = [("user-agent", "boto3"), ("x-amzn-trace-id", "Root=1"), ("x-amz-odd", "a  b")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(code_with(|client| client.headers = headers.to_vec()), "ok");
}

#[test]
fn any_key_will_do_where_that_was_asked_for() {
    let (_logs, mut client) = server_with(Options { signatures: Signatures::AnyKey, ..Options::default() });
    (client.access_key, client.secret_key) = ("AKIAEXAMPLE".into(), "anything".into());
    assert_eq!(client.code("PutLogEvents", &put_of(&at(&[NOW]))), "ok");
}

#[test]
fn refused_requests_are_on_record_with_their_reason() {
    let (logs, mut client) = server();
    client.code("PutLogEvents", &put_of(&json!([])));
    client.secret_key = "wrong".into();
    client.code("PutLogEvents", &put_of(&at(&[NOW])));
    let refused = logs.refused();
    let codes: Vec<_> = refused.iter().map(|request| request.code.as_deref().unwrap()).collect();
    assert_eq!(codes, ["InvalidParameterException", "InvalidSignatureException"]);
    assert_eq!((refused[1].group.as_str(), refused[1].stream.as_str(), refused[1].events), ("g", "s", 1));
    assert_eq!(logs.requests().len(), 3, "with the one that made the stream");
}
