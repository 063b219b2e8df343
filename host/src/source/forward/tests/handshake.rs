//! HELO, PING and PONG (v1, "Handshake Messages"). The client here is written from the specification.

use sha2::{Digest, Sha512};

use super::pack::*;
use super::support::security;
use crate::source::forward::handshake::{Accepted, Challenge, Denied};
use crate::source::forward::msgpack::{Head, Reader};

/// What a HELO says: the nonce, and the salt for users.
pub(super) fn parse_helo(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut from = Reader::new(bytes);
    assert_eq!(from.head().unwrap(), Head::List(2));
    assert_eq!(from.text("").unwrap(), b"HELO");
    assert_eq!(from.head().unwrap(), Head::Map(3));
    assert_eq!(from.text("").unwrap(), b"nonce");
    let nonce = from.text("").unwrap().to_vec();
    assert_eq!(from.text("").unwrap(), b"auth");
    let auth = from.text("").unwrap().to_vec();
    assert_eq!(from.text("").unwrap(), b"keepalive");
    assert_eq!(from.head().unwrap(), Head::Bool(true));
    assert!(from.is_empty());
    (nonce, auth)
}

fn sha512_hex(parts: &[&[u8]]) -> String {
    hex::encode(Sha512::digest(parts.concat()))
}

/// "shared_key_hexdigest: sha512_hex(shared_key_salt + client_hostname + nonce + shared_key)", "password: sha512_hex(auth_salt + username + raw
/// password)".
pub(super) fn ping(helo: &[u8], key: &str, user: &str, password: &str) -> Vec<u8> {
    let (nonce, auth) = parse_helo(helo);
    let key_digest = sha512_hex(&[b"salt", b"client.local", &nonce, key.as_bytes()]);
    let password_digest = match user {
        "" => String::new(),
        user => sha512_hex(&[&auth, user.as_bytes(), password.as_bytes()]),
    };
    list(&[text("PING"), text("client.local"), text("salt"), text(&key_digest), text(user), text(&password_digest)])
}

/// "PONG": accepted, with "sha512_hex(shared_key_salt + server_hostname + nonce + shared_key)".
pub(super) fn accepting_pong(helo: &[u8], key: &str) -> Vec<u8> {
    let digest = sha512_hex(&[b"salt", b"server.local", &parse_helo(helo).0, key.as_bytes()]);
    list(&[text("PONG"), boolean(true), text(""), text("server.local"), text(&digest)])
}

/// "PONG": "if auth_result is false", both are empty.
pub(super) fn denying_pong(reason: &str) -> Vec<u8> {
    list(&[text("PONG"), boolean(false), text(reason), text(""), text("")])
}

#[test]
fn a_client_with_the_key_is_accepted_and_told_that_the_server_has_it_too() {
    let security = security(&[]);
    let challenge = Challenge::new(&security);
    let helo = challenge.helo();
    // "auth: … empty string if user authentication is not required".
    assert_eq!(parse_helo(&helo).1, b"");
    let pong = challenge.answer(&ping(&helo, "geheim", "", ""), &security);
    assert_eq!(pong, Ok(Accepted { pong: accepting_pong(&helo, "geheim"), tenant: None }));
}

#[test]
fn a_user_with_its_password_is_accepted() {
    let security = security(&[("alice", "pw"), ("bob", "other")]);
    let challenge = Challenge::new(&security);
    let helo = challenge.helo();
    for (user, password) in [("alice", "pw"), ("bob", "other")] {
        let pong = challenge.answer(&ping(&helo, "geheim", user, password), &security);
        assert_eq!(pong, Ok(Accepted { pong: accepting_pong(&helo, "geheim"), tenant: None }), "{user}");
    }
}

#[test]
fn everybody_else_is_told_why_not_and_nothing_more() {
    let with_users = security(&[("alice", "pw"), ("bob", "other")]);
    let challenge = Challenge::new(&with_users);
    let helo = challenge.helo();
    let denied = |ping: &[u8]| challenge.answer(ping, &with_users).unwrap_err();
    for (key, user, password, reason) in [
        ("falsch", "alice", "pw", "shared_key mismatch"),
        ("", "alice", "pw", "shared_key mismatch"),
        ("geheim", "alice", "other", "username/password mismatch"),
        ("geheim", "eve", "pw", "username/password mismatch"),
        ("geheim", "", "", "username/password mismatch"),
    ] {
        let Denied { why, pong } = denied(&ping(&helo, key, user, password));
        assert_eq!(pong, denying_pong(reason), "{user}");
        assert!(why.contains("client.local") && !why.contains("geheim") && !why.contains("\"pw\""), "{why}");
    }
    // An answer to another connection's challenge is worth nothing here.
    let other = Challenge::new(&with_users).helo();
    assert_eq!(denied(&ping(&other, "geheim", "alice", "pw")).pong, denying_pong("shared_key mismatch"));
    for no_ping in [told("t", "x"), nil(), list(&[text("PING")]), list(&vec![text("PING"); 7]), vec![0xc1]] {
        assert_eq!(denied(&no_ping).pong, denying_pong("the message is no PING"));
    }
}

#[test]
fn a_digest_of_another_case_or_length_is_another() {
    let security = security(&[]);
    let challenge = Challenge::new(&security);
    let helo = challenge.helo();
    let digest = sha512_hex(&[b"salt", b"client.local", &parse_helo(&helo).0, b"geheim"]);
    for other in ["".to_owned(), digest[..127].to_owned(), format!("{digest}0"), digest.to_uppercase()] {
        let ping = list(&[text("PING"), text("client.local"), text("salt"), text(&other), text(""), text("")]);
        assert!(challenge.answer(&ping, &security).is_err());
    }
}

#[test]
fn texts_of_a_ping_may_be_bin() {
    let security = security(&[]);
    let challenge = Challenge::new(&security);
    let (nonce, _) = parse_helo(&challenge.helo());
    let salt = [0xff, 0x00, 0x80];
    let digest = sha512_hex(&[&salt, b"c", &nonce, b"geheim"]);
    let ping = list(&[text("PING"), binary(b"c"), binary(&salt), text(&digest), binary(b""), binary(b"")]);
    assert!(challenge.answer(&ping, &security).is_ok());
}

#[test]
fn no_two_challenges_are_alike() {
    let security = security(&[("alice", "pw")]);
    let said: std::collections::BTreeSet<_> = (0..50).map(|_| Challenge::new(&security).helo()).collect();
    assert_eq!(said.len(), 50);
}
