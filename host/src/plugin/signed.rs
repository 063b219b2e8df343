//! Whether a component is signed by whom it must be signed, before anything in it is looked at.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::read::Origin;
use super::{LoadError, Requirements};
use crate::capability::blocking;
use crate::trust::{Signature, TrustedKeys, simple_signing};

/// Largest file with a signature, bytes.
const MOST_BYTES: u64 = 64 << 10;

/// Checks what is required of a component that was read. A built-in one is part of the program, and whoever trusts that trusts it.
///
/// # Errors
/// Where it is not signed by one of the keys.
pub(super) async fn check(
    name: &str,
    component: &Arc<Cow<'static, [u8]>>,
    origin: &Origin,
    required: &Requirements<'_>,
) -> Result<(), LoadError> {
    let Some(keys) = required.keys else { return Ok(()) };
    let beside;
    let file = match (origin, required.signature) {
        (Origin::BuiltIn, _) => return Ok(()),
        (_, Some(file)) => file,
        (Origin::File(path), None) => {
            beside = signature_beside(path);
            &beside
        }
        (Origin::Registry { manifest_digest, signed }, None) => {
            return match simple_signing::signer(keys, signed, manifest_digest) {
                Ok(key) => {
                    tracing::info!(plugin = name, key = %key.key, "the plugin is signed");
                    Ok(())
                }
                Err(what) => Err(untrusted(
                    name,
                    what,
                    format!(
                        "sign it with a trusted key where it is published: `cosign sign --key KEY` or `wharf plugin push --key KEY`; trusted are {}",
                        keys.listed()
                    ),
                )),
            };
        }
    };
    let signature = read(name, file, keys).await?;
    let (checked, of_whom) = (Arc::clone(component), keys.clone());
    let signer = blocking(move || of_whom.signer(&checked, &signature).map(|trusted| trusted.key.to_string())).await;
    match signer {
        Ok(Some(key)) => {
            tracing::info!(plugin = name, key, "the plugin is signed");
            Ok(())
        }
        Ok(None) => Err(untrusted(
            name,
            format!(
                "the signature {} is not one of these bytes by a trusted key (tried: {})",
                file.display(),
                keys.listed()
            ),
            "either the component was changed after it was signed, or somebody else signed it: get both anew from whoever builds it; \
             if its key is to be trusted, add it to trusted_keys"
                .into(),
        )),
        Err(error) => Err(untrusted(name, format!("its signature could not be checked: {error:#}"), "try again".into())),
    }
}

async fn read(name: &str, file: &Path, keys: &TrustedKeys) -> Result<Signature, LoadError> {
    let path = file.to_owned();
    let read = blocking(move || crate::regular_file::begin(&path, MOST_BYTES)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(cause)) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Err(untrusted(
                name,
                format!("it is not signed: there is no {}", file.display()),
                format!(
                    "`wharf plugin sign FILE --key KEY` signs it, and so do openssl and `cosign sign-blob`; trusted are {}",
                    keys.listed()
                ),
            ));
        }
        Ok(Err(cause)) => {
            let what = format!("its signature {} cannot be read: {cause}", file.display());
            return Err(untrusted(name, what, "let the user that runs Wharf read it".into()));
        }
        Err(error) => {
            return Err(untrusted(name, format!("its signature could not be read: {error:#}"), "try again".into()));
        }
    };
    Signature::parse(&bytes).map_err(|what| {
        let what = format!("its signature {}: {what}", file.display());
        untrusted(name, what, "sign the component anew: `wharf plugin sign FILE --key KEY`".into())
    })
}

/// `NAME.wasm.sig`, beside the component.
pub(crate) fn signature_beside(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}

fn untrusted(name: &str, what: String, help: String) -> LoadError {
    LoadError::Untrusted { name: name.to_owned(), what, help }
}
