//! What was pulled, on the disk: manifests and components by their SHA-256, the digest that each tag last stood for, and what was signed.
//!
//! A file is never trusted for its name: whoever reads it compares the digest. The folder is its user's alone, since the digest of a tag
//! has nothing else to vouch for it. It may be removed at any time; what is needed is pulled again. Whoever writes or removes holds its [lock](Store::lock), so that
//! nothing of what is being kept is removed between one file and the next.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aws_smithy_types::base64;
use rustix::fs::FlockOperation;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Reference;
use super::unused::touch;
use crate::trust::simple_signing::Signed;

/// Where pulled components are kept.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
}

impl Store {
    pub(super) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Waits until nobody else changes the folder, whichever process it is. Let go of when it is dropped.
    pub(super) fn lock(&self) -> io::Result<fs::File> {
        self.make()?;
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.dir.join("lock"))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// The blob is used now: its time is not over.
    pub(super) fn used(&self, digest: &str) {
        if let Some(hex) = hex_of(digest) {
            // Failing only makes it go sooner once nobody uses it.
            let _ = touch(&self.dir.join("blobs").join(hex), SystemTime::now());
        }
    }

    /// Bytes of the blob; 0 where it is not there.
    pub(super) fn blob_bytes(&self, digest: &str) -> u64 {
        let metadata = hex_of(digest).and_then(|hex| fs::metadata(self.dir.join("blobs").join(hex)).ok());
        metadata.map_or(0, |metadata| metadata.len())
    }

    /// The bytes with this digest (`sha256:…`), at most `most` of them. None where they are not there, or are not what their name says.
    pub(super) fn blob(&self, digest: &str, most: u64) -> Option<Vec<u8>> {
        let path = self.dir.join("blobs").join(hex_of(digest)?);
        let mut bytes = vec![];
        fs::File::open(&path).ok()?.take(most.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        if is_digest_of(digest, &bytes) {
            return Some(bytes);
        }
        tracing::warn!(file = %path.display(), "what was pulled from a registry is damaged: it is removed, and pulled again");
        let _ = fs::remove_file(&path);
        None
    }

    pub(super) fn keep_blob(&self, digest: &str, bytes: &[u8]) -> io::Result<()> {
        let name = hex_of(digest).ok_or(io::ErrorKind::InvalidInput)?;
        self.write("blobs", name, bytes)
    }

    /// The digest that a tag stood for when it was pulled last.
    pub(super) fn tagged(&self, reference: &Reference) -> Option<String> {
        let text = fs::read(self.dir.join("tags").join(tag_name(reference))).ok()?;
        let row: Value = serde_json::from_slice(&text).ok()?;
        // Two references could only share a file if SHA-256 were broken; the name is also for whoever looks at it.
        let same = row.get("reference")?.as_str()? == reference.to_string();
        row.get("digest")?.as_str().filter(|digest| same && hex_of(digest).is_some()).map(str::to_owned)
    }

    pub(super) fn keep_tag(&self, reference: &Reference, digest: &str) -> io::Result<()> {
        let row = json!({ "reference": reference.to_string(), "digest": digest });
        self.write("tags", &tag_name(reference), row.to_string().as_bytes())
    }

    /// What was signed of a manifest. Empty where nothing is known.
    pub(super) fn signed(&self, digest: &str) -> Vec<Signed> {
        let read = || -> Option<Vec<Signed>> {
            let text = fs::read(self.dir.join("signatures").join(hex_of(digest)?)).ok()?;
            let rows: Vec<Value> = serde_json::from_slice(&text).ok()?;
            let one = |row: &Value| {
                let payload = base64::decode(row.get("payload")?.as_str()?).ok()?;
                Some(Signed { payload, signature: row.get("signature")?.as_str()?.to_owned() })
            };
            Some(rows.iter().filter_map(one).collect())
        };
        read().unwrap_or_default()
    }

    pub(super) fn keep_signed(&self, digest: &str, signed: &[Signed]) -> io::Result<()> {
        let name = hex_of(digest).ok_or(io::ErrorKind::InvalidInput)?;
        let rows: Vec<Value> = signed
            .iter()
            .map(|one| json!({ "payload": base64::encode(&one.payload), "signature": one.signature }))
            .collect();
        self.write("signatures", name, Value::from(rows).to_string().as_bytes())
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o700))
    }

    /// A whole file or none.
    fn write(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make()?;
        let folder = self.dir.join(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(folder.join(name))?;
        Ok(())
    }
}

/// Whether these bytes have this digest (`sha256:…`).
pub(super) fn is_digest_of(digest: &str, bytes: &[u8]) -> bool {
    hex_of(digest).is_some_and(|hex| hex == hex::encode(Sha256::digest(bytes)))
}

/// The 64 digits of `sha256:…`: nothing that could leave a folder.
fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    (hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))).then_some(hex)
}

fn tag_name(reference: &Reference) -> String {
    hex::encode(Sha256::digest(reference.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> String {
        format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
    }

    #[test]
    fn bytes_come_back_as_they_were_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(&dir.path().join("oci"));
        let name = digest(b"component");
        assert_eq!(store.blob(&name, 100), None);
        store.keep_blob(&name, b"component").unwrap();
        assert_eq!(store.blob(&name, 100).as_deref(), Some(&b"component"[..]));
        let file = dir.path().join("oci/blobs").join(&name[7..]);
        for bytes in [&b"componenT"[..], b"component and more", b"comp"] {
            fs::write(&file, bytes).unwrap();
            assert_eq!(store.blob(&name, 100), None, "{bytes:?}");
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_tag_stands_for_what_it_was_last_pulled_as() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let reference = |text: &str| Reference::parse(text).unwrap();
        let (one, other) = (reference("oci://r.example/a:1"), reference("oci://r.example/a:2"));
        store.keep_tag(&one, &digest(b"old")).unwrap();
        store.keep_tag(&one, &digest(b"new")).unwrap();
        assert_eq!((store.tagged(&one), store.tagged(&other)), (Some(digest(b"new")), None));
        // A row of one tag in the place of another one's.
        fs::copy(dir.path().join("tags").join(tag_name(&one)), dir.path().join("tags").join(tag_name(&other))).unwrap();
        assert_eq!(store.tagged(&other), None);
    }

    #[test]
    fn the_folder_is_its_users_alone_and_no_digest_leads_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(&dir.path().join("oci"));
        store.keep_blob(&digest(b"a"), b"a").unwrap();
        assert_eq!(fs::metadata(dir.path().join("oci")).unwrap().permissions().mode() & 0o777, 0o700);
        for bad in ["sha256:../../etc/passwd", "sha256:", "../x", &format!("sha256:{}", "A".repeat(64))] {
            assert!(store.keep_blob(bad, b"a").is_err() && store.blob(bad, 10).is_none(), "{bad}");
        }
    }
}
