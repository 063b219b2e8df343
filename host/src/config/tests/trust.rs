//! Keys, signatures, registries, and grants of what is the host's own.

use super::{faults, output, parse, top};
use crate::config::SequenceGrant;
use crate::registry::Pull;
use crate::trust::{KeyKind, PrivateKey, PublicKey};

fn key() -> PublicKey {
    PrivateKey::generate(KeyKind::Ed25519).unwrap().public().unwrap()
}

#[test]
fn keys_are_files_or_pem_and_those_of_a_tenant_replace_the_common_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (file_key, written, acme) = (key(), key(), key());
    std::fs::write(dir.path().join("a.pub"), file_key.to_pem().unwrap()).unwrap();
    let block = |key: &PublicKey, blanks: &str| key.to_pem().unwrap().trim_end().replace('\n', &format!("\n{blanks}"));
    let text = format!(
        "plugins:\n  trusted_keys:\n    - a.pub\n    - |\n      {}\nsources: {{ app: {{ type: stdin }} }}\n\
         outputs:\n  own: {{ plugin: ./own.wasm, match: \"*\" }}\n\
         tenants:\n  acme:\n    trusted_keys:\n      - |\n        {}\n    outputs: {{ o: {{ plugin: ./own.wasm, match: \"*\" }} }}\n  globex:\n    outputs: {{ o: {{ plugin: ./own.wasm, match: \"*\", signature: sigs/o.sig }} }}\n",
        block(&written, "      "),
        block(&acme, "        "),
    );
    let parsed = |text: &str| crate::config::Config::parse(text, &dir.path().join("wharf.yaml"), &|_| None).unwrap();
    let config = parsed(&text);
    let keys = |n: usize| config.requirements_of(&config.outputs[n]).keys.map(|keys| keys.listed());
    let common = format!("{file_key} of {}, {written}", dir.path().join("a.pub").display());
    assert_eq!([keys(0), keys(1), keys(2)], [Some(common.clone()), Some(acme.to_string()), Some(common.clone())]);
    let signature = config.requirements_of(&config.outputs[2]).signature.map(ToOwned::to_owned);
    assert_eq!(signature, Some(dir.path().join("sigs/o.sig")));

    // The operator's own may go without; tenants may not.
    let config = parsed(&text.replace("plugins:\n", "plugins:\n  require_signature: false\n"));
    let keys = |n: usize| config.requirements_of(&config.outputs[n]).keys.map(|keys| keys.listed());
    assert_eq!([keys(0), keys(1), keys(2)], [None, Some(acme.to_string()), Some(common)]);
}

#[test]
fn faults_of_keys_are_told_where_they_are() {
    for (lines, told) in [
        ("plugins: { trusted_keys: [] }", "wharf.yaml:5:26: plugins.trusted_keys: is empty"),
        (
            "plugins: { trusted_keys: [no.pub] }",
            "wharf.yaml:5:27: plugins.trusted_keys[0]: the key file no.pub cannot be read: No such file",
        ),
        (
            "plugins: { trusted_keys: [\"${BUCKET}\"] }",
            "plugins.trusted_keys[0]: the key file text from the environment variable BUCKET cannot be read",
        ),
        (
            "plugins: { trusted_keys: [Cargo.toml] }",
            "the key file Cargo.toml is no public key: it does not begin with -----BEGIN PUBLIC KEY-----",
        ),
        ("plugins: { trusted_keys: 5 }", "the key file 5 cannot be read"),
        ("plugins: { trusted_keys: { a: b } }", "expected a list of public keys, found"),
        (
            "plugins: { require_signature: true }",
            "wharf.yaml:5:31: plugins.require_signature: there are no trusted_keys",
        ),
        ("plugins: { registry: { insecure: [a] } }", "unknown key \"insecure\"; did you mean \"plain_http\"?"),
    ] {
        let found = faults(&top(lines));
        assert!(found.contains(told), "{lines}: {found}");
        assert!(!found.contains("from-env"), "{found}");
    }
}

#[test]
fn a_component_may_be_in_a_registry() {
    let own = |lines: &str| output(lines).replace("plugin: s3", "plugin: oci://r.example/team/own:1");
    assert_eq!(parse(&own("")).unwrap().outputs[0].pull, Pull::IfMissing);
    assert_eq!(parse(&own("pull: always")).unwrap().outputs[0].pull, Pull::Always);
    for (text, told) in [
        (output("pull: always"), "outputs.archive.pull: a built-in component is not pulled"),
        (output("signature: a.sig"), "outputs.archive.signature: a built-in component needs no signature"),
        (own("pull: never"), "outputs.archive.pull: "),
        (
            output("").replace("plugin: s3", "plugin: oci://r.example/own"),
            "wharf.yaml:5:13: outputs.archive.plugin: is no reference to a registry: it has neither a tag nor a digest",
        ),
        (output("").replace("plugin: s3", "plugin: oci://own:1"), "names a registry, and no repository"),
    ] {
        let found = faults(&text);
        assert!(found.contains(told), "{found}");
    }
}

#[test]
fn rows_and_counters_have_a_default_and_may_be_taken_away() {
    let grants = |lines: &str| parse(&output(lines)).unwrap().outputs.remove(0).grants;
    let named = |names: &[&str]| SequenceGrant::Named(names.iter().map(|name| (*name).into()).collect());
    assert_eq!((grants("").storage_bytes, grants("").sequences), (None, SequenceGrant::All));
    for (line, storage, sequences) in [
        ("grants: { storage: 64MiB }", Some(67_108_864), SequenceGrant::All),
        ("grants: { storage: 0, sequences: false }", Some(0), named(&[])),
        ("grants: { sequences: true }", None, SequenceGrant::All),
        ("grants: { sequences: [a, b] }", None, named(&["a", "b"])),
        ("grants: { sequences: a }", None, named(&["a"])),
        ("grants: { sequences: [] }", None, named(&[])),
    ] {
        assert_eq!((grants(line).storage_bytes, grants(line).sequences), (storage, sequences), "{line}");
    }
    assert_eq!(grants("grants: { http: [], s3: [] }").considered, ["s3", "http"]);
    let told = faults(&output("grants: { sequences: { a: b } }"));
    assert!(
        told.contains("outputs.archive.grants.sequences: expected true, false or a list of counters' names"),
        "{told}"
    );
}
