//! What is meant in a registry.

use std::fmt;

/// What references begin with.
const SCHEME: &str = "oci://";

/// A component in a registry: by tag, by digest of its manifest, or by both (then the digest counts).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference(oci_client::Reference);

impl Reference {
    /// Whether a text is meant as one.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// From `oci://registry/repository:tag` or `oci://registry/repository@sha256:…`.
    ///
    /// # Errors
    /// What is wrong with it. The text itself is not shown.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix(SCHEME).ok_or("a reference to a registry begins with oci://")?;
        let (registry, repository) = rest.split_once('/').ok_or("it names a registry, and no repository in it")?;
        if !(registry.contains(['.', ':']) || registry == "localhost") {
            return Err("the registry comes first, as a host name: oci://registry.example.com/repository:tag".into());
        }
        if !repository.contains([':', '@']) {
            return Err("it has neither a tag nor a digest: write :TAG or @sha256:DIGEST behind it".into());
        }
        let reference: oci_client::Reference =
            rest.parse().map_err(|error: oci_client::ParseError| error.to_string())?;
        if reference.digest().is_some_and(|digest| !digest.starts_with("sha256:")) {
            return Err("its digest is no SHA-256".into());
        }
        Ok(Self(reference))
    }

    /// The host, and its port where it has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        self.0.registry()
    }

    /// The digest of the manifest (`sha256:…`), where it names one.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.0.digest()
    }

    pub(super) fn inner(&self) -> &oci_client::Reference {
        &self.0
    }

    /// `registry/repository`
    #[must_use]
    pub fn repository(&self) -> String {
        format!("{}/{}", self.0.registry(), self.0.repository())
    }

    /// The same repository at a digest.
    pub(super) fn at(&self, digest: &str) -> oci_client::Reference {
        self.0.clone_with_digest(digest.to_owned())
    }

    /// Where cosign keeps what it signed of a manifest.
    pub(super) fn signatures_of(&self, digest: &str) -> oci_client::Reference {
        let tag = format!("{}.sig", digest.replacen(':', "-", 1));
        oci_client::Reference::with_tag(self.0.registry().to_owned(), self.0.repository().to_owned(), tag)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_registry_repository_and_tag_or_digest() {
        let digest = "a".repeat(64);
        for (text, good) in [
            ("oci://registry.example.com/team/to-acme:1.2.0".to_owned(), true),
            ("oci://127.0.0.1:5000/to-acme:latest".to_owned(), true),
            ("oci://localhost/to-acme:1".to_owned(), true),
            (format!("oci://ghcr.io/team/to-acme@sha256:{digest}"), true),
            (format!("oci://ghcr.io/team/to-acme:1@sha256:{digest}"), true),
            ("oci://ghcr.io/team/to-acme".to_owned(), false),
            ("oci://team/to-acme:1".to_owned(), false),
            ("oci://ghcr.io".to_owned(), false),
            ("oci://ghcr.io/Team/to-acme:1".to_owned(), false),
            (format!("oci://ghcr.io/to-acme@sha512:{digest}{digest}"), false),
            ("oci://ghcr.io/to-acme@sha256:abc".to_owned(), false),
            ("ghcr.io/to-acme:1".to_owned(), false),
        ] {
            let parsed = Reference::parse(&text);
            assert_eq!(parsed.is_ok(), good, "{text}: {parsed:?}");
            if let Ok(reference) = parsed {
                assert_eq!(reference.to_string(), text);
            }
        }
    }

    #[test]
    fn signatures_of_a_manifest_have_a_tag_of_its_digest() {
        let reference = Reference::parse("oci://ghcr.io/team/to-acme:1").unwrap();
        assert_eq!(reference.signatures_of("sha256:abc").to_string(), "ghcr.io/team/to-acme:sha256-abc.sig");
    }
}
