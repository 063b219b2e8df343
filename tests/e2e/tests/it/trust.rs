//! Whose plugins run: signatures, keys of tenants, registries, and what an output grants.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use wharf_e2e::{LogWriter, OciRegistry, Place, command, docker_registry, skip, wharf_binary};

use crate::reload_support::build;
use crate::support::{archive, delivered, s3};

/// A component that is not built in: the S3 output's, as the build left it beside the binary.
fn component() -> PathBuf {
    let built = wharf_binary().unwrap().with_file_name("build");
    let mut found: Vec<_> = std::fs::read_dir(&built)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("out/s3.wasm"))
        .filter(|file| file.is_file())
        .map(|file| (std::fs::metadata(&file).unwrap().modified().unwrap(), file))
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("no s3.wasm below {}", built.display())).1
}

/// What a subcommand says (standard output, standard error), with its exit code.
fn wharf(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut asked = command(wharf_binary().unwrap());
    asked.env("XDG_CACHE_HOME", std::env::temp_dir().join("wharf-e2e-cache")).env_remove("DOCKER_CONFIG");
    let ended = asked.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

#[track_caller]
fn good(folder: &Path, arguments: &str) -> String {
    let (code, told, said) = wharf(folder, arguments);
    assert_eq!(code, Some(0), "wharf {arguments}: {told}{said}");
    told
}

#[track_caller]
fn refused(folder: &Path, arguments: &str, code: i32) -> String {
    let (found, told, said) = wharf(folder, arguments);
    assert_eq!(found, Some(code), "wharf {arguments}: {told}{said}");
    said
}

fn openssl(folder: &Path, arguments: &str) {
    let ended = Command::new("openssl").current_dir(folder).args(arguments.split(' ')).output().unwrap();
    assert!(ended.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&ended.stderr));
}

const OUTPUT: &str =
    "match: \"*\", grants: { s3: [{ bucket: logs }] }, config: { bucket: logs, key_format: /a/$INDEX }";

fn write(folder: &Path, top: &str, outputs: &str) {
    let text = format!("data_dir: ./data\n{top}sources: {{ app: {{ type: stdin }} }}\n{outputs}");
    std::fs::write(folder.join("wharf.yaml"), text).unwrap();
}

#[test]
fn only_a_component_that_a_trusted_key_signed_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    std::fs::copy(component(), folder.join("own.wasm")).unwrap();
    let made = good(folder, "plugin keygen team");
    assert!(made.contains("ed25519 "), "{made}");
    good(folder, "plugin keygen other --type p256");
    write(
        folder,
        "plugins: { trusted_keys: [team.pub] }\n",
        &format!("outputs:\n  live: {{ plugin: ./own.wasm, {OUTPUT} }}\n"),
    );

    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(
        said.contains(
            "wharf.yaml:5:19: outputs.live.plugin: plugin ./own.wasm: it is not signed: there is no ./own.wasm.sig"
        ),
        "{said}"
    );
    assert!(said.contains("help: `wharf plugin sign FILE --key KEY`"), "{said}");

    good(folder, "plugin sign own.wasm --key team.key");
    good(folder, "plugin verify own.wasm --key other.pub --key team.pub");
    good(folder, "validate -c wharf.yaml");

    // By somebody else.
    good(folder, "plugin sign own.wasm --key other.key");
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("is not one of these bytes by a trusted key (tried: ed25519 "), "{said}");
    let said = refused(folder, "plugin verify own.wasm --key team.pub", 1);
    assert!(said.contains("by any of these keys (tried: ed25519 "), "{said}");

    // As OpenSSL signs.
    openssl(folder, "pkeyutl -sign -rawin -inkey team.key -in own.wasm -out own.wasm.sig");
    good(folder, "validate -c wharf.yaml");

    // Changed after that, in a byte that is nobody's business.
    let mut bytes = std::fs::read(folder.join("own.wasm")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(folder.join("own.wasm"), &bytes).unwrap();
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("was changed after it was signed"), "{said}");
    // What is no component at all is not even told to be none: nothing of it was read.
    std::fs::write(folder.join("own.wasm"), "hello").unwrap();
    assert!(!refused(folder, "validate -c wharf.yaml", 78).contains("WebAssembly"));

    std::fs::write(folder.join("own.wasm.sig"), "hello").unwrap();
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("its signature ./own.wasm.sig: it is damaged: its 5 bytes"), "{said}");

    std::fs::remove_file(folder.join("team.pub")).unwrap();
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("wharf.yaml:2:27: plugins.trusted_keys[0]: the key file team.pub cannot be read"), "{said}");
}

#[test]
fn a_tenants_list_of_keys_takes_the_place_of_the_common_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    std::fs::copy(component(), folder.join("own.wasm")).unwrap();
    for name in ["common", "acme"] {
        good(folder, &format!("plugin keygen {name}"));
        good(folder, &format!("plugin sign own.wasm --key {name}.key --to {name}.sig"));
    }
    let plugin = |signature: &str| format!("plugin: ./own.wasm, {signature}{OUTPUT}");
    let tenants = |acme: &str, globex: &str| {
        format!(
            "tenants:\n  acme:\n    trusted_keys: [acme.pub]\n    outputs: {{ live: {{ {} }} }}\n  globex:\n    outputs: {{ live: {{ {} }} }}\n",
            plugin(acme),
            plugin(globex)
        )
    };
    let own = format!("outputs:\n  live: {{ {} }}\n", plugin(""));
    let top = "plugins: { trusted_keys: [common.pub], require_signature: false }\n";

    write(folder, top, &(own.clone() + &tenants("signature: acme.sig, ", "signature: common.sig, ")));
    good(folder, "validate -c wharf.yaml");

    write(folder, top, &(own.clone() + &tenants("signature: common.sig, ", "")));
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("tenants.acme.outputs.live.plugin") && said.contains("tried: ed25519 "), "{said}");
    assert!(said.contains("tenants.globex.outputs.live.plugin: plugin ./own.wasm: it is not signed"), "{said}");
    assert!(!said.contains(" outputs.live.plugin"), "the operator's own need not be signed: {said}");

    write(folder, "plugins: { trusted_keys: [common.pub] }\n", &own);
    assert!(refused(folder, "validate -c wharf.yaml", 78).contains(" outputs.live.plugin"));
}

#[test]
fn a_component_comes_from_a_registry_once_and_then_from_the_disk() {
    let Some(program) = docker_registry() else {
        skip::skip(
            "a_component_comes_from_a_registry_once_and_then_from_the_disk",
            "docker-registry is not installed",
            false,
        );
        return;
    };
    let place = Place::new().unwrap();
    let folder = place.root().to_owned();
    let registry = OciRegistry::start(&program, &folder.join("registry"), None).unwrap();
    let (port, reference) = (registry.port(), registry.reference("team/to-s3:1.0"));
    std::fs::copy(component(), folder.join("own.wasm")).unwrap();
    good(&folder, "plugin keygen team");
    good(&folder, "plugin keygen other --type p256");

    let said = refused(&folder, &format!("plugin pull {reference} --to x.wasm"), 1);
    assert!(said.contains("has no such component"), "{said}");
    let pushed = good(&folder, &format!("plugin push own.wasm {reference}"));
    let manifest = pushed.lines().find_map(|line| line.strip_prefix("manifest    ")).unwrap().to_owned();
    let pulled = good(&folder, &format!("plugin pull {reference} --to pulled.wasm"));
    assert!(pulled.contains(&manifest) && pulled.contains("signatures  0\n"), "{pulled}");
    assert_eq!(std::fs::read(folder.join("pulled.wasm")).unwrap(), std::fs::read(folder.join("own.wasm")).unwrap());
    let shown = good(&folder, &format!("plugin inspect {reference}"));
    assert!(shown.contains("S3: objects in buckets (needs a grant)"), "{shown}");

    let s3 = s3();
    let configure = |more: &str| {
        let output = archive(1, "max_age: 200ms", &[]).replace(
            "plugin: s3\n",
            &format!("plugin: \"{reference}\"\n    {more}grants: {{ s3: [{{ bucket: logs }}] }}\n"),
        );
        let top = "plugins: { trusted_keys: [team.pub] }\n";
        place.configure(&s3.endpoint(), &format!("{top}{}{output}", place.tail("app"))).unwrap();
    };
    configure("");
    assert!(refused(&folder, "validate -c wharf.yaml", 78).contains("it is not signed"));
    good(&folder, &format!("plugin push own.wasm {reference} --key other.key"));
    let said = refused(&folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("it is signed with another key than the trusted ones (ed25519 "), "{said}");
    good(&folder, &format!("plugin push own.wasm {reference} --key team.key"));
    good(&folder, "validate -c wharf.yaml");

    let mut writer = LogWriter::open(&place.log("app.log"), "a", 80).unwrap();
    let mut run = |lines: u64| {
        let mut wharf = place.start().unwrap();
        writer.write(lines).unwrap();
        let wanted = writer.written();
        wharf.wait_until("all is delivered", 60, || delivered(&s3).lines() as u64 >= wanted);
        wharf.stop();
    };
    run(10);
    // Another one, pulled for a day that never came, goes when its time is over. What is in use does not, however old it is.
    let other = registry.reference("team/to-s3:2.0");
    std::fs::write(folder.join("next.wasm"), build(2)).unwrap();
    good(&folder, &format!("plugin push next.wasm {other}"));
    good(&folder, &format!("plugin pull {other} -c wharf.yaml"));
    let blobs = place.data().join("plugins/oci/blobs");
    let kept = || std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(kept().len(), 4, "a manifest and a component of each");
    for file in kept() {
        let long_ago = SystemTime::now() - Duration::from_secs(31 * 24 * 3600);
        std::fs::File::open(file).unwrap().set_modified(long_ago).unwrap();
    }
    let mut wharf = place.start().unwrap();
    wharf.wait_until("what no output uses is removed", 30, || kept().len() == 2);
    wharf.stop();
    // Nobody there any more: the same bytes, from the disk.
    drop(registry);
    run(10);
    configure("pull: always\n    ");
    run(10);
    let log = std::fs::read_to_string(place.wharf_log()).unwrap();
    assert!(log.contains("the registry gave no answer: the plugin that was pulled last is used"), "{log}");
    assert!(log.contains("the plugin is signed"), "{log}");

    // What lies on the disk is not trusted for its name.
    for file in kept() {
        if std::fs::metadata(&file).unwrap().len() > 10_000 {
            std::fs::write(&file, "hello").unwrap();
        }
    }
    let said = refused(&folder, "validate -c wharf.yaml", 78);
    assert!(said.contains(&format!("127.0.0.1:{port} cannot be reached")), "{said}");

    let _registry = OciRegistry::start(&program, &folder.join("registry"), Some(port)).unwrap();
    run(10);
    // By the digest of its manifest as well.
    good(&folder, &format!("plugin pull {}@{manifest} --to x.wasm", reference.trim_end_matches(":1.0")));
}

#[test]
fn what_a_component_asks_for_and_what_an_output_grants_are_shown_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    std::fs::copy(component(), folder.join("own.wasm")).unwrap();
    let configure = |grants: &str| {
        let output = OUTPUT.replace("s3: [{ bucket: logs }]", grants);
        write(
            folder,
            "",
            &format!(
                "outputs:\n  live: {{ plugin: ./own.wasm, {output} }}\n  built_in: {{ plugin: s3, match: x, config: {{ bucket: logs, key_format: /b/$INDEX }} }}\n"
            ),
        );
    };
    let against = "plugin inspect own.wasm --against wharf.yaml --output live";
    configure("s3: [{ bucket: logs, key_prefix: a/ }], http: [\"https://a.example\"], storage: 1MiB");
    let told = good(folder, against);
    let row = |words: &[&str]| {
        assert!(told.lines().any(|line| words.iter().all(|word| line.contains(word))), "{words:?} in\n{told}");
    };
    row(&["S3 logs/a/*", "s3: logs/a/*", "ok"]);
    row(&["-", "http: https://a.example", "unused"]);
    row(&["imports storage", "storage: 1 MiB", "ok"]);
    row(&["imports sequence", "sequences: all, the default", "ok"]);

    configure("s3: [{ bucket: logs, key_prefix: b/ }]");
    let (code, told, said) = wharf(folder, against);
    assert!(
        code == Some(1) && told.contains("MISSING: grants.s3") && said.contains("1 grant is missing"),
        "{told}{said}"
    );
    let told = good(folder, "plugin inspect s3 --against wharf.yaml --output built_in");
    assert!(told.contains("follows from its configuration"), "{told}");
    assert!(
        refused(folder, "plugin inspect own.wasm --against wharf.yaml --output no", 1)
            .contains("there are live, built_in")
    );

    // An import that is not answered is a fault before anything runs.
    configure("http: []");
    let said = refused(folder, "validate -c wharf.yaml", 78);
    assert!(said.contains("the plugin wants to write to s3 bucket \"logs\""), "{said}");
}
