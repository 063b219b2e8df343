//! `type: forward`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::config::{ForwardConfig, ForwardTag, SourceKind, TlsConfig};

fn tls(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name).display().to_string()
}

fn forward(lines: &str) -> ForwardConfig {
    let config = parse(&source(&format!("type: forward\n{lines}"))).unwrap();
    let SourceKind::Forward(forward) = config.sources[0].kind.clone() else { panic!("a forward source") };
    *forward
}

fn fault(lines: &str) -> String {
    faults(&source(&format!("type: forward\n{lines}")))
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let forward = forward("listen: 127.0.0.1:24224");
    assert_eq!(forward.listen, Some("127.0.0.1:24224".parse().unwrap()));
    assert_eq!((forward.unix_path, forward.unix_perm, forward.tls, forward.security), (None, None, None, None));
    assert_eq!(forward.tag, ForwardTag::Sent { prefix: String::new() });
    assert_eq!(forward.metadata_key.as_deref(), Some("metadata"));
    assert_eq!((forward.max_message_bytes, forward.max_connections), (67_108_864, 1024));
    assert_eq!((forward.handshake_timeout, forward.idle_timeout), (Duration::from_secs(10), None));
    assert!(!forward.udp_heartbeat);
}

#[test]
fn every_key_is_read() {
    let forward = forward(&format!(
        "listen: 0.0.0.0:24224\nunix_path: /run/wharf/forward.sock\nunix_perm: \"0660\"\ntag_prefix: edge.\n\
         tls: {{ cert_file: {}, key_file: {}, client_ca_file: {} }}\nshared_key: \"${{SEVEN}}\"\nself_hostname: here\n\
         users:\n  - {{ username: alice, password: \"123\" }}\n  - {{ username: bob, password: \"${{NUMBER}}\" }}\n\
         udp_heartbeat: true\nmetadata_key: meta\nmax_message_size: 1MiB\nhandshake_timeout: 2s\nidle_timeout: 1h\nmax_connections: 9",
        tls("server.pem"),
        tls("server.key.pem"),
        tls("ca.pem")
    ));
    assert_eq!(forward.listen, Some("0.0.0.0:24224".parse().unwrap()));
    assert_eq!(forward.unix_path.as_deref(), Some(Path::new("/run/wharf/forward.sock")));
    assert_eq!(forward.unix_perm, Some(0o660));
    assert_eq!(forward.tag, ForwardTag::Sent { prefix: "edge.".into() });
    let files = TlsConfig {
        cert_file: tls("server.pem").into(),
        key_file: tls("server.key.pem").into(),
        client_ca_file: Some(tls("ca.pem").into()),
    };
    assert_eq!(forward.tls, Some(files));
    let security = forward.security.unwrap();
    assert_eq!((security.shared_key.expose(), security.self_hostname.as_str()), ("7", "here"));
    let users: Vec<_> = security.users.iter().map(|u| (u.username.as_str(), u.password.expose())).collect();
    assert_eq!(users, [("alice", "123"), ("bob", "12345")]);
    assert!(forward.udp_heartbeat);
    assert_eq!(forward.metadata_key.as_deref(), Some("meta"));
    assert_eq!((forward.max_message_bytes, forward.max_connections), (1_048_576, 9));
    let hour = Some(Duration::from_secs(3600));
    assert_eq!((forward.handshake_timeout, forward.idle_timeout), (Duration::from_secs(2), hour));
}

#[test]
fn a_tag_stands_in_place_of_those_that_are_sent() {
    assert_eq!(forward("listen: 127.0.0.1:0\ntag: mine").tag, ForwardTag::OfSource);
    assert_eq!(
        fault("listen: 127.0.0.1:0\ntag: mine\ntag_prefix: edge."),
        "wharf.yaml:8:17: sources.app.tag_prefix: there is a \"tag\" as well\n    \
         help: \"tag\" stands in place of the tags that are sent: leave one of them out"
    );
}

#[test]
fn metadata_can_be_left_out_and_users_may_have_no_shared_key() {
    assert_eq!(forward("listen: 127.0.0.1:0\nmetadata_key: \"\"").metadata_key, None);
    let security = forward("listen: 127.0.0.1:0\nusers: { username: a, password: b }").security.unwrap();
    assert_eq!((security.shared_key.expose(), security.users.len()), ("", 1));
    assert!(!security.self_hostname.is_empty());
}

#[test]
fn it_has_to_listen_somewhere() {
    assert_eq!(
        fault("max_connections: 5"),
        "wharf.yaml:4:3: sources.app: the key \"listen\" is missing\n    \
         help: write for example listen: 127.0.0.1:24224, or unix_path: /run/wharf/forward.sock"
    );
    assert!(forward("unix_path: /run/x").listen.is_none());
    assert_eq!(
        fault("unix_path: /run/x\nudp_heartbeat: true"),
        "wharf.yaml:7:20: sources.app.udp_heartbeat: there is no \"listen\" that it could be for"
    );
    assert_eq!(
        fault("listen: 127.0.0.1:0\nunix_perm: \"0660\"\nself_hostname: x"),
        "wharf.yaml:7:16: sources.app.unix_perm: there is no \"unix_path\" that it could be for\n\
         wharf.yaml:8:20: sources.app.self_hostname: there is no \"shared_key\" that it could be for"
    );
}

#[test]
fn permissions_and_tags_are_looked_at() {
    for perm in ["\"999\"", "\"rw\"", "\"77777\""] {
        let shown = perm.trim_matches('"');
        assert_eq!(
            fault(&format!("unix_path: /run/x\nunix_perm: {perm}")),
            format!(
                "wharf.yaml:7:16: sources.app.unix_perm: expected permissions such as \"0660\", found text {shown:?}\n    \
                 help: write it in octal and quotes, for example unix_perm: \"0660\""
            )
        );
    }
    assert!(fault("listen: 127.0.0.1:0\ntag_prefix: a b").contains("expected a text without blanks"));
    assert!(fault("listen: 127.0.0.1:0\nmetadata_key: [a, b]").contains("is more than one key"));
}

#[test]
fn what_is_wrong_with_tls_files_is_told_at_the_file() {
    let with = |cert: &str, key: &str, more: &str| {
        fault(&format!("listen: 127.0.0.1:0\ntls:\n  cert_file: {cert}\n  key_file: {key}{more}"))
    };
    let (cert, key) = (tls("server.pem"), tls("server.key.pem"));
    let text = tls("make.sh");
    for (faults, place, says) in [
        (with("/nowhere.pem", &key, ""), "8:18: sources.app.tls.cert_file", "text \"/nowhere.pem\" cannot be read: "),
        (with(&cert, "/nowhere.key", ""), "9:17: sources.app.tls.key_file", "name a PEM file that Wharf may read"),
        (with(&text, &key, ""), "8:18: sources.app.tls.cert_file", "has no certificate"),
        (with(&cert, &cert, ""), "9:17: sources.app.tls.key_file", "has no private key"),
        (
            with(&cert, &tls("client.key.pem"), ""),
            "9:17: sources.app.tls.key_file",
            "is not the key of the certificate in cert_file",
        ),
        (
            with(&cert, &key, &format!("\n  client_ca_file: {text}")),
            "10:23: sources.app.tls.client_ca_file",
            "has no certificate",
        ),
    ] {
        assert!(faults.starts_with(&format!("wharf.yaml:{place}: ")) && faults.contains(says), "{faults}");
        assert_eq!(faults.matches("wharf.yaml").count(), 1, "{faults}");
    }
    // Each file's own fault at once.
    assert_eq!(with("/nowhere.pem", "/nowhere.key", "").matches("cannot be read").count(), 2);
    assert_eq!(
        fault("listen: 127.0.0.1:0\ntls: {}"),
        "wharf.yaml:7:5: sources.app.tls: the key \"cert_file\" is missing\n    help: name the PEM file of the server's certificate\n\
         wharf.yaml:7:5: sources.app.tls: the key \"key_file\" is missing\n    help: name the PEM file of its private key"
    );
    assert!(fault("listen: 127.0.0.1:0\ntls: { crt_file: a, key_file: b }").contains("did you mean \"cert_file\"?"));
}

#[test]
fn secrets_are_not_shown_whatever_is_wrong_with_them() {
    for (lines, expected) in [
        ("shared_key: [hush]", "sources.app.shared_key: expected text, found a list"),
        ("shared_key: \"\"", "sources.app.shared_key: is empty"),
        ("users: hush", "sources.app.users: expected a list of { username, password }"),
        ("users: [hush]", "sources.app.users[0]: expected { username, password }"),
        (
            "users: [{ username: a, password: { hush: hush } }]",
            "sources.app.users[0].password: expected text, found a map",
        ),
        ("users: [{ username: a }]", "sources.app.users[0]: the key \"password\" is missing"),
    ] {
        let faults = fault(&format!("listen: 127.0.0.1:0\n{lines}"));
        assert!(faults.contains(expected), "{faults}");
        assert!(!faults.contains("hush"), "{faults}");
    }
    // What looks like a number is the text that is written.
    let number = forward("listen: 127.0.0.1:0\nshared_key: 0918273");
    assert_eq!(number.security.unwrap().shared_key.expose(), "0918273");
    let forward = forward("listen: 127.0.0.1:0\nshared_key: hush\nusers: [{ username: a, password: husch }]");
    let shown = format!("{forward:?}");
    assert!(!shown.contains("hush") && !shown.contains("husch"), "{shown}");
}

#[test]
fn names_that_fluentd_and_fluent_bit_use_are_answered_with_ours() {
    let faults = fault("listen: 127.0.0.1:24224\nbuffer_max_size: 6MB\nsecurity: { shared_key: hush }\ntransport: tls");
    for part in [
        "did you mean \"max_message_size\"?",
        "write \"shared_key\" and \"users\" without it",
        "write tls: { cert_file, key_file }",
    ] {
        assert!(faults.contains(part), "{faults}");
    }
    assert!(!faults.contains("hush"), "{faults}");
}

#[test]
fn it_shares_no_address() {
    let text = "sources:\n  a: { type: http, listen: 127.0.0.1:24224 }\n  b: { type: forward, listen: 127.0.0.1:24224 }\n\
                outputs:\n  archive: { plugin: s3, match: \"*\" }\n";
    assert_eq!(
        faults(text),
        "wharf.yaml:3:31: sources.b.listen: 127.0.0.1:24224 is taken: source a listens on 127.0.0.1:24224\n    help: give each its own port"
    );
}

/// unix(7): `sun_path` has 108 bytes, with the NUL at its end. Bytes are counted, not characters.
#[test]
fn a_socket_has_a_path_that_the_system_takes() {
    let path = |bytes: usize| format!("/run/{}", "s".repeat(bytes - 5));
    assert_eq!(forward(&format!("unix_path: {}", path(107))).unix_path, Some(path(107).into()));
    let expected = "sources.app.unix_path: has 108 bytes, and the path of a Unix socket has at most 107\n    help: put it in a folder with a short name, such as /run/wharf";
    assert!(
        fault(&format!("unix_path: {}", path(108))).contains(expected),
        "{}",
        fault(&format!("unix_path: {}", path(108)))
    );
    let umlauts = format!("unix_path: /run/{}", "\u{fc}".repeat(52));
    assert!(fault(&umlauts).contains("has 109 bytes"), "{}", fault(&umlauts));
    let syslog = faults(&source(&format!("type: syslog\nunix_path: {}", path(200))));
    assert!(syslog.contains("unix_path: has 200 bytes"), "{syslog}");
}
