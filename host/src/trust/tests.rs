//! Keys and signatures held against OpenSSL, and against worked examples of the specifications.

use std::path::Path;
use std::process::Command;

use super::simple_signing::{Signed, payload, signer};
use super::*;

fn openssl(folder: &Path, arguments: &str) {
    let ended = Command::new("openssl").current_dir(folder).args(arguments.split(' ')).output().unwrap();
    assert!(ended.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&ended.stderr));
}

fn keys(keys: &[&PublicKey]) -> TrustedKeys {
    TrustedKeys::new(keys.iter().map(|key| TrustedKey { key: (*key).clone(), file: None }).collect())
}

fn read(folder: &Path, file: &str) -> Vec<u8> {
    std::fs::read(folder.join(file)).unwrap()
}

fn text(folder: &Path, file: &str) -> String {
    String::from_utf8(read(folder, file)).unwrap()
}

/// RFC 8032, section 7.1, test 3: the key, two bytes, and their signature. Its SubjectPublicKeyInfo is RFC 8410's twelve bytes before the key.
#[test]
fn the_worked_example_of_rfc_8032_is_taken_and_one_with_another_message_is_not() {
    let spki = "302a300506032b6570032100fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
    let der = hex::decode(spki).unwrap();
    let pem =
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", aws_smithy_types::base64::encode(&der));
    let signature = hex::decode(
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    )
    .unwrap();
    let (key, signature) = (PublicKey::from_pem(&pem).unwrap(), Signature::parse(&signature).unwrap());
    assert!(key.has_signed(&[0xaf, 0x82], &signature));
    assert!(!key.has_signed(&[0xaf, 0x83], &signature));
    assert_eq!(key.fingerprint(), {
        use sha2::Digest as _;
        hex::encode(sha2::Sha256::digest(&der))
    });
}

#[test]
fn what_openssl_signs_is_taken_here_in_each_form_of_a_signature() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    std::fs::write(folder.join("blob"), b"the bytes of a component").unwrap();
    openssl(folder, "genpkey -algorithm ed25519 -out ed.key");
    openssl(folder, "pkey -in ed.key -pubout -out ed.pub");
    openssl(folder, "pkeyutl -sign -inkey ed.key -rawin -in blob -out ed.sig");
    openssl(folder, "ecparam -name prime256v1 -genkey -out ec.sec1");
    openssl(folder, "pkcs8 -topk8 -nocrypt -in ec.sec1 -out ec.key");
    openssl(folder, "pkey -in ec.key -pubout -out ec.pub");
    openssl(folder, "dgst -sha256 -sign ec.key -out ec.sig blob");
    // `cosign sign-blob` writes the same signature in base64.
    openssl(folder, "base64 -A -in ec.sig -out ec.cosign");
    openssl(folder, "base64 -in ed.sig -out ed.base64");
    let blob = read(folder, "blob");
    let ed = PublicKey::from_pem(&text(folder, "ed.pub")).unwrap();
    let ec = PublicKey::from_pem(&text(folder, "ec.pub")).unwrap();
    assert_eq!((ed.kind(), ec.kind()), ("ed25519", "P-256"));
    for (key, other, file) in
        [(&ed, &ec, "ed.sig"), (&ed, &ec, "ed.base64"), (&ec, &ed, "ec.sig"), (&ec, &ed, "ec.cosign")]
    {
        let signature = Signature::parse(&read(folder, file)).unwrap();
        assert!(key.has_signed(&blob, &signature), "{file}");
        assert!(!key.has_signed(b"another component", &signature), "{file}");
        assert!(!other.has_signed(&blob, &signature), "{file}");
        assert_eq!(keys(&[other, key]).signer(&blob, &signature).unwrap().key, *key, "{file}");
        assert_eq!(keys(&[other]).signer(&blob, &signature), None, "{file}");
    }
    let armoured = format!("-----BEGIN SIGNATURE-----\n{}-----END SIGNATURE-----\n", text(folder, "ed.base64"));
    assert!(ed.has_signed(&blob, &Signature::parse(armoured.as_bytes()).unwrap()));
    for (private, public) in [("ed.key", &ed), ("ec.key", &ec), ("ec.sec1", &ec)] {
        assert_eq!(PrivateKey::from_pem(&text(folder, private)).unwrap().public().unwrap(), *public, "{private}");
    }
}

#[test]
fn what_is_signed_here_openssl_takes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let write = |file: &str, bytes: &[u8]| std::fs::write(folder.join(file), bytes).unwrap();
    write("blob", b"the bytes of a component");
    for (kind, verify) in [
        (KeyKind::Ed25519, "pkeyutl -verify -pubin -inkey key.pub -rawin -in blob -sigfile sig"),
        (KeyKind::P256, "dgst -sha256 -verify key.pub -signature sig blob"),
    ] {
        let key = PrivateKey::generate(kind).unwrap();
        write("key", key.to_pem().unwrap().as_bytes());
        write("key.pub", key.public().unwrap().to_pem().unwrap().as_bytes());
        write("sig.base64", key.sign(b"the bytes of a component").to_text().as_bytes());
        openssl(folder, "base64 -d -A -in sig.base64 -out sig");
        openssl(folder, verify);
        openssl(folder, "pkey -in key -pubout -out derived.pub");
        assert_eq!(read(folder, "derived.pub"), read(folder, "key.pub"));
        openssl(folder, "pkey -pubin -in key.pub -outform DER -out der");
        use sha2::Digest as _;
        assert_eq!(key.public().unwrap().fingerprint(), hex::encode(sha2::Sha256::digest(read(folder, "der"))));
    }
}

#[test]
fn what_is_no_key_is_told_as_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm ed25519 -out ed.key");
    openssl(dir.path(), "ecparam -name secp384r1 -genkey -out p384.key");
    openssl(dir.path(), "pkey -in p384.key -pubout -out p384.pub");
    let told = |pem: &str| PublicKey::from_pem(pem).unwrap_err().0;
    assert!(told(&text(dir.path(), "ed.key")).contains("private key"), "the wrong half");
    assert!(told(&text(dir.path(), "p384.pub")).contains("another kind"));
    assert!(told("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----").contains("it is a CERTIFICATE"));
    assert!(told("ssh-ed25519 AAAA").contains("does not begin with -----BEGIN PUBLIC KEY-----"));
    // The neutral element (RFC 8032, section 5.1.4): with it anything has a signature.
    let weak = "MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    assert!(told(&format!("-----BEGIN PUBLIC KEY-----\n{weak}\n-----END PUBLIC KEY-----")).contains("anybody"));
    let private = |pem: &str| PrivateKey::from_pem(pem).unwrap_err().0;
    assert!(private("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----").contains("cosign sign-blob"));
    assert!(private("-----BEGIN ENCRYPTED PRIVATE KEY-----").contains("password"));
    assert!(private(&text(dir.path(), "p384.pub")).contains("does not begin"));
}

#[test]
fn what_is_no_signature_is_told() {
    for file in [&b""[..], b"hello", &[0x30; 40], &[1; 63], &[0xff; 65], b"aGVsbG8=\n"] {
        assert!(Signature::parse(file).unwrap_err().contains("damaged"), "{file:?}");
    }
}

#[test]
fn a_text_speaks_for_the_manifest_that_it_names_and_for_no_other() {
    let (own, foreign) =
        (PrivateKey::generate(KeyKind::P256).unwrap(), PrivateKey::generate(KeyKind::Ed25519).unwrap());
    let trusted = keys(&[&own.public().unwrap()]);
    let (digest, other) = (format!("sha256:{}", "a".repeat(64)), format!("sha256:{}", "b".repeat(64)));
    let signed = |key: &PrivateKey, payload: Vec<u8>| Signed { signature: key.sign(&payload).to_base64(), payload };
    let good = signed(&own, payload("registry.example/to-acme", &digest));
    assert_eq!(signer(&trusted, std::slice::from_ref(&good), &digest).unwrap().key, own.public().unwrap());
    let of_foreign = signed(&foreign, payload("r", &digest));
    assert!(signer(&trusted, &[of_foreign.clone(), good.clone()], &digest).is_ok(), "one of several is enough");
    for (list, told) in [
        (vec![], "it is not signed"),
        (vec![of_foreign], "another key than the trusted ones (P-256 "),
        (vec![signed(&own, payload("r", &other))], "for another manifest"),
        (vec![Signed { signature: "AAAA".into(), ..good.clone() }], "damaged"),
        (vec![Signed { payload: payload("r", &other), ..good }], "another key"),
        // Something else that the key signed, with the same digest in it.
        (
            vec![signed(
                &own,
                String::from_utf8(payload("r", &digest)).unwrap().replace("cosign container", "x").into(),
            )],
            "for another manifest",
        ),
    ] {
        let why = signer(&trusted, &list, &digest).unwrap_err();
        assert!(why.contains(told), "{why}");
    }
}

/// The specification's own example of a text.
#[test]
fn the_text_has_the_form_of_the_specification() {
    let example = r#"{"critical":{"identity":{"docker-reference":"testing/manifest"},"image":{"docker-manifest-digest":"sha256:20be"},"type":"cosign container image signature"},"optional":null}"#;
    assert_eq!(String::from_utf8(payload("testing/manifest", "sha256:20be")).unwrap(), example);
}
