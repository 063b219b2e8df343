//! The `http` and `credentials` blocks, and grants of HTTP.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::config::{Credential, CredentialKind, HttpConfig, HttpDestination, LettersPlace, Secret, SecretSource};

fn at(text: &str) -> HttpDestination {
    HttpDestination::parse(text).unwrap()
}

fn given(text: &str) -> SecretSource {
    SecretSource::Given(Secret::new(text))
}

#[test]
fn http_is_read_and_has_the_documented_defaults() {
    let written = "http:\n  proxy: http://user:hush@proxy.example.com:3128\n  ca_file: /etc/ca.pem\n  connect_timeout: 3s\n  request_timeout: 2m\n  max_concurrent: 4";
    assert_eq!(
        parse(&top(written)).unwrap().http,
        HttpConfig {
            proxy: Some(Secret::new("http://user:hush@proxy.example.com:3128")),
            ca_file: Some("/etc/ca.pem".into()),
            connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(120),
            max_concurrent: 4,
        }
    );
    assert_eq!(
        parse(&top("")).unwrap().http,
        HttpConfig {
            proxy: None,
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            max_concurrent: 16,
        }
    );
}

#[test]
fn credentials_of_every_type_are_read() {
    let text = r#"
credentials:
  ingest: { type: bearer, token: "${NUMBER}", to: https://api.example.com }
  basic: { type: basic, user: wharf, password_file: /run/secrets/password, to: [https://a.example, "http://*.b.example:8080"] }
  key: { type: header, name: DD-API-KEY, value: 007, to: [https://a.example] }
  aws: { type: sigv4, service: aps, region: eu-west-1, to: [https://aps-workspaces.eu-west-1.amazonaws.com] }
"#;
    let credential = |name: &str, to: &[&str], kind| Credential {
        name: name.into(),
        to: to.iter().map(|text| at(text)).collect(),
        kind,
    };
    assert_eq!(
        parse(&top(text)).unwrap().credentials,
        [
            credential("ingest", &["https://api.example.com"], CredentialKind::Bearer { token: given("12345") }),
            credential(
                "basic",
                &["https://a.example", "http://*.b.example:8080"],
                CredentialKind::Basic {
                    user: "wharf".into(),
                    password: SecretSource::File(PathBuf::from("/run/secrets/password")),
                },
            ),
            credential(
                "key",
                &["https://a.example"],
                CredentialKind::Header { name: "dd-api-key".into(), value: given("007") },
            ),
            credential(
                "aws",
                &["https://aps-workspaces.eu-west-1.amazonaws.com"],
                CredentialKind::SigV4 { service: "aps".into(), region: Some("eu-west-1".into()) },
            ),
        ]
    );
}

#[test]
fn an_output_is_granted_destinations_addresses_and_credentials() {
    let text = output(
        "grants:\n  http: [https://api.example.com, { to: \"http://logs.internal:9000\", addresses: [10.0.0.0/8, \"fd00::1\"] }]\n  credentials: ingest",
    ) + "credentials: { ingest: { type: bearer, token: t, to: https://api.example.com } }\n";
    let grants = parse(&text).unwrap().outputs.remove(0).grants;
    let addresses = vec!["10.0.0.0/8".parse().unwrap(), "fd00::1/128".parse().unwrap()];
    assert_eq!(grants.http, [at("https://api.example.com"), at("http://logs.internal:9000").with_addresses(addresses)]);
    let names: Vec<&str> = grants.credentials.iter().map(|granted| &*granted.name).collect();
    assert_eq!(names, ["ingest"]);
    assert_eq!(grants.credentials[0].headers, ["authorization"]);
}

#[test]
fn one_destination_alone_stands_for_a_list_of_one() {
    for lines in ["grants: { http: \"https://a.example\" }", "grants: { http: { to: https://a.example } }"] {
        assert_eq!(parse(&output(lines)).unwrap().outputs[0].grants.http, [at("https://a.example")]);
    }
}

#[test]
fn what_is_wrong_with_http_is_told_with_its_remedy() {
    for (lines, told) in [
        ("http: { timeout: 5s }", "wharf.yaml:5:9: http: unknown key \"timeout\"; did you mean \"request_timeout\"?"),
        (
            "http: { proxy: \"socks5://hush@h:1\" }",
            "wharf.yaml:5:16: http.proxy: expected the URL of an HTTP proxy\n    help: write it as in http://proxy.example.com:3128, with user:password@ before the host where it wants them",
        ),
        (
            "http: { max_concurrent: 0 }",
            "wharf.yaml:5:25: http.max_concurrent: the number 0 is out of range; it must be 1 to 1024",
        ),
        (
            "credentials: { c: { token: t } }",
            "wharf.yaml:5:16: credentials.c: the key \"to\" is missing\n    help: name where it may be sent: to: [https://api.example.com]\n\
             wharf.yaml:5:16: credentials.c: the key \"type\" is missing\n    help: write type: bearer, basic, header or sigv4",
        ),
        (
            "credentials: { c: { type: baerer, to: https://a.example } }",
            "wharf.yaml:5:27: credentials.c.type: expected \"bearer\", \"basic\", \"header\" or \"sigv4\", found text \"baerer\"; did you mean \"bearer\"?",
        ),
        (
            "credentials: { c: { type: bearer, to: https://a.example } }",
            "wharf.yaml:5:16: credentials.c: the key \"token\" is missing\n    help: write token: ${VARIABLE}, or token_file: a path",
        ),
        (
            "credentials: { c: { type: bearer, token: hush, token_file: /t, to: https://a.example } }",
            "wharf.yaml:5:60: credentials.c.token_file: is there beside \"token\", and only one of both can be",
        ),
        (
            "credentials: { c: { type: basic, user: \"a:b\", password: hush, to: https://a.example } }",
            "wharf.yaml:5:40: credentials.c.user: has a colon, and no user name has (RFC 7617)\n    help: write the password with \"password\"",
        ),
        (
            "credentials: { c: { type: header, name: Host, value: hush, to: https://a.example } }",
            "wharf.yaml:5:41: credentials.c.name: expected the name of a header, found text \"Host\"\n    help: write it as in x-api-key; host, content-length, connection, proxy-… and the like are Wharf's own",
        ),
        (
            "credentials: { c: { type: bearer, token: t, to: [] } }",
            "wharf.yaml:5:49: credentials.c.to: is empty\n    help: name where it may be sent, for example https://api.example.com",
        ),
        (
            "credentials: { c: { type: bearer, token: t, to: [https://u:hush@a.example] } }",
            "wharf.yaml:5:50: credentials.c.to[0]: expected a destination\n    help: it has a user or password: those belong into \"credentials\"",
        ),
        (
            "credentials: { c: { type: bearer, token: null, to: [https://.x, \"http://a..b\"] } }",
            "wharf.yaml:5:16: credentials.c: the key \"token\" is missing\n    help: write token: ${VARIABLE}, or token_file: a path\n\
             wharf.yaml:5:53: credentials.c.to[0]: expected a destination\n    help: its host is no name that a machine can have: labels of 1 to 63 characters with dots between, 253 in all\n\
             wharf.yaml:5:65: credentials.c.to[1]: expected a destination\n    help: its host is no name that a machine can have: labels of 1 to 63 characters with dots between, 253 in all",
        ),
        (
            "credentials: { c: hush }",
            "wharf.yaml:5:19: credentials.c: expected a map of keys\n    help: write { type: bearer, token_file: PATH, to: [https://api.example.com] }",
        ),
        (
            "http: { proxy: \"http://a.example:0\" }",
            "wharf.yaml:5:16: http.proxy: expected the URL of an HTTP proxy\n    help: write it as in http://proxy.example.com:3128, with user:password@ before the host where it wants them",
        ),
        (
            "credentials: { C: { type: bearer, token: t, to: https://a.example } }",
            "wharf.yaml:5:16: credentials: \"C\" cannot be the name of a credential\n    help: names have 1 to 64 of the characters a-z, 0-9, _ and -",
        ),
        (
            "credentials: { c: { type: sigv4, service: es, access_key_id: hush, to: https://a.example } }",
            "wharf.yaml:5:47: credentials.c: unknown key \"access_key_id\"; requests are signed with the output's AWS credentials: see \"aws\"",
        ),
    ] {
        assert_eq!(faults(&top(lines)), told, "{lines}");
    }
}

#[test]
fn what_is_wrong_with_grants_of_http_is_told_with_its_remedy() {
    for (grants, told) in [
        (
            "http: [api.example.com]",
            "wharf.yaml:7:22: outputs.archive.grants.http[0]: expected a destination\n    help: it has no scheme; write scheme, host and perhaps port: https://api.example.com or http://*.example.com:8080",
        ),
        (
            "http: [{ to: https://a.example, addresses: [10.0.0.0/33] }]",
            "wharf.yaml:7:59: outputs.archive.grants.http[0].addresses[0]: expected an address or a block of addresses, found text \"10.0.0.0/33\"\n    help: write it as in 10.0.0.0/8, fd00::/8 or 192.168.1.5",
        ),
        (
            "http: [{ to: https://a.example, addresses: [x, 10.0.0.0/8, [y]] }], credentials: [nobody, [z]]",
            "wharf.yaml:7:59: outputs.archive.grants.http[0].addresses[0]: expected an address or a block of addresses, found text \"x\"\n    help: write it as in 10.0.0.0/8, fd00::/8 or 192.168.1.5\n\
             wharf.yaml:7:74: outputs.archive.grants.http[0].addresses[2]: expected an address or a block of addresses, found a list\n    help: write it as in 10.0.0.0/8, fd00::/8 or 192.168.1.5\n\
             wharf.yaml:7:97: outputs.archive.grants.credentials[0]: there is no credential \"nobody\"\n    help: define it under \"credentials\" at the top level\n\
             wharf.yaml:7:105: outputs.archive.grants.credentials[1]: expected text, found a list",
        ),
        (
            "http: [{ host: https://a.example }]",
            "wharf.yaml:7:24: outputs.archive.grants.http[0]: unknown key \"host\"; did you mean \"to\"?",
        ),
        (
            "credentials: [nobody]",
            "wharf.yaml:7:29: outputs.archive.grants.credentials[0]: there is no credential \"nobody\"\n    help: define it under \"credentials\" at the top level",
        ),
        (
            "credentials: [\"${BUCKET}\"]",
            "wharf.yaml:7:29: outputs.archive.grants.credentials[0]: there is no credential of the name that the environment variable BUCKET holds\n    help: define it under \"credentials\" at the top level",
        ),
    ] {
        assert_eq!(faults(&output(&format!("grants: {{ {grants} }}"))), told, "{grants}");
    }
}

/// Whatever is wrong around it, and whether it is written in the file or comes from the environment.
#[test]
fn a_secret_is_in_no_fault_and_in_no_debug_output() {
    for value in ["\"hu\\u0001sh\"", "[hush]", "{ a: hush }", "\"${SIZE}\\u0001\""] {
        for (kind, key) in [("bearer", "token"), ("basic, user: u", "password"), ("header, name: x-key", "value")] {
            let lines =
                format!("credentials: {{ c: {{ type: {kind}, {key}: {value}, to: https://a.example, odd: 1 }} }}");
            let told = faults(&top(&lines));
            assert!(!told.contains("hush") && !told.contains("SECRET"), "{lines}: {told}");
            assert!(told.contains(&format!("credentials.c.{key}: ")), "{lines}: {told}");
        }
    }
    let text = top(
        "http: { proxy: \"http://u:hush@h:1\" }\ncredentials: { c: { type: bearer, token: hush, to: https://a.example } }",
    );
    let shown = format!("{:?}", parse(&text).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn a_credential_that_is_written_but_faulty_is_told_of_once_and_not_called_missing() {
    let credentials =
        "credentials:\n  key: { type: header, name: x-api-key, value: \"${NOT_SET}\", to: [https://a.example] }";
    let text = format!("{}{credentials}\n", output("grants: { credentials: [key] }"));
    let told = "wharf.yaml:9:48: credentials.key.value: the environment variable NOT_SET is not set\n    help: set it, or give a default: ${NOT_SET:-…}";
    assert_eq!(faults(&text), told);
    let text = text.replace("[key]", "[kye]");
    let told =
        "wharf.yaml:7:29: outputs.archive.grants.credentials[0]: there is no credential \"kye\"; did you mean \"key\"?";
    assert!(faults(&text).contains(told), "{}", faults(&text));
}

#[test]
fn where_dead_letters_are_is_known_without_the_variables_that_hold_secrets() {
    let place = |text: &str| LettersPlace::parse(text, "wharf.yaml".as_ref(), &|_| None);
    let rest = "credentials:\n  key: { type: bearer, token: \"${TOKEN}\", to: [https://a.example] }\naws: { region: \"${REGION}\" }\n";
    let text = format!("data_dir: /data\n{rest}{}", output("config: { bucket: \"${BUCKET}\" }\nworkers: \"${MANY}\""));
    let expected = LettersPlace { data_dir: "/data".into(), outputs: vec!["archive".into()] };
    assert_eq!(place(&text), Ok(expected));
    // But what it needs must be right, and nothing else may have been meant.
    for (wrong, told) in [
        ("data_dir: \"${DATA}\"", "wharf.yaml:1:11: data_dir: the environment variable DATA is not set"),
        ("data_dri: /data", "wharf.yaml:1:1: unknown key \"data_dri\"; did you mean \"data_dir\"?"),
        ("data_dir: [", "not YAML"),
    ] {
        let shown = place(&text.replace("data_dir: /data", wrong)).unwrap_err().to_string();
        assert!(shown.contains(told), "{shown}");
    }
}
