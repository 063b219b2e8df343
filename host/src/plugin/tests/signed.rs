//! Who must have signed a component, and what is told where nobody did.

use std::path::Path;

use super::{PluginHost, PluginSource, component, options};
use crate::plugin::{LoadError, Requirements};
use crate::trust::{KeyKind, PrivateKey, TrustedKey, TrustedKeys};

fn keys(all: &[&PrivateKey]) -> TrustedKeys {
    TrustedKeys::new(all.iter().map(|key| TrustedKey { key: key.public().unwrap(), file: None }).collect())
}

fn sign(file: &Path, key: &PrivateKey, to: &Path) {
    std::fs::write(to, key.sign(&std::fs::read(file).unwrap()).to_text()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_loaded_where_a_trusted_key_signed_its_bytes_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let (file, beside, elsewhere) = (dir.path().join("o.wasm"), dir.path().join("o.wasm.sig"), dir.path().join("x"));
    std::fs::copy(component(), &file).unwrap();
    let (ed, ec) = (PrivateKey::generate(KeyKind::Ed25519).unwrap(), PrivateKey::generate(KeyKind::P256).unwrap());
    let host = PluginHost::new(options()).unwrap();
    let source = PluginSource::File(file.clone());
    let load = async |keys: Option<&TrustedKeys>, signature: Option<&Path>| {
        host.load_required(&source, &Requirements { keys, signature, ..Requirements::default() }).await
    };
    let (both, only_ec) = (keys(&[&ec, &ed]), keys(&[&ec]));
    assert!(load(None, None).await.is_ok(), "nobody asks for a signature");
    let told = async |keys: &TrustedKeys, signature: Option<&Path>| {
        let error = load(Some(keys), signature).await.unwrap_err();
        assert!(matches!(error, LoadError::Untrusted { .. }), "{error}");
        error.to_string()
    };
    assert!(
        told(&both, None).await.contains("it is not signed: there is no"),
        "unsigned, and already loaded for others"
    );
    sign(&file, &ed, &beside);
    assert!(load(Some(&both), None).await.is_ok());
    assert!(told(&only_ec, None).await.contains("by a trusted key (tried: P-256 "));
    sign(&file, &ec, &elsewhere);
    assert!(load(Some(&only_ec), Some(&elsewhere)).await.is_ok());
    assert!(told(&both, Some(dir.path())).await.contains("cannot be read: it is not a regular file"));

    // One bit of a byte that wasmtime would not look at.
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert!(told(&both, None).await.contains("was changed after it was signed"));
    std::fs::write(&file, b"no component").unwrap();
    assert!(told(&both, None).await.contains("was changed after it was signed"), "it is not looked at what it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_component_needs_no_signature() {
    let keys = keys(&[&PrivateKey::generate(KeyKind::Ed25519).unwrap()]);
    let host = PluginHost::new(options()).unwrap();
    let required = Requirements { keys: Some(&keys), ..Requirements::default() };
    assert!(host.load_required(&PluginSource::BuiltIn("s3".into()), &required).await.is_ok());
}
