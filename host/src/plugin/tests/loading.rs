//! Finding a component, and pinning it.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::{HostOptions, PluginHost, PluginSource, component, odd, options};
use crate::plugin::{LoadError, Pin, Requirements};

fn named(name: &str, dirs: &[&Path]) -> PluginSource {
    PluginSource::Named { name: name.into(), dirs: dirs.iter().map(|dir| (*dir).to_owned()).collect() }
}

fn digest_of(file: &Path) -> String {
    hex::encode(Sha256::digest(std::fs::read(file).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_found_in_the_first_folder_that_has_it() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::copy(component(), second.path().join("own.wasm")).unwrap();
    let host = PluginHost::new(options()).unwrap();
    let dirs = [first.path(), second.path()];
    let plugin = host.load(&named("own", &dirs)).await.unwrap();
    assert_eq!(plugin.digest(), digest_of(component()));

    // In the first one it comes first, even where it is no plugin.
    std::fs::write(first.path().join("own.wasm"), b"hello").unwrap();
    let error = host.load(&named("own", &dirs)).await.unwrap_err().to_string();
    assert!(error.contains(&first.path().join("own.wasm").display().to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_nowhere_is_told_with_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["datadog.wasm", "loki.wasm", "notes.txt"] {
        std::fs::write(dir.path().join(file), b"").unwrap();
    }
    let host = PluginHost::new(options()).unwrap();
    let absent = dir.path().join("absent");
    let error = host.load(&named("datadgo", &[dir.path(), &absent])).await.unwrap_err();
    let (dir, absent) = (dir.path().display(), absent.display());
    assert_eq!(
        error.to_string(),
        format!(
            "there is no plugin \"datadgo\": built in are s3 and cloudwatch_logs; {dir} has datadog, loki; {absent} cannot be read: No such file or directory (os error 2)\n    help: did you mean \"datadog\"?"
        )
    );
    let error = host.load(&named("elastic", &[])).await.unwrap_err();
    assert!(error.help().unwrap().contains("plugins: { dir: … }"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_component_that_was_pinned_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.wasm");
    std::fs::copy(component(), &file).unwrap();
    let (source, digest) = (PluginSource::File(file.clone()), digest_of(&file));
    let host = PluginHost::new(options()).unwrap();
    let pin = Pin::parse(&digest).unwrap();
    assert_eq!(
        host.load_required(&source, &Requirements { pin: Some(&pin), ..Requirements::default() })
            .await
            .unwrap()
            .digest(),
        digest
    );
    assert_eq!(Pin::parse(&digest.to_uppercase()), Some(pin));

    // One bit more, in a byte that is nobody's business: still another component.
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let error =
        host.load_required(&source, &Requirements { pin: Some(&pin), ..Requirements::default() }).await.unwrap_err();
    let (found, name) = (digest_of(&file), file.display());
    assert_eq!(
        error.to_string(),
        format!(
            "plugin {name} is pinned to the SHA-256 {digest}, and what is there has {found}\n    help: put the component that was meant back; if this one is meant (`wharf plugin inspect {name}` shows it), write sha256: {found}"
        )
    );
    assert!(matches!(error, LoadError::OtherDigest { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_of_other_wit_files_is_refused_with_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let host = PluginHost::new(HostOptions { cache_dir: None, ..options() }).unwrap();
    let file = dir.path().join("odd.wasm");
    for (replaced, told) in [
        // An import, an export, a nested type, a version.
        (
            ("now: func() -> s64;", "now: func() -> u64;"),
            "wharf:output/clock.now: result: the plugin was built with u64, this host has s64",
        ),
        (
            ("describe: func() -> descriptor;", "describe: func() -> string;"),
            "wharf:output/output.describe: result: the plugin was built with string, this host has record descriptor",
        ),
        (
            ("in-order: bool,", "in-order: option<bool>,"),
            "field \"in-order\" of plan: the plugin was built with option<bool>, this host has bool",
        ),
        (
            ("wharf:output@0.1.0", "wharf:output@0.3.0"),
            "it was built for wharf:output@0.3.0, and this host has wharf:output@0.1.0",
        ),
    ] {
        std::fs::write(&file, odd::component_of(&[replaced])).unwrap();
        let error = host.load(&PluginSource::File(file.clone())).await.unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(error.help().unwrap().contains("wharf plugin build"), "{error}");
        assert!(!error.headline().contains("help:") && error.headline().contains(told), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_fits_and_dies_is_told_as_dead() {
    let dir = tempfile::tempdir().unwrap();
    let host = PluginHost::new(HostOptions { cache_dir: None, ..options() }).unwrap();
    let file = dir.path().join("odd.wasm");
    std::fs::write(&file, odd::component_of(&[])).unwrap();
    let error = host.load(&PluginSource::File(file)).await.unwrap_err().to_string();
    assert!(error.contains("it died while it described itself (trap)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_cut_is_told_from_one_that_needs_more_than_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let host = PluginHost::new(HostOptions { cache_dir: None, ..options() }).unwrap();
    let file = dir.path().join("odd.wasm");
    let load = async |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        host.load(&PluginSource::File(file.clone())).await.unwrap_err()
    };
    let good = odd::component_of(&[]);
    let cut = load(&good[..good.len() / 2]).await;
    assert!(
        cut.headline().contains("it is no valid component") && cut.help().unwrap().contains("cut or damaged"),
        "{cut}"
    );
    // A component with a core module with two memories, by hand: the core specification's chapter 5, the component model's Binary.md.
    let module = b"\0asm\x01\0\0\0\x05\x05\x02\0\x01\0\x01";
    let mut component = b"\0asm\x0d\0\x01\0\x01".to_vec();
    component.push(u8::try_from(module.len()).unwrap());
    component.extend(module);
    let off = load(&component).await;
    assert!(
        off.headline().contains("a part of WebAssembly that this host does not have")
            && off.headline().contains("memor"),
        "{off}"
    );
}
