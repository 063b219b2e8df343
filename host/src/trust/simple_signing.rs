//! What cosign signs of something in a registry: not its bytes but a small JSON text that names the digest of its manifest.
//!
//! <https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>: the text is a layer of an image with the tag
//! `sha256-<digest>.sig`; the layer's annotation has the signature over the text's bytes. A signature speaks for the manifest that its
//! text names and for nothing else, so that digest is compared, always.

use serde_json::{Value, json};

use super::{Signature, TrustedKey, TrustedKeys};

/// Media type of a text.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation that has the signature.
pub(crate) const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// What the text says that it is.
const TYPE: &str = "cosign container image signature";

/// A text and its signature, as they were in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) payload: Vec<u8>,
    /// As the annotation has it.
    pub(crate) signature: String,
}

/// The text for a manifest.
pub(crate) fn payload(repository: &str, manifest_digest: &str) -> Vec<u8> {
    let text = json!({
        "critical": {
            "identity": { "docker-reference": repository },
            "image": { "docker-manifest-digest": manifest_digest },
            "type": TYPE,
        },
        "optional": null,
    });
    text.to_string().into_bytes()
}

/// The key that signed a manifest with this digest (`sha256:…`), if one of the list did.
///
/// # Errors
/// Why none did, in words.
pub(crate) fn signer<'a>(
    keys: &'a TrustedKeys,
    signed: &[Signed],
    manifest_digest: &str,
) -> Result<&'a TrustedKey, String> {
    let mut why = None;
    for one in signed {
        let Ok(signature) = Signature::parse(one.signature.as_bytes()) else {
            why.get_or_insert_with(|| "a signature in its registry is damaged".to_owned());
            continue;
        };
        let Some(key) = keys.signer(&one.payload, &signature) else {
            why.get_or_insert_with(|| {
                format!("it is signed with another key than the trusted ones ({})", keys.listed())
            });
            continue;
        };
        match named(&one.payload) {
            Some(digest) if digest == manifest_digest => return Ok(key),
            // Made by a key that counts: this is the thing to tell.
            _ => {
                why = Some(format!(
                    "the signature in its registry is of something else: {} made it for another manifest",
                    key.key
                ));
            }
        }
    }
    Err(why.unwrap_or_else(|| "it is not signed".into()))
}

/// The manifest that a text is about.
fn named(payload: &[u8]) -> Option<String> {
    let text: Value = serde_json::from_slice(payload).ok()?;
    let critical = text.get("critical")?;
    if critical.get("type")?.as_str()? != TYPE {
        return None;
    }
    Some(critical.pointer("/image/docker-manifest-digest")?.as_str()?.to_owned())
}
