//! The handshake phase: HELO, PING and PONG, as bytes. Pure, but for the random nonce.
//!
//! Specification, "Handshake Messages". Both sides show that they know the shared key by a SHA-512 over it, a salt of the client, a nonce of the
//! server, and a host name; a user shows its password by one over a salt of the server.

use std::sync::Arc;

use rmp::encode as pack;
use sha2::{Digest, Sha512};

use super::fault::Fault;
use super::msgpack::{Head, Reader};
use crate::config::{ForwardSecurity, ForwardUser};

/// No PING is longer: six short texts.
pub(crate) const LONGEST_PING: usize = 16 << 10;

/// What a connection's HELO has, and its PING is checked against.
#[derive(Debug)]
pub(crate) struct Challenge {
    nonce: String,
    /// Empty where no user is asked for.
    auth_salt: String,
}

/// A PING that is accepted: what the sender is told, and whose its records are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) pong: Vec<u8>,
    pub(crate) tenant: Option<Arc<str>>,
}

/// A PING that is not accepted: what is logged, and what the sender is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) why: String,
    pub(crate) pong: Vec<u8>,
}

impl Challenge {
    pub(crate) fn new(security: &ForwardSecurity) -> Self {
        let random = || hex::encode(rand::random::<[u8; 16]>());
        let auth_salt = if security.users.is_empty() { String::new() } else { random() };
        Self { nonce: random(), auth_salt }
    }

    /// `["HELO", {"nonce": …, "auth": …, "keepalive": true}]`. Both texts are sent as bin, as Fluentd does, but are ASCII, so that a client that
    /// takes them for str hashes the same bytes.
    pub(crate) fn helo(&self) -> Vec<u8> {
        let mut out = Vec::new();
        list(&mut out, 2);
        text(&mut out, "HELO");
        map(&mut out, 3);
        text(&mut out, "nonce");
        binary(&mut out, &self.nonce);
        text(&mut out, "auth");
        binary(&mut out, &self.auth_salt);
        text(&mut out, "keepalive");
        boolean(&mut out, true);
        out
    }

    /// Reads a PING, and gives the PONG that accepts it.
    pub(crate) fn answer(&self, ping: &[u8], security: &ForwardSecurity) -> Result<Accepted, Denied> {
        let ping = Ping::read(ping).map_err(|fault| denied("the message is no PING", fault.to_string()))?;
        let key = security.shared_key.expose();
        let expected = digest([ping.salt, ping.hostname, self.nonce.as_bytes(), key.as_bytes()]);
        let shown = || crate::capability::one_line(&String::from_utf8_lossy(ping.hostname), 100);
        if !same(&expected, ping.key_digest) {
            return Err(denied("shared_key mismatch", format!("{:?} has another shared_key", shown())));
        }
        let user = self.user(&ping, security);
        if !security.users.is_empty() && user.is_none() {
            let user = crate::capability::one_line(&String::from_utf8_lossy(ping.username), 100);
            let why = format!("{:?} has no such user and password: {user:?}", shown());
            return Err(denied("username/password mismatch", why));
        }
        let hostname = &security.self_hostname;
        let digest = digest([ping.salt, hostname.as_bytes(), self.nonce.as_bytes(), key.as_bytes()]);
        Ok(Accepted { pong: pong(true, "", hostname, &digest), tenant: user.and_then(|user| user.tenant.clone()) })
    }

    /// The one of our users that it is. Each is looked at, so that the time says nothing of names.
    fn user<'a>(&self, ping: &Ping<'_>, security: &'a ForwardSecurity) -> Option<&'a ForwardUser> {
        security.users.iter().fold(None, |known, user| {
            let name = user.username.as_bytes();
            let expected = digest([self.auth_salt.as_bytes(), name, user.password.expose().as_bytes()]);
            let is_this = same(name, ping.username) & same(expected.as_bytes(), ping.password_digest);
            if is_this { Some(user) } else { known }
        })
    }
}

/// `["PING", client_hostname, shared_key_salt, shared_key_hexdigest, username, password_hexdigest]`
struct Ping<'a> {
    hostname: &'a [u8],
    salt: &'a [u8],
    key_digest: &'a [u8],
    username: &'a [u8],
    password_digest: &'a [u8],
}

impl<'a> Ping<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        let mut from = Reader::new(bytes);
        if from.head()? != Head::List(6) || from.text("PING should be here")? != b"PING" {
            return Err(Fault::malformed(0, "a PING of six values should be here; is shared_key set at the sender?"));
        }
        let mut next = || from.text("a str should be here");
        Ok(Self { hostname: next()?, salt: next()?, key_digest: next()?, username: next()?, password_digest: next()? })
    }
}

fn denied(reason: &str, why: String) -> Denied {
    // "If auth_result is false, server_hostname and shared_key_hexdigest are empty."
    Denied { why, pong: pong(false, reason, "", "") }
}

/// `["PONG", auth_result, reason, server_hostname, shared_key_hexdigest]`
fn pong(accepted: bool, reason: &str, hostname: &str, digest: &str) -> Vec<u8> {
    let mut out = Vec::new();
    list(&mut out, 5);
    text(&mut out, "PONG");
    boolean(&mut out, accepted);
    for part in [reason, hostname, digest] {
        text(&mut out, part);
    }
    out
}

/// `{"ack": chunk}`. "Response Messages": the chunk goes back as it came.
pub(crate) fn ack(chunk: &[u8], out: &mut Vec<u8>) {
    map(out, 1);
    text(out, "ack");
    out.extend_from_slice(chunk);
}

fn digest<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// Whether both are the same, in a time that says nothing of where they differ.
fn same(ours: impl AsRef<[u8]>, theirs: &[u8]) -> bool {
    let ours = ours.as_ref();
    let differences = ours.iter().zip(theirs).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
    (ours.len() == theirs.len()) & (differences == 0)
}

// Writing into a Vec cannot fail.
fn list(out: &mut Vec<u8>, values: u32) {
    let _ = pack::write_array_len(out, values);
}
fn map(out: &mut Vec<u8>, pairs: u32) {
    let _ = pack::write_map_len(out, pairs);
}
fn text(out: &mut Vec<u8>, text: &str) {
    let _ = pack::write_str(out, text);
}
fn binary(out: &mut Vec<u8>, text: &str) {
    let _ = pack::write_bin(out, text.as_bytes());
}
fn boolean(out: &mut Vec<u8>, value: bool) {
    let _ = pack::write_bool(out, value);
}
