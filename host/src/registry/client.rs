//! Pulling and pushing.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::store::{Store, is_digest_of};
use super::unused::{Keep, Removed};
use super::{Pull, Reference, RegistryOptions, credentials};
use crate::capability::{blocking, cut, one_line};
use crate::config::RegistryConfig;
use crate::trust::PrivateKey;
use crate::trust::simple_signing::{self, Signed};

/// Largest component, bytes.
const MOST_COMPONENT: u64 = crate::plugin::MAX_BYTES;
/// Largest manifest, bytes: what registries take at least (distribution specification, "Pushing Manifests").
pub(super) const MOST_MANIFEST: u64 = 4 << 20;
/// Largest text that a signature is of, bytes, and most of them that are looked at.
const MOST_PAYLOAD: u64 = 64 << 10;
const MOST_SIGNATURES: usize = 32;
/// Time for all of one pull or push.
const WHOLE: Duration = Duration::from_secs(300);
/// Longest text of an error, bytes.
const TEXT_BYTES: usize = 1024;
/// How a component is told from other layers: `wkg`, `wasm-tools` and we write the first one
/// (<https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>), older tools the others.
const LAYERS: [&str; 3] = [
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];
const CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// Why a component was not pulled or pushed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RegistryFault {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub help: Option<String>,
}

impl RegistryFault {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: Some(help.into()) }
    }

    fn plain(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None }
    }
}

/// A component as it was pulled, or kept from before.
pub struct Pulled {
    /// The component.
    pub bytes: Vec<u8>,
    /// Digest of the manifest that names it (`sha256:…`).
    pub manifest_digest: String,
    /// What was signed of the manifest.
    pub(crate) signed: Vec<Signed>,
}

impl Pulled {
    /// How many signatures its registry has.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.signed.len()
    }
}

impl fmt::Debug for Pulled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulled").field("manifest_digest", &self.manifest_digest).finish_non_exhaustive()
    }
}

/// What reaches registries. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Registry {
    options: RegistryOptions,
    store: Option<Store>,
    /// Whether what is pulled is kept.
    keeps: bool,
}

impl Registry {
    /// Over the network alone: nothing is kept.
    #[must_use]
    pub fn new(options: RegistryOptions) -> Self {
        Self { options, store: None, keeps: false }
    }

    /// The same, with what is kept in a folder. Without `keeps` it is only read.
    #[must_use]
    pub fn with_store(mut self, dir: &Path, keeps: bool) -> Self {
        (self.store, self.keeps) = (Some(Store::at(dir)), keeps);
        self
    }

    /// The component. `wants_signatures`: somebody has to have signed it.
    ///
    /// # Errors
    /// Where it is neither kept nor to be had.
    pub async fn pull(
        &self,
        reference: &Reference,
        pull: Pull,
        wants_signatures: bool,
    ) -> Result<Pulled, RegistryFault> {
        let known = match (reference.digest(), &self.store) {
            (Some(digest), _) => Some(digest.to_owned()),
            (None, Some(store)) => store.tagged(reference),
            (None, None) => None,
        };
        let Some(digest) = known else { return self.over_the_wire(reference, None, wants_signatures).await };
        if reference.digest().is_none() && pull == Pull::Always {
            let asked = self.over_the_wire(reference, None, wants_signatures).await;
            let Err(fault) = asked else { return asked };
            let Some(kept) = self.kept(&digest).await else { return Err(fault) };
            tracing::warn!(
                plugin = %reference, digest, cause = fault.what,
                "the registry gave no answer: the plugin that was pulled last is used"
            );
            return Ok(kept);
        }
        match self.kept(&digest).await {
            Some(mut kept) if wants_signatures && kept.signed.is_empty() => {
                // It may have been signed since.
                let signed = async {
                    let wire = self.wire(reference)?;
                    within(wire.signed(reference, &digest)).await
                };
                match signed.await {
                    Ok(signed) => {
                        self.keep(move |store| store.keep_signed(&digest, &signed).map(|()| signed)).await;
                        kept.signed = self.kept(&kept.manifest_digest).await.map(|it| it.signed).unwrap_or_default();
                    }
                    Err(fault) => tracing::warn!(plugin = %reference, cause = fault.what, "no signatures could be had"),
                }
                Ok(kept)
            }
            Some(kept) => Ok(kept),
            None => self.over_the_wire(reference, Some(&digest), wants_signatures).await,
        }
    }

    /// What the store has.
    async fn kept(&self, digest: &str) -> Option<Pulled> {
        let (store, digest, keeps) = (self.store.clone()?, digest.to_owned(), self.keeps);
        let read = move || {
            // So that nothing of it is taken to be unused meanwhile. Where that cannot be had, it is read all the same.
            let _lock = keeps.then(|| store.lock());
            let manifest = store.blob(&digest, MOST_MANIFEST)?;
            let layer = Layer::of(&manifest).ok()?;
            let bytes = store.blob(&layer.digest, MOST_COMPONENT)?;
            if keeps {
                store.used(&digest);
            }
            Some(Pulled { bytes, signed: store.signed(&digest), manifest_digest: digest })
        };
        blocking(read).await.ok().flatten()
    }

    /// Keeps something, where anything is kept. Where that fails the next start needs the registry again.
    async fn keep<T: Send + 'static>(&self, write: impl FnOnce(&Store) -> io::Result<T> + Send + 'static) {
        let Some(store) = self.store.clone().filter(|_| self.keeps) else { return };
        let locked = move || {
            let _lock = store.lock()?;
            write(&store)
        };
        if let Ok(Err(cause)) = blocking(locked).await {
            tracing::warn!(%cause, "what was pulled from a registry could not be kept: the next start pulls it again");
        }
    }

    /// Removes from the folder what none of these needs, as the configuration says.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub async fn remove_unused(&self, in_use: Vec<Reference>) -> io::Result<Removed> {
        let Some(store) = self.store.clone().filter(|_| self.keeps) else { return Ok(Removed::default()) };
        let RegistryConfig { keep_unused, keep_unused_bytes, .. } = self.options.registry;
        let keep = Keep { age: keep_unused, bytes: keep_unused_bytes };
        let removed = blocking(move || store.remove_unused(&in_use, keep, SystemTime::now()));
        removed.await.map_err(io::Error::other)?
    }

    async fn over_the_wire(
        &self,
        reference: &Reference,
        digest: Option<&str>,
        wants_signatures: bool,
    ) -> Result<Pulled, RegistryFault> {
        let wire = self.wire(reference)?;
        let pulled = async {
            let (manifest, digest) = wire.manifest(reference, digest).await?;
            let layer = Layer::of(&manifest)?;
            let bytes = wire.component(reference, &layer).await?;
            let signed = match wire.signed(reference, &digest).await {
                Err(fault) if wants_signatures => return Err(fault),
                signed => signed.unwrap_or_default(),
            };
            Ok((manifest, layer, Pulled { bytes, manifest_digest: digest, signed }))
        };
        let (manifest, layer, pulled) = within(pulled).await?;
        if self.keeps {
            let (bytes, signed, digest) = (pulled.bytes.clone(), pulled.signed.clone(), pulled.manifest_digest.clone());
            let reference = reference.clone();
            self.keep(move |store| {
                store.keep_blob(&layer.digest, &bytes)?;
                store.keep_blob(&digest, &manifest)?;
                store.keep_signed(&digest, &signed)?;
                // Last: a tag that is known stands for something that is there.
                store.keep_tag(&reference, &digest)
            })
            .await;
        }
        Ok(pulled)
    }

    /// Publishes a component. `imports` and `exports` are what its configuration says of it. Gives the digest of the manifest.
    ///
    /// # Errors
    /// Where the registry does not take it.
    pub async fn push(
        &self,
        reference: &Reference,
        component: &[u8],
        imports: &[String],
        exports: &[String],
        key: Option<&PrivateKey>,
    ) -> Result<String, RegistryFault> {
        if reference.digest().is_some() {
            return Err(RegistryFault::new("it is published under a tag, not a digest", "write :TAG"));
        }
        let wire = self.wire(reference)?;
        let layer = digest_of(component);
        let config = json!({
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer],
            "component": { "imports": imports, "exports": exports },
        });
        let pushed = async {
            let digest = wire
                .push(
                    reference.inner(),
                    CONFIG,
                    config.to_string().into_bytes(),
                    vec![(LAYERS[0], component.to_vec(), None)],
                )
                .await?;
            if let Some(key) = key {
                let payload = simple_signing::payload(&reference.repository(), &digest);
                let signature = key.sign(&payload).to_base64();
                // The specification's minimal configuration: the layers are what counts.
                let config = json!({ "architecture": "", "os": "", "config": {}, "rootfs": { "type": "layers", "diff_ids": [digest_of(&payload)] } });
                let config_type = "application/vnd.oci.image.config.v1+json";
                let at = reference.signatures_of(&digest);
                wire.push(
                    &at,
                    config_type,
                    config.to_string().into_bytes(),
                    vec![(simple_signing::MEDIA_TYPE, payload, Some(signature))],
                )
                .await?;
            }
            Ok(digest)
        };
        within(pushed).await
    }

    fn wire(&self, reference: &Reference) -> Result<Wire, RegistryFault> {
        // The one that everything else in this process uses; where it is there already, it stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registry = reference.registry();
        let auth = credentials::of(self.options.registry.credentials_file.as_deref(), registry).map_err(|what| {
            RegistryFault::new(
                what,
                "name a file as `docker login` writes it: plugins: { registry: { credentials_file: … } }",
            )
        })?;
        let http = &self.options.http;
        let proxy = http.proxy.as_ref().map(|proxy| proxy.expose().to_owned());
        let extra_root_certificates = match &http.ca_file {
            None => vec![],
            Some(path) => authorities(path)?,
        };
        let plain = match &self.options.registry.plain_http {
            Some(listed) => listed.iter().any(|host| host == registry),
            None => is_loopback(registry),
        };
        let client = oci_client::Client::try_from(ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            extra_root_certificates,
            connect_timeout: Some(http.connect_timeout),
            read_timeout: Some(http.request_timeout),
            user_agent: concat!("wharf/", env!("CARGO_PKG_VERSION")),
            https_proxy: proxy.clone(),
            // What is on this machine is not behind a proxy.
            no_proxy: Some("localhost,127.0.0.0/8,::1".into()),
            http_proxy: proxy,
            ..ClientConfig::default()
        });
        let client = client.map_err(|error| fault(&error, registry))?;
        Ok(Wire { client, auth, registry: registry.to_owned() })
    }
}

/// One registry, asked.
struct Wire {
    client: oci_client::Client,
    auth: RegistryAuth,
    registry: String,
}

impl Wire {
    /// A manifest's bytes and their digest.
    async fn manifest(&self, reference: &Reference, digest: Option<&str>) -> Result<(Vec<u8>, String), RegistryFault> {
        let at = digest.map_or_else(|| reference.inner().clone(), |digest| reference.at(digest));
        let pulled = self.raw_manifest(&at).await.map_err(|error| fault(&error, &self.registry))?;
        let found = digest_of(&pulled);
        match reference.digest().or(digest) {
            Some(wanted) if wanted != found => Err(RegistryFault::plain(format!(
                "{} answers with a manifest that has the digest {found}, and was asked for {wanted}",
                self.registry
            ))),
            _ => Ok((pulled, found)),
        }
    }

    async fn raw_manifest(&self, at: &oci_client::Reference) -> Result<Vec<u8>, OciDistributionError> {
        let kinds = [OCI_IMAGE_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE];
        let (bytes, _) = self.client.pull_manifest_raw(at, &self.auth, &kinds).await?;
        Ok(bytes.to_vec())
    }

    async fn component(&self, reference: &Reference, layer: &Layer) -> Result<Vec<u8>, RegistryFault> {
        self.blob(reference.inner(), &layer.digest, layer.size).await
    }

    /// Exactly `size` bytes with this digest.
    async fn blob(&self, at: &oci_client::Reference, digest: &str, size: u64) -> Result<Vec<u8>, RegistryFault> {
        let mut bytes = Bounded { bytes: vec![], most: size };
        let pulled = self.client.pull_blob(at, digest, &mut bytes).await;
        pulled.map_err(|error| fault(&error, &self.registry))?;
        if bytes.bytes.len() as u64 != size || !is_digest_of(digest, &bytes.bytes) {
            return Err(RegistryFault::plain(format!(
                "{} answers with other bytes than its manifest names",
                self.registry
            )));
        }
        Ok(bytes.bytes)
    }

    /// What was signed of a manifest; empty where nothing was.
    async fn signed(&self, reference: &Reference, digest: &str) -> Result<Vec<Signed>, RegistryFault> {
        let at = reference.signatures_of(digest);
        let manifest = match self.raw_manifest(&at).await {
            Ok(manifest) => manifest,
            Err(error) if is_missing(&error) => return Ok(vec![]),
            Err(error) => return Err(fault(&error, &self.registry)),
        };
        let manifest: OciImageManifest = serde_json::from_slice(&manifest)
            .map_err(|_| RegistryFault::plain(format!("{} has signatures that cannot be read", self.registry)))?;
        let mut all = vec![];
        for layer in manifest.layers.iter().take(MOST_SIGNATURES) {
            let annotation = layer.annotations.as_ref().and_then(|all| all.get(simple_signing::ANNOTATION));
            let size = u64::try_from(layer.size).unwrap_or(u64::MAX);
            if let Some(signature) = annotation
                && layer.media_type == simple_signing::MEDIA_TYPE
                && size <= MOST_PAYLOAD
            {
                let payload = self.blob(&at, &layer.digest, size).await?;
                all.push(Signed { payload, signature: signature.clone() });
            }
        }
        Ok(all)
    }

    /// Pushes layers (type, bytes, signature), their configuration, and a manifest over them. Gives its digest.
    async fn push(
        &self,
        at: &oci_client::Reference,
        config_type: &str,
        config: Vec<u8>,
        layers: Vec<(&str, Vec<u8>, Option<String>)>,
    ) -> Result<String, RegistryFault> {
        let told = |error: OciDistributionError| fault(&error, &self.registry);
        self.client.store_auth_if_needed(at.resolve_registry(), &self.auth).await;
        let descriptor =
            |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": digest_of(bytes), "size": bytes.len() });
        let mut described: Vec<Value> = vec![];
        let config_descriptor = descriptor(config_type, &config);
        for (kind, bytes, signature) in layers {
            let mut layer = descriptor(kind, &bytes);
            if let (Some(signature), Some(layer)) = (signature, layer.as_object_mut()) {
                layer.insert("annotations".into(), json!({ (simple_signing::ANNOTATION): signature }));
            }
            described.push(layer);
            let digest = digest_of(&bytes);
            self.client.push_blob(at, bytes, &digest).await.map_err(told)?;
        }
        let digest = digest_of(&config);
        self.client.push_blob(at, config, &digest).await.map_err(told)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE_MEDIA_TYPE,
            "config": config_descriptor,
            "layers": described,
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = digest_of(&manifest);
        let kind = http::HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        self.client.push_manifest_raw(at, manifest, kind).await.map_err(told)?;
        Ok(digest)
    }
}

/// The layer of a manifest that is a component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) digest: String,
    size: u64,
}

impl Layer {
    pub(super) fn of(manifest: &[u8]) -> Result<Self, RegistryFault> {
        let help = "`wharf plugin push` publishes a component, and so does `wkg oci push`";
        let manifest: OciImageManifest = serde_json::from_slice(manifest).map_err(|_| {
            RegistryFault::new("what is there is no image with a component, perhaps an index of images", help)
        })?;
        let mut components = manifest.layers.iter().filter(|layer| LAYERS.contains(&layer.media_type.as_str()));
        let (Some(layer), None) = (components.next(), components.next()) else {
            let found: Vec<String> =
                manifest.layers.iter().take(8).map(|layer| one_line(&layer.media_type, 100)).collect();
            let what = format!("what is there has no single component in it: its layers are {}", found.join(", "));
            return Err(RegistryFault::new(what, help));
        };
        let size = u64::try_from(layer.size).unwrap_or(u64::MAX);
        if size > MOST_COMPONENT {
            return Err(RegistryFault::plain(format!(
                "it has {size} bytes, and a component may have at most {MOST_COMPONENT}"
            )));
        }
        Ok(Self { digest: layer.digest.clone(), size })
    }
}

/// Takes as many bytes as were told of, and no more.
struct Bounded {
    bytes: Vec<u8>,
    most: u64,
}

impl tokio::io::AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, piece: &[u8]) -> Poll<io::Result<usize>> {
        if (self.bytes.len() as u64).saturating_add(piece.len() as u64) > self.most {
            return Poll::Ready(Err(io::Error::other("the registry sends more bytes than its manifest names")));
        }
        self.bytes.extend_from_slice(piece);
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn within<T>(work: impl Future<Output = Result<T, RegistryFault>>) -> Result<T, RegistryFault> {
    tokio::time::timeout(WHOLE, work)
        .await
        .unwrap_or_else(|_| Err(RegistryFault::plain(format!("the registry took longer than {} s", WHOLE.as_secs()))))
}

fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// `127.0.0.1:5000`, `localhost`: what never leaves this machine needs no TLS.
fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, RegistryFault> {
    let told = |cause: &str| RegistryFault::plain(format!("http.ca_file {}: {cause}", path.display()));
    let pem = std::fs::read_to_string(path).map_err(|cause| told(&cause.to_string()))?;
    // A certificate each: the client takes no bundles.
    let end = "-----END CERTIFICATE-----";
    let begin = "-----BEGIN CERTIFICATE-----";
    let all: Vec<Certificate> = pem
        .split_inclusive(end)
        .filter_map(|part| part.find(begin).and_then(|at| part.get(at..)))
        .map(|one| Certificate { encoding: CertificateEncoding::Pem, data: one.as_bytes().to_vec() })
        .collect();
    if all.is_empty() { Err(told("it has no certificate in PEM form")) } else { Ok(all) }
}

fn is_missing(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => envelope.errors.iter().any(|error| {
            matches!(
                error.code,
                OciErrorCode::ManifestUnknown
                    | OciErrorCode::NameUnknown
                    | OciErrorCode::NotFound
                    | OciErrorCode::BlobUnknown
            )
        }),
        OciDistributionError::ServerError { code, .. } => *code == 404,
        OciDistributionError::ImageManifestNotFoundError(_) => true,
        _ => false,
    }
}

/// The client's trouble in words for whoever runs Wharf.
fn fault(error: &OciDistributionError, registry: &str) -> RegistryFault {
    let cause = cut(&one_line(&crate::causes::chain(error), TEXT_BYTES), TEXT_BYTES).to_owned();
    if is_missing(error) {
        return RegistryFault::new(
            format!("{registry} has no such component"),
            "see that repository, tag or digest are right; a private repository may need credentials to be seen (plugins.registry.credentials_file)",
        );
    }
    let is_refused = match error {
        OciDistributionError::UnauthorizedError { .. } | OciDistributionError::AuthenticationFailure(_) => true,
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| matches!(error.code, OciErrorCode::Unauthorized | OciErrorCode::Denied))
        }
        OciDistributionError::ServerError { code, .. } => matches!(code, 401 | 403),
        _ => false,
    };
    if is_refused {
        return RegistryFault::new(
            format!("{registry} does not let this Wharf in"),
            "name a file with credentials as `docker login` writes it: plugins: { registry: { credentials_file: … } }",
        );
    }
    if matches!(error, OciDistributionError::RequestError(error) if error.is_connect() || error.is_timeout()) {
        return RegistryFault::new(
            format!("{registry} cannot be reached: {cause}"),
            "see that it runs and can be reached from here (http.proxy, http.ca_file); one that speaks no TLS has to be named: plugins: { registry: { plain_http: [HOST] } }",
        );
    }
    RegistryFault::plain(format!("{registry}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_on_this_machine_is_asked_without_tls() {
        for (registry, plain) in [
            ("127.0.0.1:5000", true),
            ("localhost", true),
            ("localhost:5000", true),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com:5000", false),
            ("10.0.0.1:5000", false),
            ("registry.example.com", false),
        ] {
            assert_eq!(is_loopback(registry), plain, "{registry}");
        }
    }

    #[test]
    fn a_manifest_has_one_component_of_a_size_that_is_allowed() {
        let manifest = |layers: &[(&str, i64)]| {
            let layers: Vec<Value> = layers
                .iter()
                .map(|(kind, size)| json!({ "mediaType": kind, "digest": "sha256:aa", "size": size }))
                .collect();
            let config = json!({ "mediaType": CONFIG, "digest": "sha256:bb", "size": 2 });
            Layer::of(json!({ "schemaVersion": 2, "config": config, "layers": layers }).to_string().as_bytes())
        };
        let layer = Layer { digest: "sha256:aa".into(), size: 7 };
        assert_eq!(manifest(&[("application/wasm", 7)]), Ok(layer));
        assert!(manifest(&[("text/plain", 3), ("application/vnd.wasm.content.layer.v1+wasm", 7)]).is_ok());
        for (layers, told) in [
            (vec![], "no single component"),
            (vec![("application/wasm", 1), ("application/wasm", 1)], "no single component"),
            (vec![("application/vnd.oci.image.layer.v1.tar", 1)], "layers are application/vnd.oci.image.layer.v1.tar"),
            (vec![("application/wasm", 65 << 20)], "may have at most"),
            (vec![("application/wasm", -1)], "may have at most"),
        ] {
            assert!(manifest(&layers).unwrap_err().what.contains(told), "{layers:?}");
        }
        assert!(Layer::of(br#"{"schemaVersion":2,"manifests":[]}"#).unwrap_err().what.contains("index of images"));
    }
}
